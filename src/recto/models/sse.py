"""Server-sent events of a provider: from bytes in any fragmentation to objects, and the values in them.

Refuses endless lines, and what is no JSON object.
"""

from __future__ import annotations

import json
from collections.abc import Mapping

from recto.conversation.json import Json, dump, load
from recto.errors import ModelCutOff, WireError
from recto.models.ports import Usage

# A hundred times the largest window there is. Whatever is added up from less has room in a database's numbers.
MOST_TOKENS = 1_000_000_000
# A whole tool call or an image may stand in one line; nothing a model says is larger than this.
MOST = 16 * 1024 * 1024
BOM = b"\xef\xbb\xbf"


class EventReader:
    """Reads one stream. Feed it what arrives; it gives back the data of every event that is whole by then.

    An event that the stream's end cuts off is never given. `most` bounds the bytes of an event.
    """

    def __init__(self, *, most: int = MOST) -> None:
        self._most = most
        self._begun: list[bytes] = []
        self._data: list[bytes] = []
        self._held = 0
        self._after_return = False
        self._first = True

    def feed(self, fragment: bytes) -> list[bytes]:
        """The data of the events this fragment completes, in order."""
        # Most fragments are whole events of one line each: one look at all of them is a third of the work.
        if fragment.startswith(b"data: ") and fragment.endswith(b"\n\n") and self._is_between(fragment):
            whole = fragment[6:-2].split(b"\n\ndata: ")
            if fragment.count(b"\n") == 2 * len(whole):
                self._first = False
                return whole
        events: list[bytes] = []
        for line in self._lines(fragment):
            if line:
                self._take(line)
            elif self._data:
                # Joined before anybody decodes it: no border of fragments can fall into a character here.
                events.append(self._data[0] if len(self._data) == 1 else b"\n".join(self._data))
                self._data, self._held = [], 0
        return events

    def _is_between(self, fragment: bytes) -> bool:
        """Whether nothing waits for this fragment, and nothing in it needs a closer look."""
        waits = self._begun or self._data or self._after_return
        return not waits and b"\r" not in fragment and len(fragment) <= self._most

    def _lines(self, fragment: bytes) -> list[bytes]:
        if self._after_return and fragment:
            fragment = fragment.removeprefix(b"\n")
            self._after_return = False
        has_returns = b"\r" in fragment
        if not has_returns and b"\n" not in fragment:
            self._hold(fragment)
            return []
        if self._begun:
            fragment = b"".join((*self._begun, fragment))
            self._held -= sum(map(len, self._begun))
            self._begun = []
        if has_returns:
            self._after_return = fragment.endswith(b"\r")
            fragment = fragment.replace(b"\r\n", b"\n").replace(b"\r", b"\n")
        *lines, rest = fragment.split(b"\n")
        self._hold(rest)
        return lines

    def _hold(self, fragment: bytes) -> None:
        if fragment:
            self._begun.append(fragment)
            self._weigh(fragment)

    def _take(self, line: bytes) -> None:
        if self._first:
            self._first = False
            line = line.removeprefix(BOM)
        name, _, value = line.partition(b":")
        if name == b"data":
            data = value.removeprefix(b" ")
            self._data.append(data)
            self._weigh(data)

    def _weigh(self, more: bytes) -> None:
        self._held += len(more)
        if self._held > self._most:
            raise WireError(where="stream", problem=f"an event is larger than {self._most} bytes")


def parse_event(data: bytes, model: str) -> dict[str, Json]:
    """The object an event carries."""
    try:
        event = load(data)
    except ValueError:
        event = _with_halves(data, model)
    if not isinstance(event, dict):
        raise ModelCutOff(model=model, problem="an event of its stream is no JSON object.")
    return event


def object_of(value: Json) -> Mapping[str, Json]:
    """An object; an empty one where there is none."""
    return value if isinstance(value, Mapping) else {}


def text_of(value: Json) -> str:
    """A text; an empty one where there is none."""
    return value if isinstance(value, str) else ""


def count_of(value: Json) -> int:
    """A number of tokens; 0 where there is none."""
    return max(int(value), 0) if isinstance(value, (int, float)) else 0


def credible(usage: Usage) -> Usage | None:
    """The usage a provider reports. One with a count that no call can have is as good as none."""
    counts = (usage.input, usage.output, usage.cached, usage.cache_written, usage.reasoning)
    return usage if max(counts) <= MOST_TOKENS else None


def _with_halves(data: bytes, model: str) -> Json:
    """Bytes that are no text and halves of surrogate pairs, which are JSON if no text: they become U+FFFD."""
    try:
        return load(dump(json.loads(data.decode("utf-8", "replace"))))
    except (ValueError, RecursionError) as error:
        raise ModelCutOff(model=model, problem="an event of its stream is no JSON.") from error
