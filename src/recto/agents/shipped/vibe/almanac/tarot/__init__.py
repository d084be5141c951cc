"""Tarot: cards, and spreads of them.

- `tarot_deck`: the 78 cards, their names and keywords in Chinese and English
- `tarot`: spreads of tarot cards, drawn from a seed
"""
