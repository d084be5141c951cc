"""A gateway with a scripted model behind it, for tests: whoever asks gets what the test gives the model to say."""

from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import cast

from recto.conversation.json import Json, dump
from recto.testing.model_server import Answer, ModelServer, Request
from recto.testing.process import ServerProcess
from tests.api.scripted_server import ALICE, KEYS
from tests.support.client import HttpReply, request

SERVER_KEYS = ("sk-openai-of-the-server", "sk-anthropic-of-the-server")
CHAT, MESSAGES = "/v1/chat/completions", "/v1/messages"
JSON = (("Content-Type", "application/json"),)
WORDS = "one two three"
# What stands for a result that was folded by cost.
OLD = "[An old result, taken out of view]"


@dataclass(frozen=True, kw_only=True)
class Relaying:
    """A gateway and its model. `answers` are given in order, by `script` where that is set, then all get the same."""

    url: str
    model: ModelServer
    process: ServerProcess
    answers: list[Answer] = field(default_factory=list[Answer])
    scripts: list[Callable[[Request], Answer]] = field(default_factory=list[Callable[[Request], Answer]])

    def post(self, path: str, body: object, token: str | None = ALICE, **headers: str) -> HttpReply:
        return request(self.url, "POST", path, body, token=token, **headers)

    def get(self, path: str, token: str | None = ALICE, **headers: str) -> HttpReply:
        return request(self.url, "GET", path, token=token, **headers)

    def rows(self, path: str, name: str, token: str = ALICE) -> list[Mapping[str, Json]]:
        reply = self.get(f"/api/v1/agent{path}", token)
        assert reply.status == 200, reply.body
        return list(cast("Sequence[Mapping[str, Json]]", reply.json[name]))

    def newest_call(self, token: str = ALICE) -> Mapping[str, Json]:
        """The newest call of whoever has this key, with its page and manifest."""
        thread = self.rows("/threads", "threads", token)[0]["id"]
        run = self.rows(f"/threads/{thread}/calls", "calls", token)[0]["run"]
        return self.get(f"/api/v1/agent/runs/{run}/calls/1", token).json

    @property
    def last_request(self) -> Request:
        """What the model was sent last."""
        return self.model.requests[-1]


@contextmanager
def relaying_server(
    folder: Path, settings: Mapping[str, str] | None = None, command: str = "serve"
) -> Generator[Relaying]:
    """A gateway for alice, bob and callers with keys of their own."""
    answers, scripts = list[Answer](), list[Callable[[Request], Answer]]()

    def script(model_request: Request) -> Answer:
        if scripts:
            return scripts[-1](model_request)
        return answers.pop(0) if answers else reply_to(model_request, WORDS)

    with ModelServer(script) as model:
        environment = {
            "RECTO_MODEL": "openai:x",
            "OPENAI_BASE_URL": model.url,
            "ANTHROPIC_BASE_URL": model.root,
            "OPENAI_API_KEY": SERVER_KEYS[0],
            "ANTHROPIC_API_KEY": SERVER_KEYS[1],
            "RECTO_API_KEYS": KEYS,
            "RECTO_GATEWAY_KEYS": "both",
            "RECTO_MODEL_BETWEEN_SECONDS": "5",
        }
        flags = ["recto", command, "--port", "0", "--data", str(folder)]
        with ServerProcess(flags, {**environment, **(settings or {})}) as server:
            yield Relaying(url=server.url, model=model, process=server, answers=answers, scripts=scripts)


def reply_to(model_request: Request, text: str) -> Answer:
    """A reply in the way it was asked for: as a stream, or whole."""
    if model_request.page.get("stream"):
        return Answer(text=text)
    whole = whole_message(text) if model_request.path.startswith(MESSAGES) else whole_chat(text)
    return Answer(headers=JSON, body=whole, framing="length")


def whole_chat(text: str, **message: Json) -> bytes:
    choice = {"index": 0, "finish_reason": "stop", "message": {"role": "assistant", "content": text, **message}}
    usage = {"prompt_tokens": 10, "completion_tokens": 5, "total_tokens": 15}
    return dump(
        {"id": "c", "object": "chat.completion", "created": 1, "model": "m", "choices": [choice], "usage": usage}
    )


def whole_message(text: str, *blocks: Json) -> bytes:
    content = [{"type": "text", "text": text}, *blocks]
    usage = {"input_tokens": 10, "output_tokens": 5}
    head = {"id": "m", "type": "message", "role": "assistant", "model": "m", "stop_reason": "end_turn"}
    return dump({**head, "stop_sequence": None, "content": content, "usage": usage})


def user(words: str) -> dict[str, Json]:
    return {"role": "user", "content": words}


def reads(count: int, size: int, name: str = "read") -> list[dict[str, Json]]:
    """A conversation of chat completions in which a file was read again and again, each time at length."""
    messages: list[dict[str, Json]] = [user("Look at a.py until it is right.")]
    for number in range(count):
        call = {"id": f"call_{number}", "type": "function"}
        function: Json = {"name": name, "arguments": '{"path": "a.py"}'}
        assistant: dict[str, Json] = {
            "role": "assistant",
            "content": None,
            "tool_calls": [{**call, "function": function}],
        }
        words = f"{number} " + "word " * size
        answer: dict[str, Json] = {"role": "tool", "tool_call_id": f"call_{number}", "content": words}
        messages += [assistant, answer]
    return messages


def message_reads(count: int, size: int, name: str = "Read") -> list[dict[str, Json]]:
    """The same as Anthropic messages."""
    messages: list[dict[str, Json]] = [user("Look at a.py until it is right.")]
    for number in range(count):
        call: Json = {"type": "tool_use", "id": f"call_{number}", "name": name, "input": {"file_path": "a.py"}}
        words = f"{number} " + "word " * size
        result: Json = {"type": "tool_result", "tool_use_id": f"call_{number}", "content": words}
        assistant: dict[str, Json] = {"role": "assistant", "content": [call]}
        answer: dict[str, Json] = {"role": "user", "content": [result]}
        messages += [assistant, answer]
    return messages
