"""What talking to a provider takes: where to post, how to show the key, what to ask for, how to read the reply.

What an agent does not ask for is left to the model. What a model is known to refuse on every call is left out;
everything else is sent as asked, and the provider's refusal says what is wrong with it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Protocol, TypeAlias

from recto.agents.agent import Sampling
from recto.conversation.json import Json, load_object
from recto.errors import SettingsError
from recto.models.faults import Blame
from recto.models.ports import Delta, ReplyEnd
from recto.page.wire.base import WireName

Options: TypeAlias = Mapping[str, Json]
ModelVersion: TypeAlias = tuple[int, int]
# Newer than any model: a name that tells no version is taken for one of today's.
NEWEST: ModelVersion = (99, 0)


class ReplyReader(Protocol):
    """Reads one reply, event by event. `done` tells that the stream said it is over."""

    done: bool

    def read(self, data: bytes) -> Iterable[Delta]: ...
    def end(self) -> ReplyEnd: ...


class MakeReader(Protocol):
    """Begins to read a reply of a model."""

    def __call__(self, *, model: str, blame: Blame) -> ReplyReader: ...


class RequestOptions(Protocol):
    """The fields of a request that say what an agent asks for. `has_tools`: the page offers tools natively."""

    def __call__(self, model: str, sampling: Sampling, /, *, has_tools: bool) -> Options: ...


def _not_said(_body: bytes) -> None:
    return None


@dataclass(frozen=True, kw_only=True)
class ProviderSdk:
    """What SDKs of a provider ask for and expect, where something else answers in its place (X3).

    `path` is where requests with messages go, `also` are paths that are passed on; all begin with `base`, where the
    provider's address has that in it. `own_header` is sent by none but these SDKs. `error` is a refusal's body, for a
    status, a code and words; `fault_event` has a place for one that ends a stream.
    """

    path: str
    also: tuple[str, ...] = ()
    base: str = ""
    own_header: str = ""
    error: Callable[[int, str, str], Mapping[str, Json]]
    fault_event: bytes


@dataclass(frozen=True, kw_only=True)
class WireProtocol:
    """A provider's way of talking. `path` follows the base url and has {model} where the model goes into it; `key_form`
    has {key} where the key goes into a header.

    `options` are fields of every request. `retry_after` are the seconds that the body of a refusal says to wait. `sdk`
    is what others who speak it expect of us.
    """

    wire: WireName
    path: str
    key_header: str
    key_form: str
    options: Options
    request_options: RequestOptions
    reader: MakeReader
    headers: tuple[tuple[str, str], ...] = ()
    retry_after: Callable[[bytes], float | None] = _not_said
    sdk: ProviderSdk | None = None


def version_in(model: str, pattern: re.Pattern[str]) -> ModelVersion:
    """The version that a model's name tells: the two numbers of the pattern, the second 0 where it has none."""
    found = pattern.search(model)
    return (int(found[1]), int(found[2] or 0)) if found else NEWEST


def output_schema(sampling: Sampling) -> Options | None:
    """The JSON Schema an answer has to follow, where one is asked for."""
    if sampling.output is None:
        return None
    schema = load_object(sampling.output)
    if not schema:
        raise SettingsError(
            name="output", value=sampling.output, allowed="it is a JSON Schema: an object, as JSON text"
        )
    return schema


def present(**fields: Json) -> dict[str, Json]:
    """The fields that have a value."""
    return {name: value for name, value in fields.items() if value is not None}
