"""A model behind an endpoint over HTTP: sends a page's very bytes, reads the reply as it streams. Decides nothing.

A reply is whole when the stream says so, or when the model said it is done and the body ended within its framing.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from itertools import chain
from urllib.parse import quote, urlsplit

import aiohttp

from recto.agents.agent import Sampling
from recto.config.run_settings import Timeouts, WorkSettings
from recto.conversation.json import Json
from recto.errors import ModelCutOff, ModelError, ModelUnreachable, WireError
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
# A connection whose body ends right after the reply is used again; one that lingers is closed.
LINGER = 0.1
# How soon a deadline is looked at again that passed while nobody was reading.
LOOK = 1.0


@dataclass(frozen=True, kw_only=True)
class Endpoint:
    """Where a model is, how to talk to it and how to get in. The settings' names are for errors: what to change."""

    base_url: str
    protocol: WireProtocol = COMPATIBLE_CHAT
    provider: str = ""
    key: str = field(default="", repr=False)
    key_setting: str = "the key"
    url_setting: str = "the base url"
    timeouts: Timeouts = Timeouts()
    trust_env: bool = False
    sees_images: bool = True


def utc_now() -> datetime:
    """The time, where none is given."""
    return datetime.now(UTC)


class EndpointModel:
    """A model behind an endpoint. Without a session it makes its own, which `aclose` closes."""

    def __init__(
        self,
        model: str,
        endpoint: Endpoint,
        *,
        options: Mapping[str, Json] | None = None,
        window: int = WorkSettings.window,
        session: aiohttp.ClientSession | None = None,
        clock: Callable[[], datetime] = utc_now,
    ) -> None:
        self.name = f"{endpoint.provider}:{model}" if endpoint.provider else model
        self.target = Target(wire=endpoint.protocol.wire, model=model, sees_images=endpoint.sees_images)
        self.options: Mapping[str, Json] = {**endpoint.protocol.options, **(options or {})}
        self.window = window
        self._endpoint = endpoint
        self._given = options or {}
        path = endpoint.protocol.path.format(model=quote(model, safe=""))
        self._url = f"{endpoint.base_url.rstrip('/')}{path}"
        self._own = session is None
        self._session = session
        self._clock = clock
        self._blame = Blame(
            model=self.name,
            key_setting=endpoint.key_setting,
            url_setting=endpoint.url_setting,
            secret=endpoint.key,
        )

    def options_for(self, sampling: Sampling, *, has_tools: bool) -> Mapping[str, Json]:
        """The fields of a request: those of every one, what the agent asks for, and what was given with the model."""
        protocol = self._endpoint.protocol
        asked = protocol.request_options(self.target.model, sampling, has_tools=has_tools)
        return {**protocol.options, **asked, **self._given}

    async def aclose(self) -> None:
        """Close the session this model made. A session given to it stays open."""
        if self._own and self._session is not None:
            await self._session.close()
            self._session = None

    async def stream(self, body: bytes) -> AsyncGenerator[Delta, None]:
        """Send the bytes, give the deltas as they come. Closing it closes the connection at once."""
        async with self._answer(body) as answer:
            reader = self._endpoint.protocol.reader(model=self.target.model, blame=self._blame)
            while not reader.done and (events := await answer.events()) is not None:
                for delta in join_deltas(chain.from_iterable(map(reader.read, events))):
                    yield delta
            if not reader.done and not answer.is_framed:
                raise ModelCutOff(model=self.name, problem="the stream ended without saying that it is done.")
            yield reader.end()
            await answer.linger()

    @asynccontextmanager
    async def _answer(self, body: bytes) -> AsyncGenerator[_Answer, None]:
        """The answer to a post, closed in any case. What goes wrong on the way is told in our words."""
        answer: _Answer | None = None
        try:
            answer = await self._post(body)
            yield answer
        except WireError as error:
            raise ModelCutOff(model=self.name, problem=f"its stream cannot be read: {error}.") from error
        except TimeoutError as error:
            raise ModelUnreachable(model=self.name, problem="no sign of life in time. Try again.") from error
        except aiohttp.ClientError as error:
            raise self._broken(error, answered=answer is not None) from error
        finally:
            if answer is not None:
                answer.close()

    async def _post(self, body: bytes) -> _Answer:
        timeouts = self._endpoint.timeouts
        deadline = asyncio.get_running_loop().time() + timeouts.connect + timeouts.first_byte
        async with asyncio.timeout_at(deadline):
            response = await self._opened().post(
                self._url,
                data=body,
                headers=self._headers(),
                # An address that sends us elsewhere gets neither the page nor the key carried over.
                allow_redirects=False,
                auto_decompress=False,
                timeout=aiohttp.ClientTimeout(total=None, connect=timeouts.connect),
            )
        answer = _Answer(response, deadline, timeouts.between_bytes)
        if response.status != OK:
            raise await self._refusal(response, answer)
        return answer

    async def _refusal(self, response: aiohttp.ClientResponse, answer: _Answer) -> ModelError:
        try:
            said = await answer.beginning(ERROR_BYTES)
        except (TimeoutError, aiohttp.ClientError):
            # The status says enough.
            said = b""
        finally:
            answer.close()
        wait = parse_retry_after(response.headers.get("Retry-After"), self._clock())
        wait = self._endpoint.protocol.retry_after(said) if wait is None else wait
        return fault(response.status, said, self._blame, wait)

    def _opened(self) -> aiohttp.ClientSession:
        if self._session is None:
            self._session = aiohttp.ClientSession(
                # How many calls run at once is decided elsewhere.
                connector=aiohttp.TCPConnector(limit=0),
                cookie_jar=aiohttp.DummyCookieJar(),
                trust_env=self._endpoint.trust_env,
            )
        return self._session

    def _headers(self) -> dict[str, str]:
        headers = {"Content-Type": "application/json", "Accept": "text/event-stream", "Accept-Encoding": "identity"}
        protocol, key = self._endpoint.protocol, self._endpoint.key
        shown = {protocol.key_header: protocol.key_form.format(key=key)} if key else {}
        return {**headers, **dict(protocol.headers), **shown}

    def _broken(self, error: aiohttp.ClientError, *, answered: bool) -> ModelCutOff | ModelUnreachable:
        if answered:
            return ModelCutOff(model=self.name, problem="the connection broke before the reply was whole.")
        # Clients read this: nothing of the address but its host.
        host = urlsplit(self._url).hostname
        where = f"{host} cannot be reached ({type(error).__name__}). Check {self._endpoint.url_setting}."
        return ModelUnreachable(model=self.name, problem=where)


class _Answer:
    """One HTTP answer, read in time."""

    def __init__(self, response: aiohttp.ClientResponse, deadline: float, between_bytes: float) -> None:
        self._response = response
        self._content = response.content
        self._loop = asyncio.get_running_loop()
        self._deadline = deadline
        self._between = between_bytes
        self._is_reading = False
        self._reader = EventReader()
        # One timer for all reads: it looks at the deadline when it goes off, and most often goes on.
        self._timer = self._loop.call_at(deadline, self._look)

    @property
    def is_framed(self) -> bool:
        """Whether the end of the body can be told from a broken connection."""
        headers = self._response.headers
        return "Content-Length" in headers or headers.get("Transfer-Encoding", "").lower() == "chunked"

    async def events(self) -> Sequence[str] | None:
        """The data of the events that came next; None at the end. A body that is plain JSON counts as one event."""
        if self._response.headers.get("Content-Encoding", "identity").lower() != "identity":
            raise WireError(where="Content-Encoding", problem="the answer is compressed, which was not asked for")
        if self._response.content_type == "application/json":
            whole = await self.beginning(JSON_BYTES)
            return (whole.decode("utf-8", "replace"),) if whole else None
        fragment = await self._read()
        return tuple(self._reader.feed(fragment)) if fragment else None

    async def beginning(self, most: int) -> bytes:
        """As much of the body as may be shown; what comes after that is never read."""
        body = b""
        while len(body) < most and (fragment := await self._read()):
            body += fragment
        return body[:most]

    async def linger(self) -> None:
        """Wait a moment for the body's end, so that the connection can be used again."""
        try:
            async with asyncio.timeout(LINGER):
                while await self._content.readany():
                    pass
        except (TimeoutError, aiohttp.ClientError):
            return

    def _look(self) -> None:
        now = self._loop.time()
        if self._deadline <= now and self._is_reading:
            self._content.set_exception(TimeoutError())
        else:
            self._timer = self._loop.call_at(max(self._deadline, now + LOOK), self._look)

    def close(self) -> None:
        """Give the connection back where the body has ended; close it at once where it has not."""
        self._timer.cancel()
        if self._content.at_eof():
            self._response.release()
        else:
            self._response.close()

    async def _read(self) -> bytes:
        """What came next; nothing at the end."""
        self._is_reading = True
        try:
            return await self._content.readany()
        except aiohttp.ClientError:
            # What came before the connection broke may say that the reply was whole. The next read raises again.
            rest = self._content._read_nowait(-1)  # pyright: ignore[reportPrivateUsage] - kept, but no way to ask
            if rest:
                return rest
            raise
        finally:
            # Whoever takes long over what they got is not the server's fault.
            self._is_reading = False
            self._deadline = self._loop.time() + self._between
            if self._deadline < self._timer.when():
                # The first byte had longer than the next one has.
                self._timer.cancel()
                self._timer = self._loop.call_at(self._deadline, self._look)
