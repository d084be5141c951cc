"""What a store promises of reads: each sees one moment, however much is written meanwhile."""

from __future__ import annotations

import asyncio

from recto.conversation.json import dump
from recto.store.ports import RunChange, RunEnding
from recto.store.store import Store
from recto.store.threads.history import HistoryQuery
from recto.store.users.profiles import ProfileChange
from tests.store.suite.samples import NODE, admission, at, lease_of, said

END = RunChange(ending=RunEnding(outcome="success"))
ROUNDS, READERS, LIMIT_BYTES = 20, 4, 10_000


class MomentSuite:
    """A writer is at it all the time."""

    async def test_all_of_a_profile_is_of_one_moment(self, store: Store):
        async def write() -> None:
            for number in range(ROUNDS):
                change = ProfileChange(fields={"a": number}, skill_data={"s": number})
                await store.change_profile("ann", change, at(number), LIMIT_BYTES)

        async def read() -> None:
            while not writing.done():
                found = await store.whole_profile("ann")
                number = found.fields.get("a")
                assert found.skill_data.get("s") == number
                assert number == (found.updated and (found.updated - at(0)).total_seconds())

        writing = asyncio.create_task(write())
        await asyncio.gather(writing, *[read() for _ in range(READERS)])

    async def test_P13_a_message_is_in_history_once_while_its_run_enters_the_log(self, store: Store):
        async def write() -> None:
            for number in range(ROUNDS // 4):
                await store.admit(admission(f"r{number}", input=asks(f"m{number}")))
                admitted.append(f"m{number}")
                (run,) = await store.claim(NODE, at(0), limit=1)
                change = RunChange(entries=[said(f"m{number}")], entered=True)
                await store.record(lease_of(run), change, at(0))
                await store.record(lease_of(run), END, at(0))

        async def read() -> None:
            while not writing.done():
                before = len(admitted)
                day = await store.history("ann", HistoryQuery())
                shown = [*(one.id for one in day.messages), *(one.message.id for one in day.queued)]
                assert shown == [f"m{number}" for number in range(len(shown))]
                assert len(shown) >= before

        admitted: list[str] = []
        writing = asyncio.create_task(write())
        await asyncio.gather(writing, *[read() for _ in range(READERS)])


def asks(id: str) -> bytes:
    """The input of a run that says something under this id."""
    return dump({"threadId": "t", "runId": "r", "messages": [{"id": id, "role": "user", "content": "Hello"}]})
