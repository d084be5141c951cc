"""Protocol of a provider: its path, the header of its key, request options and the reader of replies.

If an agent does not set an option, the request omits it and the model decides. The request also omits options that a
model always rejects. All other options are sent, and the provider's error explains a problem.
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
# Version of a model whose name contains no version: newer than any model, because such a name means a current model.
NEWEST: ModelVersion = (99, 0)


class ReplyReader(Protocol):
    """Reader of one reply, event by event. `done` is True after the end event of the stream."""

    done: bool

    def read(self, data: bytes) -> Iterable[Delta]: ...
    def end(self) -> ReplyEnd: ...


class MakeReader(Protocol):
    """Constructor of a reader for the reply of a model."""

    def __call__(self, *, model: str, blame: Blame) -> ReplyReader: ...


class RequestOptions(Protocol):
    """Function that returns the request fields for an agent. `has_tools` is True if the page offers native tools."""

    def __call__(self, model: str, sampling: Sampling, /, *, has_tools: bool) -> Options: ...


@dataclass(frozen=True, kw_only=True)
class ProviderSdk:
    """Requests and errors of a provider's SDKs, for the gateway (X3).

    `path` receives requests with messages, and `also` are further forwarded paths. All of them begin with `base` if the
    provider's address includes it. `own_header` is a header that only these SDKs send. `error` returns an error body
    for a status, a code and a message; `fault_event` is the template of an error that ends a stream.
    """

    path: str
    also: tuple[str, ...] = ()
    base: str = ""
    own_header: str = ""
    error: Callable[[int, str, str], Mapping[str, Json]]
    fault_event: bytes


@dataclass(frozen=True, kw_only=True)
class WireProtocol:
    """Protocol of a provider. `path` follows the base URL, with {model} for the model; `key_form` is the value of the
    key header, with {key} for the key.

    `options` are fields of every request. `retry_after` returns the seconds to wait from the body of an error. `sdk`
    describes the format for the gateway.
    """

    wire: WireName
    path: str
    key_header: str
    key_form: str
    options: Options
    request_options: RequestOptions
    reader: MakeReader
    headers: tuple[tuple[str, str], ...] = ()
    retry_after: Callable[[bytes], float | None] = lambda _body: None
    sdk: ProviderSdk | None = None


def version_in(model: str, pattern: re.Pattern[str]) -> ModelVersion:
    """Return the version in a model's name: the two numbers of the pattern. The second defaults to 0."""
    match = pattern.search(model)
    return (int(match[1]), int(match[2] or 0)) if match else NEWEST


def output_schema(sampling: Sampling) -> Options | None:
    """Return the JSON Schema of the answer, or None if the agent sets none."""
    if sampling.output is None:
        return None
    schema = load_object(sampling.output)
    if not schema:
        raise SettingsError(
            name="output", value=sampling.output, allowed="it is a JSON Schema: an object, as JSON text"
        )
    return schema


def present(**fields: Json) -> dict[str, Json]:
    """Return the fields that are not None."""
    return {name: value for name, value in fields.items() if value is not None}
