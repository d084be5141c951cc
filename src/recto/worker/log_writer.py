"""The log of a run, and the writer that appends to it. The first write also stores the input of the run."""

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
from recto.worker.recorder import Recorder
from recto.worker.run_inputs import RunInputs

HOLD_ONCE = "Call hold() once: the input of a run enters the log once."
WRITE_IN_PROGRESS = "Wait for the first write: it stores the held entries, and another write would store them again."
# Number of characters below which counting tokens takes less time than starting a thread.
SHORT_TEXTS = 16_384


class LogWriter:
    """Writer of the log and the events of one run. Its log contains committed entries and held ones.

    The writer also remembers the ids of messages and calls that readers have seen, because the log may not contain
    them.
    """

    def __init__(self, recorder: Recorder, inputs: RunInputs, log: Sequence[Entry], signal: Signal) -> None:
        self.emit, self.emit_soon = recorder.emit, recorder.emit_soon
        self._recorder = recorder
        self._inputs = inputs
        self._thread = inputs.row.thread
        self._runtime = inputs.runtime
        self._counter = inputs.runtime.models.counter
        self._log = tuple(log)
        self._signal = signal
        self._used_ids: set[str] = set()
        self._has_held = False
        self._held_change: RunChange | None = None
        self._held_events: tuple[Event, ...] = ()
        self._is_writing_held = False

    @property
    def log(self) -> tuple[Entry, ...]:
        """The log as the run sees it now."""
        return self._log

    @property
    def last_id(self) -> str:
        """The id of the last entry."""
        return self._log[-1].id if self._log else ""

    @property
    def outcome(self) -> str | None:
        """How the run ended; None before it ends."""
        return self._recorder.outcome

    async def load_all(self) -> None:
        """Load the unread part of a log of which only the end was read."""
        if is_unread(self._log):
            self._log = await self.read_all()
            self._inputs.pages.show_all_history()

    async def read_all(self) -> tuple[Entry, ...]:
        """Return the complete log. Do not retain the entries that were not loaded before."""
        if not is_unread(self._log):
            return self._log
        unread = _last_unread(self._log)
        before = await self._runtime.store.log.read_up_to(self._thread, unread)
        return (*before, *[entry for entry in self._log if (entry.seq or 0) > unread])

    def hold(self, change: RunChange, events: Sequence[Event]) -> None:
        """Add entries to the log in memory only. The next write stores them, with the events."""
        if self._has_held:
            raise AssertionError(HOLD_ONCE)
        self._has_held = True
        self._held_change, self._held_events = change, tuple(events)
        self._log = (*self._log, *_number(change.entries, self._inputs.row.last_seq + 1))

    async def flush(self) -> None:
        """Write held entries now."""
        if self._held_change:
            await self.write(RunChange())

    async def write(self, change: RunChange, events: Sequence[Event] = ()) -> RecordResult:
        """Commit a change and add it to the log in memory.

        If the caller is cancelled, it waits until the commit is done.
        """
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
        cache = self._runtime.log_cache
        if self._inputs.pages.files.has_bytes:
            # Drop the cached log: it shares messages with this log, and these now remember pages with the bytes of
            # pictures.
            cache.drop(self._thread)
        pending = self._held_change or RunChange()
        # Count the entries of the log in memory instead of `pending.entries`, because pages may have counted them
        # already.
        counts = await self._count((*self._log[len(self._log) - len(pending.entries) :], *change.entries))
        entries = (*pending.entries, *change.entries)
        full_change = replace(change, entries=entries, counts=counts, entered=pending.entered or change.entered)
        result = await self._commit(full_change, (*self._held_events, *events))
        self._held_change, self._held_events = None, ()
        self._append(full_change, result, len(pending.entries))
        # Cache committed entries only.
        if log := self._inputs.to_cache(self._log):
            cache.put(self._thread, log)
        if result.cancel:
            self._signal.cancelled.set()
        return result

    async def _count(self, entries: Sequence[Entry]) -> EntryCounts:
        """Return the token counts of entries. Count long entries in a thread."""
        new = [message for message in messages_of(entries) if known_tokens(message, self._counter.name) is None]
        if sum(len(text) for message in new for text in texts_of(message)) > SHORT_TEXTS:
            await asyncio.to_thread(count_new, new, self._counter)
        else:
            count_new(new, self._counter)
        tokens = [known_tokens(entry, self._counter.name) for entry in entries]
        return EntryCounts(counter=self._counter.name, tokens=tokens)

    async def _commit(self, change: RunChange, events: Sequence[Event]) -> RecordResult:
        """Commit a change. No other write may run during a write of held entries.

        If the write fails, the entries stay held.
        """
        if self._is_writing_held:
            raise AssertionError(WRITE_IN_PROGRESS)
        self._is_writing_held = self._held_change is not None
        try:
            return await self._recorder.write(change, events)
        finally:
            self._is_writing_held = False

    def _append(self, change: RunChange, result: RecordResult, pending_count: int) -> None:
        """Add committed entries to the log in memory. The first `pending_count` of them replace the held entries."""
        committed = self._log[: len(self._log) - pending_count]
        new = _number(change.entries, result.last_seq - len(change.entries) + 1)
        for entry, tokens in zip(new, change.counts.tokens, strict=True):
            if tokens is not None:
                note_tokens(entry, change.counts.counter, tokens)
        # If the numbers of held entries were predicted correctly, keep these objects: they remember their pages.
        is_as_held = self._log[len(committed) :] == new[:pending_count]
        self._log = (*self._log, *new[pending_count:]) if is_as_held else (*committed, *new)

    def reserve_ids(self, ids: Iterable[str]) -> None:
        """Reserve ids that readers have seen, so that they are not used again."""
        self._used_ids.update(ids)

    def message_id(self) -> str:
        """Return the id of the next reply.

        The first reply of a turn has the turn's own id, unless readers have seen that id on a lost reply.
        """
        log_view = view(self._log)
        turn = log_view.messages[log_view.turn_start :]
        first = turn[0].response_id if turn and isinstance(turn[0], UserMessage) else ""
        is_first = all(message.role != "assistant" for message in turn)
        # A rolled back answer may also have this id.
        is_free = first and is_first and first not in self._used_ids and all(entry.id != first for entry in self._log)
        return first if is_free else self._runtime.new_id()

    def call_id(self, provider_id: str) -> str:
        """Return the id of a new call: the provider's id, or a new id if that is empty or used in the thread."""
        is_free = provider_id and provider_id not in self._used_ids and provider_id not in self._logged_calls
        id = provider_id if is_free else self._runtime.new_id()
        self._used_ids.add(id)
        return id

    async def check_call_id(self, provider_id: str) -> None:
        """Reserve a provider's id if a call in the unread part of the log has the same id."""
        if not provider_id or not is_unread(self._log):
            return
        if await self._runtime.store.log.has_call(self._thread, _last_unread(self._log), provider_id):
            self._used_ids.add(provider_id)

    @cached_property
    def _logged_calls(self) -> frozenset[str]:
        replies = [entry for entry in self._log if isinstance(entry, AssistantMessage)]
        return frozenset(call.id for reply in replies for call in reply.tool_calls)


def _last_unread(log: Sequence[Entry]) -> int:
    return max(entry.seq or 0 for entry in log if isinstance(entry, UnreadMessages))


def _number(entries: Sequence[Entry], first: int) -> tuple[Entry, ...]:
    return tuple([replace(entry, seq=first + place) for place, entry in enumerate(entries)])
