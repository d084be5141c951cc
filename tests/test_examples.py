"""Examples run as they are, and the documents show them as they are."""

import os
import re
import subprocess
import sys
import tomllib
from collections.abc import Sequence
from pathlib import Path

import pytest

from recto.agents.fold_table import with_table
from recto.cli.fold.fold_command import load_config
from recto.cli.server_settings import load_settings
from recto.conversation.json import load_object
from recto.page.fold.fold_settings import FoldSettings
from recto.page.fold.paths import Project
from recto.page.fold.rules import SEARCH
from recto.testing.model_server import Answer, ModelServer
from recto.testing.process import ServerProcess
from recto.tools.load_tools import load_folder_tools
from tests.layers import ROOT
from tests.support.client import RUNS, TOKEN, ReceivedEvent, request, run
from tests.test_docs import blocks, read

# Settings that need no words beside their name.
AGENTS = ROOT / "examples" / "agents"
EXAMPLES = {path.name[:2]: path for path in sorted((ROOT / "examples").glob("[0-9]*"))}


def blocks_of(document: str, language: str) -> list[str]:
    return [block.text for block in blocks(read(document)) if block.language == language]


def output_of(*command: str, url: str = "", token: str = TOKEN, folder: Path = ROOT) -> str:
    """Run a command and return its output. `url` is the server for clients."""
    clean = {name: value for name, value in os.environ.items() if not name.startswith("RECTO_")}
    asks = {"RECTO_URL": url, "RECTO_TOKEN": token} if url else {}
    done = subprocess.run(
        command, cwd=folder, env={**clean, **asks}, capture_output=True, text=True, timeout=120, check=False
    )
    assert done.returncode == 0, done.stderr
    return f"{done.stderr}{done.stdout}"


def test_every_example_has_a_test_here():
    assert list(EXAMPLES) == ["01", "02", "03", "04", "05", "06", "07", "08", "09"]
    assert {path.name for path in AGENTS.iterdir()} == {"guest", "plain"}


def test_the_second_example_runs():
    assert "injected" in output_of(sys.executable, str(EXAMPLES["02"]))


@pytest.mark.full
def test_P7_P8_P13_a_run_with_curl_is_followed_read_again_cancelled_and_found_in_history(tmp_path: Path):
    # The story is never told: it would go on until somebody ends it.
    script = (Answer(text="It is 84."), Answer(text="Once upon a time", hang=True))
    with ModelServer(script) as model, ServerProcess.serve(tmp_path, model_at(model)) as server:
        output = output_of("sh", str(EXAMPLES["03"]), url=server.url)
    numbers = [int(number) for number in re.findall(r"^id: (\d+)$", output, re.MULTILINE)]
    first = numbers.index(1, 1)
    whole = numbers[: numbers.index(4, numbers.index(4) + 1)]
    assert whole == list(range(1, len(whole) + 1))
    assert numbers[len(whole) : first] == whole[3:]
    assert '"delta":"It is 84."' in output
    assert '"outcome":{"type":"cancelled"}' in output
    assert '"status":"cancelled"' in output
    assert re.search(r'"scope":"history_day".*"content":"What is 12 \* 7\?".*"content":"It is 84\."', output)


@pytest.mark.full
def test_a_run_with_curl_finds_the_token_of_the_folder(tmp_path: Path):
    with ServerProcess.serve(tmp_path / "recto-data", {}, token=None) as server:
        assert "12 * 7 = 84." in output_of("sh", str(EXAMPLES["03"]), url=server.url, token="", folder=tmp_path)


@pytest.mark.parametrize("url", ["http://127.0.0.1:1", "http://elsewhere.test:1", "http://127.0.0.1:1@elsewhere.test"])
def test_a_run_with_curl_says_what_to_do_without_a_token_and_shows_that_of_the_folder_to_no_other_server(
    tmp_path: Path, url: str
):
    if "elsewhere" in url:
        (tmp_path / "recto-data").mkdir()
        (tmp_path / "recto-data" / "token").write_text("secret", encoding="ascii")
    done = subprocess.run(
        ["sh", str(EXAMPLES["03"])],
        cwd=tmp_path,
        env={"PATH": os.environ["PATH"], "RECTO_URL": url},
        capture_output=True,
        text=True,
        timeout=20,
        check=False,
    )
    assert (done.returncode, done.stdout) == (1, "")
    problem = f"recto-data/token is not there, or not for {url}. Start recto serve in this folder, or set RECTO_TOKEN."
    assert done.stderr == f"No token: {problem}\n"


@pytest.mark.full
def test_clients_in_python_find_the_token_of_the_folder_and_show_what_happens(tmp_path: Path):
    with ServerProcess.serve(tmp_path / "recto-data", {}, "--agents", str(AGENTS), token=None) as server:
        chat, tool = (
            output_of(sys.executable, str(EXAMPLES[number]), url=server.url, token="", folder=tmp_path).splitlines()
            for number in ("04", "05")
        )
    assert chat[:3] == ["calls calculator", "calls current_time", "gets 84"]
    assert re.fullmatch(r"success: \d+ tokens", chat[-2])
    assert chat[-1] == "3 * 7 = 21."
    assert tool[0] == "the model calls current_time"
    assert re.fullmatch(r"The time is \d{4}-\d\d-\d\d \d\d:\d\d:\d\d\.", tool[1])
    assert tool[2:] == ["success"]


@pytest.mark.full
def test_S3_S10_a_client_with_a_form_answers_for_the_tool_and_the_chart_is_computed(tmp_path: Path):
    with ServerProcess.serve(tmp_path, {}) as server:
        output = output_of(sys.executable, str(EXAMPLES["08"]), url=server.url)
    lines = output.splitlines()
    assert lines[:4] == [
        "skill: bazi need_info",
        "the form is asked for",
        "card: Birth information saved",
        "card: Four Pillars · 庚午 辛巳 庚辰 癸未",
    ]
    assert "- Pillars: Geng Wu (庚午), Xin Si (辛巳), Geng Chen (庚辰), Gui Wei (癸未)" in lines


@pytest.mark.full
def test_P11_a_model_without_calls_is_told_of_tools_in_words():
    output = output_of(sys.executable, str(EXAMPLES["06"]))
    assert "The request has a field for tools: False." in output
    assert "<!-- TOOLS_START -->\n- stock: How many of an item are in stock.\n- args_schema: {" in output
    story = ["  says Let me look.", "  calls stock", "  gets 3", "  says There are 3 of milk."]
    assert [line for line in output.splitlines() if line.startswith("  ")] == story
    assert output.endswith('<tool_result name="stock">\n3\n</tool_result>\n')


@pytest.mark.full
def test_F4_F5_P9_files_are_uploaded_and_asked_about_in_two_turns(tmp_path: Path):
    note, empty = tmp_path / "note.txt", tmp_path / "empty.txt"
    note.write_text("The key is under the mat.", encoding="utf-8")
    empty.touch()
    with ServerProcess.serve(tmp_path / "data", {}) as server:
        output = output_of(sys.executable, str(EXAMPLES["07"]), str(note), url=server.url)
        with pytest.raises(AssertionError, match=r"A file was not taken: empty\.txt: it is empty"):
            output_of(sys.executable, str(EXAMPLES["07"]), str(note), str(empty), url=server.url)
    assert output.count("The key is under the mat.") == 2


@pytest.mark.full
def test_programs_in_the_page_on_clients_run(tmp_path: Path):
    with ServerProcess.serve(tmp_path, {}, "--agents", str(AGENTS)) as server:
        first, second = (
            output_of(sys.executable, "-W", "error", "-c", code, url=server.url)
            for code in blocks_of("docs/clients.md", "python")
        )
    assert first == "12 * 7 = 84.3 * 7 = 21.\n"
    assert "list.txt begins:\nmilk\nbread success {" in second
    assert second.endswith("There is nothing to go on with.\n")


@pytest.mark.full
def test_the_test_of_an_agent_in_the_page_on_agents_passes_for_a_new_agent(tmp_path: Path):
    (code,) = [block for block in blocks_of("docs/agents.md", "python") if "def test_" in block]
    (tmp_path / "test_gardener.py").write_text(code, encoding="utf-8")
    output_of(sys.executable, "-m", "recto", "agents", "new", "gardener", folder=tmp_path)
    output = output_of(sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", folder=tmp_path)
    assert "1 passed" in output


def test_agents_of_the_examples_are_good():
    output = output_of(sys.executable, "-m", "recto", "agents", "check", "--strict", str(AGENTS))
    assert [line.partition(":")[0] for line in output.splitlines()] == ["guest", "plain"]


def model_at(model: ModelServer) -> dict[str, str]:
    return {"RECTO_MODEL": "compatible:scripted", "RECTO_MODEL_URL": model.url}


def test_what_is_shown_of_examples_is_what_they_are():
    assert blocks_of("README.md", "python")[0] == EXAMPLES["09"].read_text(encoding="utf-8")
    assert blocks_of("docs/tour.md", "python")[-1] == EXAMPLES["01"].read_text(encoding="utf-8")


def test_make_run_starts_a_server_that_greets():
    assert output_of("make", "--no-print-directory", "-n", "run").endswith(".venv/bin/recto serve --hello\n")


@pytest.mark.full
def test_P1_P3_P11_P12_the_bodies_in_the_page_on_clients_do_what_it_says(tmp_path: Path):
    bodies = blocks_of("docs/clients.md", "json")
    with ServerProcess.serve(tmp_path, {}, "--agents", str(AGENTS)) as server:
        first, ask_events = (run(server.url, load_object(body.encode()) or {}) for body in bodies[:2])
        (call,) = (
            received.event["toolCallId"] for received in ask_events if received.event["type"] == "TOOL_CALL_START"
        )
        answer = bodies[2].replace("CALL", str(call))
        answer_events, problem = (run(server.url, load_object(body.encode()) or {}) for body in (answer, bodies[3]))
        page = request(server.url, "GET", f"{RUNS}/7d0f-4/calls/1?raw=1").body
    assert [text_of_events(events) for events in (first, answer_events)] == [
        "12 * 7 = 84.",
        "The time is 2026-05-14 12:00:00.",
    ]
    assert ask_events[-1].event["outcome"] == {"type": "success", "pendingToolCallIds": [call]}
    assert "outcome" not in problem[-1].event
    assert b"<description>The page the user is on</description>" in page


def text_of_events(events: Sequence[ReceivedEvent]) -> str:
    return "".join(
        str(received.event["delta"]) for received in events if received.event["type"] == "TEXT_MESSAGE_CONTENT"
    )


@pytest.mark.full
@pytest.mark.parametrize("code", blocks_of("docs/api.md", "python"))
def test_code_in_the_api_page_runs(code: str):
    assert output_of(sys.executable, "-c", code) == ""


def test_the_guide_shows_the_settings_that_are_the_defaults():
    blocks = blocks_of("docs/fold.md", "toml")
    example = ROOT / "examples" / "recto.toml"
    assert blocks == [example.read_text(encoding="utf-8")]
    assert tomllib.loads(blocks[0])["fold"]["search"]["on"] is False
    searching = FoldSettings(search=SEARCH, project=Project())
    assert with_table(searching, load_config(example)) == FoldSettings()


def test_the_page_of_the_server_shows_settings_that_can_be_given(tmp_path: Path):
    (block,) = blocks_of("docs/server.md", "toml")
    file = tmp_path / "recto.toml"
    file.write_text(block, encoding="utf-8")
    settings = load_settings({}, {}, file)
    assert (settings.agents, settings.dispatch.slots, settings.limits.steps) == (Path("agents"), 100, 30)


@pytest.mark.full
def test_the_page_of_the_server_shows_tools_that_work(tmp_path: Path):
    (block,) = blocks_of("docs/server.md", "python")
    (tmp_path / "tools.py").write_text(block, encoding="utf-8")
    assert [tool.name for tool in load_folder_tools(tmp_path)] == ["stock"]
