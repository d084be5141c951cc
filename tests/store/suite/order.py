"""What a store promises of order: that of admission, whatever clocks the machines have that make the ids."""

from dataclasses import replace
from datetime import timedelta
from itertools import count

from recto.conversation.json import dump
from recto.store.ports import Admission
from recto.store.store import Store
from tests.store.suite.samples import NODE, admission, at, claim_names

BEHIND = timedelta(hours=1)


class OrderSuite:
    async def test_P6_a_run_does_not_begin_before_one_that_was_admitted_earlier(self, store: Store):
        behind = _Behind()
        await store.admit(behind("first"))
        later = await store.admit(behind("second"), NODE)
        assert later.run.status == "queued"
        assert await claim_names(store, NODE, at(0)) == ["first"]

    async def test_users_and_their_threads_have_their_turn_in_the_order_of_admission(self, store: Store):
        behind = _Behind()
        for name, owner in (("a1", "ann"), ("b1", "bob"), ("a2", "ann"), ("b2", "bob")):
            await store.admit(behind(name, thread=name, owner=owner))
        assert await claim_names(store, NODE, at(0)) == ["a1", "b1", "a2", "b2"]

    async def test_P8_runs_are_listed_newest_first_page_by_page(self, store: Store):
        behind, cursor, found = _Behind(), None, list[str]()
        for number in range(5):
            await store.admit(behind(f"r{number}"))
        await store.admit(behind("elsewhere", thread="thread-2"))
        while True:
            page = await store.runs_of_thread("ann", "thread-1", cursor, 2)
            found += [run.name for run in page.runs]
            # What they were asked may be long, and is not read for a list.
            assert {run.input for run in page.runs} == {b""}
            cursor = page.next
            if cursor is None:
                break
        assert found == ["r4", "r3", "r2", "r1", "r0"]

    async def test_P13_what_waits_is_shown_in_the_order_of_admission(self, store: Store):
        behind = _Behind()
        for name in ("w1", "w2", "w3"):
            await store.admit(behind(name))
        assert [one.run for one in await store.queued("thread-1")] == ["w1", "w2", "w3"]
        size = len(behind("w4").input)
        assert [one.run for one in await store.queued("thread-1", 2 * size)] == ["w1", "w2"]


class _Behind:
    """Admissions by one machine after the other, each further behind than the last."""

    def __init__(self) -> None:
        self._numbers = count(9_999, -1)

    def __call__(self, name: str, *, thread: str = "thread-1", owner: str = "ann") -> Admission:
        number = next(self._numbers)
        message = {"role": "user", "id": f"m-{name}", "content": "Hello"}
        input = dump({"threadId": "t", "runId": name, "messages": [message]})
        given = admission(name, thread, owner=owner, input=input)
        created = given.created - BEHIND * (10_000 - number)
        return replace(given, id=f"00000000-0000-7000-8000-{number:012}", created=created)
