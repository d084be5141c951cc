"""A model behind an HTTP endpoint, which receives the bytes of a page unchanged and streams the reply.

A reply is complete after the stream's end event. It is also complete if the model gave a finish reason and the body
ended within its framing.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import partial
from itertools import chain
from urllib.parse import quote, urlsplit

from recto.agents.agent import Sampling
from recto.config.run_settings import Timeouts, WorkSettings
from recto.conversation.json import Json
from recto.errors import ModelCutOff, ModelUnreachable, WireError
from recto.http.client import HttpClient, HttpConnection
from recto.http.network import Network
from recto.http.tunnel import ProxyRefused
from recto.models.deltas import join_deltas
from recto.models.faults import Blame, fault, parse_retry_after
from recto.models.openai_chat import COMPATIBLE_CHAT
from recto.models.ports import Delta
from recto.models.sse import EventReader
from recto.models.wire_protocol import WireProtocol
from recto.page.wire.base import Target

OK = 200
ERROR_BYTES = 64 * 1024
JSON_BYTES = 16 * 1024 * 1024
# Seconds to wait for the end of the body after the reply. A connection that takes longer is closed; others are reused.
LINGER = 0.1


@dataclass(frozen=True, kw_only=True)
class Endpoint:
    """Address, protocol and key of a model. Errors name the settings to change."""

    base_url: str
    protocol: WireProtocol = COMPATIBLE_CHAT
    provider: str = ""
    key: str = field(default="", repr=False)
    key_setting: str = "the key"
    url_setting: str = "the base url"
    timeouts: Timeouts = Timeouts()
    network: Network = field(default_factory=Network)
    sees_images: bool = True


def utc_now() -> datetime:
    """Return the current time."""
    return datetime.now(UTC)


class EndpointModel:
    """Model behind an endpoint, with its own connections. `aclose` closes them."""

    def __init__(
        self,
        model: str,
        endpoint: Endpoint,
        *,
        options: Mapping[str, Json] | None = None,
        window: int = WorkSettings.window,
        clock: Callable[[], datetime] = utc_now,
    ) -> None:
        self.name = f"{endpoint.provider}:{model}" if endpoint.provider else model
        self.target = Target(wire=endpoint.protocol.wire, model=model, sees_images=endpoint.sees_images)
        self.options: Mapping[str, Json] = {**endpoint.protocol.options, **(options or {})}
        self.window = window
        self._endpoint = endpoint
        self._options = options or {}
        path = endpoint.protocol.path.format(model=quote(model, safe=""))
        self._url = f"{endpoint.base_url.rstrip('/')}{path}"
        self._client: HttpClient | None = None
        self._clock = clock
        self._blame = Blame(
            model=self.name, key_setting=endpoint.key_setting, url_setting=endpoint.url_setting, secret=endpoint.key
        )

    def options_for(self, sampling: Sampling, *, has_tools: bool) -> Mapping[str, Json]:
        """Return the fields of a request: the protocol's, then the agent's, then the model's own."""
        protocol = self._endpoint.protocol
        options = protocol.request_options(self.target.model, sampling, has_tools=has_tools)
        return {**protocol.options, **options, **self._options}

    @property
    def base_url(self) -> str:
        """The address of the endpoint without a path."""
        return self._endpoint.base_url.rstrip("/")

    async def aclose(self) -> None:
        """Close every connection to the endpoint."""
        if self._client is not None:
            self._client.close()
            self._client = None

    async def stream(self, body: bytes) -> AsyncGenerator[Delta, None]:
        """Send the bytes and yield the deltas as they arrive. Closing the generator closes the connection at once."""
        answer: HttpConnection | None = None
        try:
            answer = await self._post(body)
            reader = self._endpoint.protocol.reader(model=self.target.model, blame=self._blame)
            if answer.header(b"content-encoding").lower() not in ("", "identity"):
                problem = "the answer is compressed, though the request excluded that"
                raise WireError(where="Content-Encoding", problem=problem)
            # A plain JSON reply counts as one event.
            is_json = answer.header(b"content-type").partition(";")[0].strip().lower() == "application/json"
            read, split = partial(_beginning, answer, JSON_BYTES) if is_json else answer.read, EventReader().feed
            while not reader.done and (fragment := await read()):
                events = (fragment,) if is_json else split(fragment)
                for delta in join_deltas(chain.from_iterable(map(reader.read, events))):
                    yield delta
            if not reader.done and not answer.is_framed:
                raise ModelCutOff(model=self.name, problem="the stream ended without its end event.")
            yield reader.end()
            await answer.finish(LINGER)
        except WireError as error:
            raise ModelCutOff(model=self.name, problem=f"its stream cannot be read: {error}.") from error
        except TimeoutError as error:
            raise ModelUnreachable(model=self.name, problem="no response in time. Try again.") from error
        except OSError as error:
            if answer is not None:
                problem = "the connection broke before the reply was whole."
                raise ModelCutOff(model=self.name, problem=problem) from error
            # Show only the host, because clients read this text.
            problem = unreachable(urlsplit(self._url).hostname or "", error, self._endpoint.url_setting)
            raise ModelUnreachable(model=self.name, problem=problem) from error
        finally:
            if answer is not None:
                answer.close()

    async def _post(self, body: bytes) -> HttpConnection:
        if self._client is None:
            headers = {"Content-Type": "application/json", "Accept": "text/event-stream", "Accept-Encoding": "identity"}
            protocol, key = self._endpoint.protocol, self._endpoint.key
            auth_header = {protocol.key_header: protocol.key_form.format(key=key)} if key else {}
            self._client = HttpClient(
                self._url, {**headers, **dict(protocol.headers), **auth_header}, network=self._endpoint.network
            )
        answer = await self._client.post(body, self._endpoint.timeouts)
        if answer.status == OK:
            return answer
        try:
            body = await _beginning(answer, ERROR_BYTES)
        except OSError:
            # The error needs only the status, so a body is not required.
            body = b""
        finally:
            answer.close()
        wait = parse_retry_after(answer.header(b"retry-after") or None, self._clock())
        wait = self._endpoint.protocol.retry_after(body) if wait is None else wait
        raise fault(answer.status, body, self._blame, wait)


def unreachable(host: str, error: OSError, url_setting: str) -> str:
    """Return the reason why a host cannot be reached, without credentials."""
    if isinstance(error, ProxyRefused):
        return f"{host} cannot be reached: {error.summary}. Check the proxy."
    return f"{host} cannot be reached ({type(error).__name__}). Check {url_setting}."


async def _beginning(answer: HttpConnection, most: int) -> bytes:
    """Read the first `most` bytes of the body."""
    body = b""
    while len(body) < most and (fragment := await answer.read()):
        body += fragment
    return body[:most]
