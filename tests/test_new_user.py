"""A new user follows the README, then the tour, word by word, in an empty folder, and gets what they promise.

Two things are not as they have them: the port, which must be free, and the model, which is scripted.
"""

import os
import re
import shutil
import signal
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from threading import Timer
from typing import Self

import pytest

from recto.client import Client
from recto.conversation.json import Json, load_object
from recto.testing.model_server import Answer, Call, ModelServer, Request
from recto.testing.process import free_port
from tests.layers import ROOT
from tests.support.client import parse_events, request
from tests.test_docs import ADDRESS, SECONDS, Block, blocks, read, shell_lines

# Where the README has the model that speaks OpenAI's chat completions.
MODEL = "http://127.0.0.1:11434/v1"
EXPORT = re.compile(r"export (\w+)=")
FILE = re.compile(r"`(agents/[\w/]+\.py)`")
# What `make run` starts, once everything is there.
MAKE_RUN, RUN = "make run", ".venv/bin/recto serve --hello"
# What takes an engine for containers, or all the tests.
LEFT_OUT = ("docker ", "make test")
THREAD = "/api/v1/agent/threads/5f0c4ac8-0a4e-4f6c-9a3c-2b1d1e6a7f01"


def answer(model_request: Request) -> Answer:
    """Call `stock`, then answer with its result."""
    match model_request.page["messages"]:
        case [*_, {"role": "tool", "content": result}]:
            return Answer(text=f"There are {result} of milk.")
        case _:
            return Answer(calls=(Call(name="stock", arguments='{"item": "milk"}'),))


class NewUser:
    """Two terminals in a folder with the result of `make run`: one for the server, one for requests."""

    def __init__(self, folder: Path, model: str) -> None:
        self.folder = folder
        self.url = f"http://127.0.0.1:{free_port()}"
        self.outputs: dict[str, str] = {}
        self._model = model
        self._server: subprocess.Popen[str] | None = None
        places = {str(Path(program).parent) for name in ("sh", "cat", "curl") if (program := shutil.which(name))}
        self._clean = {"HOME": str(folder), "PATH": os.pathsep.join(sorted(places)), "LANG": "C.UTF-8"}
        # What was exported in both terminals, and where questions are asked.
        self._both: dict[str, str] = {}
        self._asking: dict[str, str] = {}
        (folder / ".venv").symlink_to(sys.prefix)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.press_ctrl_c()

    def type(self, command: str) -> None:
        """Type a command and keep its output. Each command must succeed."""
        command = command.replace(MAKE_RUN, RUN)
        if command.startswith(LEFT_OUT):
            return
        if "recto serve" in command:
            self.press_ctrl_c()
            self._serve(command)
        elif exported := EXPORT.match(command):
            output = self._run(f'{command}\nprintf %s "${exported[1]}"')
            (self._both if exported[1] == "PATH" else self._asking)[exported[1]] = output
        else:
            self.outputs[command] = self._run(command)

    def press_ctrl_c(self) -> None:
        """Stop the server with Ctrl-C if it runs."""
        if self._server is None:
            return
        os.killpg(self._server.pid, signal.SIGINT)
        output, _ = self._server.communicate(timeout=SECONDS)
        assert "Traceback" not in output, output
        self._server = None

    def _serve(self, command: str) -> None:
        port = self.url.rpartition(":")[2]
        self._server = subprocess.Popen(
            ["sh", "-c", command.replace(MODEL, self._model)],
            cwd=self.folder,
            env={**self._clean, **self._both, "RECTO_PORT": port},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,
        )
        late = Timer(SECONDS, self._server.kill)
        late.start()
        line = self._server.stdout.readline() if self._server.stdout else ""
        late.cancel()
        assert f"listening on {self.url}" in line, f"{command}: {line}"

    def _run(self, command: str) -> str:
        done = subprocess.run(
            ["sh", "-c", command.replace(ADDRESS, self.url)],
            cwd=self.folder,
            # A client that nobody tells where the server is looks for it at the address of the README.
            env={**self._clean, **self._both, **self._asking, "RECTO_URL": self.url},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=SECONDS,
            check=False,
        )
        assert done.returncode == 0, f"{command}: {done.stdout}{done.stderr}"
        return done.stdout


def follow(user: NewUser, block: Block, words: str) -> None:
    """Do what a block says. `words` is the text before it."""
    match block.language:
        case "sh":
            for line in shell_lines(block):
                user.type(line)
        case "python":
            # What is shown of the examples is there already.
            for file in FILE.findall(words)[-1:]:
                (user.folder / file).write_text(block.text, encoding="utf-8")
        case "ts":
            pass
        case _:
            assert list(user.outputs.values())[-1].strip() == block.text.strip()


def events_in(output: str) -> list[Mapping[str, Json]]:
    return [
        load_object(received.body) or {} for received in parse_events(iter(output.encode().splitlines(keepends=True)))
    ]


@pytest.mark.full
def test_C1_C2_C5_a_new_user_who_follows_the_readme_gets_what_it_promises(tmp_path: Path):
    readme = read("README.md")
    shutil.copytree(ROOT / "examples", tmp_path / "examples")
    with ModelServer(answer) as model, NewUser(tmp_path, model.url) as user:
        assert MODEL in readme
        for block in blocks(readme):
            follow(user, block, readme.partition(block.text)[0])
        assert user.outputs[".venv/bin/python examples/09_ask.py"] == "stock answered: 3"
        assert "tools current_time, calculator, stock" in user.outputs["recto agents check"]
        (output_tried,) = [output for command, output in user.outputs.items() if "agents try" in command]
        assert "stock answered: 3" in output_tried
        # The server that runs at last has the agent, which nobody named, and the model.
        token = (tmp_path / "recto-data" / "token").read_text(encoding="utf-8").strip()
        client = Client(url=user.url, token=token, agent="shop")
        assert client.chat("Is there milk?").answer() == "There are 3 of milk."


@pytest.mark.full
def test_C1_C2_C5_P5_a_new_user_who_follows_the_tour_gets_what_it_promises(tmp_path: Path):
    tour = read("docs/tour.md")
    shutil.copytree(ROOT / "examples", tmp_path / "examples")
    with ModelServer(answer) as model, NewUser(tmp_path, model.url) as user:
        assert MODEL in tour
        for block in blocks(tour):
            follow(user, block, tour.partition(block.text)[0])
        requests_made = [
            events_in(output) for command, output in user.outputs.items() if "accept: text/event-stream" in command
        ]
        key = (tmp_path / "recto-data" / "bert.key").read_text(encoding="utf-8").strip()
        token = (tmp_path / "recto-data" / "token").read_text(encoding="utf-8").strip()
        of_bert, own = request(user.url, "GET", THREAD, token=key), request(user.url, "GET", THREAD, token=token)
    demo, coder, shop = requests_made
    (chat,) = [events_in(output) for command, output in user.outputs.items() if "/api/v1/chat" in command]
    tool_names = [event["toolCallName"] for event in chat if event["type"] == "TOOL_CALL_START"]
    assert tool_names == ["use_skill", "collect_birth_info", "compute_bazi"]
    (explained,) = [output for command, output in user.outputs.items() if "agents explain" in command]
    assert "read    birth_info (known), skill_data.bazi (known)" in explained
    changed = "".join(str(event["delta"]) for event in coder if event["type"] == "TEXT_MESSAGE_CONTENT")
    assert "Fixed: the tests pass." in changed
    assert [event["content"] for event in demo if event["type"] == "TOOL_CALL_RESULT"] == ["84"]
    assert [event["toolCallName"] for event in shop if event["type"] == "TOOL_CALL_START"] == ["stock"]
    assert [event["content"] for event in shop if event["type"] == "TOOL_CALL_RESULT"] == ["3"]
    spoken_text = "".join(str(event["delta"]) for event in shop if event["type"] == "TEXT_MESSAGE_CONTENT")
    assert spoken_text == "There are 3 of milk."
    assert b'"name":"stock"' in model.requests[0].body
    # Their own thread, and somebody else's: the same words as for one that is not there.
    assert (own.status, own.json["agent"], own.json["title"]) == (200, "shop", "What is 12 * 7?")
    assert of_bert.status == 404
