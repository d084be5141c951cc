"""A birth, read from what people write.

- `birth_words`: dates and times as people write them, in digits, Chinese and English
- `places`: where the larger cities lie, by Chinese or English name, read once from cities.csv
- `birth`: when and where somebody was born, read from what a profile keeps
"""
