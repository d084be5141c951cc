"""Folding (R1-R9): old tool results that newer ones stand for become a line, in the page only.

- `fold_settings`: which tools, how many results stay, how old one may be (R11)
- `paths`: which file a path means (R4)
- `observations`: what a conversation read, ran and searched
- `fold`: which of these are not needed any more, and what stands in their place
"""
