"""Titles of threads: from the first words said, or as a user gives one. Refuses to understand them."""

from __future__ import annotations

import re

from recto.errors import WireError

LONGEST = 60
# Of a title a user gives.
MOST = 200
CONTROLS = frozenset(map(chr, (*range(0x20), *range(0x7F, 0xA0), 0x2028, 0x2029)))
CUT = "…"
# However long the words are, a title needs only their beginning.
READ = 2_000
# What looks like one character to people: a letter with its accents, an emoji with its colour and its family.
CHARACTER = re.compile(r".(?:[\u0300-\u036f\u20e3\ufe00-\ufe0f\U0001f3fb-\U0001f3ff]|\u200d.)*", re.DOTALL)
# Joiners are no letters, but Persian words and emoji families need them.
JOINERS = "\u200c\u200d"
# From here on scripts are written without spaces between words.
UNSPACED = "\u2e80"


def title_from(words: str) -> str | None:
    """Up to 60 characters of the words in one line, cut between words where there are spaces. No words: None."""
    line = " ".join(words[:READ].split())
    if not line.isprintable():
        line = " ".join("".join(map(_plain, line)).split())
    characters: list[str] = CHARACTER.findall(line)
    if len(characters) <= LONGEST:
        return line or None
    kept = characters[: LONGEST - 1]
    if _is_in_word(kept[-1], characters[LONGEST - 1]):
        kept = _whole_words(kept)
    return "".join(kept).rstrip() + CUT


def _plain(letter: str) -> str:
    if letter.isspace():
        return " "
    return letter if letter.isprintable() or letter in JOINERS else ""


def _is_in_word(before: str, after: str) -> bool:
    return all(character != " " and character < UNSPACED for character in (before, after))


def _whole_words(characters: list[str]) -> list[str]:
    """Without the word that is cut, where enough stays without it."""
    places = range(len(characters) - 1, LONGEST // 2, -1)
    ends = (place for place in places if characters[place] == " " or characters[place] >= UNSPACED)
    place = next(ends, len(characters) - 1)
    return characters[: place + 1]


def check_title(title: object) -> str:
    """A title as a user gave it, trimmed. What is no line of 1 to 200 characters raises WireError."""
    if not isinstance(title, str):
        raise WireError(where="title", problem="must be a text")
    trimmed = title.strip()
    if not 0 < len(trimmed) <= MOST:
        raise WireError(where="title", problem=f"must have 1 to {MOST} characters, has {len(trimmed)}")
    if any(letter in CONTROLS for letter in trimmed):
        raise WireError(where="title", problem="holds a line break or another control character; take it out")
    return trimmed
