"""Server-sent events of a provider: bytes in any fragmentation become JSON objects.

Rejects events above a size limit and data that is not a JSON object.
"""

from __future__ import annotations

import json
from collections.abc import Mapping

from recto.conversation.json import Json, dump, load
from recto.errors import ModelCutOff, WireError
from recto.models.ports import Usage

# Maximum token count that is accepted: a hundred times the largest context window. Sums of smaller counts fit into the
# integers of a database.
MOST_TOKENS = 1_000_000_000
# Maximum bytes of an event. One line may contain a whole tool call or an image, but no reply is larger than this.
MOST = 16 * 1024 * 1024
BOM = b"\xef\xbb\xbf"


class EventReader:
    """Reader of one stream. It returns the data of complete events and drops an event that the end of the stream cuts
    off.

    `most` limits the bytes of an event.
    """

    def __init__(self, *, most: int = MOST) -> None:
        self._most = most
        self._line_pieces: list[bytes] = []
        self._data: list[bytes] = []
        self._size = 0
        self._after_return = False
        self._first = True

    def feed(self, fragment: bytes) -> list[bytes]:
        """Return the data of the events that this fragment completes, in order."""
        # Most fragments are whole events of one line each. A single pattern for all of them takes a third of the time.
        if (
            fragment.startswith(b"data: ")
            and fragment.endswith(b"\n\n")
            and (
                not (self._line_pieces or self._data or self._after_return)
                and b"\r" not in fragment
                and (len(fragment) <= self._most)
            )
        ):
            whole = fragment[6:-2].split(b"\n\ndata: ")
            if fragment.count(b"\n") == 2 * len(whole):
                self._first = False
                return whole
        events: list[bytes] = []
        for line in self._lines(fragment):
            if line:
                name, _, value = (line.removeprefix(BOM) if self._first else line).partition(b":")
                self._first = False
                if name == b"data":
                    data = value.removeprefix(b" ")
                    self._data.append(data)
                    self._weigh(data)
            elif self._data:
                # Join the lines before decoding, so that no character is split.
                events.append(self._data[0] if len(self._data) == 1 else b"\n".join(self._data))
                self._data, self._size = [], 0
        return events

    def _lines(self, fragment: bytes) -> list[bytes]:
        if self._after_return and fragment:
            fragment = fragment.removeprefix(b"\n")
            self._after_return = False
        has_returns = b"\r" in fragment
        if not has_returns and b"\n" not in fragment:
            self._hold(fragment)
            return []
        if self._line_pieces:
            fragment = b"".join((*self._line_pieces, fragment))
            self._size -= sum(map(len, self._line_pieces))
            self._line_pieces = []
        if has_returns:
            self._after_return = fragment.endswith(b"\r")
            fragment = fragment.replace(b"\r\n", b"\n").replace(b"\r", b"\n")
        *lines, rest = fragment.split(b"\n")
        self._hold(rest)
        return lines

    def _hold(self, fragment: bytes) -> None:
        if fragment:
            self._line_pieces.append(fragment)
            self._weigh(fragment)

    def _weigh(self, more: bytes) -> None:
        self._size += len(more)
        if self._size > self._most:
            raise WireError(where="stream", problem=f"an event is larger than {self._most} bytes")


def parse_event(data: bytes, model: str) -> dict[str, Json]:
    """Return the object in the data of an event."""
    try:
        event = load(data)
    except ValueError:
        try:
            # Replace invalid UTF-8 and lone surrogates by U+FFFD.
            event = load(dump(json.loads(data.decode("utf-8", "replace"))))
        except (ValueError, RecursionError) as error:
            raise ModelCutOff(model=model, problem="an event of its stream is not JSON.") from error
    if not isinstance(event, dict):
        raise ModelCutOff(model=model, problem="an event of its stream is not a JSON object.")
    return event


def object_of(value: Json) -> Mapping[str, Json]:
    """Return the value if it is an object, else an empty object."""
    return value if isinstance(value, Mapping) else {}


def text_of(value: Json) -> str:
    """Return the value if it is a text, else an empty text."""
    return value if isinstance(value, str) else ""


def count_of(value: Json) -> int:
    """Return the value if it is a number of tokens, else 0."""
    return max(int(value), 0) if isinstance(value, (int, float)) else 0


def credible(usage: Usage) -> Usage | None:
    """Return the reported usage, or None if a count is impossibly large."""
    counts = (usage.input, usage.output, usage.cached, usage.cache_written, usage.reasoning)
    return usage if max(counts) <= MOST_TOKENS else None
