"""Output of a running command as clean text: head and tail of each stream in memory, the whole in a file."""

from __future__ import annotations

import codecs
import re
from bisect import bisect_right
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from threading import Lock
from typing import Literal, TypeAlias

from recto.conversation.json import Json, dump
from recto.errors import ToolError
from recto.page.text.cut import common_length
from recto.tools.commands.whole_output import WholeOutput

MARK = "\n[... {count:,} characters left out ...]\n"
# Fewest characters of a text to show beside the mark. With less room, show nothing.
LEAST = 20
# Characters that JSON writes as two. Clean text contains no other characters that JSON escapes.
_DOUBLED = ('"', "\\", "\n", "\t")
# Terminal escape sequences: with parameters, titles and links, character sets, single letters.
_ESCAPES = re.compile(
    r"\x1b\[[0-?]*[ -/]*[@-~]|\x1b\][^\x07\x1b]*(?:\x07|\x1b\\)?|\x1b[PX^_][^\x1b]*(?:\x1b\\)?"
    r"|\x1b[ -/]+[0-~]|\x1b[0-~]?"
)
_DRAWN_OVER = re.compile(r"[^\n]*\r(?=[^\n\r])")
_CONTROLS = re.compile(r"[\x00-\x08\x0b-\x1f\x7f]")
StreamName: TypeAlias = Literal["stdout", "stderr"]
STREAMS: tuple[StreamName, ...] = ("stdout", "stderr")
# Longest line that is cleaned as a whole. Longer lines are cleaned in pieces.
LONGEST_LINE = 65_536
NEWEST = 2_000


@dataclass(frozen=True, kw_only=True)
class PrintedText:
    """The head, tail and full length of a text. Head and tail are the whole text if `missing` is 0."""

    head: str = ""
    tail: str = ""
    length: int = 0

    @property
    def missing(self) -> int:
        """The number of characters dropped between head and tail."""
        return self.length - len(self.head) - len(self.tail)


def fit_texts(stdout: PrintedText, stderr: PrintedText, room: int) -> tuple[str, str, bool]:
    """Return both texts within `room` characters of JSON, the shorter one whole if possible, and True if one is cut."""
    sizes = [_size(one.head + one.tail) + (room if one.missing else 0) for one in (stdout, stderr)]
    share = common_length(sizes, max(room, 0))
    return _cut(stdout, share), _cut(stderr, share), max(sizes) > share


def format_answer(
    stdout: PrintedText, stderr: PrintedText, rest: Mapping[str, Json], characters: int, output: str
) -> str:
    """Return the answer in at most `characters`. If a text is cut, add `output`, the path of the whole output."""
    answer_row: dict[str, Json] = {"stdout": "", "stderr": "", **rest}
    out, err, is_cut = fit_texts(stdout, stderr, characters - len(dump(answer_row)))
    if is_cut:
        answer_row = {**answer_row, "cut": True, **({"output": output} if output else {})}
        out, err, _ = fit_texts(stdout, stderr, characters - len(dump(answer_row)))
    return dump({**answer_row, "stdout": out, "stderr": err}).decode()


def fits(stdout: PrintedText, stderr: PrintedText, rest: Mapping[str, Json], characters: int) -> bool:
    """Return True if the answer fits without a cut."""
    return not fit_texts(stdout, stderr, characters - len(dump({"stdout": "", "stderr": "", **rest})))[2]


def _cut(text: PrintedText, room: int) -> str:
    whole = text.head + text.tail
    if not text.missing and _size(whole) <= room:
        return whole
    remaining = room - _size(MARK.format(count=text.length))
    if remaining < LEAST:
        return ""
    # The end tells how the command ended, so it gets the larger part.
    head = _cut_end(text.head if text.missing else whole, remaining // 3)
    tail = _cut_end((text.tail if text.missing else whole)[::-1], remaining - _size(head))[::-1]
    return head + MARK.format(count=text.length - len(head) - len(tail)) + tail


def _cut_end(text: str, room: int) -> str:
    return text[: bisect_right(range(1, len(text) + 1), room, key=lambda length: _size(text[:length]))]


def _size(text: str) -> int:
    return len(text) + sum(map(text.count, _DOUBLED))


def clean_text(text: str) -> str:
    """Remove escape sequences, text overwritten after a carriage return, and control characters."""
    if "\x1b" in text:
        text = _ESCAPES.sub("", text)
    if "\r" in text:
        text = _DRAWN_OVER.sub("", text)
    return _CONTROLS.sub("", text)


class Output:
    """Both streams of a command, with at most `characters` of the head and of the tail of each stream in memory.

    If the output exceeds `characters`, `make_file` creates a file for the whole output. A job passes its `file` at the
    start.
    """

    def __init__(self, characters: int, make_file: Callable[[], WholeOutput], file: WholeOutput | None = None) -> None:
        self.bytes = 0
        self.lines = 0
        self._characters = characters
        self._make_file = make_file
        self._file = file
        self._has_tried = file is not None
        # Both streams in order of arrival, until a file exists.
        self._whole = ""
        self._streams = {stream: _Stream(characters) for stream in STREAMS}
        self._newest = ""
        self._lock = Lock()

    def add(self, stream: StreamName, data: bytes) -> None:
        """Add output bytes of a stream."""
        with self._lock:
            self.bytes += len(data)
            self._take(stream, self._streams[stream].whole_lines(data))

    def finish(self) -> None:
        """Flush the unfinished last lines and close the file."""
        with self._lock:
            for stream in STREAMS:
                self._take(stream, self._streams[stream].rest())
            if self._file:
                self._file.close()

    def keep_whole(self) -> None:
        """Write the whole output of an ended command to a file, if there is no file yet."""
        with self._lock:
            if not self._has_tried:
                self._begin_file()
                if self._file:
                    self._file.close()

    @property
    def path(self) -> str:
        """The path of the file in the workspace; empty if no file exists."""
        return self._file.path if self._file else ""

    def printed(self, stream: StreamName) -> PrintedText:
        """Return the head, tail and length of a stream."""
        with self._lock:
            return self._streams[stream].printed()

    def newest(self) -> str:
        """Return the last lines of both streams in order of arrival."""
        with self._lock:
            return self._newest

    def _take(self, stream: StreamName, text: str) -> None:
        if not text:
            return
        self.lines += text.count("\n")
        self._streams[stream].add(text)
        self._newest = (self._newest + text)[-NEWEST:]
        if self._file:
            self._file.write(text)
        elif not self._has_tried:
            self._whole += text
            if len(self._whole) > self._characters:
                self._begin_file()

    def _begin_file(self) -> None:
        self._has_tried = True
        # A command does not fail because its output cannot be stored.
        with suppress(ToolError):
            self._file = self._make_file()
            self._file.write(self._whole)
        self._whole = ""


class _Stream:
    """One stream: decodes bytes into lines and stores the first and last characters."""

    def __init__(self, characters: int) -> None:
        self._characters = characters
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self._line = ""
        self._head = ""
        self._tail = ""
        self._length = 0

    def whole_lines(self, data: bytes) -> str:
        """Return the completed lines."""
        text = self._line + self._decoder.decode(data)
        end = text.rfind("\n") + 1
        if len(text) - end > LONGEST_LINE:
            end = len(text)
        self._line = text[end:]
        return clean_text(text[:end])

    def rest(self) -> str:
        """Return the last, unfinished line."""
        text = self._line + self._decoder.decode(b"", final=True)
        self._line = ""
        return clean_text(text)

    def add(self, text: str) -> None:
        self._length += len(text)
        room = self._characters - len(self._head)
        self._head += text[:room]
        self._tail = (self._tail + text[room:])[-self._characters :] if len(text) > room else self._tail

    def printed(self) -> PrintedText:
        return PrintedText(head=self._head, tail=self._tail, length=self._length)
