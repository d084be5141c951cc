"""P15: ids of tool calls are unique in a thread, whatever the model sends, wherever they are shown."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import cast

from recto.conversation.json import Json
from recto.testing.model_server import Answer
from tests.worker.plays import Play, a_play, calling, calls_in

CUT_IN_THE_CALL = replace(calling(("act", "x"), ("act", "y")), cut_at=900)


def call_ids(events: Sequence[Json]) -> list[str]:
    rows = cast("Sequence[Mapping[str, str]]", events)
    return [row["toolCallId"] for row in rows if row["type"] == "TOOL_CALL_START"]


def pairs(play: Play, request: int = -1) -> list[tuple[str, str]]:
    """Return the ids of the calls and results in a request."""
    messages = cast("list[dict[str, list[dict[str, str]]]]", play.model.requests[request].page["messages"])
    calls = [call["id"] for message in messages for call in message.get("tool_calls", [])]
    results = [str(message["tool_call_id"]) for message in messages if message["role"] == cast("object", "tool")]
    return list(zip(calls, results, strict=True))


async def test_P15_calls_without_ids_and_with_ids_that_were_used_get_their_own(tmp_path: Path):
    async with a_play(tmp_path) as play:
        session = play()
        session.answers[:] = [
            calling(("act", ""), ("act", "")),
            calling(("act", "call_0"), ("act", "call_0")),
            calling(("act", "call_0")),
        ]
        events = await session.run("doer")
        ids = [call.id for call in calls_in(await session.log())]
        assert len(set(ids)) == 5
        assert all(ids)
        assert ids[2] == "call_0"
        assert call_ids(events) == ids
        assert list(await session.results()) == ids
        assert [id for _, id in session.acted] == ids
        assert len(set(session.call_keys)) == 5


async def test_P15_the_provider_gets_its_own_ids_back_but_never_two_of_one_in_a_message(tmp_path: Path):
    async with a_play(tmp_path) as play:
        session = play()
        session.answers[:] = [calling(("act", "call_0"), ("act", "call_0")), calling(("act", "call_0"))]
        await session.run("doer")
        ids = [call.id for call in calls_in(await session.log())]
        assert pairs(session) == [("call_0", "call_0"), (ids[1], ids[1]), ("call_0", "call_0")]


async def test_P15_a_call_of_a_reply_that_was_lost_leaves_its_id_to_nobody(tmp_path: Path):
    async with a_play(tmp_path) as play:
        session = play()
        session.answers[:] = [CUT_IN_THE_CALL, calling(("act", "x"))]
        first, second = call_ids(await session.run("doer"))
        assert first == "x"
        assert second != "x"
        assert list(await session.results()) == [second]


async def test_P15_a_client_answers_the_newer_of_two_calls_by_its_own_id(tmp_path: Path):
    async with a_play(tmp_path) as play:
        session = play()
        session.answers[:] = [calling(("pick", "call_0"))]
        await session.run("bare", brings=["pick"])
        session.answers[:] = [calling(("pick", "call_0"))]
        await session.run("bare", brings=["pick"], results=["call_0"])
        first, second = [call.id for call in calls_in(await session.log())]
        await session.run("bare", brings=["pick"], results=["call_0"])
        assert list(await session.results()) == [first]
        session.answers[:] = [Answer(text="Done.")]
        await session.run("bare", brings=["pick"], results=[second])
        assert list(await session.results()) == [first, second]
        assert pairs(session) == [("call_0", "call_0"), ("call_0", "call_0")]
