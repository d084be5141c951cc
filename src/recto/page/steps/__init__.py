"""The steps a conversation takes to its page, a file for each, in the order `assemble` takes them.

- `compact`: without what a summary stands for (R13)
- `window`: the newest messages of history (S1, S2)
- `repair`: no call without its result, no result without its call (R10)
- `strip_ui_hints`: tool results without what is for clients (P14)
- `add_error_texts`: failed tool results with the error in words (P11)
- `guard`: tool results that cannot pose as ours (F3)
- `remind`: user messages with files, datasets, context and time (F1, F2)
- `fit`: what the target cannot carry is changed or left out; order and ids as its provider demands
- `closing`: how the conversation ends
- `prompted`: calls and results as words, for a model that has no native calls (P11)
"""
