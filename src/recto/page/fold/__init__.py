"""Folding (R1-R9): superseded tool results become one line, in the page only.

Folding by cost (X2) uses the same activity of tools and folds in steps that save money.
"""
