"""What a command printed, as text for a model: no colours, no moves of a cursor, of a line that was drawn anew its last
state.
"""

from __future__ import annotations

import re

# Sequences for a terminal: with parameters; titles and links; choices of a character set; and single letters.
_ESCAPES = re.compile(
    r"\x1b\[[0-?]*[ -/]*[@-~]|\x1b\][^\x07\x1b]*(?:\x07|\x1b\\)?|\x1b[PX^_][^\x1b]*(?:\x1b\\)?"
    r"|\x1b[ -/]+[0-~]|\x1b[0-~]?"
)
_DRAWN_OVER = re.compile(r"[^\n]*\r(?=[^\n\r])")
_CONTROLS = re.compile(r"[\x00-\x08\x0b-\x1f\x7f]")


def clean(text: str) -> str:
    """Text of whole lines, or the end of one, with nothing in it that only a terminal understands."""
    if "\x1b" in text:
        text = _ESCAPES.sub("", text)
    if "\r" in text:
        text = _DRAWN_OVER.sub("", text)
    return _CONTROLS.sub("", text)
