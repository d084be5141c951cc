"""Every mistake of docs/mistakes.md, made for real: what is printed or answered is what the page says, word by word."""

import os
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import pytest
from typer.testing import CliRunner

from recto.app.check_server import check
from recto.app.file_services import try_tools
from recto.app.run_server import serve
from recto.cli.main import make_app
from recto.cli.server_entry import ServerEntry
from recto.conversation.json import Json
from recto.testing.model_server import Answer, Call, ModelServer, Request, failure
from recto.testing.process import NotStarted, ServerProcess
from tests.api.forms import FORM, file, form_of
from tests.support.client import RUNS, TOKEN, ask, parse_events, request
from tests.test_docs import blocks, read
from tests.waiting import wait_for

PAGE = "docs/mistakes.md"
SECTION = re.compile(r"^### (.*)$", re.MULTILINE)
AGENT = "---\nhistory: many\nlocale: fr\n---\nYou sell milk.\n"
TOOLS = '''
def stock(item: str) -> int:
    """How many there are of an item."""
    return {"bread": 7}[item]
'''
THREAD = "5f0c4ac8-0a4e-4f6c-9a3c-2b1d1e6a7f01"


@dataclass(frozen=True, kw_only=True)
class Place:
    """A folder for commands, and a server."""

    folder: Path
    server: ServerProcess

    def type(self, *words: str, **environment: str) -> str:
        """Return the error output of a command that fails."""
        entry = ServerEntry(serve=serve, relay=serve, check=check, try_tools=try_tools) if words[0] == "serve" else None
        done = CliRunner().invoke(make_app(words[0]), list(words), obj=entry, env=environment, prog_name="recto")
        assert done.exit_code in (1, 2), done.output
        assert "Traceback" not in done.stderr
        return done.stderr

    def send(self, body: object, path: str = RUNS, token: str | None = TOKEN, **headers: str) -> str:
        """Return the status and the detail of a rejected request."""
        reply = request(self.server.url, "POST", path, body, token=token, **headers)
        assert reply.status >= 400, reply.body
        return f"{reply.status} {reply.json['detail']}"

    def run(self, words: str) -> list[Mapping[str, Json]]:
        reply = request(self.server.url, "POST", RUNS, ask(words), accept="text/event-stream")
        return [received.event for received in parse_events(iter(reply.body.splitlines(keepends=True)))]

    def failed(self, words: str) -> str:
        """Return the error of a failed run for the user, and its line in the log."""
        problem = str(self.run(words)[-1]["message"])
        logged = re.compile(rf"(run \S+ of thread .* failed: .*{re.escape(problem)})$", re.M)
        line = wait_for(lambda: logged.search(self.server.output), "the line in the log")
        return f"{problem}\n{line[1] if line else ''}"


def answer(model_request: Request) -> Answer:
    """Fail or call a tool, depending on the user's message."""
    match model_request.page["messages"]:
        case [*_, {"role": "tool"}]:
            return Answer(text="I could not look it up.")
        case [*_, {"content": str(words)}] if "milk" in words:
            return Answer(calls=(Call(name="stock", arguments='{"item": "milk"}'),))
        case [*_, {"content": str(words)}] if "key" in words:
            return failure(401, "invalid_api_key")
        case _:
            return failure(500, "overloaded")


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Place]:
    folder = tmp_path_factory.mktemp("mistakes")
    for name, text in {"broken/shop/AGENT.md": AGENT, "agents/shop/tools.py": TOOLS}.items():
        (folder / name).parent.mkdir(parents=True)
        (folder / name).write_text(text, encoding="utf-8")
    with ModelServer(answer) as model, pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        for name in [name for name in os.environ if name.startswith(("RECTO_", "OPENAI_"))]:
            patch.delenv(name)
        environment = {"RECTO_MODEL": "compatible:x", "RECTO_MODEL_URL": model.url, "RECTO_RETRY_SECONDS": "0"}
        environment |= {"RECTO_AGENT": "shop"}
        with ServerProcess.serve(folder / "recto-data", environment, "--agents", "agents") as server:
            yield Place(folder=folder, server=server)


def in_toml(place: Place) -> str:
    file = place.folder / "recto.toml"
    file.write_text('port = 9000\n[server]\nmodell = "demo"\n', encoding="utf-8")
    try:
        return place.type("serve")
    finally:
        file.unlink()


def port_in_use(place: Place) -> str:
    port = place.server.url.rpartition(":")[2]
    command = ["recto", "serve", "--data", str(place.folder / "other"), "--port", port]
    with pytest.raises(NotStarted) as caught_error, ServerProcess(command, {}):
        pass
    return str(caught_error.value).splitlines()[-1].replace(port, "8787")


def unsigned(place: Place) -> str:
    picture = {"type": "image", "source": {"type": "url", "value": "https://example.com/a.png"}}
    body = ask("What is this?", forwardedProps={"agent": "chat"})
    return place.send({**body, "messages": [{"id": "1", "role": "user", "content": [picture]}]})


def not_allowed(place: Place) -> str:
    form = form_of(file("movie.mp4", b"\x00\x00\x00\x18ftypmp42" + b"\x00" * 100))
    reply = request(place.server.url, "POST", "/api/v1/agent/attachments?agent=chat", form, content_type=FORM)
    match reply.json:
        case {"attachments": [{"error": str(error)}]}:
            return error
        case other:
            return str(other)


def tool_error(place: Place) -> str:
    (result,) = [event for event in place.run("Is there milk?") if event["type"] == "TOOL_CALL_RESULT"]
    return str(result["content"])


def history_twice(place: Place) -> str:
    body = ask("hi", thread=THREAD)
    return place.send({**body, "messages": [{"id": str(n), "role": "user", "content": "hi"} for n in (1, 2)]})


MISTAKES: Mapping[str, Callable[[Place], str]] = {
    "The name or the value of a setting is wrong": lambda place: place.type(
        "serve", RECTO_PROT="9000", RECTO_LOG_LEVEL="loud"
    ),
    "A name in recto.toml is wrong, or stands outside of its table": in_toml,
    "The model has no provider": lambda place: place.type("serve", RECTO_MODEL="gpt-5"),
    "The key is missing": lambda place: place.type("serve", RECTO_MODEL="openai:gpt-5"),
    "The address of the model is missing": lambda place: place.type("serve", RECTO_MODEL="compatible:qwen3"),
    "The server is to be reached by others, and has no users": lambda place: place.type("serve", "--host", "0.0.0.0"),
    "The port is in use": port_in_use,
    "Another server uses the data folder": lambda place: place.type("serve"),
    "The agent that is to answer is not there": lambda place: place.type(
        "serve", "--data", "other", "--agents", "none", RECTO_AGENT="shopp"
    ),
    "The folder of agents is not there": lambda place: place.type("agents", "check", "agent"),
    "An agent's file is wrong": lambda place: place.type("agents", "check", "broken"),
    "Nothing is kept of a user": lambda place: place.type("user", "export", "nobody"),
    "The token is missing": lambda place: place.send(ask("hi"), token=None),
    "The token is wrong": lambda place: place.send(ask("hi"), token="a-token-of-another-server"),
    "The body is not sent as JSON": lambda place: place.send(
        ask("hi"), content_type="application/x-www-form-urlencoded"
    ),
    "A page of another origin asks": lambda place: place.send(ask("hi"), origin="https://app.example"),
    "The thread's id is no UUID": lambda place: place.send(ask("hi", thread="thread-1")),
    "The whole conversation is sent": history_twice,
    "The run names an agent that is not there": lambda place: place.send(ask("hi", forwardedProps={"agent": "shopp"})),
    "A file's url is not one of this server's": unsigned,
    "A file is of a kind the agent does not take": not_allowed,
    "A tool of yours fails": tool_error,
    "The model cannot be reached": lambda place: place.failed("hi"),
    "The model's key is wrong": lambda place: place.failed("Is the key good?"),
}


def sections() -> dict[str, list[str]]:
    _, *parts = SECTION.split(read(PAGE))
    texts = [[block.text for block in blocks(part) if block.language == "text"] for part in parts[1::2]]
    return dict(zip(parts[::2], texts, strict=True))


def test_C1_the_page_of_mistakes_has_each_of_these_in_their_order():
    assert list(sections()) == list(MISTAKES)


@pytest.mark.parametrize("mistake", MISTAKES)
def test_C1_a_mistake_is_answered_with_the_words_on_the_page(place: Place, mistake: str):
    problem = MISTAKES[mistake](place).replace(f"{place.folder}/", "").rstrip("\n")
    problem = re.sub(r"\b[0-9a-f]{8}-[0-9a-f-]{27}\b", "...", problem)
    assert sections()[mistake] == [f"{problem}\n"]
