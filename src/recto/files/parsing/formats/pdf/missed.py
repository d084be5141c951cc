"""Lines that pdfium sees on a page and xberg left out, put where they belong. Judges by letters and digits alone."""

from __future__ import annotations

import re
import unicodedata
from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterator, Sequence
from itertools import accumulate

from recto.conversation.document import Element

# A line of which so much is found in other places was only read in another order.
FOUND_SHARE = 0.5
# Longer pages take long to compare, and are drawings of words rather than pages.
MOST_CHARACTERS = 100_000
# What is told apart: a word, or some of a script without blanks.
_PIECE = re.compile(r".{1,8}")
_NO_LETTERS = re.compile(r"[\W_]+")


def with_missed(elements: Sequence[Element], text: str, page: int) -> list[Element]:
    """The elements of a page, and between them, as paragraphs, the lines of its text that are in none of them."""
    bare = [bare_letters(one.text) for one in elements]
    if len(text) > MOST_CHARACTERS or bare_letters(text) in "".join(bare):
        return list(elements)
    missed: defaultdict[int, list[str]] = defaultdict(list)
    for after, line in _missed(bare, text):
        missed[after].append(line)
    found = [Element(kind="paragraph", text="\n".join(missed[0]), page=page)] if 0 in missed else []
    for place, element in enumerate(elements, 1):
        lines = missed.get(place)
        found += [element, Element(kind="paragraph", text="\n".join(lines), page=page)] if lines else [element]
    return found


def bare_letters(text: str) -> str:
    """The letters and digits of a text, in the form that all their forms have in common."""
    return _NO_LETTERS.sub("", unicodedata.normalize("NFKC", text))


def _missed(bare: Sequence[str], text: str) -> Iterator[tuple[int, str]]:
    """Lines that are nowhere, each with the number of elements up to the one that has the line before it."""
    whole, ends = "".join(bare), list(accumulate(map(len, bare)))
    after = 0
    for line in text.splitlines():
        letters = bare_letters(line)
        if (at := whole.find(letters)) >= 0:
            after = min(len(bare), bisect_right(ends, at) + 1) if letters else after
        elif not _is_scattered(line, whole):
            yield after, line.strip()


def _is_scattered(line: str, whole: str) -> bool:
    pieces = [piece for word in line.split() for piece in _PIECE.findall(bare_letters(word))]
    return sum(len(one) for one in pieces if one in whole) >= FOUND_SHARE * sum(map(len, pieces))
