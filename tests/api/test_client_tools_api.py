"""P3, P11, P12 over real HTTP: tools a client answers itself, native and in the prompt, and what else it may bring."""

from collections.abc import Mapping
from typing import cast

import pytest

from recto.conversation.json import Json
from recto.testing.model_server import Answer, Call, Request
from tests.api.scripted_server import Scripted, page_messages
from tests.support.client import ask

pytestmark = pytest.mark.full

WEATHER: dict[str, Json] = {
    "name": "get_weather",
    "description": "获取指定城市的天气信息",
    "parameters": {
        "type": "object",
        "properties": {"city": {"type": "string", "description": "城市名称"}},
        "required": ["city"],
    },
}


def calling(agent: str, arguments: str, id: str = "w1") -> Answer:
    """A reply that calls the tool, as the models of an agent do it."""
    if agent == "prompted":
        return Answer(text=f'Let me look.\n<tool_call>{{"name": "get_weather", "arguments": {arguments}}}</tool_call>')
    return Answer(text="Let me look.", calls=(Call(name="get_weather", arguments=arguments, id=id),))


def asking(agent: str) -> dict[str, Json]:
    return ask("北京天气怎么样?", tools=[WEATHER], forwardedProps={"agent": agent})


def pending(server: Scripted, body: Mapping[str, Json]) -> list[Mapping[str, Json]]:
    return list(cast("list[Mapping[str, Json]]", server.get(f"/threads/{body['threadId']}")["pendingCalls"]))


def with_results(body: Mapping[str, Json], run: str, **results: str) -> dict[str, Json]:
    """The next run: the same user message, and results by the id of their call."""
    tools = [
        {"id": f"r-{id}", "role": "tool", "toolCallId": id, "content": messages} for id, messages in results.items()
    ]
    return {**body, "runId": f"{body['runId']}-{run}", "messages": [*cast("list[Json]", body["messages"]), *tools]}


def problem(server: Scripted, body: Mapping[str, Json]) -> list[tuple[Json, Json]]:
    rows = server.rows(f"/history?threadId={body['threadId']}", "messages")
    return [(row["role"], row["content"]) for row in rows]


def all_words(model_request: Request) -> str:
    return "\n".join(str(message.get("content")) for message in page_messages(model_request))


def system_of(model_request: Request) -> str:
    return "\n".join(str(message["content"]) for message in page_messages(model_request) if message["role"] == "system")


# A call and its result


@pytest.mark.parametrize("agent", ["chat", "prompted"])
def test_P11_a_call_of_a_clients_tool_waits_for_its_result_and_the_next_run_brings_it(server: Scripted, agent: str):
    body = asking(agent)
    events, _ = server.play(body, calling(agent, '{"city": "北京"}'))
    response = server.get(f"/runs/{body['runId']}")
    assert (response["status"], response["outcome"]) == ("waiting", "waiting")
    [call] = pending(server, body)
    assert (call["name"], call["arguments"]) == ("get_weather", '{"city": "北京"}')
    assert events[-1].event["outcome"] == {"type": "success", "pendingToolCallIds": [call["id"]]}
    assert not [event for event in events if b"<tool_call>" in event.body]

    events, [model_request] = server.play(with_results(body, "2", **{str(call["id"]): "晴, 25"}), Answer(text="晴天。"))
    assert events[-1].event["outcome"] == {"type": "success"}
    assert pending(server, body) == []
    assert server.get(f"/runs/{body['runId']}-2")["status"] == "finished"
    assert "晴, 25" in all_words(model_request)
    assert [words for role, words in problem(server, body) if role == "user"] == ["北京天气怎么样?"]
    assert problem(server, body)[-2:] == [("tool", "晴, 25"), ("assistant", "晴天。")]


# What else a client may bring


def bringing(agent: str) -> dict[str, Json]:
    """A run with messages of every role, and context."""
    user = {"id": "u1", "role": "user", "content": "hello"}
    others = [
        {"id": "s1", "role": "system", "content": "SYSTEM-WORDS"},
        {"id": "d1", "role": "developer", "content": "DEVELOPER-WORDS"},
        {"id": "a1", "role": "assistant", "content": "ASSISTANT-WORDS"},
        {"id": "t1", "role": "reasoning", "content": "REASONING-WORDS"},
        {"id": "v1", "role": "activity", "activityType": "PLAN", "content": {"step": "ACTIVITY-WORDS"}},
        {"id": "r1", "role": "tool", "toolCallId": "none", "content": "TOOL-WORDS"},
    ]
    context = [{"description": "Where the user is", "value": "In <Paris>"}]
    body = ask("", context=context, forwardedProps={"agent": agent})
    return {**body, "messages": [user, *others]}


@pytest.mark.parametrize(("agent", "is_trusted"), [("chat", False), ("trusting", True)])
def test_P3_P12_context_stands_in_the_reminder_and_a_clients_system_words_where_the_agent_says(
    server: Scripted, agent: str, is_trusted: bool
):
    body = bringing(agent)
    _, [model_request] = server.play(body, Answer(text="Good."))
    reminder, _, words = str(page_messages(model_request)[-1]["content"]).partition("</system-reminder>")
    assert words.strip() == "hello"
    context = reminder[reminder.index("# Context") : reminder.index("# Current time")]
    assert all(part in context for part in ("Where the user is", "In &lt;Paris&gt;"))
    for part in ("SYSTEM-WORDS", "DEVELOPER-WORDS"):
        assert (part in context, part in system_of(model_request)) == (not is_trusted, is_trusted)
    # A client's copies of what others said are neither sent nor stored.
    for part in ("ASSISTANT-WORDS", "REASONING-WORDS", "ACTIVITY-WORDS", "TOOL-WORDS"):
        assert part not in all_words(model_request)
    assert problem(server, body) == [("user", "hello"), ("assistant", "Good.")]
