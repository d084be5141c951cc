"""Answers to interrupts: one run brings each answer, also among concurrent ones."""

import asyncio
from collections.abc import Mapping
from dataclasses import replace

import pytest

from recto.conversation.input.run_input import stored_input
from recto.conversation.json import Json, dump
from recto.conversation.log import ConfirmAsked, ConfirmDecided, RolledBack
from recto.conversation.messages import AssistantMessage, ToolCall
from recto.errors import Conflict, NotFound
from recto.store.ports import Admission, RunChange, RunEnding
from recto.store.store import Store
from tests.store.suite.samples import NODE, admission, at, begin, message_of

THREAD = "11111111-1111-4111-8111-111111111111"
YES: Mapping[str, Json] = {"approved": True}
NO: Mapping[str, Json] = {"approved": False}
HOUR = 3_600.0


async def waiting(store: Store) -> None:
    """Make a thread whose run ended with two questions, `i1` and `i2`."""
    lease = await begin(store, "asks", THREAD)
    calls = tuple(ToolCall(id=f"c{number}", name="send", arguments="{}") for number in (1, 2))
    asks = [
        ConfirmAsked(id=f"i{number}", time=at(0), message="m1", call=f"c{number}", run="asks", seconds=HOUR)
        for number in (1, 2)
    ]
    entries = (message_of("u1"), AssistantMessage(id="m1", time=at(0), parts=calls), *asks)
    await store.runs.record(lease, RunChange(entries=entries, entered=True, ending=RunEnding(outcome="waiting")), at(0))


def answering(name: str, *, owner: str = "ann", **payloads: Mapping[str, Json]) -> Admission:
    items = [{"interruptId": id, "status": "resolved", "payload": payload} for id, payload in payloads.items()]
    body = dump({"threadId": THREAD, "runId": name, "messages": [], "resume": items})
    new = admission(name, THREAD, owner=owner, input=body)
    return replace(new, parsed=stored_input(body), created=at(1))


class AnswerSuite:
    async def test_one_of_two_concurrent_answers_is_admitted(self, store: Store):
        await waiting(store)
        both = (store.runs.admit(answering("r1", i1=YES)), store.runs.admit(answering("r2", i1=NO)))
        results = await asyncio.gather(*both, return_exceptions=True)
        assert sorted(type(one).__name__ for one in results) == ["AdmissionResult", "Conflict"]

    async def test_the_same_answers_at_once_are_one_run(self, store: Store):
        await waiting(store)
        results = await asyncio.gather(
            *(store.runs.admit(answering(f"r{number}", i1=YES, i2=NO)) for number in range(8))
        )
        assert len({one.run.id for one in results}) == 1
        assert [one.is_new for one in results].count(True) == 1

    async def test_an_interrupt_is_answered_once(self, store: Store):
        await waiting(store)
        first = await store.runs.admit(answering("r1", i1=YES))
        [run] = await store.runs.claim(NODE, at(1), limit=1)
        decided = ConfirmDecided(id="d1", time=at(1), interrupt="i1", run=run.id, approved=True)
        ending = RunEnding(outcome="waiting")
        await store.runs.record(run.lease, RunChange(entries=(decided,), entered=True, ending=ending), at(2))
        again = await store.runs.admit(answering("r2", i1=YES))
        assert (again.run.id, again.is_new) == (first.run.id, False)
        with pytest.raises(Conflict, match="in another way"):
            await store.runs.admit(answering("r3", i1=NO))
        assert (await store.runs.admit(answering("r4", i1=YES, i2=YES))).is_new

    async def test_P5_an_answer_without_an_own_interrupt_stores_nothing(self, store: Store):
        with pytest.raises(NotFound):
            await store.runs.admit(answering("r1", i1=YES))
        with pytest.raises(NotFound):
            await store.threads.get("ann", THREAD)
        await waiting(store)
        with pytest.raises(NotFound, match="interrupt"):
            await store.runs.admit(answering("r1", i1=YES, i9=YES))
        with pytest.raises(NotFound, match="thread"):
            await store.runs.admit(answering("r1", owner="bob", i1=YES))
        assert (await store.runs.admit(answering("r2", i1=NO))).is_new

    async def test_a_rolled_back_interrupt_is_not_pending(self, store: Store):
        await waiting(store)
        await store.runs.admit(admission("back", THREAD))
        [run] = await store.runs.claim(NODE, at(1), limit=1)
        with pytest.raises(Conflict, match="Another run"):
            await store.runs.admit(answering("r1", i1=YES))
        back = RolledBack(id="b1", time=at(1), to="u1")
        ending = RunEnding(outcome="done")
        await store.runs.record(run.lease, RunChange(entries=(back,), entered=True, ending=ending), at(2))
        with pytest.raises(NotFound, match="interrupt"):
            await store.runs.admit(answering("r1", i1=YES))
