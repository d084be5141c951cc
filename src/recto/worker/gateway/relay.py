"""Requests of other agents before they are forwarded (X3): parsed, matched to a conversation, folded and stored."""

from __future__ import annotations

import asyncio
import time
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import NamedTuple, TypeAlias, TypeVar

from recto.agents.agent import GATEWAY
from recto.config.access_settings import GatewaySettings
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
from recto.store.ports import Admission, CallStart, RelayedCall, RelayedPath, StoredRequest
from recto.store.store import Store
from recto.telemetry import Telemetry
from recto.worker.account import read_answered_page
from recto.worker.gateway.gateway_memory import MESSAGE_WEIGHT, GatewayMemory, ItemKey, ParsedRequest

# Agent name of the threads of relayed requests.
AGENT = GATEWAY
# Number of the only call in the run of a relayed request.
CALL = 1
# Size above which a body is parsed and folded in a thread.
LONG_BODY = 262_144
# Maximum number of conversations in memory, and their lifetime. Cleanup may delete older conversations from the store.
MAX_CONVERSATIONS, CONVERSATION_LIFE = 1_024, timedelta(hours=1)
BYTES_A_TOKEN = 4
Result = TypeVar("Result")
# The messages of each item of a request.
_Messages: TypeAlias = Sequence[tuple[Message, ...]]


@dataclass(frozen=True, kw_only=True)
class RelayedRequest:
    """A stored request that is ready to be sent.

    `cold` is the reason why the beginning of the page is in no cache. `before` is the run of the previous request in
    the conversation.
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
    """The services of a gateway. `upstreams` are the providers, by the SDK of the client."""

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
class _Incoming:
    """A parsed request, the hash of its conversation up to each message, and its earlier requests."""

    owner: str
    wire: Wire
    model: str
    request: SentRequest
    heads: tuple[str, ...]
    path: RelayedPath
    now: datetime

    @property
    def last(self) -> StoredRequest | None:
        """The previous request of the conversation."""
        return self.path.requests[-1] if self.path.requests else None

    def times(self) -> list[datetime]:
        """Return the time at which each message was first received."""
        created, times = {one.name: one.created for one in self.path.requests}, list[datetime]()
        newest = self.now
        for head in reversed(self.heads):
            newest = min(newest, created.get(head, newest))
            times.append(newest)
        return times[::-1]


class _Start(NamedTuple):
    """The beginning that a request shares with an earlier one: its heads and messages."""

    heads: Sequence[str] = ()
    messages: _Messages = ()


class _Conversation(NamedTuple):
    """A conversation in memory: its requests, the hashes of its last page, and the time of that page."""

    path: RelayedPath
    hashes: frozenset[bytes]
    at: datetime


class Gateway:
    """Relays requests of other agents."""

    def __init__(self, parts: GatewayParts) -> None:
        self.parts = parts
        self._fold = fold_settings(parts.settings)
        self._conversations = OrderedDict[tuple[str, str], _Conversation]()

    async def accept(self, owner: str, upstream: Upstream, body: bytes) -> RelayedRequest:
        """Parse, fold and store a request. Raise WireError for an invalid body."""
        parts, start_time = self.parts, time.perf_counter()
        wire = wire_named(upstream.wire)
        predecessors = parts.memory.requests.find(owner, wire.name)
        request = await _aside(body, lambda: parse_request(body, [one.request for one in predecessors]))
        # Find the longest beginning that the request shares with an earlier one.
        starts = [(count_shared(request, one.request), one) for one in predecessors]
        count, nearest = max(starts, key=lambda start: start[0], default=(0, None))
        start = _Start(nearest.heads[:count], nearest.messages[:count]) if nearest else _Start()
        heads = heads_of(request.items, wire, start.heads)
        path, stored_hashes = await self._find(owner, heads)
        model = upstream.name_of(request.model)
        incoming = _Incoming(
            owner=owner, wire=wire, model=model, request=request, heads=heads, path=path, now=parts.clock()
        )
        last = incoming.last
        prices = cache_prices(model, len(body) // BYTES_A_TOKEN, parts.prices)
        state = CacheState(
            model=model,
            prices=prices,
            steps=tuple([step for step in path.steps if step.model == model]),
            cold=self._why_cold(incoming),
            is_settled=last is not None and last.name == heads[-1],
        )
        page, manifest, messages = await _aside(body, lambda: self._fold_request(incoming, state, start))
        size = MESSAGE_WEIGHT * len(body)
        parts.memory.requests.add(owner, wire.name, ParsedRequest(request, heads, messages, size))
        parts.telemetry.page.record_page_time(time.perf_counter() - start_time)
        parts.telemetry.page.record_page(manifest, AGENT)
        if manifest.step:
            parts.telemetry.page.record_step(AGENT, manifest.step.cause)
        run = await self._store(incoming, page, manifest, stored_hashes)
        return RelayedRequest(
            run=run,
            model=request.model,
            page=page,
            manifest=manifest,
            started=incoming.now,
            prices=prices,
            cold=state.cold,
            before=last.run if last else "",
        )

    async def _find(self, owner: str, heads: tuple[str, ...]) -> tuple[RelayedPath, frozenset[bytes]]:
        """Return the earlier requests of a conversation, and the stored hashes of its last page if they are in memory.

        Use the memory only if the thread of the conversation has no newer request. Otherwise, query the store.
        """
        store = self.parts.store
        for head in dict.fromkeys(reversed(heads)):
            conversation = self._conversations.pop((owner, head), None)
            if conversation is None:
                continue
            newest = await store.relays.find_newest(owner, conversation.path.requests[-1].thread)
            if newest and newest.startswith(head) and self.parts.clock() - conversation.at < CONVERSATION_LIFE:
                return conversation.path, conversation.hashes
            break
        return await store.relays.find_path(owner, tuple(dict.fromkeys(heads))), frozenset()

    def _why_cold(self, incoming: _Incoming) -> str:
        """Return the reason why the beginning of the page is in no cache, according to the earlier requests.

        Return an empty text if it may be cached.
        """
        last, cost = incoming.last, (self._fold.cost if self._fold else None) or CostSettings()
        if last is None:
            return FIRST_CALL
        is_other_model = last.model != incoming.model
        return MODEL_CHANGED if is_other_model else why_old(last.last_sent, incoming.now, cost.cache_minutes)

    def keep_page(self, request: RelayedRequest, model: str) -> None:
        """Store the page of an answered request in memory, to compare the next page of the conversation with it."""
        page = AnsweredPage(run=request.run, number=CALL, page=request.page, manifest=request.manifest, model=model)
        self.parts.memory.pages.add(page, self.parts.clock())

    async def find_page_before(self, request: RelayedRequest) -> SentPage | None:
        """Return the last answered page of the conversation, from memory or else from the store."""
        page = self.parts.memory.pages.pop(request.before, self.parts.clock())
        return page.sent_page if page else await read_answered_page(self.parts.store, request.before, CALL)

    async def aclose(self) -> None:
        """Close all connections to providers."""
        for upstream in self.parts.upstreams.values():
            await upstream.aclose()

    def _fold_request(self, incoming: _Incoming, state: CacheState, start: _Start) -> tuple[Page, Manifest, _Messages]:
        """Return the folded request and its messages.

        Pass on a request that cannot be read completely without a change.
        """
        request = incoming.request
        if request.doubt:
            return (*pass_on(request, request.doubt), ())
        messages, doubt = self._parse_messages(incoming, start)
        rules = RewriteRules(fold=self._fold, state=state, now=incoming.now)
        return (*rewrite(request, messages, rules, doubt), messages)

    def _parse_messages(self, incoming: _Incoming, start: _Start) -> tuple[_Messages, str]:
        """Return the messages of each item up to the first unreadable one, and why that item is unreadable."""
        messages, first = list(start.messages), len(start.messages)
        before, items = incoming.heads[first - 1] if first else "", self.parts.memory.items
        rest = zip(incoming.request.items[first:], incoming.heads[first:], incoming.times()[first:], strict=True)
        for place, (item, head, at) in enumerate(rest, first):
            # Instructions have no key, because they do not change the head: two of them would share a key.
            key = ItemKey(incoming.owner, head) if head != before and not item.is_instruction else None
            of_item = items.find(key) if key else None
            if of_item is None:
                try:
                    of_item = messages_in(item, place, incoming.wire, head, at)
                except WireError as error:
                    return messages, str(error)
                if key:
                    items.add(key, len(item.text), of_item)
            messages.append(of_item)
            before = head
        return messages, ""

    async def _store(self, incoming: _Incoming, page: Page, manifest: Manifest, stored_hashes: frozenset[bytes]) -> str:
        """Store a request as a run with one call, and return the id of the run."""
        parts, run, last = self.parts, self.parts.new_id(), incoming.last
        continues_thread = last is not None and last.is_newest
        thread = last.thread if last and continues_thread else parts.new_id()
        admission = Admission(
            id=run,
            name=incoming.heads[-1],
            owner=incoming.owner,
            thread=thread,
            input=dump({"threadId": thread, "runId": incoming.heads[-1], "messages": []}),
            response_id=parts.new_id(),
            created=incoming.now,
            agent=AGENT,
            bounds=parts.bounds,
        )
        known_hashes = stored_hashes if continues_thread else frozenset[bytes]()
        hashes = [segment.sha256 for segment in page.segments]
        call = CallStart(
            number=CALL,
            purpose="reply",
            model=incoming.model,
            digest=page.digest,
            shared=0,
            hashes=b"".join(hashes),
            segments=[segment for segment in page.segments if segment.sha256 not in known_hashes],
            manifest=dump(manifest.to_stored()),
            started=incoming.now,
        )
        step = replace(manifest.step, id=parts.new_id(), time=incoming.now) if manifest.step else None
        title = title_from(first_words(incoming.request.items))
        await parts.store.relays.begin(
            RelayedCall(admission=admission, call=call, node=parts.node, title=title, step=step)
        )
        self._remember(incoming, run, thread, step, frozenset(hashes))
        return run

    def _remember(
        self, incoming: _Incoming, run: str, thread: str, step: FoldStep | None, hashes: frozenset[bytes]
    ) -> None:
        """Store the conversation in memory for its next request."""
        name, path, last, now = incoming.heads[-1], incoming.path, incoming.last, incoming.now
        newest = StoredRequest(
            name=name, run=run, thread=thread, model=incoming.model, created=now, last_sent=now, is_newest=True
        )
        before = path.requests
        if last is not None and last.name == name:
            # For two equal requests, the store finds the earlier one, so do the same here.
            before, newest = before[:-1], replace(last, last_sent=now)
        steps = (*path.steps, step) if step else path.steps
        while len(self._conversations) >= MAX_CONVERSATIONS:
            self._conversations.popitem(last=False)
        path = RelayedPath(requests=(*before, newest), steps=steps)
        self._conversations[incoming.owner, name] = _Conversation(path=path, hashes=hashes, at=now)


def fold_settings(settings: GatewaySettings) -> FoldSettings | None:
    """Return the settings for folding the tools of all known agents; None if folding is off."""
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
