"""Calendar, sky and cards: births, charts and spreads, all computed from values. Refuses to know who asks.

- `bilingual`: a name or a sentence in both languages
- `birth`: when and where somebody was born, from what people write
- `bazi`: the four pillars of a birth
- `sky`: planets, houses and aspects: the western chart of a birth, and the sky of now
- `tarot`: spreads of tarot cards
- `chart_rows`: charts and draws as a skill keeps them and a model reads them
- `cards`: charts, draws and births as people see them
- `profile_updates`: a profile with what its user has said since
"""
