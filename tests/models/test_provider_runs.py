"""Runs of a server over each provider's wire format: a turn with a tool, the next turn, and their requests."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import cast

import pytest

from recto.conversation.json import Json
from recto.ids import new_id
from recto.page.wire.base import WireName
from recto.testing.answer_bytes import signature
from recto.testing.model_server import Answer, Call, failure
from tests.flow.in_process import in_process, types_of
from tests.page.page_rules import orphans

RESPONSES = "openai-responses:gpt-x"
NOTE = Call(name="note", arguments='{"text":"green"}', id="call_a")
LOOKS = Answer(text="I look.", reasoning="Hm.", signature="gAAA", redacted="gBBB", calls=(NOTE,))
TURNS: dict[WireName, tuple[str, str, str, list[Json]]] = {
    "openai-responses": (
        RESPONSES,
        "/v1/responses",
        "input",
        [
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
        ],
    ),
    "anthropic": (
        "anthropic:claude-opus-5-5",
        "/v1/messages",
        "messages",
        [
            {
                "role": "assistant",
                "content": [
                    {"type": "thinking", "thinking": "Hm.", "signature": "gAAA"},
                    {"type": "redacted_thinking", "data": "gBBB"},
                    {"type": "text", "text": "I look."},
                    {"type": "tool_use", "id": "call_a", "name": "note", "input": {"text": "green"}},
                ],
            }
        ],
    ),
}


@pytest.fixture(autouse=True)
def keys(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("OPENAI_API_KEY", "ANTHROPIC_API_KEY"):
        monkeypatch.setenv(name, "sk-1")


@pytest.mark.parametrize("wire", TURNS)
async def test_P7_thoughts_and_calls_go_back_in_their_place_over_turns(
    wire: WireName, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    model, path, field, call_path = TURNS[wire]
    thread = new_id()
    async with in_process(tmp_path, monkeypatch, model=model) as server:
        events = await server.run("What colour is it?", LOOKS, Answer(text="Green."), thread=thread)
        later = await server.run("Thanks.", Answer(text="Good bye."), thread=thread)
        requests = server.model.requests
    assert types_of(events)[-1] == types_of(later)[-1] == "RUN_FINISHED"
    texts = [
        str(received.event["delta"]) for received in events if received.event["type"] == "REASONING_MESSAGE_CONTENT"
    ]
    assert "".join(texts) == "Hm."
    assert [request.path for request in requests] == [path] * 3
    assert [orphans(request.page, wire) for request in requests] == [[], [], []]
    for request in requests[1:]:
        assert [item for item in cast("Sequence[Json]", request.page[field]) if item in call_path] == call_path
    # Within a turn each request begins with the whole previous one.
    assert requests[1].body.startswith(requests[0].body.rstrip(b"]}"))


async def test_P7_a_gemini_turn_goes_back_with_its_signatures_and_ids_of_ours(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    thread, note = new_id(), Call(name="note", arguments='{"text":"a"}', id="")
    calls, done = Answer(text="I write.", reasoning="Hm.", calls=(note, note)), Answer(text="Written.", reasoning="So.")
    async with in_process(tmp_path, monkeypatch, model="gemini:gemini-3-pro-preview") as server:
        for words, answers in (("Write a.", (calls, done)), ("Thanks.", ())):
            assert types_of(await server.run(words, *answers, thread=thread))[-1] == "RUN_FINISHED"
        requests = server.model.requests
    path = "/v1beta/models/gemini-3-pro-preview:streamGenerateContent?alt=sse"
    assert [request.path for request in requests] == [path] * 3
    assert [orphans(request.page, "gemini") for request in requests] == [[], [], []]
    contents = cast("Sequence[Mapping[str, Sequence[Mapping[str, Json]]]]", requests[2].page["contents"])
    _, call_turn, answer_turn, reply, _ = contents
    words, first, second = call_turn["parts"]
    assert words == {"text": "I write."}
    assert (first.get("thoughtSignature"), "thoughtSignature" in second) == (signature(calls), False)
    own_calls = [cast("Mapping[str, Json]", part["functionCall"]) for part in (first, second)]
    results = [cast("Mapping[str, Json]", part["functionResponse"]) for part in answer_turn["parts"]]
    assert [result["id"] for result in results] == [call["id"] for call in own_calls]
    assert [(result["name"], result["response"]) for result in results] == [("note", {"output": "noted a"})] * 2
    assert reply["parts"] == [{"text": "Written."}, {"text": "", "thoughtSignature": signature(done)}]


async def test_nothing_is_stored_at_openai_and_a_reply_that_only_thought_does_not_block_its_thread(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    thread = new_id()
    async with in_process(tmp_path, monkeypatch, settings="reasoning_effort: low", model=RESPONSES) as server:
        await server.run("Think.", Answer(reasoning="Hm.", finish="length"), thread=thread)
        events = await server.run("Go on.", Answer(text="So."), thread=thread)
        first, second = server.pages
    assert (first["stream"], first["store"], first["include"]) == (True, False, ["reasoning.encrypted_content"])
    assert first["reasoning"] == {"effort": "low", "summary": "auto"}
    assert types_of(events)[-1] == "RUN_FINISHED"
    assert "reasoning" not in [item.get("type") for item in cast("Sequence[dict[str, Json]]", second["input"])]


async def test_a_fault_in_the_stream_is_asked_again_and_a_refusal_or_a_filter_ends_the_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    async with in_process(tmp_path, monkeypatch, model=RESPONSES) as server:
        broken = Answer(text="Half", fault=("server_error", "oops"))
        assert types_of(await server.run("hello", broken, Answer(text="Whole.")))[-1] == "RUN_FINISHED"
        rejection = await server.run("hello", failure(401, "no such key"))
        filtered = await server.run("Say it.", Answer(text="It is", finish="content_filter"))
    assert [events[-1].event["type"] for events in (rejection, filtered)] == ["RUN_ERROR", "RUN_ERROR"]
    assert filtered[-1].event["code"] == "filtered"
    assert "It is" in "".join(str(received.event.get("delta", "")) for received in filtered)
