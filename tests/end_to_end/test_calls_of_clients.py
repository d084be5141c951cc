"""Calls that a client answers, on every wire: two under one id in one reply, and calls that wait in a fork."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import cast

import pytest

from recto.conversation.json import Json, dump, load
from recto.ids import new_id
from recto.testing.answer_bytes import wire_at
from recto.testing.model_server import Answer, Call
from tests.flow.in_process import STREAM, InProcess, events_of, in_process, messages_of, types_of
from tests.page.page_rules import orphans
from tests.support.client import RUNS, ask

THREADS = "/api/v1/agent/threads"
WIRES = ("compatible:x", "openai-responses:gpt-x", "anthropic:claude-opus-5", "gemini:gemini-3-pro-preview")
PICK: Json = {"name": "pick", "description": "Pick one.", "parameters": {"type": "object"}}
Row = Mapping[str, Json]


def calling(mode: str, id: str, *places: str) -> Answer:
    """Return a reply whose calls all have one id."""
    arguments = [dump({"place": place}).decode() for place in places]
    if mode == "prompt":
        calls = [f'<tool_call>{{"name": "pick", "arguments": {one}}}</tool_call>' for one in arguments]
        return Answer(text="\n".join(("Well.", *calls)))
    return Answer(text="Well.", calls=tuple([Call(name="pick", arguments=one, id=id) for one in arguments]))


async def pending(server: InProcess, thread: str) -> list[tuple[str, str]]:
    """Return the ids and places of pending calls."""
    waiting = cast("Sequence[Row]", (await server.send("GET", f"{THREADS}/{thread}")).json["pendingCalls"])
    return [(str(call["id"]), str(cast("Row", load(str(call["arguments"])))["place"])) for call in waiting]


async def send(server: InProcess, body: Row, results: Mapping[str, str] | None = None) -> str:
    """Run this input with results of calls. Return the last page."""
    messages = cast("Sequence[Json]", body["messages"])
    result_rows = [
        {"id": new_id(), "role": "tool", "toolCallId": id, "content": one} for id, one in (results or {}).items()
    ]
    reply = await server.send(
        "POST", RUNS, {**body, "runId": new_id(), "messages": [*messages, *result_rows]}, headers=STREAM
    )
    assert reply.status == 200, reply.body
    assert types_of(events_of(reply))[-1] == "RUN_FINISHED"
    return server.model.requests[-1].body.decode()


@pytest.mark.parametrize("id", ["", "call_0"])
@pytest.mark.parametrize("mode", ["native", "prompt"])
@pytest.mark.parametrize("model", WIRES)
async def test_P15_calls_under_one_id_are_told_apart_and_each_gets_its_result(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, model: str, mode: str, id: str
):
    for name in ("OPENAI_API_KEY", "ANTHROPIC_API_KEY"):
        monkeypatch.setenv(name, "key")
    call_ids, thread = list[str](), new_id()
    async with in_process(tmp_path, monkeypatch, settings=f"tool_calling: {mode}", model=model) as server:
        for places in (("A", "B"), ("C", "D")):
            server.answers.append(calling(mode, id, *places))
            body = ask("Pick.", thread=thread, tools=[PICK])
            await send(server, body)
            waiting = await pending(server, thread)
            assert [place for _, place in waiting] == [*places]
            page = await send(server, body, {call: f"result of {place}" for call, place in waiting})
            assert [f"result of {place}" in page for place in places] == [True, True]
            call_ids += [call for call, _ in waiting]
        assert len({*call_ids}) == 4
        if mode == "native":
            model_requests = server.model.requests
            assert [
                breach for one in model_requests for breach in orphans(one.page, wire_at(one.path) or "openai")
            ] == []


async def test_P17_a_fork_takes_the_results_of_calls_that_wait_in_it_though_no_tool_is_named_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    async with in_process(tmp_path, monkeypatch) as server:
        server.answers.append(calling("native", "c1", "A"))
        thread, body = new_id(), ask("Pick.", tools=[PICK])
        await send(server, body | {"threadId": thread})
        forked = (await server.send("POST", f"{THREADS}/{thread}/fork", {})).json
        waiting = await pending(server, thread)
        assert [call["id"] for call in cast("Sequence[Row]", forked["pendingCalls"])] == [id for id, _ in waiting]
        assert await pending(server, str(forked["id"])) == waiting
        for place, words in ((str(forked["id"]), "in the fork"), (thread, "in the thread")):
            await send(server, body | {"threadId": place, "tools": ()}, {waiting[0][0]: words})
            assert messages_of(server.pages[-1])[-1]["content"] == words
            assert await pending(server, place) == []
