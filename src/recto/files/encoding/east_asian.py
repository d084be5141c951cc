"""Chinese, Japanese and Korean in older encodings: which one it is, and its text. Bears bad and missing bytes."""

from __future__ import annotations

import re
from functools import cache, lru_cache
from typing import NamedTuple

UNREADABLE = "\ufffd"
# Of what is not ASCII, so many are everyday characters. Read in a wrong encoding they are fewer.
SURE, LIKELY = 0.85, 0.6
# Enough to tell an encoding by.
SAMPLE_BYTES = 4_096
# The first of those that fit as well as any. Each is the largest of its family: cp932 is Shift-JIS with what Windows
# adds, cp949 is so for EUC-KR.
ENCODINGS = ("gb18030", "big5", "cp932", "euc_jp", "cp949")
# Where the everyday characters of a standard stand, by their first bytes; and the standards of each encoding.
_STANDARDS = {
    "gb2312": (*range(0xB0, 0xD8),),
    "big5": (*range(0xA4, 0xC7),),
    "euc_jp": (0xA4, 0xA5, *range(0xB0, 0xD0)),
    "euc_kr": (*range(0xB0, 0xC9),),
}
_KNOWN = {"gb18030": ("gb2312", "big5"), "big5": ("big5",), "cp932": ("euc_jp",), "cp949": ("euc_kr",)}
_SIGNS = "·‘’“”—…、。《》「」『』【】〜・ー！（），：；？０１２３４５６７８９￥\u3000"
_SEVEN_BIT = re.compile(rb"[\x00-\x7f]")
_WIDE = re.compile(r"[^\x00-\x7f]+")
# What tells a language from another whose everyday characters have the same bytes, and how much of it there is.
_DISTINCT = {"euc_jp": "[ぁ-んァ-ヶ]", "cp949": "[이다는을의에가고하지로은리기사도인를한정서]"}
_DISTINCT_SHARE = 0.2
_DISTINCT_FEWEST = 3
# What Python reads bad bytes of cp932 as.
_PRIVATE = re.compile("[\x80\uf8f0-\uf8f3]")
# How long characters may be, and what it costs to read a byte as bad, or a character that is rare.
_SIZES = {"gb18030": (1, 2, 4), "euc_jp": (1, 2, 3)}
_BAD, _RARE = 1.5, 1.0
# It takes longer than all the rest: what is damaged beyond these is read as it comes.
_MOST_BYTES = 200_000


class Likely(NamedTuple):
    """An encoding and the share of everyday characters in what is not ASCII, read in it."""

    share: float
    encoding: str


def east_asian(sample: bytes) -> Likely:
    """The likeliest of the encodings. A sample that ends within a character is as good as a whole one."""
    texts = {encoding: mended(sample[:SAMPLE_BYTES], encoding).rstrip(UNREADABLE) for encoding in ENCODINGS}
    found = {encoding: Likely(_share(text, encoding), encoding) for encoding, text in texts.items()}
    likely = [found[one] for one in _DISTINCT if found[one].share >= SURE and _is_distinct(texts[one], one)]
    return max(likely or [found[one] for one in ENCODINGS if one not in _DISTINCT], key=lambda one: one.share)


def mended(data: bytes, encoding: str) -> str:
    """The text. Of a damaged line as few characters are lost, as U+FFFD, as everyday ones around them tell."""
    text = _strict(data, encoding)
    if text is not None:
        return text
    texts, left = list[str](), _MOST_BYTES
    for line in data.splitlines(keepends=True):
        text = _strict(line, encoding)
        left -= 0 if text is not None else len(line)
        mend = _cheapest if left >= 0 else _replaced
        texts.append(text if text is not None else mend(line, encoding))
    return "".join(texts)


def _strict(data: bytes, encoding: str) -> str | None:
    try:
        return _known(data.decode(encoding), encoding)
    except UnicodeDecodeError:
        return None


def _replaced(line: bytes, encoding: str) -> str:
    return _known(line.decode(encoding, "replace"), encoding)


def _known(text: str, encoding: str) -> str:
    return _PRIVATE.sub(UNREADABLE, text) if encoding == "cp932" else text


def _cheapest(line: bytes, encoding: str) -> str:
    """The way to cut a line into characters that costs least. One that breaks off at its end costs less."""
    ways: list[tuple[float, int, str]] = [(0.0, 0, "")] + [(float("inf"), 0, "")] * len(line)
    for place in range(len(line)):
        cost = ways[place][0]
        for size in _SIZES.get(encoding, (1, 2)):
            character, more = _character(line[place : place + size], encoding)
            way = (cost + more - (place + 1 == len(line)), place, character)
            if place + size <= len(line) and way[0] < ways[place + size][0]:
                ways[place + size] = way
    place, found = len(line), list[str]()
    while place:
        found.append(ways[place][2])
        place = ways[place][1]
    return _known("".join(reversed(found)), encoding)


@lru_cache(65_536)
def _character(data: bytes, encoding: str) -> tuple[str, float]:
    """What bytes say as one character, and what that costs; one byte that says nothing is bad."""
    text = data.decode(encoding, "ignore")
    if len(text) == 1 and text.encode(encoding, "ignore") == data:
        return text, 0.0 if data.isascii() or text in _everyday(encoding) else _RARE
    return UNREADABLE, _BAD if len(data) == 1 else float("inf")


def _share(text: str, encoding: str) -> float:
    runs, everyday = _WIDE.findall(text), _everyday(encoding)
    # One alone that takes a letter of ASCII with it is one of Europe's.
    counted = (run for run in runs if len(run) > 1 or not _SEVEN_BIT.search(run.encode(encoding, "ignore")))
    good = sum(one in everyday for run in counted for one in run)
    return good / max(1, sum(map(len, runs)))


def _is_distinct(text: str, encoding: str) -> bool:
    wide = "".join(_WIDE.findall(text))
    return len(re.findall(_DISTINCT[encoding], wide)) >= _DISTINCT_SHARE * len(wide) and len(wide) >= _DISTINCT_FEWEST


@cache
def _everyday(encoding: str) -> frozenset[str]:
    places = (
        (standard, bytes((first, second)))
        for standard in _KNOWN.get(encoding, (encoding,))
        for first in _STANDARDS[standard]
        for second in range(0x40, 0xFF)
    )
    return frozenset(_SIGNS).union(place.decode(standard, "ignore") for standard, place in places)
