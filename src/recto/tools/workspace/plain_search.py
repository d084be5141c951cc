"""A search without ripgrep: a program that finds the same lines by Python's `re`, and tells them as `rg --json` does.

It is a process of its own: a regular expression that takes for ever is ended with it, and holds up nobody.
"""

from __future__ import annotations

import base64
import codecs
import json
import os
import re
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple, TypeAlias, TypedDict

from recto.tools.workspace.ignored import READ_FILE, ListedEntry, glob_regex, listed, rules_of
from recto.tools.workspace.workspace_files import FOLDER

# Ripgrep's words for what cannot be in a line.
LINE_END = 'the literal "{sign}" is not allowed in a regex'
LINE_ENDS = re.compile(r"(?<!\\)(?:\\\\)*(?:\\([rn])|([\r\n]))")
BOMS = ((codecs.BOM_UTF8, ""), (codecs.BOM_UTF16_LE, "utf-16-le"), (codecs.BOM_UTF16_BE, "utf-16-be"))

# Where a match begins in a line and where it ends; None: there is none.
Find: TypeAlias = Callable[[str], tuple[int, int] | None]


class PlainRequest(TypedDict):
    """What is searched for and where. `left_out` are lines of rules as a `.gitignore` has them, `glob` is a filter."""

    pattern: str
    is_regex: bool
    glob: str
    left_out: Sequence[str]
    file_bytes: int


class FoundLine(NamedTuple):
    """A line with a match: its number, where it begins in the file, its bytes, and where the match is in them."""

    number: int
    offset: int
    line: bytes
    start: int
    end: int


def main() -> int:
    """Search the current folder for what standard input asks for. 0: found, 1: nothing, 2: the pattern is none."""
    request: PlainRequest = json.load(sys.stdin.buffer)
    searched = matched = 0
    try:
        for path, lines in search(request, os.open(Path(), FOLDER)):
            searched += 1
            matched += bool(lines)
            _tell(path, lines)
    except re.error as error:
        sys.stderr.write(f"regex parse error:\n    {request['pattern']}\nerror: {error}\n")
        return 2
    _say("summary", {"stats": {"searches": searched, "searches_with_match": matched}})
    return 0 if matched else 1


def search(request: PlainRequest, top: int) -> Iterator[tuple[str, Sequence[FoundLine]]]:
    """Each file of an open folder that is searched, and its lines with a match. Raises re.error for a bad pattern."""
    find = finder(request["pattern"], is_regex=request["is_regex"])
    # Most files have no match, and whole ones are looked through much faster than their lines.
    needle = b"" if request["is_regex"] else request["pattern"].encode()
    for path, content in _files(request, top):
        yield path, () if b"\0" in content or needle not in content else tuple(lines_with(content, find))


def finder(pattern: str, *, is_regex: bool) -> Find:
    """What finds a pattern in a line. Raises re.error for one that is none."""
    if found := (LINE_ENDS if is_regex else re.compile("()([\r\n])")).search(pattern):
        raise re.error(LINE_END.format(sign="\\" + (found[1] or {"\r": "r", "\n": "n"}[found[2]])))
    regex = re.compile(pattern if is_regex else re.escape(pattern))

    def find(line: str) -> tuple[int, int] | None:
        found = regex.search(line)
        return found.span() if found else None

    return find


def lines_with(content: bytes, find: Find) -> Iterator[FoundLine]:
    """The lines of a file that have a match, whatever ends them."""
    offset = 0
    for number, line in enumerate(content.split(b"\n"), start=1):
        if offset == len(content):
            return
        whole = content[offset : offset + len(line) + 1]
        found = _in_line(line.removesuffix(b"\r") if len(whole) > len(line) else line, find)
        if found:
            yield FoundLine(number, offset, whole, *found)
        offset += len(whole)


def _in_line(line: bytes, find: Find) -> tuple[int, int] | None:
    """A carriage return ends a line too; one before a line feed is a part of that, and not here any more."""
    start = 0
    for piece in line.split(b"\r"):
        text = piece.decode(errors="surrogateescape")
        if found := find(text):
            before, match = text[: found[0]], text[found[0] : found[1]]
            at = start + len(before.encode(errors="surrogateescape"))
            return at, at + len(match.encode(errors="surrogateescape"))
        start += len(piece) + 1
    return None


def _files(request: PlainRequest, top: int) -> Iterator[tuple[str, bytes]]:
    named = re.compile(glob_regex(request["glob"]), re.DOTALL) if request["glob"] else None
    for one in listed(top, left_out=rules_of(request["left_out"])):
        if not one.is_file or one.found.st_size > request["file_bytes"]:
            continue
        if named and not named.fullmatch(os.fsencode(one.path)):
            continue
        content = _content(one)
        if content is not None:
            yield one.path, content


def _content(one: ListedEntry) -> bytes | None:
    """A file as UTF-8, if its first bytes say that it is written otherwise."""
    try:
        with os.fdopen(os.open(one.name, READ_FILE, dir_fd=one.folder), "rb") as file:
            content = file.read()
    except OSError:
        return None
    for bom, encoding in BOMS:
        if content.startswith(bom):
            content = content.removeprefix(bom)
            return content.decode(encoding, errors="replace").encode() if encoding else content
    return content


def _tell(path: str, lines: Sequence[FoundLine]) -> None:
    if not lines:
        return
    place = {"path": _written(os.fsencode(f"./{path}"))}
    _say("begin", place)
    for one in lines:
        match = {"match": _written(one.line[one.start : one.end]), "start": one.start, "end": one.end}
        about = {"line_number": one.number, "absolute_offset": one.offset, "submatches": [match]}
        _say("match", {**place, "lines": _written(one.line), **about})
    _say("end", {**place, "binary_offset": None})


def _written(content: bytes) -> dict[str, str]:
    try:
        return {"text": content.decode()}
    except UnicodeDecodeError:
        return {"bytes": base64.b64encode(content).decode()}


def _say(kind: str, data: Mapping[str, object]) -> None:
    line = json.dumps({"type": kind, "data": data}, separators=(",", ":"))
    sys.stdout.buffer.write(line.encode() + b"\n")


if __name__ == "__main__":
    sys.exit(main())
