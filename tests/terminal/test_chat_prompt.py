"""The prompt of `recto chat`: streaming, calls, queued messages, files and commands."""

import re
import threading
from collections.abc import Generator, Mapping

import pytest

from recto.cli.chat.thread_api import rows
from recto.conversation.json import Json, dump
from recto.testing.model_server import Answer, Call
from tests.support.client import request
from tests.terminal.chat_world import ChatWorld
from tests.terminal.terminal import Terminal

pytestmark = pytest.mark.full
CTRL_O = "\x0f"
THREADS = "/api/v1/agent/threads"
LONG = "\n".join(f"line {number}" for number in range(120))


def test_an_answer_streams_as_markdown_with_reasoning_and_calls(world: ChatWorld) -> None:
    go = threading.Event()
    asks = Answer(reasoning="A sum.", calls=(Call(name="calculator", arguments='{"expression": "12 * 7"}'),))
    answers = Answer(
        text="# Sum\n\nIt is **84**, as\n\n| a | b |\n|---|---|\n| 1 | 2 |\n\nbehind", hold=go, hold_after=9
    )
    world.will(asks, answers)
    with world.chat() as terminal:
        terminal.wait_for("helper on")
        terminal.say("What is 12 * 7?")
        terminal.wait_for("It is 84, as")
        assert "calculator 12 * 7" in terminal.wait_for("thinking")
        assert terminal.cell("A sum.").italics
        assert terminal.cell("84, as").bold
        go.set()
        screen = terminal.wait_for(lambda screen: "behind" in screen and "thinking" not in screen)
        assert screen.count("Sum") == 1
        assert screen.index("calculator") < screen.index("84, as") < screen.index("behind") < screen.rindex("›")
        terminal.send(CTRL_O)
        call_screen = terminal.wait_for("expression: 12 * 7")
        assert call_screen.rindex("arguments") < call_screen.rindex("result") < call_screen.rindex("84")


def test_messages_during_a_run_are_queued_and_ctrl_c_cancels_the_run(world: ChatWorld) -> None:
    go = threading.Event()
    world.will(Answer(text="I begin and never end", hold=go, hold_after=4), Answer(text="The second answer."))
    with world.chat() as terminal:
        terminal.wait_for("helper on")
        terminal.say("First")
        terminal.wait_for("I begin")
        terminal.say("Second")
        screen = terminal.wait_for("1 queued")
        assert "› Second  (queued)" in screen
        terminal.press("ctrl-c")
        screen = terminal.wait_for("The second answer.")
        assert "The run was stopped." in screen
        assert screen.index("The run was stopped.") < screen.index("› Second")
        assert screen.count("The second answer.") == 1
        terminal.wait_gone("thinking")
        terminal.press("ctrl-c")
        terminal.wait_for("Press Ctrl-C again to quit.")
        terminal.press("ctrl-c")
        assert terminal.wait_end() == 0
        assert "recto chat --resume" in terminal.screen()


def test_multiple_lines_history_and_long_pastes(world: ChatWorld) -> None:
    world.will(Answer(text="Read."), Answer(text="Again."))
    with world.chat() as terminal:
        terminal.wait_for("helper on")
        terminal.send("one")
        terminal.press("newline")
        terminal.send("two\n")
        terminal.paste(LONG)
        terminal.wait_for("[Pasted text #1, 120 lines]")
        terminal.press("enter")
        terminal.wait_for("Read.")
        model_request = world.model.requests[-1]
        assert f"one\ntwo\n{LONG}" in model_request.body.decode().replace("\\n", "\n")
        assert "› one\ntwo\nline 0\n" in terminal.text()
        assert "… 110 more lines" in terminal.screen()
        terminal.press("up")
        terminal.wait_for("line 119")
    history = world.folder.parent / ".local" / "state" / "recto" / "chat-history"
    assert history.stat().st_mode & 0o777 == 0o600


def test_files_and_commands_are_completed(world: ChatWorld) -> None:
    (world.folder / "prices.csv").write_text("apples,7\n", encoding="utf-8")
    world.will(Answer(text="I have it."))
    with world.chat("--agent", "chat") as terminal:
        terminal.wait_for("chat on")
        terminal.send("Look at @pri")
        terminal.wait_for("  prices.csv")
        terminal.press("tab")
        terminal.wait_for("Look at @prices.csv")
        terminal.press("enter", "enter")
        screen = terminal.wait_for("I have it.")
        assert "› Look at @prices.csv  [prices.csv]" in screen
        assert "prices.csv" in world.model.requests[-1].body.decode()
        terminal.say("/files")
        terminal.wait_for("uploaded  prices.csv")
        terminal.send("/co")
        screen = terminal.wait_for("/cost")
        assert "/context" in screen
        assert "/compact" in screen
        terminal.press("escape")
        terminal.wait_gone("/compact")
        terminal.press("ctrl-u")
        terminal.say("/nothing")
        terminal.wait_for("Unknown command /nothing.")


def test_long_text_becomes_a_file_and_unsent_text_returns_to_the_input(world: ChatWorld) -> None:
    world.will(Answer(text="I read it."), Answer(text="No matter."))
    with world.chat("--agent", "chat", HOME="/proc") as terminal:
        terminal.wait_for("chat on")
        terminal.send("Sum up ")
        terminal.paste("\n".join(f"a line of some length {number}" for number in range(600)))
        terminal.wait_for("600 lines]")
        terminal.press("enter")
        terminal.wait_for("I read it.")
        assert "[pasted-1.txt]" in terminal.text()
        assert "pasted-1.txt" in world.model.requests[-1].body.decode()
        terminal.paste("See @/proc/self/mem")
        terminal.press("enter")
        assert "\n› See @/proc/self/mem\n" in terminal.wait_for("/proc/self/mem cannot be read")
        terminal.press("ctrl-u")
        terminal.paste("@~nobody-there @a\x1b]2;evil\x07b")
        terminal.press("enter")
        terminal.wait_for("No such file: ~nobody-there, a\N{REPLACEMENT CHARACTER}]2;evil")
        terminal.wait_for("No matter.")
        assert b"\x1b]2;evil" not in terminal.received


def test_long_list_rows_are_truncated_and_keys_after_a_list_go_to_the_input(world: ChatWorld) -> None:
    world.will(Answer(text="Fine."))
    with world.chat() as terminal:
        terminal.wait_for("helper on")
        terminal.say("Many words " * 12)
        terminal.wait_for("Fine.")
        for command, title in (
            ("/rollback", "Go back"),
            ("/resume", "Open which thread?"),
            ("/agents", "Which agent?"),
        ):
            terminal.say(command)
            terminal.wait_for(title)
            terminal.wait_for("Search:")
            rows = terminal.lines()[terminal.row(title) + 1 : terminal.row("Search:")]
            assert rows
            assert all(line.startswith(("❯ ", "  ")) for line in rows), rows
            terminal.send("\r/help\r" if command == "/agents" else "\x1b")
            terminal.wait_gone(title)
        assert "Which agent?" not in terminal.wait_for("/quit ")


def test_a_command_shows_its_output_while_it_runs(world: ChatWorld) -> None:
    command = "mkfifo go; echo begun; read line < go; echo ended"
    world.will(Answer(calls=(Call(name="terminal-execute", arguments=dump({"command": command}).decode()),)))
    with world.chat("--agent", "coder") as terminal:
        terminal.wait_for("coder on")
        terminal.say("Run it")
        terminal.wait_for("y once")
        terminal.send("y")
        terminal.wait_for("\n    begun")
        terminal.wait_for("running")
        (world.folder / "go").write_text("on\n", encoding="utf-8")
        terminal.wait_gone("running")
        terminal.send(CTRL_O)
        assert "begun" in terminal.wait_for("\n    ended\n    exit 0")


@pytest.mark.parametrize(
    ("command", "output"),
    [
        ("/help", "Enter sends"),
        ("/model", "helper uses compatible:scripted"),
        ("/cost", "1 calls"),
        ("/context", "The next page"),
        ("/explain", "Call 1"),
        ("/skills", "helper has no skills."),
        ("/fork", "Continuing in a copy"),
        ("/compact", "Nothing to summarise"),
        ("/agents", "Which agent?"),
        ("/new", "Started a new thread."),
    ],
)
def test_commands(shared: Terminal, command: str, output: str) -> None:
    shared.say(command)
    assert output in shared.wait_for_text(output)
    if command == "/agents":
        shared.press("escape")
        shared.wait_gone(output)


@pytest.fixture(scope="module")
def shared(world: ChatWorld) -> Generator[Terminal]:
    world.will(Answer(text="Good day."))
    with world.chat(size=(100, 40)) as terminal:
        terminal.wait_for("helper on")
        terminal.say("Hello")
        terminal.wait_for("Good day.")
        yield terminal


def test_F11_two_terminals_on_one_thread_show_the_same_and_send_the_previewed_page(world: ChatWorld) -> None:
    go = threading.Event()
    world.will(Answer(text="First answer.", delay=0.01), Answer(text="Second, which is long", hold=go, hold_after=4))
    with world.chat() as first:
        first.wait_for("helper on")
        first.say("One thread for two")
        first.wait_for("First answer.")
        with world.chat("--resume") as second:
            second.wait_for("One thread for two")
            second.press("enter")
            second.wait_for("First answer.")
            second.say("Second question")
            assert "› Second question" in first.wait_for("Second, which")
            second.wait_for("Second, which")
            first.press("ctrl-c")
            for terminal in (first, second):
                screen = terminal.wait_for("The run was stopped.")
                assert [screen.count(words) for words in ("› Second question", "First answer.")] == [1, 1]
            go.set()
    last_page = world.model.requests[-1].page
    thread = rows(request(world.server.url, "GET", f"{THREADS}?limit=1").json, "threads")[0]["id"]
    rolled = rows(request(world.server.url, "GET", f"{THREADS}/{thread}/messages").json, "messages")
    back = {"messageId": next(row["id"] for row in rolled if row["content"] == "Second question")}
    assert request(world.server.url, "POST", f"{THREADS}/{thread}/rollback", back).status == 200
    preview_request: Json = {"messages": [{"id": "m", "role": "user", "content": "Second question"}]}
    page = request(world.server.url, "POST", f"{THREADS}/{thread}/preview", preview_request).json["page"]
    assert isinstance(page, dict)
    assert without_time(page) == without_time(last_page)


def without_time(page: Mapping[str, Json]) -> str:
    """Return a page without its time."""
    return re.sub(r"\d{4}-\d\d-\d\d[^<\"]*", "", dump({name: page[name] for name in ("messages", "tools")}).decode())
