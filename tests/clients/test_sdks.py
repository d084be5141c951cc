"""The SDKs of OpenAI and Anthropic for JavaScript through the gateway: words, tools, images, errors, broken streams."""

from collections.abc import Generator, Mapping
from typing import cast

import pytest

from recto.conversation.json import Json
from recto.testing.model_server import Answer, Call, failure
from tests.api.relaying_server import ALICE, WORDS, Relaying, relaying_server
from tests.clients.node import NodeProcess

PIXEL = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
SCHEMA: dict[str, Json] = {"type": "object", "properties": {}}
IMAGES: dict[str, Json] = {
    "chat": {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{PIXEL}"}},
    "messages": {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": PIXEL}},
}
TOOLS: dict[str, Json] = {
    "chat": [{"type": "function", "function": {"name": "look", "parameters": SCHEMA}}],
    "messages": [{"name": "look", "input_schema": SCHEMA}],
}
LOOK = Call(name="look", arguments='{"at":1}')

pytestmark = pytest.mark.full


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Generator[Relaying]:
    with relaying_server(tmp_path_factory.mktemp("sdks")) as server:
        yield server


@pytest.fixture(scope="module")
def node() -> Generator[NodeProcess]:
    with NodeProcess("sdks.mjs") as program:
        yield program


def ask_sdk(node: NodeProcess, server: Relaying, sdk: str, **fields: Json) -> Mapping[str, Json]:
    content: Json = [{"type": "text", "text": "What is it?"}, IMAGES[sdk]]
    more: dict[str, Json] = {"max_tokens": 64} if sdk == "messages" else {}
    body: dict[str, Json] = {"model": "m", "messages": [{"role": "user", "content": content}], **more, **fields}
    return cast("Mapping[str, Json]", node.ask(sdk, url=server.url, key=ALICE, body=body))


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("sdk", ["chat", "messages"])
def test_X3_the_sdks_for_javascript_get_words_of_a_picture(node: NodeProcess, server: Relaying, sdk: str, stream: bool):
    message = ask_sdk(node, server, sdk, stream=stream)["message"]
    assert WORDS in str(message)
    assert server.last_request.page["messages"] == [
        {"role": "user", "content": [{"type": "text", "text": "What is it?"}, IMAGES[sdk]]}
    ]


@pytest.mark.parametrize("sdk", ["chat", "messages"])
def test_X3_the_sdks_for_javascript_get_calls_of_tools(node: NodeProcess, server: Relaying, sdk: str):
    server.answers.append(Answer(text="I look.", calls=(LOOK,)))
    message = cast("Mapping[str, Json]", ask_sdk(node, server, sdk, stream=True, tools=TOOLS[sdk])["message"])
    if sdk == "chat":
        (call,) = cast("list[Mapping[str, Mapping[str, Json]]]", message["tool_calls"])
        assert (call["function"]["name"], call["function"]["arguments"]) == ("look", LOOK.arguments)
    else:
        _, block = cast("list[Mapping[str, Json]]", message["content"])
        assert (block["name"], block["input"]) == ("look", {"at": 1})
    assert server.last_request.page["tools"] == TOOLS[sdk]


@pytest.mark.parametrize("sdk", ["chat", "messages"])
def test_X3_the_sdks_for_javascript_know_what_went_wrong(node: NodeProcess, server: Relaying, sdk: str):
    server.answers.append(failure(429, "slow down", retry_after="1"))
    error = cast("Mapping[str, Json]", ask_sdk(node, server, sdk)["error"])
    assert (error["name"], error["status"], "slow down" in str(error["message"])) == ("RateLimitError", 429, True)
    server.answers.append(Answer(text="a b c d e f", cut_at=700))
    error = cast("Mapping[str, Json]", ask_sdk(node, server, sdk, stream=True)["error"])
    assert "the connection broke" in str(error["message"])
    wrong = node.ask(sdk, url=server.url, key="", body={"model": "m", "max_tokens": 1, "messages": []})
    assert "error" in wrong
