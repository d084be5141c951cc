"""The tarot of almanac.

- `tarot`: spreads of tarot cards, drawn from a seed
- `tarot_deck`: the 78 cards, their names and keywords in Chinese and English
"""
