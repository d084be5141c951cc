"""The sky: where everything stands at a moment, and the western chart of a birth.

- `sky`: where Sun, Moon and planets stand at a moment, seen from the Earth's centre
- `houses`: ascendant, midheaven and the twelve houses of a place at a moment
- `aspects`: angles between bodies that count
- `zodiac_words`: what signs, bodies and aspects are called, in Chinese and English
- `zodiac`: the western chart of a birth
- `current_sky`: the sky of now, with Mercury's retrogrades
"""
