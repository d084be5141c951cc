"""Settings of the server, the agent and the request as the model receives them; a turn that goes on keeps its own."""

import re
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import cast

import pytest

from recto.conversation.json import Json
from recto.ids import new_id
from recto.testing.model_server import Answer, Call
from tests.flow.in_process import STREAM, InProcess, events_of, in_process, messages_of, types_of
from tests.support.client import RUNS, ask

TIME = re.compile(r"# Current time\n([0-9-]+ [0-9:]+)")
SCHEMA: Json = {"type": "object", "properties": {"done": {"type": "boolean"}}, "required": ["done"]}
SETTINGS = f"""model: compatible:special
temperature: 0.25
max_tokens: 321
reasoning_effort: low
tool_choice: required
output: {SCHEMA}
options: {{top_k: 7}}
"""
PICK: Json = {"name": "pick", "description": "Pick one.", "parameters": {"type": "object"}}


async def say(server: InProcess, body: dict[str, Json], **props: Json) -> str:
    """Run to the end. Return the last message that the model received."""
    reply = await server.send("POST", RUNS, {**body, "forwardedProps": props}, headers=STREAM)
    assert types_of(events_of(reply))[-1] == "RUN_FINISHED", reply.body
    return str([one for one in messages_of(server.pages[-1]) if one["role"] == "user"][-1]["content"])


def offset(words: str) -> timedelta:
    """Return how far the time in a reminder is from UTC."""
    match = TIME.search(words)
    assert match
    ahead = datetime.fromisoformat(match[1]).replace(tzinfo=UTC) - datetime.now(UTC)
    return timedelta(minutes=15 * round(ahead / timedelta(minutes=15)))


async def test_P1_the_zone_of_the_request_wins_then_the_agents_then_the_servers(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    async with in_process(tmp_path, monkeypatch, settings="timezone: Asia/Tokyo", timezone="Asia/Kolkata") as server:
        zones = [{"agent": "chat"}, {}, {"timezone": "Pacific/Kiritimati"}]
        offsets = [offset(await say(server, ask("hi"), **zone)) for zone in zones]
        assert offsets == [timedelta(hours=hours) for hours in (5.5, 9, 14)]


async def test_P1_without_a_word_the_zone_of_a_turn_is_the_machine_s(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("TZ", "Asia/Kathmandu")
    async with in_process(tmp_path, monkeypatch) as server:
        assert offset(await say(server, ask("hi"))) == timedelta(hours=5, minutes=45)


async def test_C4_an_agent_says_which_model_is_asked_and_how(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    async with in_process(tmp_path, monkeypatch, settings=SETTINGS) as server:
        await server.run("hi", Answer(calls=(Call(name="note", arguments='{"text": "x"}', id="c1"),)))
        first, second = server.pages
        options = {"model": "special", "temperature": 0.25, "max_tokens": 321, "reasoning_effort": "low", "top_k": 7}
        assert {name: first[name] for name in options} == options
        assert cast("dict[str, dict[str, Json]]", first["response_format"])["json_schema"]["schema"] == SCHEMA
        # The model had to call a tool, and did. Now it may answer.
        assert (first["tool_choice"], second["tool_choice"]) == ("required", "auto")


async def test_F1_a_turn_that_goes_on_keeps_its_time_zone_and_its_datasets(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    async with in_process(tmp_path, monkeypatch) as server:
        dataset = str((await server.send("POST", "/api/v1/agent/datasets", {"name": "Handbook"})).json["id"])
        body = {**ask("Go."), "tools": [PICK]}
        server.answers += [Answer(calls=(Call(name="pick", id=f"c{number}"),)) for number in range(3)]
        first = await say(server, body, timezone="Asia/Shanghai", datasets=[dataset.upper()])
        assert "<name>Handbook</name>" in first
        others: list[dict[str, Json]] = [{}, {"timezone": "America/Lima", "datasets": []}]
        for number, other in enumerate(others):
            result = {"id": new_id(), "role": "tool", "toolCallId": f"c{number}", "content": "x"}
            messages = [*cast("list[Json]", body["messages"]), result]
            assert await say(server, {**body, "runId": new_id(), "messages": messages}, **other) == first


async def test_S11_a_run_that_brings_an_answer_goes_on_in_the_voice_of_its_turn(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    async with in_process(tmp_path, monkeypatch, settings="voices: {warm: Be warm., direct: Be direct.}") as server:
        body = {**ask("Go."), "tools": [PICK]}
        server.answers.append(Answer(calls=(Call(name="pick", id="c0"),)))
        await say(server, body, voice_mode="direct")
        result = {"id": new_id(), "role": "tool", "toolCallId": "c0", "content": "x"}
        messages = [*cast("list[Json]", body["messages"]), result]
        await say(server, {**body, "runId": new_id(), "messages": messages})
        await say(server, ask("And?"))
        tones = [("Be warm." in str(page), "Be direct." in str(page)) for page in server.pages]
        assert tones == [(False, True), (False, True), (True, False)]
