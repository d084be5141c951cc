"""What a command prints, while it runs: cleaned, of each stream its beginning and its end, and the whole in a file.

Memory does not grow with what is printed.
"""

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
# A line of more characters is cleaned in pieces.
LONGEST_LINE = 65_536
NEWEST = 2_000


class Output:
    """Both streams of a command. `characters` of the beginning and of the end of each stay in memory.

    `make_file` makes the file of the whole, once there is more than that; a job has one from the beginning.
    """

    def __init__(self, characters: int, make_file: Callable[[], WholeOutput], file: WholeOutput | None = None) -> None:
        self.bytes = 0
        self.lines = 0
        self._characters = characters
        self._make_file = make_file
        self._file = file
        self._has_tried = file is not None
        # All of it in its order, for as long as there is no file.
        self._whole = ""
        self._streams = {stream: _Stream(characters) for stream in STREAMS}
        self._newest = ""
        self._lock = Lock()

    def add(self, stream: StreamName, data: bytes) -> None:
        """More of what it printed."""
        with self._lock:
            self.bytes += len(data)
            self._take(stream, self._streams[stream].whole_lines(data))

    def finish(self) -> None:
        """It prints no more. What stands at the end without the end of a line counts too."""
        with self._lock:
            for stream in STREAMS:
                self._take(stream, self._streams[stream].rest())
            if self._file:
                self._file.close()

    def keep_whole(self) -> None:
        """Have the whole of what has ended in a file, where it is not yet."""
        with self._lock:
            if not self._has_tried:
                self._begin_file()
                if self._file:
                    self._file.close()

    @property
    def path(self) -> str:
        """Where the whole is, in the workspace; empty where it is nowhere."""
        return self._file.path if self._file else ""

    def printed(self, stream: StreamName) -> PrintedText:
        """What is known of a stream."""
        with self._lock:
            return self._streams[stream].printed()

    def newest(self) -> str:
        """The last lines of both streams, as they came."""
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
        # A command does not fail because what it prints cannot be kept.
        with suppress(ToolError):
            self._file = self._make_file()
            self._file.write(self._whole)
        self._whole = ""


class _Stream:
    """One stream: bytes come in, lines go out; of these the first and the last characters stay."""

    def __init__(self, characters: int) -> None:
        self._characters = characters
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self._line = ""
        self._head = ""
        self._tail = ""
        self._length = 0

    def whole_lines(self, data: bytes) -> str:
        """What is to be read now: lines that have come to their end."""
        text = self._line + self._decoder.decode(data)
        end = text.rfind("\n") + 1
        if len(text) - end > LONGEST_LINE:
            end = len(text)
        self._line = text[end:]
        return clean(text[:end])

    def rest(self) -> str:
        """What has not come to the end of its line."""
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
