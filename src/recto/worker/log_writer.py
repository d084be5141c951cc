"""The log of a run, and the one way to write for it. What a run begins with is held for the first write, once."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import cached_property

from recto.conversation.events import Event
from recto.conversation.log import Entry, messages_of, view
from recto.conversation.messages import AssistantMessage, UnreadMessages, UserMessage, texts_of
from recto.engine.ports import Signal
from recto.page.text.tokens import count_new, known_tokens, note_tokens
from recto.store.ports import EntryCounts, RecordResult, RunChange
from recto.worker.log_cache import is_unread
from recto.worker.page_inputs import PageInputs
from recto.worker.recorder import Recorder

HELD_TWICE = "The input of a run is held once: it enters the log once."
WRITTEN_TWICE = "What is held is being written; another write would write it again. Wait for the first one."
# Characters that are counted at once: it takes less time than getting a thread to do it.
SHORT_TEXTS = 16_384


class LogWriter:
    """Writes for one run, and has its log: what is committed, and what is held for the next write.

    It remembers the ids of messages and calls that readers have seen and the log may not have.
    """

    def __init__(self, recorder: Recorder, inputs: PageInputs, log: Sequence[Entry], signal: Signal) -> None:
        self.say, self.mention = recorder.say, recorder.mention
        self._recorder = recorder
        self._inputs = inputs
        self._row = inputs.row
        self._cache, self._store = inputs.runtime.log_cache, inputs.runtime.store
        self._counter = inputs.runtime.counter
        self._new_id = inputs.runtime.new_id
        self._log = tuple(log)
        self._signal = signal
        self._said: set[str] = set()
        self._has_held = False
        self._held: RunChange | None = None
        self._held_events: tuple[Event, ...] = ()
        self._is_writing_held = False

    @property
    def log(self) -> tuple[Entry, ...]:
        """The log as the run sees it now."""
        return self._log

    @property
    def last_id(self) -> str:
        """The id of its last entry."""
        return self._log[-1].id if self._log else ""

    async def read_whole(self) -> None:
        """Have all of the log here, where only its end was read."""
        if is_unread(self._log):
            self._log = await self.whole()
            self._inputs.note_whole()

    async def whole(self) -> tuple[Entry, ...]:
        """All of the log, for who looks once: where only its end was read, no more than that stays here."""
        if not is_unread(self._log):
            return self._log
        unread = _last_unread(self._log)
        before = await self._store.log_up_to(self._row.thread, unread)
        return (*before, *[entry for entry in self._log if (entry.seq or 0) > unread])

    @property
    def outcome(self) -> str | None:
        """How the run ended; None while it has not."""
        return self._recorder.outcome

    def hold(self, change: RunChange, events: Sequence[Event]) -> None:
        """Have entries and events written with the next write, as a part of it. The log here has them from now on."""
        if self._has_held:
            raise AssertionError(HELD_TWICE)
        self._has_held = True
        self._held, self._held_events = change, tuple(events)
        self._log = (*self._log, *_numbered(change.entries, self._row.last_seq + 1))

    async def settle(self) -> None:
        """Write what is held, if anything is."""
        if self._held:
            await self.write(RunChange())

    async def write(self, change: RunChange, events: Sequence[Event] = ()) -> RecordResult:
        """Commit a change; then the log here has it too. Breaking off waits for that: half a write is none."""
        writing = asyncio.ensure_future(self._write(change, events))
        try:
            return await asyncio.shield(writing)
        except asyncio.CancelledError:
            while not writing.done():
                with suppress(asyncio.CancelledError):
                    await asyncio.wait((writing,))
            if not writing.cancelled() and (error := writing.exception()):
                raise error from None
            raise

    async def _write(self, change: RunChange, events: Sequence[Event]) -> RecordResult:
        if self._inputs.files.has_bytes:
            # Its messages remember pages with the bytes in them, those that were kept before the run too.
            self._cache.drop(self._row.thread)
        held = self._held or RunChange()
        # Of what was held, pages may have counted what stands in the log here.
        counts = await self._count((*self._log[len(self._log) - len(held.entries) :], *change.entries))
        entries = (*held.entries, *change.entries)
        whole = replace(change, entries=entries, counts=counts, entered=held.entered or change.entered)
        written = await self._commit(whole, (*self._held_events, *events))
        self._held, self._held_events = None, ()
        self._take(whole, written, held=len(held.entries))
        # Only what is committed is kept for the next run.
        if kept := self._inputs.to_cache(self._log):
            self._cache.put(self._row.thread, kept)
        if written.cancel:
            self._signal.cancelled.set()
        return written

    async def _count(self, entries: Sequence[Entry]) -> EntryCounts:
        """What entries count. That of long ones is found in a thread: the next page needs it, and may need it soon."""
        new = [message for message in messages_of(entries) if known_tokens(message, self._counter.name) is None]
        if sum(len(text) for message in new for text in texts_of(message)) > SHORT_TEXTS:
            await asyncio.to_thread(count_new, new, self._counter)
        else:
            count_new(new, self._counter)
        tokens = [known_tokens(entry, self._counter.name) for entry in entries]
        return EntryCounts(counter=self._counter.name, tokens=tokens)

    async def _commit(self, change: RunChange, events: Sequence[Event]) -> RecordResult:
        """Write, alone where something is held: that is in one write only. What could not be written stays held."""
        if self._is_writing_held:
            raise AssertionError(WRITTEN_TWICE)
        self._is_writing_held = self._held is not None
        try:
            return await self._recorder.write(change, events)
        finally:
            self._is_writing_held = False

    def _take(self, change: RunChange, written: RecordResult, *, held: int) -> None:
        """Have what was committed in the log here, the first of it in the place of what was held."""
        known = self._log[: len(self._log) - held]
        numbered = _numbered(change.entries, written.last_seq - len(change.entries) + 1)
        for entry, tokens in zip(numbered, change.counts.tokens, strict=True):
            if tokens is not None:
                note_tokens(entry, change.counts.counter, tokens)
        # Entries that were held keep what pages remember of them, if their numbers are what they were taken to be.
        as_held = self._log[len(known) :] == numbered[:held]
        self._log = (*self._log, *numbered[held:]) if as_held else (*known, *numbered)

    def note_said(self, ids: Iterable[str]) -> None:
        """Readers have seen these ids: nothing else goes by them."""
        self._said.update(ids)

    def message_id(self) -> str:
        """The id of the next reply: the turn's own for its first, unless readers have seen it in a lost one."""
        seen = view(self._log)
        turn = seen.messages[seen.turn_start :]
        first = turn[0].response_id if turn and isinstance(turn[0], UserMessage) else ""
        is_first = all(message.role != "assistant" for message in turn)
        # An answer under it may have been turned back.
        is_free = first and is_first and first not in self._said and all(entry.id != first for entry in self._log)
        return first if is_free else self._new_id()

    def call_id(self, given: str) -> str:
        """What a call goes by that is made now: the provider's id, unless it sent none or the thread has had it."""
        is_free = given and given not in self._said and given not in self._logged_calls
        id = given if is_free else self._new_id()
        self._said.add(id)
        return id

    async def know_call(self, given: str) -> None:
        """Find out whether a call of this id is in what was not read of the log, so that none is made by it again."""
        if not given or not is_unread(self._log):
            return
        if await self._store.has_had_call(self._row.thread, _last_unread(self._log), given):
            self._said.add(given)

    @cached_property
    def _logged_calls(self) -> frozenset[str]:
        replies = [entry for entry in self._log if isinstance(entry, AssistantMessage)]
        return frozenset(call.id for reply in replies for call in reply.tool_calls)


def _last_unread(log: Sequence[Entry]) -> int:
    return max(entry.seq or 0 for entry in log if isinstance(entry, UnreadMessages))


def _numbered(entries: Sequence[Entry], first: int) -> tuple[Entry, ...]:
    return tuple([replace(entry, seq=first + place) for place, entry in enumerate(entries)])
