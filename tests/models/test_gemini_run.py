"""Runs of the whole server over Gemini's wire: a turn with a tool, the turn after it, and what was sent for them."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import cast

import pytest

from recto.conversation.json import Json
from recto.ids import new_id
from recto.testing.gemini_answers import signature
from recto.testing.model_server import Answer, Call
from tests.flow.in_process import in_process, types_of
from tests.page.oracles import breaches
from tests.page.page_rules import orphans

CALLS = Answer(text="I write.", reasoning="Hm.", calls=(Call(name="note", arguments='{"text":"a"}', id=""),) * 2)
DONE = Answer(text="Written.", reasoning="So.")


async def test_P7_a_turn_with_tools_and_the_next_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    thread = new_id()
    async with in_process(tmp_path, monkeypatch, model="gemini:gemini-3-pro-preview") as server:
        events = await server.run("Write a.", CALLS, DONE, thread=thread)
        later = await server.run("Thanks.", thread=thread)
        requests = server.model.requests
    assert types_of(events)[-1] == types_of(later)[-1] == "RUN_FINISHED"
    assert "REASONING_MESSAGE_CONTENT" in types_of(events)
    assert {request.path for request in requests} == {
        "/v1beta/models/gemini-3-pro-preview:streamGenerateContent?alt=sse"
    }
    assert [breaches(request.page, "gemini") for request in requests] == [[], [], []]
    assert [orphans(request.page, "gemini") for request in requests] == [[], [], []]
    contents = cast("Sequence[Mapping[str, Sequence[Mapping[str, Json]]]]", requests[2].page["contents"])
    asked, called, answered, said, _ = contents
    assert "Write a." in str(asked)
    words, first, second = called["parts"]
    assert words == {"text": "I write."}
    assert (first.get("thoughtSignature"), "thoughtSignature" in second) == (signature(CALLS), False)
    # The provider gave no ids: calls and results go by ours.
    made = [cast("Mapping[str, Json]", part["functionCall"]) for part in (first, second)]
    results = [cast("Mapping[str, Json]", part["functionResponse"]) for part in answered["parts"]]
    assert [result["id"] for result in results] == [call["id"] for call in made]
    assert [(result["name"], result["response"]) for result in results] == [("note", {"output": "noted a"})] * 2
    assert said["parts"] == [{"text": "Written."}, {"text": "", "thoughtSignature": signature(DONE)}]


async def test_a_filtered_reply_ends_the_run_as_such(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    async with in_process(tmp_path, monkeypatch, model="gemini:gemini-2.5-flash") as server:
        events = await server.run("Say it.", Answer(text="It is", finish="content_filter"))
    assert (events[-1].event["type"], events[-1].event["code"]) == ("RUN_ERROR", "filtered")
    assert "It is" in "".join(str(sent.event.get("delta", "")) for sent in events)
