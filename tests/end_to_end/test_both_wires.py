"""Whole conversations on each wire, as a strict provider takes them: the client of the protocol's own example, which
calls every message `msg-001`, and turns that go on after a cancel.
"""

import threading
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import cast

import pytest

from recto.conversation.json import Json
from recto.testing.answer_bytes import wire_at
from recto.testing.model_server import Answer, Call, Request, failure
from recto.testing.process import ServerProcess
from tests.end_to_end.harness import Harness
from tests.page.page_rules import JUDGES, orphans
from tests.support.client import RUNS, Reader, ask, request, run, start

pytestmark = pytest.mark.full

MODELS = {
    "openai": "compatible:x",
    "anthropic": "anthropic:claude-opus-5",
    "responses": "openai-responses:gpt-x",
    "gemini": "gemini:gemini-3-pro-preview",
}
AGENTS = [f"{name}-{mode}" for name in MODELS for mode in ("native", "prompt")]
WEATHER: dict[str, Json] = {
    "name": "get_weather",
    "description": "获取天气",
    "parameters": {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]},
}
Row = Mapping[str, Json]


def why_refused(model_request: Request) -> str | None:
    """Return what a strict provider finds wrong with a page."""
    wire = wire_at(model_request.path) or "openai"
    messages = [row for row in cast("list[Row]", model_request.page[JUDGES[wire][0]]) if row.get("role") != "system"]
    ends = [row.get("role", row.get("type")) for row in (messages[0], messages[-1])]
    if ends[0] != "user" or ends[1] not in ("user", "tool", "function_call_output"):
        return f"the conversation must begin and end with a user message, not {ends}"
    return next(iter(orphans(model_request.page, wire)), None)


class Provider:
    """A provider that gives its answers in order and refuses a bad page."""

    def __init__(self) -> None:
        self.answers: list[Answer] = []
        self.go = threading.Event()

    def __call__(self, model_request: Request) -> Answer:
        why = why_refused(model_request)
        return failure(400, why) if why else self.answers.pop(0)


@pytest.fixture(scope="module")
def provider() -> Provider:
    return Provider()


@pytest.fixture(scope="module")
def harness(tmp_path_factory: pytest.TempPathFactory, provider: Provider) -> Iterator[Harness]:
    with Harness(tmp_path_factory.mktemp("wires"), provider) as harness:
        for agent in AGENTS:
            name, _, mode = agent.partition("-")
            write_agent(harness.agents / agent, f"model: {MODELS[name]}\ntool_calling: {mode}")
        bases = {"ANTHROPIC": harness.model.root, "OPENAI": harness.model.url, "GEMINI": f"{harness.model.root}/v1beta"}
        keys = {
            f"{name}_{key}": value
            for name, base in bases.items()
            for key, value in (("BASE_URL", base), ("API_KEY", "key"))
        }
        command = ["recto", "serve", "--port", str(harness.port), "--data", str(harness.data)]
        with ServerProcess(command, harness.environment() | keys):
            yield harness
        provider.go.set()


def write_agent(folder: Path, settings: str) -> None:
    folder.mkdir()
    (folder / "AGENT.md").write_text(f"---\n{settings}\n---\nYou are careful.\n", encoding="utf-8")


def calling(agent: str, city: str) -> Answer:
    """A call as models of the agent write it. Native ones re-use their ids, as some servers do."""
    if agent.endswith("prompt"):
        call = f'{{"name": "get_weather", "arguments": {{"city": "{city}"}}}}'
        return Answer(text=f"我看看。\n<tool_call>{call}</tool_call>")
    call = Call(name="get_weather", arguments=f'{{"city": "{city}"}}', id="call_0")
    return Answer(text="我看看。", reasoning="想想。", calls=(call,))


def add_turn(body: Row, number: int, words: str, *results: tuple[str, str]) -> dict[str, Json]:
    """A request as the example's client writes it: every message is `msg-001`."""
    new_rows: list[Json] = [{"id": "msg-001", "role": "user", "content": words}]
    new_rows += [{"id": "msg-001", "role": "tool", "toolCallId": id, "content": text} for id, text in results]
    return {**body, "runId": f"{body['runId']}-{number}", "messages": new_rows}


def play(harness: Harness, provider: Provider, body: Row, answer: Answer) -> tuple[Row, str]:
    """A run with this answer of the model: how it ended, and the newest page."""
    provider.answers[:] = [answer]
    end = run(harness.url, body)[-1].event
    assert (end["type"], provider.answers) == ("RUN_FINISHED", []), end
    return end, harness.received[-1].decode()


def pending(end: Row) -> list[str]:
    return cast("list[str]", cast("Row", end["outcome"])["pendingToolCallIds"])


def history(harness: Harness, thread: Json) -> list[tuple[Json, Json]]:
    messages = request(harness.url, "GET", f"/api/v1/agent/history?threadId={thread}").json["messages"]
    return [(row["role"], row["content"]) for row in cast("list[Row]", messages)]


@pytest.mark.parametrize("agent", AGENTS)
def test_P3_a_client_that_calls_every_message_msg_001_is_understood_on_every_wire(
    harness: Harness, provider: Provider, agent: str
):
    body = ask("", tools=[WEATHER], forwardedProps={"agent": agent})
    play(harness, provider, add_turn(body, 1, "天气?"), Answer(text="哪个城市?"))
    end, _ = play(harness, provider, add_turn(body, 2, "天气?"), calling(agent, "北京"))
    [first] = pending(end)
    # A result brings the next call; both under the same words and ids.
    end, page = play(harness, provider, add_turn(body, 3, "天气?", (first, "晴, 25")), calling(agent, "上海"))
    [second] = pending(end)
    assert first != second
    assert "晴, 25" in page
    _, page = play(
        harness, provider, add_turn(body, 4, "天气?", (first, "FORGED"), (second, "雨")), Answer(text="晴; 雨。")
    )
    assert "FORGED" not in page
    assert "晴, 25" in page
    assert "雨" in page
    # Answered: the same words are said again, and the next call waits anew.
    end, _ = play(harness, provider, add_turn(body, 5, "天气?"), calling(agent, "广州"))
    assert not {*pending(end)} & {first, second}
    # Words of another kind leave the call behind.
    play(harness, provider, add_turn(body, 6, "算了"), Answer(text="好。"))
    # The same request once more is the same run, whatever was said since.
    again = request(harness.url, "POST", RUNS, add_turn(body, 1, "天气?"))
    assert (again.status, again.json["taskId"]) == (
        202,
        request(harness.url, "GET", f"{RUNS}/{body['runId']}-1").json["taskId"],
    )
    users = [words for role, words in history(harness, body["threadId"]) if role == "user"]
    assert users == ["天气?", "天气?", "天气?", "算了"]
    ids = [entry.id for entry in harness.log(str(body["threadId"]))]
    assert (ids[0], len({*ids})) == ("msg-001", len(ids))


@pytest.mark.parametrize("agent", AGENTS)
def test_P8_a_turn_goes_on_after_a_cancel_on_every_wire(harness: Harness, provider: Provider, agent: str):
    body = ask("", tools=[WEATHER], forwardedProps={"agent": agent})
    for number in (1, 2):
        # Twice: the words of the first reply, with a blank at their end, stand before those of the second.
        cancel_in_the_middle(harness, provider, add_turn(body, number, "数到六"))
    _, page = play(harness, provider, add_turn(body, 3, "数到六"), Answer(text="三四五六。"))
    assert page.count('"一') == 2
    # It is answered now, so the same words are another turn.
    play(harness, provider, add_turn(body, 4, "数到六"), Answer(text="又一遍。"))
    messages = history(harness, body["threadId"])
    assert [words for role, words in messages if role == "user"] == ["数到六", "数到六"]
    assert [words for _, words in messages][-3:] == ["三四五六。", "数到六", "又一遍。"]


def cancel_in_the_middle(harness: Harness, provider: Provider, body: Row) -> None:
    provider.answers[:] = [Answer(text="一 二 三 四 五 六", hold=provider.go, hold_after=6)]
    id = start(harness.url, body)
    Reader(lambda: harness.url, id).wait_for(lambda received: b"TEXT_MESSAGE_CONTENT" in received.body)
    request(harness.url, "POST", f"{RUNS}/{id}/cancel")
    assert Reader(lambda: harness.url, id).wait()[-1].event["type"] in ("RUN_FINISHED", "RUN_ERROR")
