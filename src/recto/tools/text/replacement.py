"""Search and replace in a text: exactly, else with other blanks and another indentation. Never guesses what is meant.

Line ends are the text's own: what is put in gets them, whatever the call was written with.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice, pairwise

from recto.errors import ToolError
from recto.page.prompt.reminder import FRAME_TAGS, neutralise
from recto.tools.text.loose_lines import is_unevenly_there, loose_matches
from recto.tools.text.nearest_text import NOT_THERE, UNEVEN, nearest

PLACES_SHOWN = 10
# A longer text is searched as it stands: to compare all of its lines takes many times its size in memory.
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


@dataclass(frozen=True, kw_only=True)
class TextEdit:
    """What to look for, what to put in its place, and which of several places is meant, from 1 on."""

    search: str
    replace: str
    occurrence: int | None = None


@dataclass(frozen=True, kw_only=True)
class TextSpan:
    """Characters of a text from `start` to before `end`, and what takes their place."""

    start: int
    end: int
    text: str


@dataclass(frozen=True, kw_only=True)
class EditedText:
    """The new text, what of the old one was replaced, in order, and which edits were found with other blanks only."""

    text: str
    spans: tuple[TextSpan, ...]
    loosely: tuple[int, ...] = ()


@dataclass(frozen=True, kw_only=True)
class _Found:
    """Places of a text, and how many there are: of very many, only the first are worked out."""

    spans: tuple[TextSpan, ...]
    count: int
    is_loose: bool = False


def edit_text(text: str, edits: Sequence[TextEdit]) -> EditedText:
    """All of the edits, or none: each is looked for in the text as it is. Raises ToolError that says why not."""
    taken = list[tuple[TextSpan, int]]()
    loosely, end = list[int](), line_end_of(text)
    for number, edit in enumerate(edits, start=1):
        try:
            found = _find(text, edit, end)
            taken.append((_choose(text, edit, found), number))
        except ToolError as error:
            raise ToolError(f"edit {number} of {len(edits)}: {error}" if len(edits) > 1 else str(error)) from error
        loosely += [number] if found.is_loose else []
    taken.sort(key=lambda one: (one[0].start, one[0].end))
    for (before, first), (after, second) in pairwise(taken):
        if after.start < before.end:
            raise ToolError(OVERLAPPING.format(first=min(first, second), second=max(first, second)))
    spans = tuple([span for span, _ in taken])
    new = apply_spans(text, spans)
    if new == text:
        raise ToolError(NOTHING_NEW)
    return EditedText(text=new, spans=spans, loosely=tuple(loosely))


def apply_spans(text: str, spans: Sequence[TextSpan], start: int = 0, end: int | None = None) -> str:
    """The text between two places, with what takes the place of spans in it, which stand in order."""
    pieces, at = list[str](), start
    for span in spans:
        pieces += (text[at : span.start], span.text)
        at = span.end
    return "".join((*pieces, text[at:end]))


def _find(text: str, edit: TextEdit, end: str) -> _Found:
    if not edit.search:
        if text:
            raise ToolError(EMPTY)
        return _Found(spans=(TextSpan(start=0, end=0, text=edit.replace),), count=1)
    most = max(PLACES_SHOWN, edit.occurrence or 0)
    for search, replace in _spellings(edit, end):
        if spans := tuple(islice(_exactly(text, search, replace), most)):
            more = text.count(search, spans[-1].end) if len(spans) == most else 0
            return _Found(spans=spans, count=len(spans) + more)
    if len(text) > LOOSE_CHARACTERS:
        raise ToolError(TOO_LONG)
    spans = tuple(_loosely(text, edit, end))
    return _Found(spans=spans, count=len(spans), is_loose=True)


def line_end_of(text: str) -> str:
    """The line end that most lines of a text have."""
    # Most texts have none, and that is quickly seen.
    if "\r" not in text:
        return "\n"
    return "\r\n" if text.count("\r\n") * 2 > text.count("\n") else "\n"


def _spellings(edit: TextEdit, end: str) -> Iterator[tuple[str, str]]:
    """What may be meant byte for byte: with the text's line ends; as it is; with tags as the file has them."""
    replace = _with_ends(edit.replace, end)
    yield _with_ends(edit.search, end), replace
    yield edit.search, replace
    # A read shows our own tags with another first character, so that no file passes for a reminder.
    plain = edit.search.replace("&lt;", "<")
    if plain != edit.search and neutralise(plain, FRAME_TAGS) == edit.search:
        yield _with_ends(plain, end), _with_ends(edit.replace.replace("&lt;", "<"), end)


def _with_ends(text: str, end: str) -> str:
    return text.replace("\r\n", "\n").replace("\n", end)


def _exactly(text: str, search: str, replace: str) -> Iterator[TextSpan]:
    start = text.find(search)
    while start >= 0:
        # The second half of a line end is none.
        if not (search[0] == "\n" and text[start - 1 : start] == "\r"):
            yield TextSpan(start=start, end=start + len(search), text=replace)
        start = text.find(search, start + len(search))


def _loosely(text: str, edit: TextEdit, end: str) -> Iterator[TextSpan]:
    for match in loose_matches(text, edit.search):
        lines = edit.replace.replace("\r\n", "\n").split("\n")
        replace = _with_ends("\n".join(map(match.reindent, lines)), end)
        yield TextSpan(start=match.start, end=match.end, text=replace)


def _choose(text: str, edit: TextEdit, found: _Found) -> TextSpan:
    spans, count = found.spans, found.count
    if not spans:
        raise ToolError(nearest(text, edit.search, UNEVEN if is_unevenly_there(text, edit.search) else NOT_THERE))
    if edit.occurrence is None and count == 1:
        return spans[0]
    if edit.occurrence is None:
        raise ToolError(AMBIGUOUS.format(count=count, places=_places(text, found)))
    if edit.occurrence > count:
        raise ToolError(NO_SUCH.format(count=count, occurrence=edit.occurrence, places=_places(text, found)))
    return spans[edit.occurrence - 1]


def _places(text: str, found: _Found) -> str:
    lines, line, at = list[str](), 1, 0
    for span in found.spans[:PLACES_SHOWN]:
        line += text.count("\n", at, span.start)
        at = span.start
        start = text.rfind("\n", 0, at) + 1
        end = text.find("\n", at)
        shown = text[start : len(text) if end < 0 else end].strip()
        lines.append(neutralise(f"line {line}: {shown[:LINE_SHOWN]}", FRAME_TAGS))
    more = found.count - PLACES_SHOWN
    return "\n".join((*lines, *([f"and {more:,} more"] if more > 0 else [])))
