"""P15: whatever ids a model gives its calls, on every wire and in prompt mode, a stock client tells them apart."""

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import cast

import pytest

from recto.conversation.json import Json
from recto.ids import new_id
from recto.testing.client import ask, run
from recto.testing.model_server import Answer, Call, Request
from recto.testing.process import ServerProcess
from tests.conversation.stock_client import Row, StockClient, calls_of
from tests.end_to_end.harness import Harness
from tests.page.page_rules import orphans

pytestmark = pytest.mark.full

MODELS = {
    "openai": "compatible:x",
    "openai-responses": "openai-responses:gpt-x",
    "anthropic": "anthropic:claude-opus-5",
    "gemini": "gemini:gemini-3-pro-preview",
}
PICK: dict[str, Json] = {"name": "pick", "description": "Pick one.", "parameters": {"type": "object"}}


class Model:
    """Gives its answers in order."""

    def __init__(self) -> None:
        self.answers: list[Answer] = []

    def __call__(self, _asked: Request) -> Answer:
        return self.answers.pop(0)


@pytest.fixture(scope="module")
def model() -> Model:
    return Model()


@pytest.fixture(scope="module")
def harness(tmp_path_factory: pytest.TempPathFactory, model: Model) -> Iterator[Harness]:
    with Harness(tmp_path_factory.mktemp("ids"), model) as harness:
        for name, known in MODELS.items():
            for mode in ("native", "prompt"):
                write_agent(harness.agents / f"{name}-{mode}", f"model: {known}\ntool_calling: {mode}")
        keys = {"ANTHROPIC_BASE_URL": harness.model.root, "ANTHROPIC_API_KEY": "key"}
        keys |= {"OPENAI_BASE_URL": harness.model.url, "OPENAI_API_KEY": "key"}
        keys |= {"GEMINI_BASE_URL": f"{harness.model.root}/v1beta", "GEMINI_API_KEY": "key"}
        command = ["recto", "serve", "--port", str(harness.port), "--data", str(harness.data)]
        with ServerProcess(command, harness.environment() | keys):
            yield harness


def write_agent(folder: Path, settings: str) -> None:
    folder.mkdir()
    (folder / "AGENT.md").write_text(f"---\n{settings}\n---\nYou are careful.\n", encoding="utf-8")


def calling(mode: str, id: str, *places: str) -> Answer:
    """Calls of one reply, all under one id."""
    arguments = [json.dumps({"location": place}) for place in places]
    if mode == "prompt":
        calls = [f'<tool_call>{{"name": "pick", "arguments": {one}}}</tool_call>' for one in arguments]
        return Answer(text="\n".join(("Well.", *calls)))
    return Answer(text="Well.", calls=tuple([Call(name="pick", arguments=one, id=id) for one in arguments]))


def results(client: StockClient) -> list[Row]:
    """What a client's tools say to the calls it has to run."""
    made = [call for row in client.messages for call in calls_of(row) if call["id"] in client.to_run]
    return [{"id": new_id(), "role": "tool", "toolCallId": call["id"], "content": f"for {call['id']}"} for call in made]


@pytest.mark.parametrize("id", ["", "call_0"])
@pytest.mark.parametrize("mode", ["native", "prompt"])
@pytest.mark.parametrize("wire", MODELS)
def test_P15_calls_of_several_turns_are_told_apart_and_each_gets_its_result(
    harness: Harness, model: Model, wire: str, mode: str, id: str
):
    thread, client, before = new_id(), StockClient(), len(harness.received)
    for places in (("A", "B"), ("C", "D")):
        body = ask("Pick.", thread=thread, tools=[PICK], forwardedProps={"agent": f"{wire}-{mode}"})
        asked = cast("list[Row]", body["messages"])
        model.answers[:] = [calling(mode, id, *places)]
        client.messages += asked
        client.read([sent.body for sent in run(harness.url, body)])
        assert len(client.to_run) == 2
        answers = results(client)
        client.messages += answers
        model.answers[:] = [Answer(text="Picked.")]
        client.read(
            [sent.body for sent in run(harness.url, {**body, "runId": new_id(), "messages": [*asked, *answers]})]
        )
        assert client.to_run == set()
        page = harness.received[-1].decode()
        assert [str(answer["content"]) in page for answer in answers] == [True, True]
    made = [call for row in client.messages for call in calls_of(row)]
    assert [arguments_of(call) for call in made] == [{"location": place} for place in "ABCD"]
    assert len({str(call["id"]) for call in made}) == 4
    if mode == "native":
        assert [breach for asked in requests(harness, before) for breach in orphans(asked.page, wire)] == []


def arguments_of(call: Row) -> Json:
    return cast("Json", json.loads(cast("dict[str, str]", call["function"])["arguments"]))


def requests(harness: Harness, before: int) -> Sequence[Request]:
    return harness.model.requests[before:]
