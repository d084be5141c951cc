"""Runs of a whole server over OpenAI Responses: a turn with a tool, the turn after it, and what was sent for them."""

from collections.abc import AsyncGenerator, Sequence
from pathlib import Path
from typing import cast

import pytest

from recto.conversation.json import Json
from recto.ids import new_id
from recto.testing.model_server import Answer, Call, failure
from tests.flow.in_process import InProcess, in_process
from tests.page.oracles import breaches
from tests.page.page_rules import orphans

WIRE = "openai-responses"
MODEL = f"{WIRE}:gpt-x"
NOTE = Call(name="note", arguments='{"text":"green"}', id="call_a")
LOOKS = Answer(text="I look.", reasoning="Hm.", signature="gAAA", redacted="gBBB", calls=(NOTE,))
CALLED: list[Json] = [
    {
        "type": "reasoning",
        "id": "rs_0",
        "summary": [{"type": "summary_text", "text": "Hm."}],
        "encrypted_content": "gAAA",
    },
    {"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "gBBB"},
    {"type": "message", "role": "assistant", "content": "I look."},
    {"type": "function_call", "call_id": "call_a", "name": "note", "arguments": '{"text":"green"}'},
    {"type": "function_call_output", "call_id": "call_a", "output": "noted green"},
]


@pytest.fixture
async def server(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncGenerator[InProcess]:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-1")
    async with in_process(tmp_path, monkeypatch, settings="reasoning_effort: low", model=MODEL) as server:
        yield server


def items(server: InProcess, number: int) -> Sequence[Json]:
    return cast("Sequence[Json]", server.pages[number]["input"])


async def test_thoughts_and_calls_go_back_in_their_place_over_turns_and_the_provider_accepts_every_page(
    server: InProcess,
):
    thread = new_id()
    events = await server.run("What colour is it?", LOOKS, Answer(text="Green."), thread=thread)
    assert events[-1].event["type"] == "RUN_FINISHED"
    shown = [sent.event["delta"] for sent in events if sent.event["type"] == "REASONING_MESSAGE_CONTENT"]
    assert "".join(map(str, shown)) == "Hm."
    await server.run("Thanks.", Answer(text="Good bye."), thread=thread)
    assert [request.path for request in server.model.requests] == ["/v1/responses"] * 3
    assert [request.headers["authorization"] for request in server.model.requests] == ["Bearer sk-1"] * 3
    assert [breaches(page, WIRE) for page in server.pages] == [[], [], []]
    assert [orphans(page, WIRE) for page in server.pages] == [[], [], []]
    assert items(server, 1)[-5:] == CALLED
    assert [item for item in items(server, 2) if item in CALLED] == CALLED
    first, second = (request.body for request in server.model.requests[:2])
    assert second.startswith(first.removesuffix(b"]}"))


async def test_nothing_is_stored_at_the_provider_and_thoughts_are_asked_for_encrypted(server: InProcess):
    await server.run("hello")
    page = server.pages[0]
    assert (page["stream"], page["store"], page["include"]) == (True, False, ["reasoning.encrypted_content"])
    assert page["reasoning"] == {"effort": "low", "summary": "auto"}


async def test_a_reply_that_only_thought_does_not_block_its_thread(server: InProcess):
    thread = new_id()
    await server.run("Think.", Answer(reasoning="Hm.", finish="length"), thread=thread)
    events = await server.run("Go on.", Answer(text="So."), thread=thread)
    assert events[-1].event["type"] == "RUN_FINISHED"
    assert [orphans(page, WIRE) for page in server.pages] == [[], []]
    assert "reasoning" not in [item.get("type") for item in cast("Sequence[dict[str, Json]]", items(server, 1))]


async def test_a_fault_in_the_stream_is_asked_again_and_a_refusal_ends_the_run(server: InProcess):
    broken = Answer(text="Half", fault=("server_error", "oops"))
    events = await server.run("hello", broken, Answer(text="Whole."))
    assert events[-1].event["type"] == "RUN_FINISHED"
    assert len(server.pages) == 2
    events = await server.run("hello", failure(401, "no such key"))
    assert events[-1].event["type"] == "RUN_ERROR"
