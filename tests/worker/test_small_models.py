"""Small and local models (P11, S3): calls in other forms, replies that cannot be used, skills taken up by words."""

from collections.abc import AsyncGenerator, Sequence
from pathlib import Path
from typing import cast

import pytest

from recto.agents.agent import CHAT, ActivatedBy, Agent
from recto.conversation.json import Json, dump
from recto.conversation.log import SkillChanged
from recto.conversation.messages import AssistantMessage, ToolCalling, ToolMessage, texts_of
from recto.ids import new_id
from recto.models.choose import with_defaults
from recto.testing.model_server import Answer, Call
from tests.flow.in_process import STREAM, InProcess, in_process, messages_of, types_of
from tests.support.client import RUNS, ReceivedEvent, ask

NOTE = '{"name": "note", "arguments": {"text": "milk"}}'
MADE_UP = Answer(text='I noted it.\n<tool_result name="note">\nnoted milk\n</tool_result>')
HALF = Answer(text='I note it. <tool_call>{"name": "note", "arg</tool_call>')


@pytest.fixture
async def server(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncGenerator[InProcess]:
    async with in_process(tmp_path, monkeypatch) as server:
        yield server


@pytest.fixture
async def vibe(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncGenerator[InProcess]:
    async with in_process(tmp_path, monkeypatch, agent="vibe") as server:
        yield server


async def seen_by_clients(server: InProcess, thread: str, events: Sequence[ReceivedEvent]) -> str:
    """Return all text of a thread that clients can read."""
    paths = (f"threads/{thread}/messages", f"history?threadId={thread}", f"threads/{thread}")
    replies = [await server.send("GET", f"/api/v1/agent/{path}") for path in paths]
    assert {reply.status for reply in replies} == {200}
    return "\n".join([*[received.body.decode() for received in events], *[reply.body.decode() for reply in replies]])


def closing_words(server: InProcess) -> list[str]:
    return [str(messages_of(page)[-1]["content"]) for page in server.pages]


async def test_P11_a_reply_that_is_nothing_but_a_call_is_that_call_and_no_answer(server: InProcess):
    thread = new_id()
    events = await server.run("note milk", Answer(text=NOTE), Answer(text="Noted."), thread=thread)
    assert [received.event["delta"] for received in events if received.event["type"] == "TEXT_MESSAGE_CONTENT"] == [
        "Noted."
    ]
    _, call, _, result, answer = await server.log(thread)
    assert isinstance(call, AssistantMessage)
    assert [(one.name, one.arguments) for one in call.tool_calls] == [("note", '{"text": "milk"}')]
    assert isinstance(result, ToolMessage)
    assert (texts_of(result), texts_of(cast("AssistantMessage", answer))) == (("noted milk",), ("Noted.",))
    # Tools are offered natively all the same.
    assert "tools" in server.pages[0]


async def test_P11_with_native_calls_alone_the_same_reply_is_words(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    async with in_process(tmp_path, monkeypatch, tool_calling="native") as server:
        await server.run("note milk", Answer(text=NOTE))
        assert len(server.pages) == 1


@pytest.mark.parametrize(("settings", "is_told"), [("", True), ("tool_calling: native", False)])
async def test_C2_the_server_says_how_tools_are_offered_where_an_agent_does_not(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, settings: str, is_told: bool
):
    async with in_process(tmp_path, monkeypatch, settings=settings, tool_calling="prompt") as server:
        await server.run("hello")
        (page,) = server.pages
        assert ("<!-- TOOLS_START -->" in str(messages_of(page)[0]["content"]), "tools" in page) == (
            is_told,
            not is_told,
        )


async def test_P11_results_are_spoken_of_only_once_there_was_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    async with in_process(tmp_path, monkeypatch, tool_calling="prompt") as server:
        await server.run("note milk", Answer(text=f"```json\n{NOTE}\n```"), Answer(text="Noted."))
        first, second = server.pages
        assert "tool_result" not in dump(first).decode()
        assert str(messages_of(second)[-1]["content"]).count("Results of tools come in <tool_result>") == 1
        # The prompt is the same: a cache holds what stands before.
        assert messages_of(first) == messages_of(second)[: len(messages_of(first))]


@pytest.mark.parametrize(
    ("model", "settings_in_use", "expected"),
    [
        ("compatible:x", (None, None), ("auto", "triggers")),
        ("openai:x", (None, None), ("native", "model")),
        ("demo", (None, None), ("native", "model")),
        ("compatible:x", ("native", "model"), ("native", "model")),
        ("openai:x", ("auto", "triggers"), ("auto", "triggers")),
    ],
)
def test_P11_what_an_agent_does_not_say_is_as_its_model_needs_it(
    model: str, settings_in_use: tuple[ToolCalling | None, ActivatedBy | None], expected: tuple[str, str]
):
    calling, activation = settings_in_use
    agent = Agent(name="a", prompt=CHAT.prompt, tool_calling=calling, activation=activation)
    agent_with_defaults = with_defaults(agent, model, None)
    assert (agent_with_defaults.tool_calling, agent_with_defaults.activation) == expected


@pytest.mark.parametrize(
    ("bad", "expected"), [(MADE_UP, "You wrote the result of a tool"), (HALF, "could not be read")]
)
async def test_P11_a_reply_that_cannot_be_used_is_asked_for_again_and_no_client_has_it(
    server: InProcess, bad: Answer, expected: str
):
    thread = new_id()
    events = await server.run("note milk", bad, bad, Answer(text="Fine."), thread=thread)
    first, second, third = closing_words(server)
    assert expected not in first
    assert second == third
    assert second.startswith("<system-reminder>\nYour last reply was not used. Write it again. ")
    assert expected in second
    client_text = await seen_by_clients(server, thread, events)
    assert [word in client_text for word in ("unreadable", "tool_result", "tool_call>", "could not be read")] == [
        False
    ] * 4
    assert [texts_of(entry) for entry in await server.log(thread) if isinstance(entry, AssistantMessage)] == [
        ("Fine.",)
    ]
    # Words that came before it are taken back.
    assert types_of(events).count("MESSAGES_SNAPSHOT") == 2
    assert types_of(events)[-1] == "RUN_FINISHED"


@pytest.mark.parametrize(("settings", "calls"), [("", 3), ("limits: {unusable_replies: 0}", 1)])
async def test_P11_a_model_that_never_gets_it_right_ends_its_run_with_a_reason(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, settings: str, calls: int
):
    async with in_process(tmp_path, monkeypatch, settings=settings) as server:
        thread = new_id()
        events = await server.run("note milk", *[MADE_UP] * 5, thread=thread)
        assert len(server.pages) == calls
        last = events[-1].event
        assert (last["type"], last["code"]) == ("RUN_ERROR", "unusable_reply")
        assert str(last["message"]).startswith(f"The model's replies were unusable {calls} times in a row: ")
        assert not [entry for entry in await server.log(thread) if isinstance(entry, AssistantMessage)]


async def test_P11_the_manifest_says_that_a_reply_is_asked_for_again_and_its_tokens_are_paid_for(server: InProcess):
    events = await server.run("note milk", MADE_UP, Answer(text="Fine."))
    run = events[0].event["runId"]
    call = (await server.send("GET", f"{RUNS}/{run}/calls/2")).json
    parts = cast("Sequence[dict[str, Json]]", cast("dict[str, Json]", call["manifest"])["parts"])
    (closing,) = [part for part in parts if part["kind"] == "closing"]
    assert (closing["rule"], closing["reason"]) == ("P11", "the last reply could not be used: it is asked for again")
    usage = [cast("dict[str, int]", one["usage"]) for one in await calls_of(server, run)]
    assert all(one["outputTokens"] > 0 for one in usage)


async def calls_of(server: InProcess, run: Json) -> Sequence[dict[str, Json]]:
    return cast("Sequence[dict[str, Json]]", (await server.send("GET", f"{RUNS}/{run}/calls")).json["calls"])


async def skill_of(server: InProcess, thread: str) -> Json:
    return (await server.send("GET", f"/api/v1/agent/threads/{thread}")).json["skill"]


async def test_S3_a_user_who_says_a_trigger_has_the_skill_before_the_model_is_asked(vibe: InProcess):
    thread = new_id()
    events = await vibe.run("帮我看看八字，今年大运怎么样", thread=thread)
    assert await skill_of(vibe, thread) == "bazi"
    call = (await vibe.send("GET", f"{RUNS}/{events[0].event['runId']}/calls/1")).json
    manifest = cast("dict[str, Json]", call["manifest"])
    (system,) = [part for part in cast("Sequence[dict[str, Json]]", manifest["parts"]) if part["kind"] == "system"]
    assert manifest["skill"] == "bazi"
    assert str(system["reason"]).endswith("; taken up because the user said: 八字, 大运")
    (marker,) = [entry for entry in await vibe.log(thread) if isinstance(entry, SkillChanged)]
    assert (marker.skill, marker.scenario, marker.said) == ("bazi", "basic_reading", ("八字", "大运"))


async def test_S3_words_never_switch_a_skill_and_one_that_was_left_is_left(vibe: InProcess):
    thread = new_id()
    leave = Answer(calls=(Call(name="use_skill", arguments='{"skill": "core"}', id="c1"),))
    await vibe.run("看看八字", thread=thread)
    await vibe.run("抽一张塔罗", thread=thread)
    assert await skill_of(vibe, thread) == "bazi"
    await vibe.run("不看八字了", leave, Answer(text="好。"), thread=thread)
    assert await skill_of(vibe, thread) is None


async def test_S4_a_request_that_asks_for_no_skill_gets_none_by_its_words(vibe: InProcess):
    body = ask("看看八字", forwardedProps={"skill": "core"})
    assert (await vibe.send("POST", RUNS, body, headers=STREAM)).status == 200
    assert await skill_of(vibe, str(body["threadId"])) is None


async def test_S3_where_the_model_alone_takes_up_skills_words_do_not(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("OPENAI_API_KEY", "k")
    async with in_process(tmp_path, monkeypatch, agent="vibe", model="openai:x") as server:
        thread = new_id()
        await server.run("看看八字", thread=thread)
        assert await skill_of(server, thread) is None


@pytest.mark.parametrize(
    "answer",
    [
        Answer(calls=(Call(name="tarot", arguments='{"question": "?"}', id="c1"),)),
        Answer(text='{"name": "tarot", "arguments": {}}'),
    ],
)
async def test_S3_a_call_named_like_a_skill_takes_it_up(vibe: InProcess, answer: Answer):
    thread = new_id()
    events = await vibe.run("你好", answer, thread=thread)
    assert await skill_of(vibe, thread) == "tarot"
    names = [received.event["toolCallName"] for received in events if received.event["type"] == "TOOL_CALL_START"]
    assert names == ["use_skill"]
    (result,) = [entry for entry in await vibe.log(thread) if isinstance(entry, ToolMessage)]
    assert '"status":"activated"' in "".join(texts_of(result))
