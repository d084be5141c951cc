"""Labels of list items. An item whose number is unknown gets `NO_NUMBER`."""

from __future__ import annotations

import re
from collections import defaultdict, deque
from collections.abc import Iterable

NO_NUMBER = "-"
_ROMAN = ((1000, "m"), (900, "cm"), (500, "d"), (400, "cd"), (100, "c"), (90, "xc"), (50, "l"), (40, "xl"))
_ROMAN_ONES = ((10, "x"), (9, "ix"), (5, "v"), (4, "iv"), (1, "i"))
_CHINESE = "零一二三四五六七八九"
_HUNDRED = 100
_MOST_ROMAN = 4_000
_CIRCLES = 20
# Marks of xberg for notes and comments.
_MARKS = re.compile(r"\[(?:cmt:|\^)\w+\]")


class Labels:
    """The labels of list items, by the text of the item. Items with the same text get their labels in order."""

    def __init__(self, labels: Iterable[tuple[str, str]]) -> None:
        self._waiting: defaultdict[str, deque[str]] = defaultdict(deque)
        for words, label in labels:
            self._waiting[_squeezed(words)].append(label or NO_NUMBER)

    def take(self, words: str) -> str | None:
        """Return the label of the next item with this text; None if it is unknown."""
        waiting = self._waiting.get(_squeezed(_MARKS.sub("", words)))
        return waiting.popleft() if waiting else None


def format_number(number: int, way: str) -> str:
    """Format a number of a list, with the format names of docx; empty for unknown formats."""
    if number < 1:
        return str(number) if way == "decimal" else ""
    match way:
        case "decimal":
            return str(number)
        case "decimalZero":
            return f"{number:02}"
        case "lowerLetter":
            return chr(ord("a") + (number - 1) % 26) * min(9, 1 + (number - 1) // 26)
        case "upperLetter":
            return format_number(number, "lowerLetter").upper()
        case "lowerRoman":
            return _roman(number)
        case "upperRoman":
            return _roman(number).upper()
        case "chineseCounting" | "chineseCountingThousand" | "japaneseCounting" | "taiwaneseCountingThousand":
            tens, ones = divmod(number, 10)
            if number >= _HUNDRED:
                return ""
            return (_CHINESE[tens] if tens > 1 else "") + ("十" if tens else "") + (_CHINESE[ones] if ones else "")
        case "decimalEnclosedCircle" | "decimalEnclosedCircleChinese":
            return chr(ord("①") + number - 1) if number <= _CIRCLES else ""
        case _:
            return ""


def _roman(number: int) -> str:
    out = ""
    for value, letters in (*_ROMAN, *_ROMAN_ONES) if number < _MOST_ROMAN else ():
        out += letters * (number // value)
        number %= value
    return out


def _squeezed(words: str) -> str:
    return "".join(words.split())
