"""Input to `recto chat` during an upload, a run, or a lost connection."""

import json
import threading

import pytest

from recto.cli.chat.rendering.live_run import read_user_block
from recto.cli.chat.thread_api import rows
from recto.testing.model_server import Answer, Call, ModelServer
from recto.testing.process import ServerProcess, free_port
from tests.support.client import TOKEN, request
from tests.terminal.chat_world import ChatWorld
from tests.terminal.terminal import RECTO, Terminal

pytestmark = pytest.mark.full
THREADS = "/api/v1/agent/threads"


def threads(world: ChatWorld) -> list[list[str]]:
    """Return the messages of the two newest threads."""
    newest_threads = rows(request(world.server.url, "GET", f"{THREADS}?limit=2").json, "threads")
    return [messages_of(world, str(thread["id"])) for thread in newest_threads]


def messages_of(world: ChatWorld, thread: str) -> list[str]:
    messages = rows(request(world.server.url, "GET", f"{THREADS}/{thread}/messages").json, "messages")
    return [read_user_block(row.get("content")).text for row in messages if row["role"] == "user"]


def test_input_is_processed_in_order_after_a_slow_upload(world: ChatWorld) -> None:
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


def test_a_run_continues_after_the_terminal_opens_another_thread(world: ChatWorld) -> None:
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


def test_a_long_paste_into_arguments_is_expanded(world: ChatWorld) -> None:
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


def test_the_agent_option_applies_to_a_listed_thread_and_not_to_a_new_one(world: ChatWorld) -> None:
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


def test_quitting_without_a_server_prints_the_unsent_messages(world: ChatWorld) -> None:
    port, go = free_port(), threading.Event()
    with ModelServer(lambda _: Answer(text="Half an answer", hold=go, hold_after=3)) as model:
        settings = {"RECTO_MODEL": "compatible:scripted", "RECTO_MODEL_URL": model.url, "RECTO_AGENT": "chat"}
        serve = ["recto", "serve", "--port", str(port), "--data", str(world.folder.parent / "gone")]
        command = (*RECTO, "chat", "--server", f"http://127.0.0.1:{port}")
        environment = {"RECTO_TOKEN": TOKEN, "HOME": str(world.folder.parent)}
        with ServerProcess(serve, settings) as server:
            terminal = Terminal(command, folder=world.folder, settings=environment)
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
