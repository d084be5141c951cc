"""The store: every method one transaction, the same on SQLite and PostgreSQL."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from functools import partial

from sqlalchemy import Connection, text

from recto.config.access_settings import BodyLimits
from recto.config.run_settings import PostgresSettings, SqliteSettings
from recto.conversation.attachment import Attachment, FileRef
from recto.conversation.log import Entry, StateChanged
from recto.page.prompt.reminder import Dataset
from recto.store.database import notes
from recto.store.database.database import Database, Result
from recto.store.database.opening import check_url, open_database
from recto.store.files import attachments, datasets, file_refs
from recto.store.files.datasets import DatasetChange, DatasetList, StoredDataset
from recto.store.log import read_end, read_log, visible
from recto.store.ports import (
    Admission,
    AdmissionResult,
    AdmissionThread,
    Cancel,
    Claimant,
    Lease,
    RecordResult,
    RunChange,
    StoredCall,
    StoredEvent,
    StoredRun,
)
from recto.store.runs import calls, queued, record, run_queue, so_far
from recto.store.runs.event_batch import EventBatch
from recto.store.runs.relayed_records import RelayedRecords
from recto.store.runs.so_far import RunSoFar
from recto.store.threads import cleaning, deleting, forks, history, message_pages, rollbacks, thread_rows
from recto.store.threads.rollbacks import RollbackUndone, ThreadRolledBack, TurnBackOptions
from recto.store.threads.thread_rows import RunList, Stopped, StoredThread, ThreadList, ThreadsQuery
from recto.store.users.user_records import UserRecords

# The most that is read at once of a run's events, but for the last of them.
EVENTS_BYTES = 2**20


async def open_store(
    url: str,
    *,
    sqlite: SqliteSettings | None = None,
    postgres: PostgresSettings | None = None,
    is_reader: bool = False,
) -> Store:
    """Open a database and bring it to this version's tables; for a reader, only if it has them already."""
    return Store(await open_database(check_url(url), sqlite=sqlite, postgres=postgres, is_reader=is_reader))


class Store(UserRecords, RelayedRecords):
    """Runs and what they wrote, threads, files, datasets, users and notes, in a database."""

    def __init__(self, database: Database) -> None:
        super().__init__(database)
        self._events = EventBatch(database)
        self._places = cleaning.Places()
        self._unused_from = attachments.AttachmentCursor()
        self._reading = asyncio.Lock()

    @property
    def problem(self) -> str | None:
        """Why writes fail at present; None while they succeed."""
        return self._database.problem

    @property
    def is_shared(self) -> bool:
        """Whether several servers may use this database at once."""
        return self._database.is_shared

    async def probe(self) -> None:
        """Write and read, as everything else does. Raises what stands in the way."""
        await self._database.write(_touch)
        await self._database.read(read_log.count_waiting)

    def forget(self) -> None:
        """Have no values left in memory that anything was asked with."""
        self._database.forget()

    async def close(self) -> None:
        """Finish what waits, then close."""
        await self._events.close()
        await self._database.close()

    # Runs

    async def admit(self, admission: Admission, who: Claimant | None = None) -> AdmissionResult:
        """Store a run with its input, and claim it for `who` if its thread is free.

        The same request again finds the same run; another under its name: Conflict.
        """
        work = partial(run_queue.admit, admission=admission, who=who)
        return await self._database.write(work, size=len(admission.input))

    async def as_admitted(self, admission: Admission) -> StoredRun:
        """The row that a run would have, were it admitted now. Nothing is stored. Somebody else's thread: NotFound."""
        return await self._database.read(partial(run_queue.as_admitted, admission=admission))

    async def find_run(self, owner: str, id: str) -> StoredRun:
        """A run by the server's id or by the client's name for it. Somebody else's: NotFound."""
        return await self._database.read(partial(run_queue.find, owner=owner, id=id))

    async def find_runs_of_anyone(self, id: str) -> Sequence[StoredRun]:
        """The run of a server's id; else all runs of that name, whoever has them. For who may see everything."""
        return await self._database.read(partial(run_queue.find_by_anyone, id=id))

    async def opening_input(self, thread: str, response_id: str) -> bytes | None:
        """The request that opened a turn; None where its run is not there."""
        return await self._database.read(partial(run_queue.opening_input, thread=thread, response_id=response_id))

    async def again(self, owner: str, name: str, digest: bytes) -> AdmissionResult | None:
        """The run a request made before; another request under its name: Conflict. None: it has to be admitted."""
        return await self._database.read(partial(run_queue.again, owner=owner, name=name, digest=digest))

    async def cancel(self, run: StoredRun, cancel: Cancel) -> StoredRun:
        """Write down that a run is to end."""
        return await self._database.write(partial(run_queue.cancel, run=run, cancel=cancel))

    async def claim(self, who: Claimant, now: datetime, limit: int) -> Sequence[StoredRun]:
        """Take up to `limit` runs that nobody works on."""
        return await self._database.write(partial(run_queue.claim, who=who, now=now, limit=limit))

    async def renew(self, who: Claimant, leases: Sequence[Lease], now: datetime) -> Sequence[Lease]:
        """Hold these leases longer. Returns those still held."""
        return await self._database.write_first(partial(run_queue.renew, who=who, leases=leases, now=now))

    async def hand_back(self, leases: Sequence[Lease], at: datetime) -> None:
        """Give these runs up, for anybody to go on with from that time on."""
        await self._database.write_first(partial(run_queue.hand_back, leases=leases, at=at))

    async def recover(self, who: Claimant, now: datetime) -> int:
        """Free what an earlier boot of this node left claimed."""
        return await self._database.write(partial(run_queue.recover, who=who, now=now))

    async def cancels(self, held: Sequence[str]) -> Sequence[str]:
        """Of these runs, those that are to end."""
        return await self._database.write_first(partial(run_queue.cancels, runs=held))

    async def record(self, lease: Lease, change: RunChange, now: datetime) -> RecordResult:
        """Write a change under its fence. Another worker has the run: LeaseLost, and nothing is written."""
        work = partial(record.record, lease=lease, change=change, now=now)
        return await self._database.write(work, size=record.size_of(change))

    def add_events(self, lease: Lease, events: Sequence[bytes]) -> asyncio.Future[RecordResult]:
        """Add events and nothing else, together with those of other runs. Under the fence, as `record` is."""
        return self._events.add(lease, events)

    # What runs wrote

    async def log_after(self, thread: str, seq: int = 0) -> Sequence[Entry]:
        """The entries of a log behind a number, in order."""
        return await self._database.read(partial(read_log.log_after, thread=thread, seq=seq))

    async def log_up_to(self, thread: str, seq: int) -> Sequence[Entry]:
        """The entries of a log up to a number, in order."""
        return await self._database.read(partial(read_log.log_up_to, thread=thread, seq=seq))

    async def log_up_to_entry(self, thread: str, id: str) -> Sequence[Entry]:
        """The entries of a log up to the one of this id, in order; none where it is not there."""
        return await self._database.read(partial(read_log.log_up_to_entry, thread=thread, id=id))

    async def log_end(self, query: read_end.EndQuery) -> read_end.LogEnd | read_end.MissingCounts | None:
        """Of a long log what its pages can show; None where it has to be read whole."""
        return await self._database.read(partial(read_end.read_end, query=query))

    async def uncounted(self, thread: str, counter: str, *, after: int, upto: int) -> Sequence[Entry]:
        """Some messages between two numbers that this counter has not counted, oldest first."""
        found = partial(read_end.uncounted, thread=thread, counter=counter, after=after, upto=upto)
        return await self._database.read(found)

    async def set_tokens(self, thread: str, counter: str, tokens: Mapping[str, int]) -> None:
        """Keep what entries count, by their ids."""
        await self._database.write(partial(read_end.set_tokens, thread=thread, counter=counter, tokens=tokens))

    async def taken_ids(self, thread: str, ids: Sequence[str]) -> frozenset[str]:
        """Those of these ids that entries of a log go by."""
        return await self._database.read(partial(read_log.taken_ids, thread=thread, ids=ids))

    async def has_had_call(self, thread: str, upto: int, call: str) -> bool:
        """Whether a reply up to a number has a call of this id."""
        return await self._database.read(partial(read_log.has_had_call, thread=thread, upto=upto, call=call))

    async def events(self, run: str, after: int, limit: int, size: int = EVENTS_BYTES) -> Sequence[StoredEvent]:
        """Events of a run behind a number, in order; no more once they have `size` bytes."""
        return await self._database.read(partial(read_log.events_after, run=run, number=after, limit=limit, size=size))

    async def calls(self, run: str) -> Sequence[StoredCall]:
        """The model calls of a run, in order, each as it was sent."""
        return await self._database.read(partial(calls.calls_of, run=run))

    async def call_summaries(self, run: str) -> Sequence[calls.CallSummary]:
        """The model calls of a run, in order, without their pages."""
        return await self._database.read(partial(calls.summaries_of, run=run))

    async def has_call(self, run: str, number: int) -> bool:
        """Return whether a model call is stored. Cleaning deletes old ones."""
        return await self._database.read(partial(calls.is_stored, run=run, number=number), few=True)

    async def look_at_call(self, run: str, number: int) -> calls.CallSeen:
        """One model call with its page, checked against what was sent. Damage is named, not raised."""
        return await self._database.read(partial(calls.look_at, run=run, number=number))

    async def call_before(self, run: str, number: int) -> tuple[str, int] | None:
        """The call before a call in its thread, for the same purpose: its run and number."""
        return await self._database.read(partial(calls.before, run=run, number=number))

    async def answered_call(self, run: str, number: int) -> tuple[str, int] | None:
        """A call for a reply, or else the newest before it in its thread, that has usage: its run and number."""
        return await self._database.read(partial(calls.answered, run=run, number=number))

    async def knows(self, run: str) -> bool:
        """Whether there is such a run; one that was deleted is none."""
        return await self._database.read(partial(read_log.knows, run=run))

    async def has_events(self, run: str) -> bool:
        """Whether the events of a run are still there."""
        return await self._database.read(partial(read_log.has_events, run=run))

    async def log_of_run(self, run: StoredRun) -> Sequence[Entry]:
        """The log of a run's thread as the run left it."""
        return await self._database.read(partial(read_log.log_of_run, run=run))

    async def run_so_far(self, run: StoredRun) -> RunSoFar:
        """A run with all its events and the log of its thread, as of one moment. One that was deleted: NotFound."""
        return await self._database.read(partial(so_far.run_so_far, run=run))

    async def history(self, owner: str, query: history.HistoryQuery) -> history.HistoryDay:
        """The newest day of a thread that has something to show (P13)."""
        return await self._with_sent(partial(history.history_day, owner=owner, query=query))

    async def messages_page(self, owner: str, query: message_pages.MessagesQuery) -> message_pages.MessagesPage:
        """A page of a thread's messages in view, oldest first. A message that is not in view: WireError."""
        return await self._database.read(partial(message_pages.messages_page, owner=owner, query=query))

    async def queued(self, thread: str, most_bytes: int = BodyLimits.queued_bytes) -> Sequence[queued.Queued]:
        """The user messages of a thread that wait for their turn, as far as their requests have so many bytes."""
        return await self._with_sent(partial(queued.queued_in, thread=thread, most_bytes=most_bytes))

    async def _with_sent(self, ask: Callable[..., Result | queued.InputsNeeded]) -> Result:
        """Ask again where inputs have to be read first: what is answered is all of one transaction.

        Inputs are read one by one, off the event loop: everybody else has their turn in between.
        """
        sent: queued.Sent = {}
        while isinstance(found := await self._database.read(partial(ask, sent=sent)), queued.InputsNeeded):
            async with self._reading:
                sent = {**sent, **await asyncio.to_thread(queued.read_sent, found.runs)}
        return found

    # Threads

    async def list_threads(self, owner: str, query: ThreadsQuery) -> ThreadList:
        """Threads of an owner, newest activity first. A cursor that is none: WireError."""
        return await self._database.read(partial(thread_rows.list_threads, owner=owner, query=query))

    async def get_thread(self, owner: str, id: str) -> StoredThread:
        """A thread. Somebody else's: NotFound, as everywhere below."""
        return await self._database.read(partial(thread_rows.get_thread, owner=owner, id=id))

    async def known_threads(self, ids: Sequence[str]) -> frozenset[str]:
        """Those of these threads that are there."""
        return await self._database.read(partial(thread_rows.known, ids=ids))

    async def thread_agent(self, owner: str, id: str) -> str | None:
        """The agent of a thread (C4); None where there is no such thread of this owner."""
        return await self._database.read(partial(thread_rows.agent_of, owner=owner, id=id))

    async def thread_for_admission(self, owner: str, id: str) -> AdmissionThread | None:
        """Whether a thread is there and whose, its agent and its skill (C4, P5, S4)."""
        return await self._database.read(partial(thread_rows.for_admission, owner=owner, id=id))

    async def turn(self, thread: str) -> Sequence[Entry]:
        """What is in view of a thread's current turn."""
        return await self._database.read(partial(visible.turn_of, thread=thread))

    async def state(self, thread: str) -> StateChanged | None:
        """The state that a thread shares with its clients, as it was changed last."""
        return await self._database.read(partial(visible.state_in, thread=thread))

    async def can_undo(self, thread: str) -> bool:
        """Whether a thread has a rollback to take back."""
        return (await self._database.read(partial(visible.seen_in, thread=thread))).can_undo

    async def runs_of_thread(self, owner: str, id: str, cursor: str | None, limit: int) -> RunList:
        """Runs of a thread, newest first (P8)."""
        found = partial(thread_rows.runs_of_thread, owner=owner, id=id, cursor=cursor, limit=limit)
        return await self._database.read(found)

    async def calls_of_thread(self, owner: str, id: str, limit: int) -> Sequence[calls.ThreadCall]:
        """The newest model calls of a thread, newest first, without pages and manifests."""
        return await self._database.read(partial(thread_rows.calls_of_thread, owner=owner, id=id, limit=limit))

    async def rename(self, owner: str, id: str, title: str) -> StoredThread:
        """Give a thread a title that nobody but its user changes again."""
        return await self._database.write(partial(thread_rows.rename, owner=owner, id=id, title=title))

    async def agree(self, owner: str, id: str, tools: Sequence[str]) -> StoredThread:
        """Have these tools, and no others, ask nobody in a thread."""
        return await self._database.write(partial(thread_rows.agree, owner=owner, id=id, tools=tools))

    async def archive(self, owner: str, id: str, *, is_archived: bool) -> StoredThread:
        """Say of a thread whether it is archived."""
        return await self._database.write(partial(thread_rows.archive, owner=owner, id=id, is_archived=is_archived))

    async def open_runs(self, owner: str, id: str) -> Sequence[StoredRun]:
        """The runs of a thread that have not ended, the one at work first; none of somebody else's thread."""
        return await self._database.read(partial(thread_rows.open_runs, owner=owner, id=id))

    async def set_title_if_automatic(self, thread: str, title: str) -> bool:
        """Give a thread a better title, unless its user gave it one."""
        return await self._database.write(partial(thread_rows.set_title_if_automatic, id=thread, title=title))

    async def delete_thread(self, owner: str, id: str) -> Sequence[Stopped]:
        """Delete a thread with all there is of it. Whoever still writes for its runs gets LeaseLost."""
        return await deleting.delete_thread(self._database, owner, id)

    async def fork(self, owner: str, options: forks.ForkOptions) -> StoredThread:
        """Make a thread of what is seen of another."""
        return await self._database.write(partial(forks.fork, owner=owner, options=options))

    async def roll_back(self, owner: str, options: TurnBackOptions, *, to: str) -> ThreadRolledBack:
        """Have a user message and all that follows out of view (R12). While a run is at work or waits: Conflict."""
        return await self._database.write(partial(rollbacks.roll_back, owner=owner, options=options, to=to))

    async def undo(self, owner: str, options: TurnBackOptions) -> RollbackUndone:
        """Take the last rollback of a thread back. Where there is none, or a run is at work or waits: Conflict."""
        return await self._database.write(partial(rollbacks.undo, owner=owner, options=options))

    # Files

    async def add_attachment(self, attachment: Attachment, user_bytes: int, user_files: int = 0) -> Attachment:
        """Store an attachment, on an older blob of its owner if that has the same bytes.

        More than so many bytes or files of a user: FileRefused. 0 sets no limit.
        """
        adding = partial(attachments.add, attachment=attachment, user_bytes=user_bytes, user_files=user_files)
        return await self._database.write(adding)

    async def find_attachment(self, id: str, owner: str | None = None) -> Attachment:
        """An attachment. Where an owner is named, somebody else's is not there: NotFound."""
        return await self._database.read(partial(attachments.find, id=id, owner=owner))

    async def same_attachment(self, owner: str, sha256: str, name: str) -> Attachment | None:
        """The owner's attachment with these bytes and this name."""
        return await self._database.read(partial(attachments.find_same, owner=owner, sha256=sha256, name=name))

    async def list_attachments(self, owner: str, cursor: str | None, limit: int) -> attachments.AttachmentList:
        """Attachments of an owner, newest first."""
        return await self._database.read(partial(attachments.list_page, owner=owner, cursor=cursor, limit=limit))

    async def attachment_bytes(self, owner: str) -> int:
        """The bytes of all a user's attachments."""
        return await self._database.read(partial(attachments.total_bytes, owner=owner))

    async def delete_attachment(self, owner: str, id: str) -> Sequence[str]:
        """Delete an attachment. Returns its blob, if no other attachment stands on it."""
        return await self._database.write(partial(attachments.delete_one, owner=owner, id=id))

    async def delete_unused_attachments(self, before: datetime, limit: int) -> tuple[int, Sequence[str]]:
        """Delete attachments made before a time that no thread refers to: how many, and the blobs nobody has.

        Each call goes on where the last one ended; one that finds fewer than `limit` has come to the end.
        """
        found = await attachments.delete_unused(self._database, before, limit, self._unused_from)
        count, blobs, self._unused_from = found
        return count, blobs

    async def delete_unused_of(self, owner: str, ids: Sequence[str]) -> Sequence[str]:
        """Delete those of some attachments of an owner that no thread refers to. Returns the blobs nobody has."""
        work = partial(attachments.delete_owner_unused, owner=owner, ids=ids)
        return (await self._database.write(work))[1] if ids else ()

    async def known_blobs(self, names: Sequence[str]) -> frozenset[str]:
        """Those of these blobs that somebody has."""
        return await self._database.read(partial(attachments.existing_blobs, names=names))

    async def mend_blob(self, old: str, new: str) -> None:
        """Have a blob, and all attachments that stand on it, go by a new name. No such blob: nothing happens."""
        await self._database.write(partial(attachments.rename_blob, old=old, new=new))

    async def file_refs(self, thread: str) -> Sequence[FileRef]:
        """What each file id ever shown in a thread stands for (F4)."""
        return await self._database.read(partial(file_refs.list_refs, thread=thread), few=True)

    async def forget_refs(self, thread: str, response_id: str) -> None:
        """Take back the ids of a turn that never was: its message went on with an earlier one."""
        await self._database.write(partial(file_refs.delete_unused, thread=thread, response_id=response_id))

    # Datasets

    async def make_dataset(self, dataset: StoredDataset, most: int = 0) -> StoredDataset:
        """Store a dataset. An id that is taken: Conflict; more than `most` of an owner: LimitReached. 0: no limit."""
        return await self._database.write(partial(datasets.create, dataset=dataset, limit=most))

    async def list_datasets(self, user: str, cursor: str | None, limit: int) -> DatasetList:
        """Datasets a user may use, newest first: their own, and those shared with them."""
        return await self._database.read(partial(datasets.list_page, user=user, cursor=cursor, limit=limit))

    async def get_dataset(self, user: str, id: str) -> StoredDataset:
        """A dataset a user may use; any other: NotFound."""
        return await self._database.read(partial(datasets.get, user=user, id=id))

    async def change_dataset(self, owner: str, id: str, change: DatasetChange) -> StoredDataset:
        """Change a dataset. Whoever does not own it: NotFound."""
        return await self._database.write(partial(datasets.change, owner=owner, id=id, change=change))

    async def delete_dataset(self, owner: str, id: str) -> None:
        """Delete a dataset. Whoever does not own it: NotFound."""
        await self._database.write(partial(datasets.delete_one, owner=owner, id=id))

    async def usable_datasets(self, user: str, ids: Sequence[str]) -> tuple[Dataset, ...]:
        """Those of these datasets a user may use, in this order, each once (F10). Upper case means the same."""
        return await self._database.read(partial(datasets.find_usable, user=user, ids=ids))

    # What all servers agree on, and what is no longer wanted

    async def note(self, name: str) -> str | None:
        """What a note says; None where there is none."""
        return await self._database.read(partial(notes.find, name=name))

    async def take_note(self, name: str, value: str) -> str:
        """Write a note unless there is one. Returns what it says then: whoever asks, it is the same."""
        return await self._database.write(partial(notes.add, name=name, value=value))

    async def change_note(self, name: str, value: str) -> None:
        """Have a note say this from now on."""
        await self._database.write(partial(notes.set_value, name=name, value=value))

    async def clean(self, retention: cleaning.Retention) -> cleaning.Cleaned:
        """Delete some of what is older than it is to be kept; again, until nothing is left to clean."""
        return await cleaning.clean(self._database, retention, self._places)


def _touch(connection: Connection) -> None:
    connection.execute(text("UPDATE alembic_version SET version_num = version_num"))
