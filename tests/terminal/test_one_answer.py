"""C1: `recto chat "question"` for people and programs: one answer."""

import os
import subprocess
import threading
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from queue import Queue

import pytest

from recto.cli.chat.chat_settings import ChatSettings
from recto.cli.chat.one_answer import combine_input
from recto.conversation.json import load_object
from recto.errors import SettingsError
from recto.ids import new_id
from recto.testing.model_server import Answer, Call, failure
from tests.api.scripted_server import ALICE, HOLD, Scripted, last_words, page_messages, scripted_server
from tests.cli.in_process import recto_process
from tests.terminal.terminal import RECTO, Terminal

DONE, FAILED, WRONG_USE = 0, 1, 2
SETTINGS = ChatSettings(message_characters=24, piped_bytes=1_000)
TOOLS = '''
from recto import tool


@tool
def weather(city: str) -> str:
    """Return the weather."""
    return f"{city}: 22 degrees"


@tool(confirm=True)
def send(text: str) -> str:
    """Send a line to everybody."""
    return f"Sent: {text}"
'''
AGENT = "---\nfile_input: {images: true, documents: true}\n---\nYou help.\n"


# What is asked


@pytest.mark.parametrize(
    ("words", "piped", "expected"),
    [
        ("What is it?", b"", ("What is it?", ())),
        ("What is it?", "四 apples\n".encode(), ("What is it?\n\n四 apples", ())),
        (None, b"\xef\xbb\xbfWho?\n", ("Who?", ())),
        ("Sum up.", b"many words " * 3, ("Sum up.", [("stdin.txt", b"many words " * 3)])),
        ("Sum up all of it.", b"few words", ("Sum up all of it.", [("stdin.txt", b"few words")])),
        (None, b"\x89PNG\r\n\x00\xff", ("", [("stdin", b"\x89PNG\r\n\x00\xff")])),
        ("What?", b"a\0b", ("What?", [("stdin", b"a\0b")])),
    ],
)
def test_C1_piped_input_follows_the_question_or_becomes_a_file(
    words: str | None, piped: bytes, expected: tuple[str, Sequence[object]]
):
    assert combine_input(words, piped, SETTINGS) == expected


@pytest.mark.parametrize(("words", "piped"), [(None, b" \n"), ("  ", b""), ("What?", b"x" * 1_001)])
def test_C1_empty_and_oversized_input_are_usage_errors(words: str | None, piped: bytes):
    with pytest.raises(SettingsError, match=r"pass a question or pipe one in|pipe at most 1,000 bytes"):
        combine_input(words, piped, SETTINGS)


# The command


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Generator[Scripted]:
    folder = tmp_path_factory.mktemp("one")
    helper = folder / "agents" / "helper"
    helper.mkdir(parents=True)
    (helper / "AGENT.md").write_text(AGENT, "utf-8")
    (helper / "tools.py").write_text(TOOLS, "utf-8")
    settings = {"RECTO_AGENTS": str(folder / "agents"), "RECTO_AGENT": "helper"}
    with scripted_server(folder / "data", settings) as server:
        yield server


@pytest.fixture
def server(shared: Scripted) -> Scripted:
    shared.answers.clear()
    shared.go.clear()
    return shared


def environment(server: Scripted) -> dict[str, str]:
    return {"RECTO_URL": server.url, "RECTO_TOKEN": ALICE, "LANG": "C.UTF-8"}


def chat(
    server: Scripted, folder: Path, *words: str, piped: bytes = b"", **settings: str
) -> subprocess.CompletedProcess[bytes]:
    clean = {name: value for name, value in os.environ.items() if not name.startswith(("RECTO_", "LC_", "LANG"))}
    return subprocess.run(
        [*RECTO, "chat", *words],
        cwd=folder,
        env={**clean, **environment(server), **settings},
        input=piped,
        capture_output=True,
        timeout=60,
        check=False,
    )


@pytest.mark.full
def test_C1_the_answer_goes_to_stdout_and_calls_go_to_stderr(server: Scripted, tmp_path: Path):
    call = Call(name="weather", arguments='{"city": "Bonn"}')
    server.answers[:] = [Answer(text="I look.", calls=(call,)), Answer(text="It is **warm**.\n")]
    done = chat(server, tmp_path, "How warm is it?", piped=b"in Bonn")
    assert (done.returncode, done.stdout) == (DONE, b"I look.\n\nIt is **warm**.\n")
    assert done.stderr.decode().startswith("● weather Bonn")
    assert done.stderr.count(b"\n") == 1
    assert "How warm is it?\n\nin Bonn" in last_words(server.model.requests[-2])


@pytest.mark.full
def test_C1_events_are_json_lines_and_a_thread_continues(server: Scripted, tmp_path: Path):
    server.answers[:] = [Answer(text="One."), Answer(text="Two.")]
    lines = chat(server, tmp_path, "--json", "first").stdout.splitlines()
    events = [load_object(line) or {} for line in lines]
    assert events[0]["type"] == "RUN_STARTED"
    thread = str(events[0]["threadId"])
    assert events[-1]["type"] == "RUN_FINISHED"
    assert "".join(str(event["delta"]) for event in events if event["type"] == "TEXT_MESSAGE_CONTENT") == "One."
    assert chat(server, tmp_path, "--resume", thread, piped=b"second").stdout == b"Two.\n"
    assert [one["role"] for one in page_messages(server.model.requests[-1])] == ["system", "user", "assistant", "user"]


@pytest.mark.full
def test_C1_markdown_is_rendered_in_a_terminal(server: Scripted, tmp_path: Path):
    server.answers[:] = [Answer(text="# 天气\n\nIt is **warm** today.\n\n- one\n- two\n")]
    command = [*RECTO, "chat", "How warm is it?"]
    with Terminal(command, folder=tmp_path, settings=environment(server)) as terminal:
        assert terminal.wait_end() == DONE
        assert terminal.cell("warm").bold
        assert "It is warm today." in terminal.screen()
        assert " • one" in terminal.screen()
    server.answers[:] = [Answer(text="It is **warm**.")]
    with Terminal(command, folder=tmp_path, settings={**environment(server), "NO_COLOR": "1"}) as terminal:
        assert terminal.wait_end() == DONE
        assert (terminal.screen(), b"\x1b[3" in terminal.received) == ("It is warm.", False)


@pytest.mark.full
def test_C1_a_pending_approval_exits_with_1_and_names_the_resume_command(server: Scripted, tmp_path: Path):
    server.answers[:] = [Answer(calls=(Call(name="send", arguments='{"text": "hello all"}'),))]
    done = chat(server, tmp_path, "Tell them.")
    thread = newest_thread(server)
    assert (done.returncode, done.stdout) == (FAILED, b"")
    assert done.stderr.decode() == f"send needs your approval: hello all\nResume with: recto chat --resume {thread}\n"


@pytest.mark.full
def test_C1_errors_are_one_line_on_stderr_and_an_exit_code(server: Scripted, tmp_path: Path):
    server.answers[:] = [failure(400, "never")]
    failed = chat(server, tmp_path, "Hello?")
    assert (failed.returncode, failed.stdout) == (FAILED, b"")
    assert failed.stderr.startswith(b"The run failed: The model rejected the request.")
    nobody = chat(server, tmp_path, "Hello?", RECTO_URL="http://127.0.0.1:9")
    assert (nobody.returncode, nobody.stdout) == (FAILED, b"")
    assert nobody.stderr.startswith(b"recto chat: No server answers at http://127.0.0.1:9")
    for words in (
        (), ("--json",), ("Hello?", "--resume"), ("Hello?", "--resume", new_id()), ("Hello?", "--resume", "../x"),
        ("Hello?", "--agent", "nobody"), ("Hello?", "--config", "gone.toml"),
    ):  # fmt: skip
        wrong = chat(server, tmp_path, *words)
        assert (wrong.returncode, wrong.stdout, wrong.stderr.count(b"\n")) == (WRONG_USE, b"", 1), wrong.stderr


@pytest.mark.full
def test_C1_ctrl_c_cancels_the_run_and_exits(server: Scripted, tmp_path: Path):
    command = [*RECTO, "chat", HOLD]
    before = len(server.model.requests)
    with Terminal(command, folder=tmp_path, settings=environment(server)) as terminal:
        model_request = server.model.wait_requests(before + 1)[before]
        assert model_request.wait_held()
        terminal.press("ctrl-c")
        assert terminal.wait_end() == FAILED
        assert "The run was stopped." in terminal.screen()
        assert "Traceback" not in terminal.text()
    assert model_request.wait_disconnected()
    assert server.get(f"/threads/{newest_thread(server)}")["activeRun"] is None


def newest_thread(server: Scripted) -> str:
    return str(server.rows("/threads?limit=1", "threads")[0]["id"])


@pytest.mark.full
@pytest.mark.parametrize(
    ("answers", "asked_for", "message"),
    [(0, "/runs", "Press Ctrl-C again to quit."), (1, "/events", "")],
    ids=["before_there_is_a_run", "behind_that"],
)
def test_C1_ctrl_c_twice_exits_if_the_server_does_not_answer(
    tmp_path: Path, answers: int, asked_for: str, message: str
):
    command = [*RECTO, "chat", "Hello?"]
    with (
        silent_server(answers) as (url, paths),
        Terminal(command, folder=tmp_path, settings={"RECTO_URL": url, "RECTO_TOKEN": "t"}) as terminal,
    ):
        wait_path(paths, asked_for)
        terminal.press("ctrl-c")
        if message:
            terminal.wait_for(message)
        else:
            wait_path(paths, "/cancel")
        terminal.press("ctrl-c")
        assert terminal.wait_end() == FAILED
        assert "Traceback" not in terminal.text()


@pytest.mark.full
def test_C1_ctrl_c_before_the_response_cancels_the_run(tmp_path: Path):
    go = threading.Event()
    with (
        silent_server(1, go=go) as (url, paths),
        Terminal(
            [*RECTO, "chat", "Hello?"], folder=tmp_path, settings={"RECTO_URL": url, "RECTO_TOKEN": "t"}
        ) as terminal,
    ):
        wait_path(paths, "/runs")
        terminal.press("ctrl-c")
        terminal.wait_for("Press Ctrl-C again to quit.")
        go.set()
        wait_path(paths, "/runs/r/cancel")
        terminal.press("ctrl-c")
        assert terminal.wait_end() == FAILED


def wait_path(paths: Queue[str], part: str) -> None:
    """Wait until the server receives a request for a path with `part`."""
    while part not in paths.get(timeout=30):
        pass


@pytest.mark.full
def test_C1_another_server_is_reported_in_one_line(server: Scripted, tmp_path: Path):
    with silent_server(answers=1, answer=b'{"id": "r"}') as (url, _):
        done = chat(server, tmp_path, "Hello?", RECTO_URL=url)
    assert (done.returncode, done.stderr.count(b"\n")) == (FAILED, 1)
    assert b"no answer of a Recto server" in done.stderr


@contextmanager
def silent_server(
    answers: int, answer: bytes = b'{"taskId": "r"}', go: threading.Event | None = None
) -> Generator[tuple[str, Queue[str]]]:
    """Start a server that answers a number of requests after `go`, then none; yield its URL and the requested paths."""
    paths, end, replies = Queue[str](), threading.Event(), [answer] * answers

    class Silent(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            paths.put(self.path)
            if not replies:
                end.wait(60)
                return
            reply = replies.pop()
            if go:
                go.wait(60)
            self.send_response(202)
            self.send_header("content-type", "application/json")
            self.send_header("content-length", str(len(reply)))
            self.end_headers()
            self.wfile.write(reply)

        def do_GET(self) -> None:
            self.do_POST()

        def log_message(self, format: str, *args: object) -> None:
            """Nothing."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Silent) as http:
        threading.Thread(target=http.serve_forever, daemon=True).start()
        try:
            yield f"http://127.0.0.1:{http.server_address[1]}", paths
        finally:
            end.set()
            http.shutdown()


@pytest.mark.full
def test_C1_a_closed_pipe_cancels_the_run_quietly(server: Scripted, tmp_path: Path):
    clean = {name: value for name, value in os.environ.items() if not name.startswith("RECTO_")}
    before = len(server.model.requests)
    command = [*RECTO, "chat", "--json", HOLD]
    with subprocess.Popen(
        command,
        cwd=tmp_path,
        env={**clean, **environment(server)},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    ) as process:
        assert process.stdout and process.stderr
        process.stdout.readline()
        model_request = server.model.wait_requests(before + 1)[before]
        assert model_request.wait_held()
        process.stdout.close()
        server.go.set()
        process.wait(60)
        assert process.stderr.read() == b""


@pytest.mark.full
def test_C1_chat_starts_a_server_if_there_is_none(tmp_path: Path):
    done = recto_process(tmp_path, "chat", "What is 12*7?", RECTO_MODEL="demo", LANG="C.UTF-8")
    assert (done.code, done.out) == (DONE, "12*7 = 84.\n")
