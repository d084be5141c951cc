"""Titles of threads: the first words of the user, or a title that the user sets."""

from __future__ import annotations

import re

from recto.errors import WireError

LONGEST = 60
# The limit of a title that a user sets.
MOST = 200
CONTROLS = frozenset(map(chr, (*range(0x20), *range(0x7F, 0xA0), 0x2028, 0x2029)))
CUT = "…"
# The maximum number of characters to process.
READ = 2_000
# A visible character: a letter with accents, or an emoji with modifiers and joined emoji.
CHARACTER = re.compile(r".(?:[\u0300-\u036f\u20e3\ufe00-\ufe0f\U0001f3fb-\U0001f3ff]|\u200d.)*", re.DOTALL)
# Unprintable joiners that Persian words and emoji sequences need.
JOINERS = "\u200c\u200d"
# From this code point on, scripts are written without spaces between words.
UNSPACED = "\u2e80"


def title_from(words: str) -> str | None:
    """Return up to 60 characters of a text on one line, cut between words if possible; None for an empty text."""
    line = " ".join(words[:READ].split())
    if not line.isprintable():
        printable = [
            " " if letter.isspace() else letter if letter.isprintable() or letter in JOINERS else "" for letter in line
        ]
        line = " ".join("".join(printable).split())
    characters: list[str] = CHARACTER.findall(line)
    if len(characters) <= LONGEST:
        return line or None
    end = LONGEST - 1
    if not any(map(_ends_word, characters[end - 1 : end + 1])):
        # The cut is inside a word: drop the word unless more than half of the title would go.
        end = next((place + 1 for place in range(end - 1, LONGEST // 2, -1) if _ends_word(characters[place])), end)
    return "".join(characters[:end]).rstrip() + CUT


def _ends_word(character: str) -> bool:
    return character == " " or character >= UNSPACED


def check_title(title: object) -> str:
    """Return a title set by a user, trimmed. Raise a WireError unless it is one line of 1 to 200 characters."""
    if not isinstance(title, str):
        raise WireError(where="title", problem="must be a text")
    trimmed = title.strip()
    if not 0 < len(trimmed) <= MOST:
        raise WireError(where="title", problem=f"must have 1 to {MOST} characters, has {len(trimmed)}")
    if any(letter in CONTROLS for letter in trimmed):
        raise WireError(where="title", problem="holds a line break or another control character; take it out")
    return trimmed
