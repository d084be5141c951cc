"""Folding (R1-R9): superseded tool results become one line, in the page only.

Folding by cost (X2) tracks the same tool activity and folds in steps that save money.
"""
