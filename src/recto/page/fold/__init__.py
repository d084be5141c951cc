"""The fold of page.

- `fold`: folding (R1-R9)
- `fold_settings`: settings of folding (R11)
- `observations`: what a conversation read, ran and searched, when, and with what luck
- `paths`: which file a path means (R4)
"""
