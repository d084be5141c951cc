"""Search and replace in a text: exact first, then with other blanks and indentation. It never guesses.

Inserted text gets the line ends of the text.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice, pairwise

from recto.errors import ToolError
from recto.page.prompt.reminder import FRAME_TAGS, neutralise
from recto.tools.text.loose_lines import find_loose_matches, has_uneven_match
from recto.tools.text.nearest_text import NOT_THERE, UNEVEN, describe_nearest

PLACES_SHOWN = 10
# Longer texts are searched only exactly: comparing all lines takes many times their size in memory.
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
    """Matches of a search and their count. Of very many, only the first are located."""

    spans: tuple[TextSpan, ...]
    count: int
    is_loose: bool = False


def edit_text(text: str, edits: Sequence[TextEdit]) -> EditedText:
    """Apply all edits or none, each searched in the original text. Raises ToolError with the reason."""
    choices = list[tuple[TextSpan, int]]()
    loosely, end = list[int](), detect_line_end(text)
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
    for search, replace in _spellings(edit, end):
        if spans := tuple(islice(_exactly(text, search, replace), most)):
            more = text.count(search, spans[-1].end) if len(spans) == most else 0
            return _Matches(spans=spans, count=len(spans) + more)
    if len(text) > LOOSE_CHARACTERS:
        raise ToolError(TOO_LONG)
    spans = tuple(_loosely(text, edit, end))
    return _Matches(spans=spans, count=len(spans), is_loose=True)


def detect_line_end(text: str) -> str:
    """Return the line end of most lines of a text."""
    # The common case, checked fast.
    if "\r" not in text:
        return "\n"
    return "\r\n" if text.count("\r\n") * 2 > text.count("\n") else "\n"


def _spellings(edit: TextEdit, end: str) -> Iterator[tuple[str, str]]:
    """Yield the exact spellings to try: with the text's line ends; as given; with tags as the file has them."""
    replace = _with_ends(edit.replace, end)
    yield _with_ends(edit.search, end), replace
    yield edit.search, replace
    # A read escapes our own tags, so that no file passes for a reminder.
    plain = edit.search.replace("&lt;", "<")
    if plain != edit.search and neutralise(plain, FRAME_TAGS) == edit.search:
        yield _with_ends(plain, end), _with_ends(edit.replace.replace("&lt;", "<"), end)


def _with_ends(text: str, end: str) -> str:
    return text.replace("\r\n", "\n").replace("\n", end)


def _exactly(text: str, search: str, replace: str) -> Iterator[TextSpan]:
    start = text.find(search)
    while start >= 0:
        # Do not match the second half of a line end.
        if not (search[0] == "\n" and text[start - 1 : start] == "\r"):
            yield TextSpan(start=start, end=start + len(search), text=replace)
        start = text.find(search, start + len(search))


def _loosely(text: str, edit: TextEdit, end: str) -> Iterator[TextSpan]:
    for match in find_loose_matches(text, edit.search):
        lines = edit.replace.replace("\r\n", "\n").split("\n")
        replace = _with_ends("\n".join(map(match.reindent, lines)), end)
        yield TextSpan(start=match.start, end=match.end, text=replace)


def _choose(text: str, edit: TextEdit, matches: _Matches) -> TextSpan:
    spans, count = matches.spans, matches.count
    if not spans:
        raise ToolError(
            describe_nearest(text, edit.search, UNEVEN if has_uneven_match(text, edit.search) else NOT_THERE)
        )
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
