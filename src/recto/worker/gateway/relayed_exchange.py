"""One request that is sent on, and its answer: passed back as it comes, read along, and written down at its end (X3).

Of a stream whole events are passed on: one that breaks off ends with the last of them and a fault that says so.
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
# What ends an event.
ENDS = (b"\n\n", b"\r\n\r\n", b"\r\r")
# An event that is longer is passed on before it is whole.
MOST_HELD = 1024 * 1024
DONE, CANCELLED, FAILED = "done", "cancelled", "model_failed"
BROKEN = "the connection broke before the reply was whole."
SILENT = "no sign of life in time."
LEFT = "broken off"
# Models are named by whoever asks: only names that stand in the list of prices are counted by.
UNKNOWN_MODEL = "unknown"


class RelayedExchange:
    """A request and its answer. `relayed` is what was stored of it; None where it is only passed on."""

    def __init__(
        self,
        gateway: Gateway,
        upstream: Upstream,
        request: UpstreamRequest,
        *,
        owner: str,
        relayed: RelayedRequest | None = None,
        reader: ReplyReader | None = None,
    ) -> None:
        self._gateway, self._upstream, self._request = gateway, upstream, request
        self._owner, self._relayed, self._reader = owner, relayed, reader
        self._started = relayed.started if relayed else gateway.parts.clock()
        self._events = EventReader()
        self._answer: HttpConnection | None = None
        self._begun = b""
        self._first: datetime | None = None
        self._words = list[str]()
        self._problem: ModelError | None = None

    async def open(self) -> None:
        """Send the request. An answer that is no stream is waited for, so that half of one is none."""
        answer = self._answer = await self._upstream.send(self._request)
        if self._is_stream:
            return
        try:
            while len(self._begun) <= JSON_BYTES and (piece := await answer.read()):
                self._begun += piece
        except OSError as error:
            raise self._cut(error) from error

    @property
    def status(self) -> int:
        """That of the answer."""
        return self._answer.status if self._answer else 0

    @property
    def headers(self) -> Mapping[bytes, bytes]:
        """Those of the answer."""
        return self._answer.headers if self._answer else {}

    @property
    def _is_stream(self) -> bool:
        return self.headers.get(b"content-type", b"").decode("latin-1").partition(";")[0].strip().lower() == STREAM

    async def pieces(self, tell: Callable[[ModelError], bytes]) -> AsyncGenerator[bytes]:
        """The answer as it comes. `tell` writes the fault of a stream that breaks off, as its reader expects it."""
        if not self._is_stream:
            self._read_whole()
            yield self._begun
            try:
                async for piece in self._rest():
                    yield piece
            except OSError as error:
                raise self._cut(error) from error
            return
        held = b""
        try:
            async for piece in self._rest():
                self._read(piece)
                whole, held = _split(held + piece)
                if whole:
                    yield whole
            if not (self._is_whole or self._is_framed):
                raise ModelCutOff(model=self._upstream.provider, problem="the stream ended without saying it is done.")
        except (ModelError, OSError) as error:
            problem = error if isinstance(error, ModelError) else self._cut(error)
            self._problem = self._problem or problem
            yield tell(problem)
        else:
            if held:
                yield held

    async def _rest(self) -> AsyncGenerator[bytes]:
        while self._answer and (piece := await self._answer.read()):
            yield piece

    @property
    def _is_whole(self) -> bool:
        return self._reader is None or self._reader.done

    @property
    def _is_framed(self) -> bool:
        return self._answer is not None and self._answer.is_framed

    def _cut(self, error: OSError) -> ModelError:
        problem = SILENT if isinstance(error, TimeoutError) else BROKEN
        self._problem = ModelCutOff(model=self._upstream.provider, problem=problem)
        return self._problem

    def _read(self, piece: bytes) -> None:
        """Read along. What cannot be read is passed on all the same."""
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
            blame = self._upstream.blame(self._relayed.model if self._relayed else "", self._request.key)
            self._problem = fault(self.status, self._begun[:ERROR_BYTES], blame)
        elif self._reader is not None and not self._is_packed:
            try:
                self._take(self._begun)
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
        """Give the connection back, or close it, and write down how it went."""
        if self._answer is not None:
            self._answer.close()
        problem = self._problem or problem
        ended = self._ended() if problem is None and not is_left else None
        problem = problem or self._problem
        await self._record(ended, problem, is_left=is_left)

    def _ended(self) -> ReplyEnd | None:
        try:
            return self._reader.end() if self._reader and not self._is_packed else None
        except ModelError as error:
            self._problem = error
            return None

    async def _record(self, ended: ReplyEnd | None, problem: ModelError | None, *, is_left: bool) -> None:
        parts, relayed = self._gateway.parts, self._relayed
        model = self._upstream.name_of(relayed.model) if relayed else UNKNOWN_MODEL
        usage = self._usage(ended)
        spent = charge(model, usage, parts.prices)
        outcome = CANCELLED if is_left else FAILED if problem else DONE
        self._count(model, outcome, spent, problem)
        error = LEFT if is_left else str(problem) if problem else None
        is_estimated = usage is not None and (ended is None or ended.usage is None)
        row = {**spent.row(), **({"estimated": True} if is_estimated else {})} if usage else None
        call = CallEnd(
            number=CALL,
            ended=parts.clock(),
            first_token=self._first,
            finish=ended.finish if ended else None,
            usage=dump(row) if row else None,
            price=spent.nanos,
            error=error,
        )
        if relayed:
            call = replace(call, savings=await self._savings(relayed, model) if outcome == DONE else ())
            parts.telemetry.page.record_savings(AGENT, call.savings, parts.prices.currency)
            # The store finds only calls with usage as answered ones: others left nothing in the provider's cache.
            if outcome == DONE and usage:
                self._gateway.keep_page(relayed, model)
            await parts.store.relays.end(relayed.run, call, RunEnding(outcome=outcome, error=error))
        elif usage:
            await parts.store.users.add_spending(self._owner, call)

    async def _savings(self, relayed: RelayedRequest, model: str) -> tuple[Saving, ...]:
        """What folding saved in a call that was answered, and whether its page broke the cache of the one before."""
        is_gone = relayed.cold in (FIRST_CALL, GAP)
        before = None if is_gone else await self._gateway.find_page_before(relayed)
        after = SentPage(body=relayed.page.body, manifest=relayed.manifest, model=model, purpose="reply")
        return savings_of(before, after, relayed.prices)

    def _usage(self, ended: ReplyEnd | None) -> Usage | None:
        """What the provider reports; where it says nothing, what was sent and said, as we count."""
        if ended and ended.usage:
            return ended.usage
        if not self._words or self._reader is None:
            return None
        tokens = self._relayed.manifest.tokens.tokens if self._relayed else 0
        return Usage(input=tokens, output=OFFLINE.count(("".join(self._words),))[0])

    def _count(self, model: str, outcome: str, spent: Account, problem: ModelError | None) -> None:
        parts = self._gateway.parts
        if self._relayed is None:
            return
        if outcome == DONE:
            label = listed_name(model, parts.prices) or UNKNOWN_MODEL
            report_usage(parts.telemetry, label, spent, seconds_between(self._started, self._first))
        elif problem:
            LOGGER.warning("relayed request %s: %s", self._relayed.run, problem, extra={"run": self._relayed.run})
            parts.telemetry.record_failed_call(UNKNOWN_MODEL, problem)
        else:
            parts.telemetry.record_stopped_call(UNKNOWN_MODEL)
        parts.telemetry.record_run_end(AGENT, outcome, seconds_between(self._started, parts.clock()) or 0.0)


def _split(held: bytes) -> tuple[bytes, bytes]:
    """What is whole of a stream's events, and what is not yet."""
    end = max([found + len(end) for end in ENDS if (found := held.rfind(end)) >= 0], default=0)
    return (held, b"") if len(held) - end > MOST_HELD else (held[:end], held[end:])
