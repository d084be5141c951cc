"""A relayed request and its answer (X3): streamed to the client, parsed alongside, and recorded at its end.

Streams are relayed in whole events. A broken stream ends with a complete event and an error event.
"""

from __future__ import annotations

import logging
from collections.abc import AsyncGenerator, Callable, Mapping
from dataclasses import replace
from datetime import datetime

from recto.conversation.json import dump
from recto.errors import ModelCutOff, ModelError, WireError
from recto.http.client import HttpConnection
from recto.models.endpoint import ERROR_BYTES, JSON_BYTES, OK
from recto.models.faults import fault
from recto.models.ports import CallDelta, ReasoningDelta, ReplyEnd, TextDelta, Usage
from recto.models.prices import listed_name
from recto.models.sse import EventReader
from recto.models.upstream import Upstream, UpstreamRequest
from recto.models.wire_protocol import ReplyReader
from recto.page.fold.fold_by_cost import FIRST_CALL, GAP
from recto.page.prefix import SentPage
from recto.page.savings import Saving, savings_of
from recto.page.text.tokens import OFFLINE
from recto.store.ports import CallEnd, RunEnding
from recto.worker.account import Account, charge, report_usage, seconds_between
from recto.worker.gateway.relay import AGENT, CALL, Gateway, RelayedRequest

LOGGER = logging.getLogger("recto.gateway")
STREAM, JSON = "text/event-stream", "application/json"
# Line ends that terminate an event.
ENDS = (b"\n\n", b"\r\n\r\n", b"\r\r")
# Size above which an event is relayed before it is complete.
MAX_BUFFER = 1024 * 1024
DONE, CANCELLED, FAILED = "done", "cancelled", "model_failed"
BROKEN = "the connection broke before the reply was whole."
SILENT = "no data arrived in time."
CLIENT_LEFT = "broken off"
# Metrics use only model names of the price list, because clients can send any name.
UNKNOWN_MODEL = "unknown"


class RelayedExchange:
    """A request and its answer. `stored_request` is None if the request is relayed without being stored."""

    def __init__(
        self,
        gateway: Gateway,
        upstream: Upstream,
        request: UpstreamRequest,
        *,
        owner: str,
        stored_request: RelayedRequest | None = None,
        reader: ReplyReader | None = None,
    ) -> None:
        self._gateway, self._upstream, self._request = gateway, upstream, request
        self._owner, self._stored_request, self._reader = owner, stored_request, reader
        self._started = stored_request.started if stored_request else gateway.parts.clock()
        self._events = EventReader()
        self._answer: HttpConnection | None = None
        self._beginning = b""
        self._first: datetime | None = None
        self._words = list[str]()
        self._problem: ModelError | None = None

    async def open(self) -> None:
        """Send the request. Unless the answer is a stream, read it completely."""
        answer = self._answer = await self._upstream.send(self._request)
        if self._is_stream:
            return
        try:
            while len(self._beginning) <= JSON_BYTES and (piece := await answer.read()):
                self._beginning += piece
        except OSError as error:
            raise self._cut(error) from error

    @property
    def status(self) -> int:
        """The status of the answer."""
        return self._answer.status if self._answer else 0

    @property
    def headers(self) -> Mapping[bytes, bytes]:
        """The headers of the answer."""
        return self._answer.headers if self._answer else {}

    @property
    def _is_stream(self) -> bool:
        return self.headers.get(b"content-type", b"").decode("latin-1").partition(";")[0].strip().lower() == STREAM

    async def pieces(self, tell: Callable[[ModelError], bytes]) -> AsyncGenerator[bytes]:
        """Yield the answer as it arrives. If the stream breaks, `tell` encodes the error in the client's format."""
        if not self._is_stream:
            self._read_whole()
            yield self._beginning
            try:
                async for piece in self._rest():
                    yield piece
            except OSError as error:
                raise self._cut(error) from error
            return
        rest = b""
        try:
            async for piece in self._rest():
                self._read(piece)
                rest += piece
                end = max([start + len(end) for end in ENDS if (start := rest.rfind(end)) >= 0], default=0)
                end = len(rest) if len(rest) - end > MAX_BUFFER else end
                if end:
                    yield rest[:end]
                    rest = rest[end:]
            is_done = self._reader is None or self._reader.done
            if not is_done and not (self._answer and self._answer.is_framed):
                raise ModelCutOff(model=self._upstream.provider, problem="the stream ended without saying it is done.")
        except (ModelError, OSError) as error:
            problem = error if isinstance(error, ModelError) else self._cut(error)
            self._problem = self._problem or problem
            yield tell(problem)
        else:
            if rest:
                yield rest

    async def _rest(self) -> AsyncGenerator[bytes]:
        while self._answer and (piece := await self._answer.read()):
            yield piece

    def _cut(self, error: OSError) -> ModelError:
        problem = SILENT if isinstance(error, TimeoutError) else BROKEN
        self._problem = ModelCutOff(model=self._upstream.provider, problem=problem)
        return self._problem

    def _read(self, piece: bytes) -> None:
        """Parse a piece. Unreadable pieces are still relayed."""
        self._first = self._first or self._gateway.parts.clock()
        if self._reader is None or self._problem or self._is_packed:
            return
        try:
            for event in self._events.feed(piece):
                self._take(event)
        except WireError as error:
            self._problem = ModelCutOff(model=self._upstream.provider, problem=f"its stream cannot be read: {error}.")
        except ModelError as error:
            self._problem = error

    def _read_whole(self) -> None:
        self._first = self._gateway.parts.clock()
        if self.status != OK:
            blame = self._upstream.blame(self._stored_request.model if self._stored_request else "", self._request.key)
            self._problem = fault(self.status, self._beginning[:ERROR_BYTES], blame)
        elif self._reader is not None and not self._is_packed:
            try:
                self._take(self._beginning)
            except (WireError, ModelError) as error:
                problem = ModelCutOff(model=self._upstream.provider, problem=f"its reply cannot be read: {error}")
                self._problem = error if isinstance(error, ModelError) else problem

    @property
    def _is_packed(self) -> bool:
        return self.headers.get(b"content-encoding", b"identity") != b"identity"

    def _take(self, event: bytes) -> None:
        for delta in self._reader.read(event) if self._reader else ():
            match delta:
                case TextDelta() | ReasoningDelta():
                    self._words.append(delta.text)
                case CallDelta():
                    self._words.append(delta.arguments)
                case _:
                    pass

    async def finish(self, *, is_left: bool = False, problem: ModelError | None = None) -> None:
        """Return or close the connection and record the outcome."""
        if self._answer is not None:
            self._answer.close()
        problem = self._problem or problem
        end: ReplyEnd | None = None
        if problem is None and not is_left and self._reader and not self._is_packed:
            try:
                end = self._reader.end()
            except ModelError as error:
                problem = error
        await self._record(end, problem, is_left=is_left)

    async def _record(self, end: ReplyEnd | None, problem: ModelError | None, *, is_left: bool) -> None:
        parts, stored_request = self._gateway.parts, self._stored_request
        model = self._upstream.name_of(stored_request.model) if stored_request else UNKNOWN_MODEL
        usage = self._usage(end)
        account = charge(model, usage, parts.prices)
        outcome = CANCELLED if is_left else FAILED if problem else DONE
        self._count(model, outcome, account, problem)
        error = CLIENT_LEFT if is_left else str(problem) if problem else None
        is_estimated = usage is not None and (end is None or end.usage is None)
        row = {**account.row(), **({"estimated": True} if is_estimated else {})} if usage else None
        call = CallEnd(
            number=CALL,
            ended=parts.clock(),
            first_token=self._first,
            finish=end.finish if end else None,
            usage=dump(row) if row else None,
            price=account.nanos,
            error=error,
        )
        if stored_request:
            call = replace(call, savings=await self._savings(stored_request, model) if outcome == DONE else ())
            parts.telemetry.page.record_savings(AGENT, call.savings, parts.prices.currency)
            # The store treats only calls with usage as answered, because other calls leave nothing in the provider's
            # cache.
            if outcome == DONE and usage:
                self._gateway.keep_page(stored_request, model)
            await parts.store.relays.end(stored_request.run, call, RunEnding(outcome=outcome, error=error))
        elif usage:
            await parts.store.users.add_spending(self._owner, call)

    async def _savings(self, stored_request: RelayedRequest, model: str) -> tuple[Saving, ...]:
        """Return the savings of folding in an answered call, less the cost of a broken prompt cache."""
        is_gone = stored_request.cold in (FIRST_CALL, GAP)
        before = None if is_gone else await self._gateway.find_page_before(stored_request)
        after = SentPage(body=stored_request.page.body, manifest=stored_request.manifest, model=model, purpose="reply")
        return savings_of(before, after, stored_request.prices)

    def _usage(self, end: ReplyEnd | None) -> Usage | None:
        """Return the usage that the provider reported, else our own count of the page and the answer."""
        if end and end.usage:
            return end.usage
        if not self._words or self._reader is None:
            return None
        tokens = self._stored_request.manifest.tokens.tokens if self._stored_request else 0
        return Usage(input=tokens, output=OFFLINE.count(("".join(self._words),))[0])

    def _count(self, model: str, outcome: str, account: Account, problem: ModelError | None) -> None:
        parts = self._gateway.parts
        if self._stored_request is None:
            return
        if outcome == DONE:
            label = listed_name(model, parts.prices) or UNKNOWN_MODEL
            report_usage(parts.telemetry, label, account, seconds_between(self._started, self._first))
        elif problem:
            LOGGER.warning(
                "relayed request %s: %s", self._stored_request.run, problem, extra={"run": self._stored_request.run}
            )
            parts.telemetry.record_failed_call(UNKNOWN_MODEL, problem)
        else:
            parts.telemetry.record_stopped_call(UNKNOWN_MODEL)
        parts.telemetry.record_run_end(AGENT, outcome, seconds_between(self._started, parts.clock()) or 0.0)
