"""Relayed requests of other agents (X3). Each request is a run of one call that no worker claims.

The run is stored as ended with the outcome `unanswered`, so that no worker continues it if the server is lost while the
reply streams. The run's name identifies the conversation; an index makes it searchable.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import cast

from sqlalchemy import Connection, bindparam, null, select, update

from recto.conversation.log import FoldStep
from recto.store.database.database import Repository, key_lookup, lock_thread, lock_user, read_transaction
from recto.store.log.entry_codec import decode_entry
from recto.store.ports import CallEnd, RelayedCall, RelayedPath, RunChange, RunEnding, StoredRequest
from recto.store.runs.admission import ADD_RUN, check_tokens, enter_thread, make_row
from recto.store.runs.run_progress import GROW_WITH_TITLE, append_entries, begin_call, clean_text, end_call
from recto.store.schema import CALLS, LOG, RUNS, from_micros, to_micros
from recto.store.statement import Statement, StatementValues, batches, param

UNANSWERED = "unanswered"
NEWEST = Statement(
    select(RUNS.c.name, RUNS.c.created)
    .where(RUNS.c.thread == bindparam("of"), RUNS.c.owner == bindparam("owner_is"))
    .order_by(RUNS.c.number.desc())
    .limit(1)
)
STEPS = Statement(
    select(LOG.c.seq, LOG.c.id, LOG.c.time, LOG.c.body, LOG.c.run)
    .where(LOG.c.thread == bindparam("of"), LOG.c.kind == "fold_step")
    .order_by(LOG.c.seq)
)
SET_ENDING = Statement(
    update(RUNS)
    .where(RUNS.c.id == bindparam("this"))
    .values(
        outcome=param("how", RUNS.c.outcome),
        error=param("new_error", RUNS.c.error),
        usage=param("new_usage", RUNS.c.usage),
        ended=param("now", RUNS.c.ended),
        node=null(),
    )
)
START = Statement(
    update(RUNS).where(RUNS.c.id == bindparam("this")).values(started=param("now", RUNS.c.started), outcome=UNANSWERED)
)


class Relays(Repository):
    """The relayed requests of other agents (X3)."""

    @read_transaction
    def find_path(self, connection: Connection, owner: str, names: Sequence[str]) -> RelayedPath:
        """Return the requests of an owner with these names, in order, and their fold steps."""
        matches: dict[str, tuple[str, str, str, datetime]] = {}
        for batch in batches(names):
            query = select(RUNS.c.name, RUNS.c.id, RUNS.c.thread, CALLS.c.model, RUNS.c.created)
            query = query.join(CALLS, CALLS.c.run == RUNS.c.id).where(RUNS.c.owner == owner, RUNS.c.name.in_(batch))
            rows = connection.execute(query)
            matches |= {row.name: (row.id, row.thread, row.model, from_micros(row.created)) for row in rows}
        path = [(name, *matches[name]) for name in names if name in matches]
        newest = _find_newest(connection, owner, path[-1][2]) if path else None
        requests = [
            StoredRequest(
                name=name,
                run=run,
                thread=thread,
                model=model,
                created=created,
                last_sent=newest[1] if newest and newest[0].startswith(name) else created,
                is_newest=newest is not None and newest[0].startswith(name),
            )
            for name, run, thread, model, created in path
        ]
        return RelayedPath(requests=tuple(requests), steps=_list_steps(connection, requests))

    @key_lookup
    def find_newest(self, connection: Connection, owner: str, thread: str) -> str | None:
        """Return the name of the newest request in a thread of an owner, or None."""
        newest = _find_newest(connection, owner, thread)
        return newest[0] if newest else None

    async def begin(self, call: RelayedCall) -> None:
        """Store a request and its fold step before it is sent on. Raise LimitReached if the user's tokens are spent."""
        admission, now = call.admission, call.call.started

        def begin(connection: Connection) -> None:
            lock_user(connection, admission.owner)
            lock_thread(connection, admission.thread)
            check_tokens(connection, admission)
            agent, _ = enter_thread(connection, admission)
            values = make_row(admission, agent) | {"status": "ended", "node": call.node, "calls": call.call.number}
            values["owner_is"] = admission.owner
            if not ADD_RUN.rows(connection, values):
                # The same request was sent before. That run has the name by which the conversation is found, so use
                # another name.
                ADD_RUN.rows(connection, {**values, "name": f"{admission.name}-{admission.id}"})
            START.count(connection, {"this": admission.id, "now": to_micros(now)})
            growth = {"this": admission.thread, "more": 0, "now": to_micros(now), "first_words": call.title}
            GROW_WITH_TITLE.rows(connection, growth)
            if call.step:
                append_entries(connection, admission.thread, RunChange(entries=(call.step,)), now, run=admission.id)
            begin_call(connection, admission.id, admission.thread, call.call)

        size = len(call.call.manifest) + sum([len(segment.data) for segment in call.call.segments])
        await self.database.write(begin, size=size)

    async def end(self, run: str, call: CallEnd, ending: RunEnding) -> None:
        """Store the result of a request."""
        values: StatementValues = {
            "this": run,
            "how": ending.outcome,
            "new_error": clean_text(ending.error),
            "new_usage": call.usage,
            "now": to_micros(call.ended),
        }

        def end(connection: Connection) -> None:
            end_call(connection, run, call)
            SET_ENDING.count(connection, values)

        await self.database.write(end, size=len(call.usage or b""))


def _find_newest(connection: Connection, owner: str, thread: str) -> tuple[str, datetime] | None:
    """Return the name and the time of the newest request in a thread of an owner."""
    rows = cast("Sequence[tuple[str, int]]", NEWEST.rows(connection, {"of": thread, "owner_is": owner}))
    return (rows[0][0], from_micros(rows[0][1])) if rows else None


def _list_steps(connection: Connection, requests: Sequence[StoredRequest]) -> tuple[FoldStep, ...]:
    """Return the fold steps of the runs of these requests. Other branches of the conversation have other steps."""
    runs, threads = {request.run for request in requests}, dict.fromkeys(request.thread for request in requests)
    rows = [row for thread in threads for row in STEPS.rows(connection, {"of": thread}) if row[4] in runs]
    steps = [
        decode_entry("fold_step", bytes(body), id=id, seq=seq, time=from_micros(time))
        for seq, id, time, body, _ in cast("Sequence[tuple[int, str, int, bytes, str]]", rows)
    ]
    return tuple([step for step in steps if isinstance(step, FoldStep)])
