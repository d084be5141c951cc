"""Lines of Arabic and Hebrew, with Latin words in them, in the order they are read. (xberg has them as they look.)"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import accumulate, groupby

from recto.conversation.document import Element
from recto.files.parsing.formats.pdf.missed import bare_letters

_RIGHT = re.compile("[\u0590-\u08ff\ufb1d-\ufdff\ufe70-\ufefc]")
_LEFT = re.compile("[A-Za-z]")
_MARK = re.compile(r"#+ |\s*(?:-|\S{1,9}[.)]) ")
# A unit or a currency, which follows its number.
_UNIT = 3


def in_order(elements: Sequence[Element], text: str) -> list[Element]:
    """The elements; those with such letters have the lines that pdfium sees, where their letters are the same."""
    if not _RIGHT.search(text):
        return list(elements)
    lines = [line.strip() for line in text.splitlines()]
    letters = [bare_letters(line) for line in lines]
    ends = {end: place for place, end in enumerate([0, *accumulate(map(len, letters))])}
    turned = (not one.rows and _RIGHT.search(one.text) for one in elements)
    both = zip(elements, turned, strict=True)
    return [_ordered(one, lines, letters, ends) if is_turned else one for one, is_turned in both]


def _ordered(element: Element, lines: Sequence[str], letters: Sequence[str], ends: dict[int, int]) -> Element:
    mark = _MARK.match(element.text) if element.kind in ("heading", "item") else None
    begun = mark[0] if mark else ""
    wanted = bare_letters(element.text[len(begun) :])
    for end, start in ends.items():
        stop = ends.get(end + len(wanted), start)
        if stop > start and Counter("".join(letters[start:stop])) == Counter(wanted):
            between = " " if mark else "\n"
            return replace(element, text=begun + between.join(filter(None, map(_read, lines[start:stop]))))
    return element


def _read(line: str) -> str:
    """A line as it is read. Where most runs are of such letters, pdfium turns Latin words round one by one."""
    runs = [(key, list(run)) for key, run in groupby(line.split(" "), key=lambda word: _RIGHT.search(word) is None)]
    if 2 * sum(is_left for is_left, _ in runs) > len(runs):
        return line
    return " ".join(word for is_left, run in runs for word in (_run(run) if is_left else run))


def _run(words: list[str]) -> Iterator[str]:
    named = [word for word in words if _LEFT.search(word)]
    is_name = len(named) > 1 or any(len(_LEFT.findall(word)) > _UNIT for word in named)
    yield from reversed(words) if is_name else words
