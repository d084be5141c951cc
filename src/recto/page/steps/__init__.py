"""The steps of page.

- `closing`: how a page ends
- `compact`: compaction (R13)
- `failures`: tool results that failed, as the model reads them
- `fit`: fit a conversation to the model it goes to
- `fit_order`: order and ids as providers demand them
- `prompted`: calls and results as words, for a model that has no native tool calls (P11)
- `remind`: user messages as the model sees them (F1, F2), and tool results that cannot pose as ours (F3)
- `repair`: repair (R10)
- `strip_ui_hints`: tool results as the model sees them
- `window`: the window of history (S1, S2)
"""
