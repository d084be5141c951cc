"""Output of a running command: cleaned; beginning and end of each stream in memory, the whole in a file."""

from __future__ import annotations

import codecs
from collections.abc import Callable
from contextlib import suppress
from threading import Lock
from typing import Literal, TypeAlias

from recto.errors import ToolError
from recto.tools.commands.answer import PrintedText
from recto.tools.commands.clean_text import clean
from recto.tools.commands.whole_output import WholeOutput

StreamName: TypeAlias = Literal["stdout", "stderr"]
STREAMS: tuple[StreamName, ...] = ("stdout", "stderr")
# Longer lines are cleaned in pieces.
LONGEST_LINE = 65_536
NEWEST = 2_000


class Output:
    """Both streams of a command. `characters` of the beginning and of the end of each stay in memory.

    `make_file` creates the file for the whole output once it exceeds that. A job has a file from the start.
    """

    def __init__(self, characters: int, make_file: Callable[[], WholeOutput], file: WholeOutput | None = None) -> None:
        self.bytes = 0
        self.lines = 0
        self._characters = characters
        self._make_file = make_file
        self._file = file
        self._has_tried = file is not None
        # The whole output in order, until there is a file.
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
        """Write the whole output of an ended command to a file, unless it is in one."""
        with self._lock:
            if not self._has_tried:
                self._begin_file()
                if self._file:
                    self._file.close()

    @property
    def path(self) -> str:
        """Path of the file in the workspace; empty if there is none."""
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
        return clean(text[:end])

    def rest(self) -> str:
        """Return the last, unfinished line."""
        text = self._line + self._decoder.decode(b"", final=True)
        self._line = ""
        return clean(text)

    def add(self, text: str) -> None:
        self._length += len(text)
        room = self._characters - len(self._head)
        self._head += text[:room]
        self._tail = (self._tail + text[room:])[-self._characters :] if len(text) > room else self._tail

    def printed(self) -> PrintedText:
        return PrintedText(head=self._head, tail=self._tail, length=self._length)
