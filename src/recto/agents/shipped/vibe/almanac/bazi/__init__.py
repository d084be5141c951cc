"""The bazi of almanac.

- `bazi`: the four pillars of a birth, their strength and luck cycles, words to find cases by
- `bazi_notes`: what a chart of four pillars rests on and leaves open, said in words
- `bazi_strength`: how strong a day master is, by one simple stated method
- `bazi_words`: the words of the four pillars, Chinese and English
- `luck`: luck cycles (大运)
- `pillars`: the pillars of a moment, by the calendar library
"""
