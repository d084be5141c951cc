"""Command output as plain text: no colours, no cursor movement, only the last state of a redrawn line."""

from __future__ import annotations

import re

# Terminal sequences: with parameters; titles and links; character set choices; and single letters.
_ESCAPES = re.compile(
    r"\x1b\[[0-?]*[ -/]*[@-~]|\x1b\][^\x07\x1b]*(?:\x07|\x1b\\)?|\x1b[PX^_][^\x1b]*(?:\x1b\\)?"
    r"|\x1b[ -/]+[0-~]|\x1b[0-~]?"
)
_DRAWN_OVER = re.compile(r"[^\n]*\r(?=[^\n\r])")
_CONTROLS = re.compile(r"[\x00-\x08\x0b-\x1f\x7f]")


def clean(text: str) -> str:
    """Remove everything from whole lines, or the last part of one, that only a terminal understands."""
    if "\x1b" in text:
        text = _ESCAPES.sub("", text)
    if "\r" in text:
        text = _DRAWN_OVER.sub("", text)
    return _CONTROLS.sub("", text)
