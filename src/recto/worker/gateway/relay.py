"""What becomes of a request of another agent before it is sent on: read, told by its prefix, folded, stored (X3)."""

from __future__ import annotations

import asyncio
import time
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import NamedTuple, TypeAlias, TypeVar

from recto.agents.agent import GATEWAY
from recto.config.gateway_settings import GatewaySettings
from recto.config.run_settings import UNBOUNDED, Bounds
from recto.conversation.json import dump
from recto.conversation.log import FoldStep
from recto.conversation.messages import Message
from recto.conversation.title import title_from
from recto.errors import WireError
from recto.models.prices import Prices, cache_prices
from recto.models.upstream import Upstream
from recto.models.wire_protocol import ProviderSdk
from recto.page.body import Page
from recto.page.fold.agent_tools import known_tools, rule_for
from recto.page.fold.fold_by_cost import FIRST_CALL, MODEL_CHANGED, CacheState, why_old
from recto.page.fold.fold_settings import USUAL_PRICES, CachePrices, CostSettings, FoldSettings, placeholder_in
from recto.page.fold.rules import RULES, rules_in
from recto.page.manifest import Manifest
from recto.page.prefix import AnsweredPage, SentPage
from recto.page.rewrite import RewriteRules, pass_on, rewrite
from recto.page.sent_request import SentRequest, count_shared, first_words, heads_of, messages_in, parse_request
from recto.page.wire.base import Wire
from recto.page.wire.formats import wire_named
from recto.store.ports import Admission, CallStart, RelayedCall, RelayedPath, SeenRequest
from recto.store.store import Store
from recto.telemetry import Telemetry
from recto.worker.gateway.gateway_memory import GatewayMemory, ParsedRequest
from recto.worker.gateway.remembered import WEIGHT, ItemKey
from recto.worker.model.call_savings import read_answered_page

# Whose threads relayed requests are, where those of runs have an agent.
AGENT = GATEWAY
# Each is a run of one call.
CALL = 1
# A longer body is read and folded in a thread of its own.
LONG_BODY = 262_144
# Conversations that are known without asking the store, and for how long: what is old may have been cleaned away.
KNOWN, KNOWN_LIFE = 1_024, timedelta(hours=1)
BYTES_A_TOKEN = 4
Result = TypeVar("Result")
# The messages of each item of a request.
_Messages: TypeAlias = Sequence[tuple[Message, ...]]


@dataclass(frozen=True, kw_only=True)
class RelayedRequest:
    """A request that is stored and ready to be sent: its run, the model it asks for, its page and manifest.

    `cold` says why the beginning of the page is in no cache, where it is not; `before` is the run it goes on from.
    """

    run: str
    model: str
    page: Page
    manifest: Manifest
    started: datetime
    prices: CachePrices = USUAL_PRICES
    cold: str = ""
    before: str = ""


@dataclass(frozen=True, kw_only=True)
class GatewayParts:
    """What a gateway works with. `upstreams` are providers, by the SDK that asks."""

    store: Store
    upstreams: Mapping[ProviderSdk, Upstream]
    memory: GatewayMemory
    settings: GatewaySettings
    prices: Prices
    telemetry: Telemetry
    clock: Callable[[], datetime]
    new_id: Callable[[], str]
    node: str
    bounds: Bounds = UNBOUNDED


@dataclass(frozen=True, kw_only=True)
class _Taken:
    """A request that was read: what its conversation goes by up to each message, and what is known of it."""

    owner: str
    wire: Wire
    model: str
    request: SentRequest
    heads: tuple[str, ...]
    path: RelayedPath
    now: datetime

    @property
    def last(self) -> SeenRequest | None:
        """The request that this one continues."""
        return self.path.requests[-1] if self.path.requests else None

    def times(self) -> list[datetime]:
        """When each message came first."""
        seen, times = {one.name: one.created for one in self.path.requests}, list[datetime]()
        newest = self.now
        for head in reversed(self.heads):
            newest = min(newest, seen.get(head, newest))
            times.append(newest)
        return times[::-1]


class _Start(NamedTuple):
    """What the first items of a request have in common with an earlier one: their heads and their messages."""

    heads: Sequence[str] = ()
    messages: _Messages = ()


class _Known(NamedTuple):
    """A conversation as it was left: what it grew by, the hashes of its last page, and when that was."""

    path: RelayedPath
    hashes: frozenset[bytes]
    at: datetime


class Gateway:
    """Relays requests of other agents."""

    def __init__(self, parts: GatewayParts) -> None:
        self.parts = parts
        self._fold = fold_settings(parts.settings)
        self._known = OrderedDict[tuple[str, str], _Known]()

    async def take(self, owner: str, upstream: Upstream, body: bytes) -> RelayedRequest:
        """Read a request, fold it and store it. What is no request raises a WireError."""
        parts, began = self.parts, time.perf_counter()
        wire = wire_named(upstream.wire)
        predecessors = parts.memory.requests.find(owner, wire.name)
        request = await _aside(body, lambda: parse_request(body, [one.request for one in predecessors]))
        start = _find_start(request, predecessors)
        heads = heads_of(request.items, wire, start.heads)
        path, stored = await self._find(owner, heads)
        model = upstream.name_of(request.model)
        taken = _Taken(owner=owner, wire=wire, model=model, request=request, heads=heads, path=path, now=parts.clock())
        prices = cache_prices(model, len(body) // BYTES_A_TOKEN, parts.prices)
        state = CacheState(
            model=model,
            prices=prices,
            steps=tuple([step for step in path.steps if step.model == model]),
            cold=self._why_cold(taken),
            is_settled=taken.last is not None and taken.last.name == heads[-1],
        )
        page, manifest, messages = await _aside(body, lambda: self._set_page(taken, state, start))
        parts.memory.requests.add(owner, wire.name, ParsedRequest(request, heads, messages, WEIGHT * len(body)))
        parts.telemetry.page.record_page_time(time.perf_counter() - began)
        parts.telemetry.page.record_page(manifest, AGENT)
        if manifest.step:
            parts.telemetry.page.record_step(AGENT, manifest.step.cause)
        relayed = await self._store(taken, page, manifest, stored)
        return replace(relayed, prices=prices, cold=state.cold, before=taken.last.run if taken.last else "")

    async def _find(self, owner: str, heads: tuple[str, ...]) -> tuple[RelayedPath, frozenset[bytes]]:
        """What the conversation grew by, and what of its last page is stored, as far as this process knows.

        What is remembered of it counts where its thread is still as it was left; else the store is asked.
        """
        for head in dict.fromkeys(reversed(heads)):
            known = self._known.pop((owner, head), None)
            if known is None:
                continue
            newest = await self.parts.store.relays.find_newest(owner, known.path.requests[-1].thread)
            if newest and newest.startswith(head) and self.parts.clock() - known.at < KNOWN_LIFE:
                return known.path, known.hashes
            break
        return await self.parts.store.relays.find_path(owner, tuple(dict.fromkeys(heads))), frozenset()

    def _why_cold(self, taken: _Taken) -> str:
        """Why the beginning of the page is in no cache, as far as the requests before it tell."""
        last, cost = taken.last, (self._fold.cost if self._fold else None) or CostSettings()
        if last is None:
            return FIRST_CALL
        return MODEL_CHANGED if last.model != taken.model else why_old(last.asked, taken.now, cost.cache_minutes)

    def keep_page(self, relayed: RelayedRequest, model: str) -> None:
        """Keep the page of an answered request in memory: the next one of its conversation is compared with it."""
        page = AnsweredPage(run=relayed.run, number=CALL, page=relayed.page, manifest=relayed.manifest, model=model)
        self.parts.memory.pages.add(page, self.parts.clock())

    async def find_page_before(self, relayed: RelayedRequest) -> SentPage | None:
        """Return the last answered page of the conversation, from memory or else from the store."""
        page = self.parts.memory.pages.pop(relayed.before, self.parts.clock())
        return page.sent_page if page else await read_answered_page(self.parts.store, relayed.before, CALL)

    async def aclose(self) -> None:
        """Close every connection to providers."""
        for upstream in self.parts.upstreams.values():
            await upstream.aclose()

    def _set_page(self, taken: _Taken, state: CacheState, start: _Start) -> tuple[Page, Manifest, _Messages]:
        """Return the request as it is sent on, and its messages. On doubt it is sent as it came."""
        request = taken.request
        if request.doubt:
            return (*pass_on(request, request.doubt), ())
        messages, doubt = self._messages(taken, start)
        rules = RewriteRules(fold=self._fold, state=state, now=taken.now)
        return (*rewrite(request, messages, rules, doubt), messages)

    def _messages(self, taken: _Taken, start: _Start) -> tuple[_Messages, str]:
        """Return the messages of each item, up to one that cannot be read, and why it cannot."""
        found, first = list(start.messages), len(start.messages)
        before = taken.heads[first - 1] if first else ""
        rest = zip(taken.request.items[first:], taken.heads[first:], taken.times()[first:], strict=True)
        for place, (item, head, at) in enumerate(rest, first):
            # Instructions leave what a conversation goes by as it is, so nothing tells two of them apart.
            key = ItemKey(taken.owner, head) if head != before and not item.is_instruction else None
            messages = self.parts.memory.items.find(key) if key else None
            if messages is None:
                try:
                    messages = messages_in(item, place, taken.wire, head, at)
                except WireError as error:
                    return found, str(error)
                if key:
                    self.parts.memory.items.add(key, len(item.text), messages)
            found.append(messages)
            before = head
        return found, ""

    async def _store(self, taken: _Taken, page: Page, manifest: Manifest, stored: frozenset[bytes]) -> RelayedRequest:
        parts, run, last = self.parts, self.parts.new_id(), taken.last
        thread = last.thread if last and last.is_newest else parts.new_id()
        admission = Admission(
            id=run,
            name=taken.heads[-1],
            owner=taken.owner,
            thread=thread,
            input=dump({"threadId": thread, "runId": taken.heads[-1], "messages": []}),
            response_id=parts.new_id(),
            created=taken.now,
            agent=AGENT,
            bounds=parts.bounds,
        )
        known = stored if last and last.is_newest else frozenset[bytes]()
        hashes = [segment.sha256 for segment in page.segments]
        call = CallStart(
            number=CALL,
            purpose="reply",
            model=taken.model,
            digest=page.digest,
            shared=0,
            hashes=b"".join(hashes),
            segments=[segment for segment in page.segments if segment.sha256 not in known],
            manifest=dump(manifest.to_stored()),
            started=taken.now,
        )
        step = replace(manifest.step, id=parts.new_id(), time=taken.now) if manifest.step else None
        title = title_from(first_words(taken.request.items))
        relayed = RelayedCall(admission=admission, call=call, node=parts.node, title=title, step=step)
        await parts.store.relays.begin(relayed)
        self._remember(taken, run, thread, step, frozenset(hashes))
        return RelayedRequest(run=run, model=taken.request.model, page=page, manifest=manifest, started=taken.now)

    def _remember(self, taken: _Taken, run: str, thread: str, step: FoldStep | None, hashes: frozenset[bytes]) -> None:
        """Know this request from now on, as the one that its conversation goes on from."""
        name, path = taken.heads[-1], taken.path
        # The same request again: the first of them is the one that is found.
        is_again = taken.last is not None and taken.last.name == name
        before = path.requests[:-1] if is_again else path.requests
        this = SeenRequest(
            name=name, run=run, thread=thread, model=taken.model, created=taken.now, asked=taken.now, is_newest=True
        )
        newest = replace(taken.last, asked=taken.now) if is_again and taken.last else this
        steps = (*path.steps, step) if step else path.steps
        while len(self._known) >= KNOWN:
            self._known.popitem(last=False)
        seen = RelayedPath(requests=(*before, newest), steps=steps)
        self._known[taken.owner, name] = _Known(path=seen, hashes=hashes, at=taken.now)


def _find_start(request: SentRequest, predecessors: Sequence[ParsedRequest]) -> _Start:
    """Return the longest start that a request took from one of its predecessors."""
    starts = [(count_shared(request, one.request), one) for one in predecessors]
    count, nearest = max(starts, key=lambda start: start[0], default=(0, None))
    return _Start(nearest.heads[:count], nearest.messages[:count]) if nearest else _Start()


def fold_settings(settings: GatewaySettings) -> FoldSettings | None:
    """How requests are folded, by the names that all known agents have for their tools; None: they are not."""
    if settings.fold == "none":
        return None
    tools = known_tools()
    rules = tuple([rule_for(rule, tools) for rule in rules_in(settings.locale, RULES)])
    if settings.fold == "eager":
        return FoldSettings(rules=tuple([rule for rule in rules if rule.on]))
    placeholder = placeholder_in(settings.locale, has_recall=False)
    return FoldSettings(
        rules=rules, cost=CostSettings(edits=tools.edits, quotes=tools.quote_args, placeholder=placeholder)
    )


async def _aside(body: bytes, work: Callable[[], Result]) -> Result:
    return await asyncio.to_thread(work) if len(body) > LONG_BODY else work()
