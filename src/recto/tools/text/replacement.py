"""Search and replace in a text: first exact, then with other blanks and indentation. Ambiguous edits are errors."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from functools import partial
from heapq import nlargest
from itertools import islice, pairwise
from typing import TypeAlias

from recto.errors import ToolError
from recto.page.prompt.reminder import FRAME_TAGS, neutralise
from recto.tools.text.line_range import LINE, LONGEST_LINE

BLANKS = re.compile(r"[ \t]+")
# Possible tab widths, the usual first.
TAB_WIDTHS = (4, 8, 2, 3, 1, 5, 6, 7)
# Function that gives a replacement line the indentation of the text.
Reindent: TypeAlias = Callable[[str], str]
# Function that compares the indentation of text lines and search lines. It returns None if they do not match.
Compare: TypeAlias = Callable[[Sequence[str], Sequence[str]], Reindent | None]
PLACES_SHOWN = 10
# Longest text for a loose search, because comparing all lines takes many times the text's size in memory.
LOOSE_CHARACTERS = 6_000_000
TOO_LONG = (
    "searchContent is not in it as it stands, and a file of this size is not searched with other blanks or another "
    "indentation. Read the lines you mean, and search for exactly what is there."
)
LINE_SHOWN = 160
EMPTY = (
    "searchContent is empty. Search for the text beside which you want to change something, and repeat it in "
    "replaceContent."
)
NOTHING_NEW = "the edit changes nothing: what is searched for and what replaces it are the same."
AMBIGUOUS = (
    "searchContent is there {count} times. Add lines around it until it is there once, or say which with "
    "occurrence, from 1 on:\n{places}"
)
NO_SUCH = "searchContent is there {count} times, so there is no occurrence {occurrence}:\n{places}"
OVERLAPPING = (
    "edits {first} and {second} change the same text. Make one of them: each is looked for in the file as it is before "
    "the call."
)

AROUND = 2
LINES_SHOWN = 40
# Limits of lines and characters to compare, because comparing two lines is slow.
COMPARED_LINES = 300
COMPARED_CHARACTERS = 200
ALIKE = 0.5
WORD = re.compile(r"\w{2,}")
NOT_THERE = "searchContent is not in it, nor are its lines there with other blanks or another indentation."
UNEVEN = "searchContent is not in it: its lines are there, but their indentation differs in no regular way."
NEAREST = "What comes nearest is there now, in lines {first}-{last}:\n{lines}"
SEARCH = "\nSearch for what is there."
NOTHING_NEAR = "Nothing in it comes near. Read the file again, and copy what is there."


@dataclass(frozen=True, kw_only=True)
class LooseMatch:
    """A match from `start` to before `end`, and the function that indents the replacement."""

    start: int
    end: int
    reindent: Reindent


def find_loose_matches(text: str, search: str) -> tuple[LooseMatch, ...]:
    """Return all matches of the strictest rule that has any.

    The first rule ignores trailing blanks and an indentation shared by all lines. The second also accepts tabs for
    spaces in the indentation, or the reverse. The third also accepts other blanks between words.

    Return nothing if lines match the second or third rule except for their indentation, because the right match is
    unknown.
    """
    if matches := tuple(_matches(text, search, str.strip, _compare_shift)):
        return matches
    for bare in (str.strip, _with_single_blanks):
        if matches := tuple(_matches(text, search, bare, _compare_columns)):
            return matches if len(matches) == sum(1 for _ in _matches(text, search, bare, _accept_any)) else ()
    return ()


def _accept_any(_: Sequence[str], __: Sequence[str]) -> Reindent:
    return str


def _with_single_blanks(line: str) -> str:
    return BLANKS.sub(" ", line.strip())


def _matches(text: str, search: str, bare: Callable[[str], str], compare: Compare) -> Iterator[LooseMatch]:
    search = search.replace("\r\n", "\n")
    search_lines = search.removesuffix("\n").split("\n")
    bare_search = [bare(line) for line in search_lines]
    anchor = max(range(len(bare_search)), key=lambda place: len(bare_search[place]))
    if not bare_search[anchor]:
        return
    lines = text.split("\n")
    bare_lines = [bare(line) for line in lines]
    free, offset, counted_to = 0, 0, 0
    for place in [place for place, line in enumerate(bare_lines) if line == bare_search[anchor]]:
        first = place - anchor
        candidate = lines[first : first + len(bare_search)] if first >= free else []
        if (
            bare_lines[first : first + len(bare_search)] != bare_search
            or (reindent := compare(candidate, search_lines)) is None
        ):
            continue
        offset += sum(map(len, lines[counted_to:first])) + first - counted_to
        counted_to = first
        free = first + len(bare_search)
        stop = offset + sum(map(len, candidate)) + len(candidate) - 1
        # Replace the last line end only if the search text has one. Never split a CRLF.
        stop += 1 if search.endswith("\n") and free < len(lines) else -candidate[-1].endswith("\r")
        yield LooseMatch(start=offset, end=stop, reindent=reindent)


def _indents(lines: Sequence[str], search_lines: Sequence[str]) -> list[tuple[str, str]]:
    return [
        (get_indent(line), get_indent(other)) for line, other in zip(lines, search_lines, strict=False) if line.strip()
    ]


def get_indent(line: str) -> str:
    """Return the blanks that a line begins with."""
    return line[: len(line) - len(line.lstrip())]


def _compare_shift(lines: Sequence[str], search_lines: Sequence[str]) -> Reindent | None:
    """Match if the indentation of all lines is longer, or shorter, by the same blanks."""
    pairs = _indents(lines, search_lines)
    if not pairs:
        return None
    have, want = pairs[0]
    more, fewer = have.removesuffix(want), want.removesuffix(have)
    if all(one == more + other for one, other in pairs):
        return partial(_shift, more=more, fewer="")
    if all(fewer + one == other for one, other in pairs):
        return partial(_shift, more="", fewer=fewer)
    return None


def _shift(line: str, *, more: str, fewer: str) -> str:
    if not line.strip():
        return line
    # A line with less indentation loses all of it.
    return more + line[min(len(fewer), len(get_indent(line))) :]


@dataclass(frozen=True, kw_only=True)
class _Columns:
    """Indentation by columns for a tab width. The text is indented by `shift` more columns than the search lines."""

    width: int
    shift: int
    # The indentation of the matched text lines, by column.
    indents: dict[int, str]

    def reindent(self, line: str) -> str:
        if not line.strip():
            return line
        column = max(0, _column(get_indent(line), self.width) + self.shift)
        has_tabs = any("\t" in indent for indent in self.indents.values())
        tabs, spaces = divmod(column, self.width) if has_tabs else (0, column)
        return self.indents.get(column, "\t" * tabs + " " * spaces) + line.lstrip()


def _compare_columns(lines: Sequence[str], search_lines: Sequence[str]) -> Reindent | None:
    """Match if all lines are shifted by the same columns for some tab width; the smallest shift wins."""
    pairs, candidates = _indents(lines, search_lines), list[_Columns]()
    for width in TAB_WIDTHS if pairs else ():
        shifts = {_column(have, width) - _column(want, width) for have, want in pairs}
        if len(shifts) == 1:
            indents = {_column(have, width): have for have, _ in reversed(pairs)}
            candidates.append(_Columns(width=width, shift=shifts.pop(), indents=indents))
    return min(candidates, key=lambda one: abs(one.shift)).reindent if candidates else None


def _column(indent: str, width: int) -> int:
    return len(indent.expandtabs(width))


@dataclass(frozen=True, kw_only=True)
class TextEdit:
    """One edit: search text, replacement, and which occurrence is meant, from 1 on."""

    search: str
    replace: str
    occurrence: int | None = None


@dataclass(frozen=True, kw_only=True)
class TextSpan:
    """The characters from `start` to before `end`, and their replacement."""

    start: int
    end: int
    text: str


@dataclass(frozen=True, kw_only=True)
class EditedText:
    """The new text, the replaced spans in order, and the numbers of the edits that matched loosely."""

    text: str
    spans: tuple[TextSpan, ...]
    loosely: tuple[int, ...] = ()


@dataclass(frozen=True, kw_only=True)
class _Matches:
    """Matches of a search and their count. If there are very many, `spans` contains only the first."""

    spans: tuple[TextSpan, ...]
    count: int
    is_loose: bool = False


def edit_text(text: str, edits: Sequence[TextEdit]) -> EditedText:
    """Apply all edits or none, each searched in the original text. Raises ToolError with the reason."""
    choices = list[tuple[TextSpan, int]]()
    loosely, end = list[int](), "\r\n" if text.count("\r\n") * 2 > text.count("\n") else "\n"
    for number, edit in enumerate(edits, start=1):
        try:
            matches = _find(text, edit, end)
            choices.append((_choose(text, edit, matches), number))
        except ToolError as error:
            raise ToolError(f"edit {number} of {len(edits)}: {error}" if len(edits) > 1 else str(error)) from error
        loosely += [number] if matches.is_loose else []
    choices.sort(key=lambda one: (one[0].start, one[0].end))
    for (before, first), (after, second) in pairwise(choices):
        if after.start < before.end:
            raise ToolError(OVERLAPPING.format(first=min(first, second), second=max(first, second)))
    spans = tuple([span for span, _ in choices])
    new = apply_spans(text, spans)
    if new == text:
        raise ToolError(NOTHING_NEW)
    return EditedText(text=new, spans=spans, loosely=tuple(loosely))


def apply_spans(text: str, spans: Sequence[TextSpan], start: int = 0, end: int | None = None) -> str:
    """Return the text between two positions with ordered spans replaced."""
    pieces, at = list[str](), start
    for span in spans:
        pieces += (text[at : span.start], span.text)
        at = span.end
    return "".join((*pieces, text[at:end]))


def _find(text: str, edit: TextEdit, end: str) -> _Matches:
    if not edit.search:
        if text:
            raise ToolError(EMPTY)
        return _Matches(spans=(TextSpan(start=0, end=0, text=edit.replace),), count=1)
    most = max(PLACES_SHOWN, edit.occurrence or 0)
    # Try these spellings in order: with the text's line ends, as requested, and with unescaped tags.
    replace, plain = _set_line_ends(edit.replace, end), edit.search.replace("&lt;", "<")
    spellings = [(_set_line_ends(edit.search, end), replace), (edit.search, replace)]
    # A read escapes our own tags, so the model may search for an escaped tag.
    if plain != edit.search and neutralise(plain, FRAME_TAGS) == edit.search:
        spellings.append((_set_line_ends(plain, end), _set_line_ends(edit.replace.replace("&lt;", "<"), end)))
    for search, replace in spellings:
        if spans := tuple(islice(_exactly(text, search, replace), most)):
            more = text.count(search, spans[-1].end) if len(spans) == most else 0
            return _Matches(spans=spans, count=len(spans) + more)
    if len(text) > LOOSE_CHARACTERS:
        raise ToolError(TOO_LONG)
    lines, matches = edit.replace.replace("\r\n", "\n").split("\n"), find_loose_matches(text, edit.search)
    replacements = [_set_line_ends("\n".join(map(one.reindent, lines)), end) for one in matches]
    spans = tuple(
        [TextSpan(start=one.start, end=one.end, text=new) for one, new in zip(matches, replacements, strict=True)]
    )
    return _Matches(spans=spans, count=len(spans), is_loose=True)


def _set_line_ends(text: str, end: str) -> str:
    return text.replace("\r\n", "\n").replace("\n", end)


def _exactly(text: str, search: str, replace: str) -> Iterator[TextSpan]:
    start = text.find(search)
    while start >= 0:
        # Do not match the second half of a CRLF.
        if not (search[0] == "\n" and text[start - 1 : start] == "\r"):
            yield TextSpan(start=start, end=start + len(search), text=replace)
        start = text.find(search, start + len(search))


def _choose(text: str, edit: TextEdit, matches: _Matches) -> TextSpan:
    spans, count = matches.spans, matches.count
    if not spans:
        # The lines may be there, but with irregular indentation.
        is_uneven = any(True for _ in _matches(text, edit.search, _with_single_blanks, _accept_any))
        near, problem = find_near_lines(text, edit.search), UNEVEN if is_uneven else NOT_THERE
        raise ToolError(f"{problem} {near}{SEARCH}" if near else f"{problem} {NOTHING_NEAR}")
    if edit.occurrence is None and count == 1:
        return spans[0]
    if edit.occurrence is None:
        raise ToolError(AMBIGUOUS.format(count=count, places=_list_places(text, matches)))
    if edit.occurrence > count:
        raise ToolError(NO_SUCH.format(count=count, occurrence=edit.occurrence, places=_list_places(text, matches)))
    return spans[edit.occurrence - 1]


def _list_places(text: str, matches: _Matches) -> str:
    lines, line, at = list[str](), 1, 0
    for span in matches.spans[:PLACES_SHOWN]:
        line += text.count("\n", at, span.start)
        at = span.start
        start = text.rfind("\n", 0, at) + 1
        end = text.find("\n", at)
        line_text = text[start : len(text) if end < 0 else end].strip()
        lines.append(neutralise(f"line {line}: {line_text[:LINE_SHOWN]}", FRAME_TAGS))
    more = matches.count - PLACES_SHOWN
    return "\n".join((*lines, *([f"and {more:,} more"] if more > 0 else [])))


def find_near_lines(text: str, search: str, at: int | None = None) -> str | None:
    """Return the most similar lines with their numbers, else the lines around `at`, or None."""
    lines = text.removesuffix("\n").split("\n")
    search_lines = [line.strip() for line in search.replace("\r\n", "\n").strip("\n").split("\n")]
    position = _by_equal_lines(lines, search_lines)
    if position is None:
        position = _by_similar_line(lines, search_lines)
    if position is None and at is not None:
        position = min(at, len(lines) - 1)
    if position is None:
        return None
    first = max(0, position - AROUND)
    last = min(len(lines), position + min(len(search_lines), LINES_SHOWN) + AROUND)
    excerpt = [
        LINE.format(number=number, text=neutralise(line.rstrip()[:LONGEST_LINE], FRAME_TAGS))
        for number, line in enumerate(lines[first:last], start=first + 1)
    ]
    return NEAREST.format(first=first + 1, last=first + len(excerpt), lines="\n".join(excerpt))


def _by_equal_lines(lines: Sequence[str], search_lines: Sequence[str]) -> int | None:
    """Return the position where most lines match, each in its place; longer lines weigh more."""
    places = {line: place for place, line in enumerate(search_lines) if line}
    votes = Counter[int]()
    for number, line in enumerate(lines):
        bare = line.strip()
        if bare in places:
            votes[number - places[bare]] += len(bare)
    if not votes:
        return None
    best, weight = votes.most_common(1)[0]
    # Ignore a weak match, such as a single bracket, which is everywhere.
    return max(0, best) if weight > len(max(search_lines, key=len)) // 4 else None


def _by_similar_line(lines: Sequence[str], search_lines: Sequence[str]) -> int | None:
    """Return the position of the line most like the longest search line, among those that share most of its words."""
    longest = max(search_lines, key=len)[:COMPARED_CHARACTERS]
    words = set(WORD.findall(longest))
    shared = [sum(map(line[:LONGEST_LINE].__contains__, words)) for line in lines]
    likely = nlargest(COMPARED_LINES, [number for number, count in enumerate(shared) if count], key=shared.__getitem__)
    matcher = SequenceMatcher(None, b=longest, autojunk=False)
    best, share = None, ALIKE
    for number in likely:
        matcher.set_seq1(lines[number].strip()[:COMPARED_CHARACTERS])
        if matcher.real_quick_ratio() > share and matcher.quick_ratio() > share and (ratio := matcher.ratio()) > share:
            best, share = number, ratio
    return None if best is None else max(0, best - search_lines.index(max(search_lines, key=len)))
