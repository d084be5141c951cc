"""Unified diff of replacements in a text. Its cost depends on the changed lines, not on the length of the text."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher

from recto.page.prompt.reminder import FRAME_TAGS, neutralise
from recto.tools.text.line_range import LONGEST_LINE
from recto.tools.text.replacement import TextSpan, apply_spans

CONTEXT = 3
# Beyond this many line pairs, the diff shows all old lines as removed and all new ones as added.
MOST_PAIRS = 250_000
NO_END = "\\ No newline at end of file"
LEFT_OUT = "[{count:,} more lines of the diff are left out. Read the file for the rest.]"


@dataclass(frozen=True, kw_only=True)
class _Region:
    """Whole lines of the old text, from `start` to `end`, and the spans in them."""

    start: int
    end: int
    spans: tuple[TextSpan, ...]


def build_line_diff(old: str, spans: Sequence[TextSpan], path: str, room: int, longest: int = LONGEST_LINE) -> str:
    """Return the diff of replacing ordered spans in a text, cut to `room` characters.

    Lines of more than `longest` characters are cut.
    """
    lines = [f"--- a/{path}", f"+++ b/{path}"]
    line, at, shift = 1, 0, 0
    for region in _regions(old, spans):
        line += old.count("\n", at, region.start)
        at = region.start
        before = _lines(old[region.start : region.end])
        after = _lines(apply_spans(old, region.spans, region.start, region.end))
        lines += _hunks(before, after, line, line + shift, longest)
        shift += len(after) - len(before)
    return _cut_lines([neutralise(line, FRAME_TAGS) for line in lines], room)


def _regions(old: str, spans: Sequence[TextSpan]) -> Iterator[_Region]:
    open_region: _Region | None = None
    for span in spans:
        start, end = _context_before(old, span.start), _context_after(old, span.end)
        if open_region and start <= open_region.end:
            open_region = _Region(start=open_region.start, end=end, spans=(*open_region.spans, span))
            continue
        if open_region:
            yield open_region
        open_region = _Region(start=start, end=end, spans=(span,))
    if open_region:
        yield open_region


def _context_before(text: str, at: int) -> int:
    for _ in range(CONTEXT + 1):
        at = text.rfind("\n", 0, at)
        if at < 0:
            return 0
    return at + 1


def _context_after(text: str, at: int) -> int:
    for _ in range(CONTEXT + 1):
        at = text.find("\n", at) + 1
        if not at:
            return len(text)
    return at


def _lines(text: str) -> list[str]:
    *whole, rest = text.split("\n")
    return [f"{line}\n" for line in whole] + ([rest] if rest else [])


def _hunks(before: Sequence[str], after: Sequence[str], old_line: int, new_line: int, longest: int) -> Iterator[str]:
    for group in _groups(before, after):
        (_, old_first, _, new_first, _), (_, _, old_end, _, new_end) = group[0], group[-1]
        old_range = _range(old_line + old_first, old_end - old_first)
        yield f"@@ -{old_range} +{_range(new_line + new_first, new_end - new_first)} @@"
        for operation, first, end, new_from, new_to in group:
            if operation == "equal":
                yield from _format_lines(" ", before[first:end], longest)
            else:
                yield from _format_lines("-", before[first:end], longest)
                yield from _format_lines("+", after[new_from:new_to], longest)


def _groups(before: Sequence[str], after: Sequence[str]) -> Iterator[Sequence[tuple[str, int, int, int, int]]]:
    if len(before) * len(after) <= MOST_PAIRS:
        return iter(SequenceMatcher(None, before, after, autojunk=False).get_grouped_opcodes(CONTEXT))
    return iter([[("replace", 0, len(before), 0, len(after))]])


def _range(first: int, count: int) -> str:
    """As in diffs: a range of no lines names the line before it."""
    return f"{first if count else first - 1},{count}"


def _format_lines(sign: str, lines: Sequence[str], longest: int) -> Iterator[str]:
    for line in lines:
        text = line.rstrip("\n").removesuffix("\r")
        yield sign + (f"{text[:longest]} [...]" if len(text) > longest else text)
        if not line.endswith("\n"):
            yield NO_END


def _cut_lines(lines: Sequence[str], room: int) -> str:
    remaining = room
    for place, line in enumerate(lines):
        remaining -= len(line) + 1
        if remaining < 0:
            return "\n".join((*lines[:place], LEFT_OUT.format(count=len(lines) - place)))
    return "\n".join(lines)
