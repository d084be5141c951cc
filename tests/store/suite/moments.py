"""What a store promises of reads: each sees one moment, however much is written meanwhile."""

import asyncio

from recto.conversation.json import dump
from recto.store.ports import RunChange, RunEnding
from recto.store.store import Store
from recto.store.threads.history import HistoryQuery
from tests.store.suite.samples import NODE, admission, at, lease_of, said

END = RunChange(ending=RunEnding(outcome="success"))
ROUNDS, READERS = 5, 4


class MomentSuite:
    async def test_P13_a_message_is_in_history_once_while_its_run_enters_the_log(self, store: Store):
        async def write() -> None:
            for number in range(ROUNDS):
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
