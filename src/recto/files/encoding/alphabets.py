"""The encoding of Cyrillic, Arabic, Hebrew, Greek or Thai words, by their commonest letters. Guesses at no others."""

from __future__ import annotations

import re

# The letters that make more than half of any text, and the encodings of their alphabet.
ALPHABETS: tuple[tuple[str, tuple[str, ...]], ...] = (
    ("оеаинтсрвлі", ("cp1251", "koi8_u", "cp866", "iso8859_5", "mac_cyrillic")),
    ("اليومنترب", ("cp1256", "iso8859_6")),
    ("יוהלאתרמבש", ("cp1255", "cp862")),
    ("αιοετσνηυρπκςά", ("cp1253", "cp737")),
    ("านรอกเงมยลวดท่้ัี", ("cp874",)),
)
# Less is too little to tell by.
FEWEST = 5
COMMON_SHARE = 0.5
# Of words with such letters, how much may be ASCII: in those of Europe most is.
ASCII_SHARE = 0.1
CAPITAL = 0.9
_HIGH = re.compile(rb"[\x80-\xff]")
_WORD = re.compile(rb"[A-Za-z]*+[\x80-\xff][A-Za-z\x80-\xff]*+")
_PLAIN = re.compile(rb"[A-Za-z]")


def alphabet_of(sample: bytes) -> str | None:
    """The encoding in which these are words of an alphabet; None where in none they are."""
    words = b"".join(_WORD.findall(sample))
    high = _HIGH.findall(words)
    if len(high) < FEWEST or len(_PLAIN.findall(words)) > ASCII_SHARE * len(words):
        return None
    data = b"".join(high)
    likely = [(_share(data, encoding, letters), encoding) for letters, known in ALPHABETS for encoding in known]
    share, best = max(likely, key=lambda one: one[0])
    return best if share >= COMMON_SHARE else None


def _share(data: bytes, encoding: str, letters: str) -> float:
    """How many of the characters are common letters; capitals are less so, and say a little less."""
    text = data.decode(encoding, "replace")
    small = sum(map(text.count, letters))
    large = sum(map(text.count, letters.upper())) if letters.upper() != letters else 0
    return (small + CAPITAL * large) / len(text)
