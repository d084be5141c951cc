"""Result of a command for the model: one JSON object, whose texts are cut in the middle if they do not fit."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Mapping
from dataclasses import dataclass

from recto.conversation.json import Json, dump
from recto.page.text.cut import common_length

MARK = "\n[... {count:,} characters left out ...]\n"
# The names of both texts, the JSON around them, and the mark of a cut in each.
LEAST = 20
# Characters that take two in JSON. Clean text has no others that grow.
_DOUBLED = ('"', "\\", "\n", "\t")


@dataclass(frozen=True, kw_only=True)
class PrintedText:
    """The beginning, end and full length of a text. If nothing is missing, head and tail are all of it."""

    head: str = ""
    tail: str = ""
    length: int = 0

    @property
    def missing(self) -> int:
        """The number of characters between the two that were dropped."""
        return self.length - len(self.head) - len(self.tail)


@dataclass(frozen=True, kw_only=True)
class FittedTexts:
    """Both texts as shown, and whether something was cut."""

    stdout: str
    stderr: str
    is_cut: bool


def fit(stdout: PrintedText, stderr: PrintedText, room: int) -> FittedTexts:
    """Fit both texts into `room` characters of JSON. The shorter one stays whole if possible."""
    sizes = [_size(one.head + one.tail) + (room if one.missing else 0) for one in (stdout, stderr)]
    share = common_length(sizes, max(room, 0))
    out, err = (_cut(one, share) for one in (stdout, stderr))
    is_cut = any(size > share for size in sizes)
    return FittedTexts(stdout=out, stderr=err, is_cut=is_cut)


def answer(stdout: PrintedText, stderr: PrintedText, rest: Mapping[str, Json], characters: int, output: str) -> str:
    """Return the answer in at most so many characters; `output` is the path of the whole output if it was cut."""
    told: dict[str, Json] = {"stdout": "", "stderr": "", **rest}
    fitted = fit(stdout, stderr, characters - len(dump(told)))
    if fitted.is_cut:
        told = {**told, "cut": True, **({"output": output} if output else {})}
        fitted = fit(stdout, stderr, characters - len(dump(told)))
    return dump({**told, "stdout": fitted.stdout, "stderr": fitted.stderr}).decode()


def fits(stdout: PrintedText, stderr: PrintedText, rest: Mapping[str, Json], characters: int) -> bool:
    """Return True if nothing has to be cut."""
    return not fit(stdout, stderr, characters - len(dump({"stdout": "", "stderr": "", **rest}))).is_cut


def _cut(text: PrintedText, room: int) -> str:
    whole = text.head + text.tail
    if not text.missing and _size(whole) <= room:
        return whole
    left = room - _size(MARK.format(count=text.length))
    if left < LEAST:
        return ""
    # The end tells how the command ended, so it gets the larger part.
    head = _beginning(text.head if text.missing else whole, left // 3)
    tail = _beginning((text.tail if text.missing else whole)[::-1], left - _size(head))[::-1]
    return head + MARK.format(count=text.length - len(head) - len(tail)) + tail


def _beginning(text: str, room: int) -> str:
    return text[: bisect_right(range(1, len(text) + 1), room, key=lambda length: _size(text[:length]))]


def _size(text: str) -> int:
    return len(text) + sum(map(text.count, _DOUBLED))
