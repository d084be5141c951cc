"""A run at work: its log as far as it goes, its row, and the one way to write for it."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta, tzinfo
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from recto.agents.agent import Agent
from recto.engine.ports import Signal
from recto.models.ports import Usage
from recto.page import Calibration, Entry, Facts, Page, Run, ToolOffer, Turn, UserMessage, view
from recto.page.canonical import dump
from recto.page.events import Event
from recto.page.wire.agui_input import RunInput
from recto.store.ports import Change, StoredRun, Written
from recto.tools.registry import Registry
from recto.worker.recorder import Recorder
from recto.worker.shelf import Volume
from recto.worker.workshop import Workshop


@dataclass(kw_only=True)
class Desk:
    """One claimed run. `said` are message ids readers have seen; `broken_off` means what was said so far is kept.

    `held` waits for the next write and is part of it: a run's first step stores its input too.
    """

    shop: Workshop
    run: StoredRun
    input: RunInput
    agent: Agent
    tools: Registry
    signal: Signal
    recorder: Recorder
    log: tuple[Entry, ...]
    failures: int
    too_long: int
    can_compact: bool
    calls: int
    usage: Usage
    last: Calibration | None = None
    full: bool = False
    problem: str | None = None
    broken_off: bool = False
    page: Page | None = None
    ended: bool = False
    said: set[str] = field(default_factory=set[str])
    held: Change = Change()
    held_events: tuple[Event, ...] = ()

    def state(self) -> Run:
        """What the run's row says now."""
        limits = self.agent.limits
        return Run(
            cancel=self.signal.cancelled.is_set(),
            now=self.shop.clock(),
            deadline=self.deadline,
            failures=self.failures,
            too_long=self.too_long,
            full=self.full,
            can_compact=self.can_compact,
            client_tools=frozenset(tool.name for tool in self.input.tools),
            repeatable=frozenset(name for name, tool in self.tools.items() if tool.safe_to_repeat),
            max_steps=limits.steps,
            max_failures=limits.failures,
            max_bad_arguments=limits.bad_arguments,
        )

    @property
    def deadline(self) -> datetime:
        """When the run has to be over."""
        return (self.run.started or self.run.created) + timedelta(seconds=self.agent.limits.seconds)

    @property
    def seconds_left(self) -> float:
        """Until then."""
        return max(0.0, (self.deadline - self.shop.clock()).total_seconds())

    @property
    def zone(self) -> tzinfo:
        """The client's time zone; UTC where it named none we know."""
        try:
            return ZoneInfo(str(self.input.props.get("timezone") or "UTC"))
        except (ZoneInfoNotFoundError, ValueError, OSError):
            return UTC

    def facts(self) -> Facts:
        """All that shapes the next page."""
        seen, model, agent = view(self.log), self.shop.model, self.agent
        user = seen.messages[seen.turn_start] if seen.turn_start < len(seen.messages) else None
        turn = Turn(
            response_id=user.response_id if isinstance(user, UserMessage) else "",
            admitted=user.time if user else None,
            zone=self.zone,
            context=self.input.context,
        )
        return Facts(
            log=self.log,
            target=model.target,
            prompt=agent.prompt,
            budget=agent.budget,
            history=agent.history,
            tools=self.offers(),
            tool_calling=agent.tool_calling,
            turn=turn,
            locale=agent.locale,
            options={**model.options, **agent.options},
            fold=agent.fold,
            now=self.shop.clock(),
            counter=self.shop.counter,
            last=self.last,
        )

    def offers(self) -> tuple[ToolOffer, ...]:
        """What the model may call: the agent's tools, then the client's."""
        return (*self.tools.offers(self.tools), *self.input.tools)

    def message_id(self) -> str:
        """The id of the next reply: the turn's own for its first, unless readers have seen it in a lost one."""
        seen = view(self.log)
        turn = seen.messages[seen.turn_start :]
        first = turn[0].response_id if turn and isinstance(turn[0], UserMessage) else ""
        is_first = all(message.role != "assistant" for message in turn)
        id = first if first and is_first and first not in self.said else self.shop.new_id()
        self.said.add(id)
        return id

    async def write(self, change: Change, events: Sequence[Event] = ()) -> Written:
        """Commit a change; then the log here has it too. Breaking off waits for that: half a write is none."""
        writing = asyncio.ensure_future(self._write(change, events))
        try:
            return await asyncio.shield(writing)
        except asyncio.CancelledError:
            await asyncio.wait((writing,))
            if not writing.cancelled() and (error := writing.exception()):
                raise error from None
            raise

    def hold(self, change: Change, events: Sequence[Event]) -> None:
        """Have entries and events written with the next write. The log here has them from now on."""
        self.held, self.held_events = change, tuple(events)
        self.log = (*self.log, *_numbered(change.entries, self.run.last_seq + 1))

    async def _write(self, change: Change, events: Sequence[Event]) -> Written:
        held, count = self.held, len(self.held.entries)
        entries = (*held.entries, *change.entries)
        whole = replace(change, entries=entries, entered=held.entered or change.entered)
        told = (*self.held_events, *events)
        written = await self.recorder.write(whole, told)
        self.held, self.held_events = Change(), ()
        known = self.log[: len(self.log) - count]
        numbered = _numbered(entries, written.last_seq - len(entries) + 1)
        # Entries that were held keep what pages remember of them, if their numbers are what they were taken to be.
        as_held = self.log[len(known) :] == numbered[:count]
        self.log = (*self.log, *numbered[count:]) if as_held else (*known, *numbered)
        self.ended = self.ended or change.ending is not None
        # Only what is committed is kept for the next run.
        self.shop.shelf.put(self.run.thread, Volume(entries=self.log, last=self.last))
        if written.cancel:
            self.signal.cancelled.set()
        return written

    def with_usage(self, usage: Usage | None) -> bytes:
        """The run's tokens so far, these included, as its row has them."""
        self.usage += usage or Usage()
        return dump(usage_row(self.usage))


def _numbered(entries: Sequence[Entry], first: int) -> tuple[Entry, ...]:
    return tuple([replace(entry, seq=first + place) for place, entry in enumerate(entries)])


def usage_row(usage: Usage) -> dict[str, int]:
    """Tokens under the names AG-UI has for them."""
    return {
        "inputTokens": usage.input,
        "outputTokens": usage.output,
        "totalTokens": usage.input + usage.output,
        "reasoningTokens": usage.reasoning,
        "cachedInputTokens": usage.cached,
        "cacheWriteInputTokens": usage.cache_written,
    }
