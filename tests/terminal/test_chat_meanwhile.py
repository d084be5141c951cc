"""What is typed into `recto chat` while something else goes on: a file on its way, a run at work, a server gone."""

import json
import threading

import pytest

from recto.cli.chat.rendering.live_run import read_user_block
from recto.cli.chat.thread_api import rows
from recto.testing.model_server import Answer, Call, ModelServer
from recto.testing.process import ServerProcess, free_port
from tests.support.client import TOKEN, request
from tests.terminal.chatting import Chatting
from tests.terminal.terminal import RECTO, Terminal

pytestmark = pytest.mark.full
THREADS = "/api/v1/agent/threads"


def threads(world: Chatting) -> list[list[str]]:
    """What was said in each of the two newest threads."""
    found = rows(request(world.server.url, "GET", f"{THREADS}?limit=2").json, "threads")
    return [said_to(world, str(thread["id"])) for thread in found]


def said_to(world: Chatting, thread: str) -> list[str]:
    found = rows(request(world.server.url, "GET", f"{THREADS}/{thread}/messages").json, "messages")
    return [read_user_block(row.get("content")).text for row in found if row["role"] == "user"]


def test_what_is_typed_is_done_in_its_order_also_behind_a_long_file(world: Chatting) -> None:
    (world.folder / "big.txt").write_bytes(b"words " * 500_000)
    world.will(*[Answer(text=f"Answered {number}.") for number in (1, 2, 3)])
    with world.chat("--agent", "chat") as terminal:
        terminal.wait_for("chat on")
        terminal.send("one @big.txt\r")
        terminal.send("two\r")
        terminal.wait_for("Answered 2.")
        terminal.send("three @big.txt \r")
        terminal.send("/new\r")
        terminal.wait_for("Started a new thread.")
        terminal.say("four")
        terminal.wait_for("› four\n\nAnswer")
    assert threads(world) == [["four"], ["one @big.txt", "two", "three @big.txt"]]


def test_a_run_that_is_at_work_is_left_with_its_thread_and_goes_on_there(world: Chatting) -> None:
    go = threading.Event()
    world.will(Answer(text="Half of it, and the rest", hold=go, hold_after=4), Answer(text="Here."))
    with world.chat() as terminal:
        terminal.wait_for("helper on")
        terminal.say("Tell me all")
        terminal.wait_for("Half of")
        terminal.press("escape", "escape")
        assert "Go back to which" not in terminal.wait_for("A run is active.")
        terminal.say("/new")
        terminal.wait_for("Started a new thread.")
        assert "Ctrl-C\n" not in terminal.wait_gone("Half of")
        terminal.say("Another thing")
        terminal.wait_for("Here.")
        go.set()
        terminal.say("/resume")
        terminal.wait_for("Open which thread?")
        terminal.send("Tell me")
        terminal.wait_for(lambda screen: "❯ Tell me all" in screen and "  Another thing" not in screen)
        terminal.press("enter")
        terminal.wait_for("Half of it, and the rest")
    assert sorted(map(str, threads(world))) == ["['Another thing']", "['Tell me all']"]


def test_a_long_paste_among_the_arguments_of_a_call_is_the_text_itself(world: Chatting) -> None:
    world.will(Answer(calls=(Call(name="send", arguments='{"to": "Ed"}'),)), Answer(text="Sent."))
    with world.chat() as terminal:
        terminal.wait_for("helper on")
        terminal.say("Write to Ed")
        terminal.wait_for("y once")
        terminal.send("e")
        terminal.wait_for('"to": "Ed"')
        terminal.press("backspace", "ctrl-u", "backspace", "ctrl-u", "backspace", "ctrl-u")
        terminal.paste(json.dumps({"to": "Ed", "text": "Good day"}).replace(",", "," + "\n" * 9))
        terminal.wait_for("[Pasted text #1")
        terminal.press("enter")
        terminal.wait_for("Sent.")
        assert "sent 'Good day' to Ed" in world.model.requests[-1].body.decode()


def test_the_agent_that_was_named_answers_in_a_thread_of_the_list_and_a_new_one_has_the_servers(
    world: Chatting,
) -> None:
    world.will(Answer(text="Of the coder."))
    with world.chat("--agent", "coder") as terminal:
        terminal.wait_for("coder on")
        terminal.say("Who are you?")
        terminal.wait_for("Of the coder.")
    with world.chat("--agent", "chat", "--resume") as terminal:
        terminal.wait_for("❯ Who are you?")
        terminal.press("enter")
        terminal.wait_for("\nchat · ")
    with world.chat("--resume") as terminal:
        terminal.wait_for("❯ Who are you?")
        terminal.press("enter")
        terminal.wait_for("\ncoder · ")
        terminal.say("/new")
        assert "coder · " not in terminal.wait_for(lambda screen: screen.endswith("\nhelper"))


def test_who_leaves_while_the_server_is_gone_can_and_is_told_what_was_not_sent(world: Chatting) -> None:
    port, go = free_port(), threading.Event()
    with ModelServer(lambda _: Answer(text="Half an answer", hold=go, hold_after=3)) as model:
        settings = {"RECTO_MODEL": "compatible:scripted", "RECTO_MODEL_URL": model.url, "RECTO_AGENT": "chat"}
        serve = ["recto", "serve", "--port", str(port), "--data", str(world.folder.parent / "gone")]
        command = (*RECTO, "chat", "--server", f"http://127.0.0.1:{port}")
        known = {"RECTO_TOKEN": TOKEN, "HOME": str(world.folder.parent)}
        with ServerProcess(serve, settings) as server:
            terminal = Terminal(command, folder=world.folder, settings=known)
            terminal.wait_for("chat on")
            terminal.say("Speak")
            terminal.wait_for("Half")
            server.kill()
        go.set()
    with terminal:
        terminal.wait_for("The server does not answer.")
        terminal.say("Anybody?")
        terminal.wait_for("› Anybody?  (queued)")
        terminal.press("ctrl-c")
        terminal.wait_for("stopping")
        terminal.press("ctrl-c")
        terminal.wait_for("Press Ctrl-C again to quit.")
        terminal.press("ctrl-c")
        assert terminal.wait_end() == 1
        assert "Not sent: Anybody?" in terminal.screen()
