"""The sky of almanac.

- `aspects`: aspects
- `current_sky`: the sky at a moment
- `houses`: ascendant, midheaven and the twelve houses of a place at a moment
- `sky`: where Sun, Moon and planets stand at a moment, seen from the Earth's centre
- `zodiac`: the western chart of a birth
- `zodiac_words`: what signs, bodies and aspects are called, in Chinese and English
"""
