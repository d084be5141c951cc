"""Runs of the whole server over Anthropic's wire: a turn with a tool, the turn after it, and what was sent for them."""

import uuid
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import cast

import pytest

from recto.conversation.json import Json
from recto.testing import client
from recto.testing.model_server import Answer, Call, ModelServer, Request
from recto.testing.process import ServerProcess
from tests.page.oracles import breaches

pytestmark = pytest.mark.full

TALK = [
    Answer(text="I look.", reasoning="Hm.", signature="sig==", calls=(Call(name="look", id="toolu_a"),)),
    Answer(text="It is green."),
    Answer(text="Good bye."),
]
TOOL = "def look() -> str:\n    '''Look.'''\n    return 'green'\n"
MARK: Json = {"type": "ephemeral"}


@pytest.fixture(scope="module")
def requests(tmp_path_factory: pytest.TempPathFactory) -> list[Request]:
    """What the model was sent in a thread of two turns, the first of them with a tool."""
    folder = tmp_path_factory.mktemp("anthropic")
    with ModelServer(TALK) as model, _serve(folder, model) as server:
        thread = str(uuid.uuid4())
        for words in ("What colour is it?", "Thanks."):
            events = [sent.event for sent in client.run(server.url, client.ask(words, thread=thread))]
            assert events[-1]["type"] == "RUN_FINISHED", events[-1]
        return model.requests


def _serve(folder: Path, model: ModelServer) -> ServerProcess:
    agent = folder / "agents" / "helper"
    agent.mkdir(parents=True)
    (agent / "AGENT.md").write_text("You are a careful helper.\n", encoding="utf-8")
    (agent / "tools.py").write_text(TOOL, encoding="utf-8")
    environment = {
        "RECTO_MODEL": "anthropic:claude-opus-5-5",
        "ANTHROPIC_BASE_URL": model.root,
        "ANTHROPIC_API_KEY": "sk-1",
        "RECTO_AGENT": "helper",
        "RECTO_AGENTS": str(folder / "agents"),
    }
    return ServerProcess.serve(folder / "data", environment)


def turns(request: Request) -> Sequence[Mapping[str, Json]]:
    return cast("Sequence[Mapping[str, Json]]", request.page["messages"])


def test_the_provider_accepts_every_request(requests: list[Request]):
    assert [request.path for request in requests] == ["/v1/messages"] * 3
    assert [breaches(request.page, "anthropic") for request in requests] == [[], [], []]
    assert requests[0].page["max_tokens"] == 32_000


def test_signed_thinking_goes_back_with_the_calls_it_led_to(requests: list[Request]):
    reply: Json = {
        "role": "assistant",
        "content": [
            {"type": "thinking", "thinking": "Hm.", "signature": "sig=="},
            {"type": "text", "text": "I look."},
            {"type": "tool_use", "id": "toolu_a", "name": "look", "input": {}},
        ],
    }
    assert turns(requests[1])[1] == reply
    assert turns(requests[2])[1] == reply


def test_within_a_turn_a_request_begins_with_the_whole_of_the_one_before(requests: list[Request]):
    first, second = requests[0].body, requests[1].body
    assert second.startswith(first.removesuffix(b"}]}]}"))


def test_the_prefix_that_the_next_turn_shares_ends_at_a_breakpoint(requests: list[Request]):
    later = requests[2].page
    assert later["cache_control"] == MARK
    assert cast("Sequence[Mapping[str, Json]]", later["system"])[-1]["cache_control"] == MARK
    assert cast("Sequence[Mapping[str, Json]]", later["tools"])[-1]["cache_control"] == MARK
    answer = cast("Sequence[Mapping[str, Json]]", turns(requests[2])[-2]["content"])[-1]
    assert answer == {"type": "text", "text": "It is green.", "cache_control": MARK}
    assert requests[2].body.count(b'"cache_control"') == 4
