"""Examples run as they are, and the documents show them as they are."""

import os
import re
import socket
import socketserver
import subprocess
import sys
import threading
import time
import tomllib
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from recto.agents.fold_table import with_table
from recto.cli.fold.fold_options import load_config
from recto.cli.server_settings import load_settings
from recto.conversation.json import load_object
from recto.page.fold.fold_settings import FoldSettings
from recto.page.fold.paths import Project
from recto.page.fold.rules import SEARCH
from recto.testing.client import RUNS, TOKEN, SentEvent, request, run
from recto.testing.model_server import Answer, ModelServer, failure
from recto.testing.process import ServerProcess
from recto.tools.load_tools import tools_of_folder
from tests.house import ROOT
from tests.test_docs import ADDRESS, blocks, read

ENDED = "The run is finished, and stored."
# Settings that need no words beside their name.
AGENTS = ROOT / "examples" / "agents"
EXAMPLES = {path.name[:2]: path for path in sorted((ROOT / "examples").glob("[0-9]*"))}
# The stream of events that is cut, and after how many bytes.
EVENTS, CUT = re.compile(rb"GET \S+/events"), 1_000


def blocks_of(document: str, language: str) -> list[str]:
    return [block.text for block in blocks(read(document)) if block.language == language]


def output_of(*command: str, url: str = "") -> str:
    """What a command prints; one that asks a server is told where it is."""
    clean = {name: value for name, value in os.environ.items() if not name.startswith("RECTO_")}
    asks = {"RECTO_URL": url, "RECTO_TOKEN": TOKEN} if url else {}
    done = subprocess.run(
        command, cwd=ROOT, env={**clean, **asks}, capture_output=True, text=True, timeout=120, check=False
    )
    assert done.returncode == 0, done.stderr
    return f"{done.stderr}{done.stdout}"


def test_every_example_has_a_test_here():
    assert list(EXAMPLES) == ["01", "02", "03", "04", "05", "06", "07", "08"]
    assert {path.name for path in AGENTS.iterdir()} == {"guest", "plain"}


def test_the_second_example_runs():
    assert "injected" in output_of(sys.executable, str(EXAMPLES["02"]))


@pytest.mark.full
def test_P7_P8_P13_a_run_with_curl_is_followed_read_again_cancelled_and_found_in_history(tmp_path: Path):
    # The story is never told: it would go on until somebody ends it.
    script = (Answer(text="It is 84."), Answer(text="Once upon a time", hang=True))
    with ModelServer(script) as model, ServerProcess.serve(tmp_path, model_at(model)) as server:
        said = output_of("sh", str(EXAMPLES["03"]), url=server.url)
    numbers = [int(number) for number in re.findall(r"^id: (\d+)$", said, re.MULTILINE)]
    first = numbers.index(1, 1)
    whole = numbers[: numbers.index(4, numbers.index(4) + 1)]
    assert whole == list(range(1, len(whole) + 1))
    assert numbers[len(whole) : first] == whole[3:]
    assert '"delta":"It is 84."' in said
    assert '"outcome":{"type":"cancelled"}' in said
    assert '"status":"cancelled"' in said
    assert re.search(r'"scope":"history_day".*"content":"What is 12 \* 7\?".*"content":"It is 84\."', said)


@pytest.mark.full
def test_P8_a_run_with_curl_that_is_over_is_not_changed_by_a_cancel(tmp_path: Path):
    with ServerProcess.serve(tmp_path, {}) as server:
        said = output_of("sh", str(EXAMPLES["03"]), url=server.url)
    assert "12 * 7 = 84." in said
    # The demo model may or may not be done when the cancel comes.
    assert re.search(r'"status":"(finished|cancelled)"', said)


@pytest.mark.full
def test_P7_a_client_in_python_goes_on_where_its_connection_was_lost(tmp_path: Path):
    with ServerProcess.serve(tmp_path, {}) as server, cutting_proxy(server.url) as url:
        cut = output_of(sys.executable, str(EXAMPLES["04"]), url=url)
        whole = output_of(sys.executable, str(EXAMPLES["04"]), url=server.url)
    lost, *rest = cut.splitlines()
    assert re.fullmatch(r"\(lost the connection after event [1-9]\d*, going on\)", lost)
    assert [told_without_time(line) for line in rest] == [told_without_time(line) for line in whole.splitlines()]
    assert rest[:3] == ["calls calculator", "calls current_time", "gets 84"]
    assert re.fullmatch(r"finished: \d+ tokens in 2 model calls", rest[-1])


@pytest.mark.full
def test_a_client_in_python_says_why_it_was_refused(tmp_path: Path):
    with (
        ServerProcess.serve(tmp_path, {}, token="another-token-of-16") as server,
        pytest.raises(AssertionError) as error,
    ):
        output_of(sys.executable, str(EXAMPLES["04"]), url=server.url)
    assert "401: " in str(error.value)


@pytest.mark.full
def test_P3_P11_a_client_answers_a_call_of_its_own_tool_with_a_second_run(tmp_path: Path):
    with ServerProcess.serve(tmp_path, {}, "--agents", str(AGENTS)) as server:
        lines = output_of(sys.executable, str(EXAMPLES["05"]), url=server.url).splitlines()
    assert re.fullmatch(r'first run: \{"type": "success", "pendingToolCallIds": \["call_\w+"\]\}', lines[0])
    assert lines[1] == "the model calls current_time with {}"
    assert re.fullmatch(r"The time is \d{4}-\d\d-\d\d \d\d:\d\d:\d\d\.", lines[2])
    assert lines[3:] == ['second run: {"type": "success"}']


@pytest.mark.full
def test_S3_S10_a_client_with_a_form_answers_for_the_tool_and_the_chart_is_computed(tmp_path: Path):
    with ServerProcess.serve(tmp_path, {}) as server:
        said = output_of(sys.executable, str(EXAMPLES["08"]), url=server.url)
    lines = said.splitlines()
    assert lines[:4] == [
        "skill: bazi need_info",
        "the form is asked for 1 time(s)",
        "card: Birth information saved",
        "card: Four Pillars · 庚午 辛巳 庚辰 癸未",
    ]
    assert "- Pillars: Geng Wu (庚午), Xin Si (辛巳), Geng Chen (庚辰), Gui Wei (癸未)" in lines


@pytest.mark.full
def test_P11_a_model_without_calls_is_told_of_tools_in_words():
    said = output_of(sys.executable, str(EXAMPLES["06"]))
    assert "The request has a field for tools: False." in said
    assert "<!-- TOOLS_START -->\n- stock: How many of an item are in stock.\n- args_schema: {" in said
    story = ["  says Let me look.", "  calls stock", "  gets 3", "  says There are 3 of milk."]
    assert [line for line in said.splitlines() if line.startswith("  ")] == story
    assert said.endswith('<tool_result name="stock">\n3\n</tool_result>\n')


@pytest.mark.full
def test_F4_F5_P9_files_are_uploaded_and_asked_about_in_two_turns(tmp_path: Path):
    (tmp_path / "note.txt").write_text("The key is under the mat.", encoding="utf-8")
    (tmp_path / "empty.txt").touch()
    files = [str(tmp_path / name) for name in ("note.txt", "empty.txt")]
    with ServerProcess.serve(tmp_path / "data", {}) as server:
        said = output_of(sys.executable, str(EXAMPLES["07"]), *files, url=server.url)
    assert said.startswith("note.txt: document, text/plain\nempty.txt: it is empty")
    first, second = said.split("\n> ")[1:]
    for turn in (first, second):
        assert "  calls read_files\n" in turn
        assert "The key is under the mat." in turn
        assert turn.rstrip().endswith(ENDED)


@pytest.mark.full
def test_a_client_that_sends_files_says_why_a_run_failed(tmp_path: Path):
    note = tmp_path / "note.txt"
    note.write_text("The key is under the mat.", encoding="utf-8")
    with (
        ModelServer(lambda _: failure(400, "I never do that")) as model,
        ServerProcess.serve(tmp_path / "data", model_at(model)) as server,
        pytest.raises(AssertionError) as error,
    ):
        output_of(sys.executable, str(EXAMPLES["07"]), str(note), url=server.url)
    assert "The run failed: The model refused the request." in str(error.value)
    assert "I never do that" not in str(error.value)


def test_agents_of_the_examples_are_good():
    said = output_of(sys.executable, "-m", "recto", "agents", "check", "--strict", str(AGENTS))
    assert [line.partition(":")[0] for line in said.splitlines()] == ["guest", "plain"]


def model_at(model: ModelServer) -> dict[str, str]:
    return {"RECTO_MODEL": "compatible:scripted", "RECTO_MODEL_URL": model.url}


def told_without_time(line: str) -> str:
    return re.sub(r"\d{4}-\d\d-\d\d.*|\d+ tokens", "...", line)


@contextmanager
def cutting_proxy(url: str) -> Generator[str]:
    """A way to a server that is cut once, in the middle of the first stream of events."""
    target, cuts = urlsplit(url), iter([CUT])

    class Handler(socketserver.StreamRequestHandler):
        def handle(self) -> None:
            asked = self.request.recv(65_536)
            left = next(cuts, sys.maxsize) if EVENTS.match(asked) else sys.maxsize
            with socket.create_connection((target.hostname or "", target.port or 0)) as server:
                server.sendall(asked)
                while left and (piece := server.recv(min(65_536, left))):
                    self.wfile.write(piece)
                    left -= len(piece)

    with socketserver.ThreadingTCPServer(("127.0.0.1", 0), Handler) as proxy:
        proxy.daemon_threads = True
        thread = threading.Thread(target=proxy.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{proxy.server_address[1]}"
        proxy.shutdown()
        thread.join()


def test_the_readme_shows_the_first_example_and_what_it_prints():
    assert blocks_of("README.md", "python")[-1] == EXAMPLES["01"].read_text(encoding="utf-8")
    assert blocks_of("README.md", "text")[-1] == output_of(sys.executable, str(EXAMPLES["01"]))


@pytest.mark.full
def test_the_readme_shows_the_first_run_of_a_server(tmp_path: Path):
    with ServerProcess.serve(tmp_path, {}, "--hello") as server:
        until = time.monotonic() + 60
        while ENDED not in server.output and time.monotonic() < until:
            time.sleep(0.01)
        printed = server.output.replace(server.url, ADDRESS).replace(str(tmp_path), "recto-data")
    shown = blocks_of("README.md", "text")[0].splitlines()
    lines = iter(line.rstrip() for line in printed.splitlines())
    # In this order: looking for a line takes those before it.
    assert [line for line in shown if line not in lines] == [], printed
    assert shown[-1] == ENDED


def test_make_run_starts_what_the_readme_shows():
    assert output_of("make", "--no-print-directory", "-n", "run").endswith(".venv/bin/recto serve --hello\n")


@pytest.mark.full
def test_P1_P3_P11_P12_the_bodies_in_the_page_on_clients_do_what_it_says(tmp_path: Path):
    bodies = blocks_of("docs/clients.md", "json")
    with ServerProcess.serve(tmp_path, {}, "--agents", str(AGENTS)) as server:
        first, asked = (run(server.url, load_object(body.encode()) or {}) for body in bodies[:2])
        (call,) = (sent.event["toolCallId"] for sent in asked if sent.event["type"] == "TOOL_CALL_START")
        answer = bodies[2].replace("CALL", str(call))
        answered, problem = (run(server.url, load_object(body.encode()) or {}) for body in (answer, bodies[3]))
        page = request(server.url, "GET", f"{RUNS}/7d0f-4/calls/1?raw=1").body
    assert [said(events) for events in (first, answered)] == ["12 * 7 = 84.", "The time is 2026-05-14 12:00:00."]
    assert asked[-1].event["outcome"] == {"type": "success", "pendingToolCallIds": [call]}
    assert "outcome" not in problem[-1].event
    assert b"<description>The page the user is on</description>" in page


def said(events: Sequence[SentEvent]) -> str:
    return "".join(str(sent.event["delta"]) for sent in events if sent.event["type"] == "TEXT_MESSAGE_CONTENT")


@pytest.mark.full
@pytest.mark.parametrize("code", blocks_of("docs/api.md", "python"))
def test_code_in_the_api_page_runs(code: str):
    assert output_of(sys.executable, "-c", code) == ""


def test_the_guide_shows_the_settings_that_are_the_defaults():
    shown = blocks_of("docs/fold.md", "toml")
    example = ROOT / "examples" / "recto.toml"
    assert shown == [example.read_text(encoding="utf-8")]
    assert tomllib.loads(shown[0])["fold"]["search"]["on"] is False
    searching = FoldSettings(search=SEARCH, project=Project())
    assert with_table(searching, load_config(example)) == FoldSettings()


def test_the_page_of_the_server_shows_settings_that_can_be_given(tmp_path: Path):
    (shown,) = blocks_of("docs/server.md", "toml")
    file = tmp_path / "recto.toml"
    file.write_text(shown, encoding="utf-8")
    settings = load_settings({}, {}, file)
    assert (settings.agents, settings.dispatch.slots, settings.limits.steps) == (Path("agents"), 100, 30)


@pytest.mark.full
def test_the_page_of_the_server_shows_tools_that_work(tmp_path: Path):
    (shown,) = blocks_of("docs/server.md", "python")
    (tmp_path / "tools.py").write_text(shown, encoding="utf-8")
    assert [tool.name for tool in tools_of_folder(tmp_path)] == ["stock"]
