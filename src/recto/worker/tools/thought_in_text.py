"""The thought a reply begins with, in tags of the model's own: told apart from the words as they come. Pure.

Only what begins a reply is one. Tags of that name among words are spoken of.
"""

from __future__ import annotations

import re
from typing import Literal

_NAMES = ("think", "thinking")
_OPENS = re.compile(rf"\s*<({'|'.join(_NAMES)})>\s*", re.IGNORECASE)
_LONGEST_TAG = max(map(len, _NAMES)) + len("</>")


class ThoughtInText:
    """One reply. What may be part of a tag waits for the next piece."""

    def __init__(self) -> None:
        self._waits = ""
        self._place: Literal["start", "thought", "words"] = "start"
        self._closing = ""

    @property
    def is_open(self) -> bool:
        """Whether the reply is inside of its thought."""
        return self._place == "thought"

    def split(self, text: str) -> tuple[str, str]:
        """More of the reply: what of it is thought, and what is words."""
        text, self._waits = self._waits + text, ""
        if self._place == "start":
            text = self._begin(text)
        if self._place == "words":
            return "", text
        thought, closing, words = text.partition(self._closing) if self.is_open else (text, "", "")
        if closing:
            self._place = "words"
            return thought, words
        return self._hold_back(thought), ""

    def end(self) -> tuple[str, str]:
        """The reply is over: what waited, as thought or as words."""
        waits, self._waits = self._waits, ""
        return (waits, "") if self.is_open else ("", waits)

    def _begin(self, text: str) -> str:
        """What follows the tag of a thought, if the reply begins with one; else the text."""
        if opening := _OPENS.match(text):
            self._place, self._closing = "thought", f"</{opening[1]}>"
            return text[opening.end() :]
        if not any(f"<{name}>".startswith(text.strip().lower()) for name in _NAMES):
            self._place = "words"
        return text

    def _hold_back(self, thought: str) -> str:
        """A thought without what may be the beginning of its end; nothing yet of what may become one."""
        if not self.is_open:
            self._waits = thought
            return ""
        for size in range(min(_LONGEST_TAG, len(thought)), 0, -1):
            if self._closing.startswith(thought[-size:]):
                self._waits = thought[-size:]
                return thought[:-size]
        return thought
