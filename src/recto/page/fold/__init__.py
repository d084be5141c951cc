"""Folding (R1-R9): old tool results that newer ones stand for become a line, in the page only.

- `failures`: results that report an error
- `rules`: the rules, each one value: its tools, how many results stay, how old one may be, how people set it
- `paths`: which file a path means (R4)
- `fold_settings`: the rules that are on, as they are set (R11)
- `observations`: what the rules look at in a conversation
- `fold`: which of these are not needed any more, and what stands in their place
"""
