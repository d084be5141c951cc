"""Quoted lines and changed files of edit calls, read from their arguments."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from recto.conversation.json import Json, load_object
from recto.conversation.messages import ToolCall
from recto.page.fold.observations import read_paths
from recto.page.fold.paths import Project, normalise

PATCH_BEGINS = "*** Begin Patch"
PATCH_FILES = ("*** Update File: ", "*** Add File: ", "*** Delete File: ", "*** Move to: ")
# Lines of a patch that were in the file before: removed lines and context.
OLD_LINES = ("-", " ")


class EditCall(NamedTuple):
    """The files an edit changes, and the stripped lines it expects in them, longest first."""

    files: tuple[str, ...]
    lines: tuple[str, ...]


def read_edit(call: ToolCall, quotes: Sequence[str], path_args: tuple[str, ...], project: Project) -> EditCall:
    """Read the files and expected lines of an edit call; empty if its arguments are unreadable."""
    arguments = load_object(call.arguments)
    if arguments is None:
        return EditCall((), ())
    patches = [text for text in strings_in(arguments) if PATCH_BEGINS in text]
    named = [normalise(path, project) for patch in patches for path in _patched(patch)]
    files = (*read_paths(call, path_args, project), *named)
    texts = [*_quoted(arguments, frozenset(quotes)), *["\n".join(_old_lines(patch)) for patch in patches]]
    lines = {line for text in texts if PATCH_BEGINS not in text for line in lines_of(text)}
    return EditCall(tuple(dict.fromkeys(files)), tuple(sorted(lines, key=lambda line: (-len(line), line))))


def lines_of(text: str) -> list[str]:
    """Return the nonblank lines of a text, stripped."""
    return [line for line in map(str.strip, text.splitlines()) if line]


def _quoted(value: Json, names: frozenset[str]) -> Iterator[str]:
    """Yield texts under one of these names at any depth."""
    match value:
        case dict():
            for name, item in value.items():
                if isinstance(item, str):
                    yield from (item,) if name in names else ()
                else:
                    yield from _quoted(item, names)
        case list():
            for item in value:
                yield from _quoted(item, names)
        case _:
            return


def strings_in(value: Json) -> Iterator[str]:
    """Yield all texts in a value at any depth."""
    match value:
        case str():
            yield value
        case dict():
            for item in value.values():
                yield from strings_in(item)
        case list():
            for item in value:
                yield from strings_in(item)
        case _:
            return


def _patched(patch: str) -> Iterator[str]:
    for line in patch.splitlines():
        for begins in PATCH_FILES:
            if line.startswith(begins):
                yield line.removeprefix(begins).strip()


def _old_lines(patch: str) -> Iterator[str]:
    return (line[1:] for line in patch.splitlines() if line.startswith(OLD_LINES))
