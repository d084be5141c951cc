"""The four pillars (八字) of a birth, and what follows from them.

- `bazi_words`: the words of the four pillars, Chinese and English
- `pillars`: the pillars of a moment, by the calendar library
- `bazi_strength`: how strong a day master is, by one simple stated method
- `luck`: luck cycles (大运)
- `bazi`: the chart of a birth: pillars, strength, luck cycles, words to find cases by
- `bazi_notes`: what a chart rests on and leaves open, in words
"""
