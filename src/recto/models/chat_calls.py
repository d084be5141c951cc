"""The tool calls of one streamed reply, put together from fragments that name them well, badly or not at all. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from recto.models.event_data import text_of
from recto.models.ports import CallDelta, CallStarted, Delta
from recto.page import Opaque
from recto.page.canonical import Json, dump, load_object
from recto.page.wire.openai import WIRE

OWN_FIELDS = ("id", "type", "function", "index")
# How often a call is looked at whether it is whole: each look reads all of it.
MOST_LOOKS = 64
Fragment = Mapping[str, Json]


@dataclass(kw_only=True)
class _Call:
    """A call as far as it is known. `id` is the provider's own, `waiting` are arguments not given out yet."""

    number: int
    place: Json
    id: str = ""
    name: str = ""
    started: bool = False
    written: list[str] = field(default_factory=list[str])
    waiting: list[str] = field(default_factory=list[str])
    extra: dict[str, Json] = field(default_factory=dict[str, Json])

    looks: int = 0

    def is_whole(self) -> bool:
        """Whether its arguments are an object. Not asked for ever of one whose every fragment looks like the last."""
        pieces = (*self.written[-1:], *self.waiting)
        if not pieces or not pieces[-1].rstrip().endswith("}") or self.looks >= MOST_LOOKS:
            return False
        self.looks += 1
        return load_object("".join((*self.written, *self.waiting))) is not None


class Calls:
    """The calls of one reply. A call starts once its arguments begin, since until then its name may still grow."""

    def __init__(self, *, model: str) -> None:
        self._model = model
        self._calls: list[_Call] = []
        # The newest by what names it, and those that are not started yet: a reply may have thousands.
        self._by_place: dict[str, _Call] = {}
        self._by_id: dict[str, _Call] = {}
        self._not_started: list[_Call] = []

    @property
    def any(self) -> bool:
        """Whether the model called a tool."""
        return bool(self._calls)

    @property
    def nameless(self) -> bool:
        """Whether a call has no name (yet)."""
        return any(not call.name for call in self._calls)

    def read(self, fragments: Sequence[Json]) -> Iterator[Delta]:
        """What the fragments of one chunk add."""
        for fragment in fragments:
            if isinstance(fragment, Mapping):
                yield from self._read(fragment, alone=len(fragments) == 1)

    def close(self) -> Iterator[Delta]:
        """Start what has not been started: the reply is over, no name will grow any more."""
        for call in self._not_started:
            yield from self._give_out(call, over=True)
        self._not_started = [call for call in self._not_started if not call.started]

    def state(self) -> Mapping[int, Opaque]:
        """Fields of calls that are none of the format's, for the provider to get back, by the number of the call."""
        return {
            call.number: Opaque(
                provider=WIRE, model=self._model, place="field", name="call", data=dump(call.extra).decode()
            )
            for call in self._calls
            if call.extra
        }

    def _read(self, fragment: Fragment, *, alone: bool) -> Iterator[Delta]:
        function = fragment.get("function")
        name, arguments = _name_and_arguments(function) if isinstance(function, Mapping) else ("", "")
        call = self._find(fragment, alone=alone)
        if call is not None and name and _begins_another(fragment, call, arguments):
            call = None
        if call is None:
            yield from self.close()
            call = _Call(number=len(self._calls), place=fragment.get("index"))
            self._calls.append(call)
            self._not_started.append(call)
            self._by_place[str(call.place)] = call
        call.id = call.id or text_of(fragment.get("id"))
        self._by_id[call.id] = call
        call.name = call.name if call.started else _longer(call.name, name)
        call.extra |= {key: value for key, value in fragment.items() if key not in OWN_FIELDS and value is not None}
        if arguments:
            call.waiting.append(arguments)
        yield from self._give_out(call, over=False)

    def _find(self, fragment: Fragment, *, alone: bool) -> _Call | None:
        """The call a fragment speaks of: by index, else by id, else the last one."""
        place, id = fragment.get("index"), text_of(fragment.get("id"))
        if place is not None:
            return self._by_place.get(str(place))
        if id:
            return self._by_id.get(id)
        return self._calls[-1] if alone and self._calls else None

    def _give_out(self, call: _Call, *, over: bool) -> Iterator[Delta]:
        if not call.name or not (call.started or call.waiting or over):
            return
        if not call.started:
            call.started = True
            yield CallStarted(index=call.number, id=call.id, name=call.name)
        for arguments in call.waiting:
            yield CallDelta(index=call.number, arguments=arguments)
        call.written += call.waiting
        call.waiting = []


def _begins_another(fragment: Fragment, call: _Call, arguments: str) -> bool:
    """Whether a fragment with a name is a new call all the same: servers that send whole calls reuse index and id."""
    id = text_of(fragment.get("id"))
    if id and call.id and id != call.id:
        return True
    unnamed = not id and fragment.get("index") is None
    return bool(arguments or unnamed) and call.is_whole()


def _longer(name: str, more: str) -> str:
    """A name as far as it is known: servers send the next piece of it, or all of it again."""
    return more if more.startswith(name) else name + more


def _name_and_arguments(function: Mapping[str, Json]) -> tuple[str, str]:
    arguments = function.get("arguments")
    # Arguments are text; some servers send the object itself.
    written = dump(arguments).decode() if isinstance(arguments, Mapping) else text_of(arguments)
    return text_of(function.get("name")), written
