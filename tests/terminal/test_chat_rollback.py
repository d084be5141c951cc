"""Approvals, rollback by double Esc, and resumed threads in `recto chat`."""

import json
import signal
import threading
from dataclasses import replace

import pytest

from recto.testing.model_server import Answer, Call
from tests.support.client import TOKEN
from tests.terminal.chat_world import ChatWorld, wait_idle
from tests.terminal.terminal import RECTO, Terminal

pytestmark = pytest.mark.full
KEYS = "y once"
APPROVAL_HINT = "Press Tab to decide"
SHOP = "def price(count):\n    return count * 3\n"


def call(name: str, id: str = "call_a", **arguments: object) -> Answer:
    return Answer(calls=(Call(name=name, arguments=json.dumps(arguments), id=id),))


def edit(old: str, new: str, id: str) -> Answer:
    return call("filesystem-edit", id, filePath="shop.py", searchContent=old, replaceContent=new)


def test_an_edit_shows_its_diff_and_runs_once_always_or_never(world: ChatWorld) -> None:
    shop = world.folder / "shop.py"
    shop.write_text(SHOP, encoding="utf-8")
    world.will(
        edit("count * 3", "count * 4", "one"),
        edit("count * 4", "count * 5", "two"),
        Answer(text="First turn done."),
        edit("count * 5", "count * 6", "three"),
        call("terminal-execute", "four", command="echo hello"),
        Answer(text="Second turn done."),
    )
    with world.chat("--agent", "coder") as terminal:
        terminal.wait_for("coder on")
        terminal.say("Make it dearer")
        terminal.wait_for(KEYS)
        assert terminal.cell("-count * 3").fg == "red"
        assert terminal.cell("+count * 4").fg == "green"
        assert shop.read_text(encoding="utf-8") == SHOP
        terminal.send("y")
        terminal.wait_for("+count * 5")
        terminal.wait_for(KEYS)
        assert "filesystem-edit shop.py +1 -1" in terminal.screen()
        terminal.send("a")
        terminal.wait_for("Press a again")
        terminal.send("a")
        terminal.wait_for("First turn done.")
        assert "filesystem-edit no longer needs approval in this thread." in terminal.screen()
        terminal.say("Again, and say hello")
        screen = terminal.wait_for("terminal-execute needs your approval")
        assert "count * 6" in shop.read_text(encoding="utf-8"), "it was asked about once, and then no more"
        assert "echo hello" in screen
        terminal.wait_for(KEYS)
        terminal.send("n")
        terminal.wait_for("Reason for the model")
        terminal.say("Not on this machine")
        terminal.wait_for("Second turn done.")
        assert "They said: Not on this machine" in world.model.requests[-1].body.decode()


def test_arguments_can_be_edited_and_invalid_json_is_reported(world: ChatWorld) -> None:
    world.will(call("send", to="Anna", text="Hi"), Answer(text="Sent."))
    with world.chat() as terminal:
        terminal.wait_for("helper on")
        terminal.say("Write to Anna")
        terminal.wait_for(KEYS)
        assert terminal.row("› Write to Anna") < terminal.row("? send needs your approval")
        terminal.send("e")
        terminal.wait_for('"to": "Anna"')
        terminal.press("ctrl-u", "backspace")
        terminal.send('"to": "Bob"}')
        terminal.press("enter")
        terminal.wait_for("This is not a JSON object.")
        terminal.press("escape")
        terminal.wait_for(KEYS)
        terminal.send("e")
        terminal.wait_for('"to": "Anna"')
        terminal.press("backspace", "backspace")
        terminal.send(', "text": "Good day"}')
        terminal.press("enter")
        terminal.wait_for("Sent.")
        assert "sent 'Good day' to Anna" in world.model.requests[-1].body.decode()


def test_typed_text_does_not_decide_on_a_new_approval(world: ChatWorld) -> None:
    go = threading.Event()
    slow_answer = replace(call("send", to="Dora"), text="I write", hold=go, hold_after=1)
    world.will(slow_answer, Answer(text="It is sent."))
    with world.chat() as terminal:
        terminal.wait_for("helper on")
        terminal.say("Write to Dora")
        terminal.wait_for("thinking")
        terminal.send("h")
        terminal.wait_for("› h")
        go.set()
        terminal.wait_for(APPROVAL_HINT)
        terminal.send("ave you any news")
        terminal.wait_for("› have you any news")
        terminal.press("tab")
        assert "no longer needs approval" not in terminal.wait_for(KEYS)
        terminal.send("a")
        terminal.wait_for(APPROVAL_HINT)
        terminal.press("tab")
        terminal.wait_for("Press a again")
        terminal.press("escape")
        terminal.wait_for(APPROVAL_HINT)
        terminal.press("tab")
        terminal.wait_for(KEYS)
        terminal.send("y")
        terminal.wait_for("It is sent.")
        assert "no longer needs approval" not in terminal.wait_for("› have you any news")


def test_an_approval_can_be_postponed_and_decided_in_another_terminal(world: ChatWorld) -> None:
    world.will(call("send", to="Carl", text="Hi"), Answer(text="It is sent."))
    with world.chat() as first:
        first.wait_for("helper on")
        first.say("Write to Carl")
        first.wait_for(KEYS)
        first.press("escape")
        first.wait_for("Tool calls that need approval: 1.")
        first.say("/approve")
        first.wait_for(KEYS)
        with world.chat("--resume") as second:
            second.wait_for("Write to Carl")
            second.press("enter")
            second.wait_for(KEYS)
            second.send("y")
            second.wait_for("It is sent.")
        screen = first.wait_for("It is sent.")
        assert KEYS not in screen
        assert screen.count("It is sent.") == 1


def test_R12_double_escape_clears_the_input_or_opens_the_list(world: ChatWorld) -> None:
    # How long it may take between the two is tested without a terminal.
    patient = world.folder.parent / "patient.toml"
    patient.write_text("[chat]\nescape_ms = 60000\n", encoding="utf-8")
    world.will(Answer(text="Well said."))
    with world.chat("--config", str(patient)) as terminal:
        terminal.wait_for("helper on")
        terminal.say("Plan my week")
        terminal.wait_for("Well said.")
        wait_idle(terminal)
        terminal.send("half a thought")
        terminal.wait_for("half a thought")
        terminal.press("escape", "escape")
        terminal.wait_gone("half a thought")
        terminal.press("escape", "escape")
        assert "Plan my week" in terminal.wait_for("Go back to which message?")


def test_R12_rollback_restores_the_text_offers_files_and_can_be_undone(world: ChatWorld) -> None:
    shop = world.folder / "shop.py"
    shop.write_text(SHOP, encoding="utf-8")
    world.will(
        Answer(text="Good morning."),
        edit("count * 3", "count * 9", "nine"),
        Answer(text="Nine it is."),
        Answer(text="Ok."),
    )
    with world.chat("--agent", "coder") as terminal:
        terminal.wait_for("coder on")
        terminal.say("Hello")
        terminal.wait_for("Good morning.")
        terminal.say("Make it nine")
        terminal.wait_for(KEYS)
        terminal.send("y")
        terminal.wait_for("Nine it is.")
        wait_idle(terminal)
        terminal.press("escape", "escape")
        screen = terminal.wait_for("❯ Make it nine")
        assert "  Hello" in screen
        terminal.press("enter")
        terminal.wait_for("Files changed since then (1): shop.py.")
        assert "count * 9" in shop.read_text(encoding="utf-8")
        terminal.send("y")
        terminal.wait_for("Restored: shop.py")
        assert shop.read_text(encoding="utf-8") == SHOP
        terminal.wait_for("\n› Make it nine\n")
        terminal.press("ctrl-u")
        terminal.say("/undo")
        screen = terminal.wait_for("Messages restored:")
        terminal.wait_for(lambda screen: screen.count("Nine it is.") == 2)


def test_R14_a_thread_is_chosen_from_a_searched_list(world: ChatWorld) -> None:
    world.will(Answer(text="\n\n".join(f"Paragraph {number}." for number in range(60))), Answer(text="Of bread."))
    for words, last_text in (("Tell me of lighthouses", "Paragraph 59."), ("Tell me of bread", "Of bread.")):
        with world.chat() as terminal:
            terminal.wait_for("helper on")
            terminal.say(words)
            terminal.wait_for(last_text)
            wait_idle(terminal)
    with world.chat("--resume") as terminal:
        screen = terminal.wait_for("Tell me of lighthouses")
        row = next(line for line in screen.splitlines() if "bread" in line)
        assert "helper" in row
        assert "now" in row or "min" in row
        assert row.endswith("tokens")
        terminal.send("LIGHT")
        terminal.wait_gone("bread")
        terminal.press("enter")
        screen = terminal.wait_for("Paragraph 59.")
        assert "earlier messages are hidden" in terminal.text()
        assert "Tell me of bread" not in terminal.text().partition("are hidden")[2]
        world.will(Answer(text="Gone on."))
        terminal.say("Go on")
        terminal.wait_for("Gone on.")
        pages = world.model.requests[-1].body.decode()
        assert "Tell me of lighthouses" in pages


def test_R14_a_run_continues_after_its_terminal_and_server_are_killed(world: ChatWorld) -> None:
    """Kill the terminal that serves the folder during an answer."""
    go = threading.Event()
    world.will(Answer(text="Half an answer that", hold=go, hold_after=4), Answer(text="The whole answer."))
    data = world.folder.parent / "own"
    environment = {
        "RECTO_MODEL": "compatible:scripted",
        "RECTO_MODEL_URL": world.model.url,
        "RECTO_TOKEN": TOKEN,
        "HOME": str(world.folder.parent),
        "RECTO_LEASE_SECONDS": "1",
    }
    command = (*RECTO, "chat", "--data", str(data))
    with Terminal(command, folder=world.folder, settings=environment) as terminal:
        terminal.wait_for("chat on", 60)
        terminal.say("Say something")
        terminal.wait_for("Half an")
        terminal.kill(signal.SIGKILL)
        terminal.wait_end()
    go.set()
    with Terminal((*command, "--resume"), folder=world.folder, settings=environment) as terminal:
        terminal.wait_for("❯ Say something", 60)
        terminal.press("enter")
        screen = terminal.wait_for("The whole answer.", 60)
        assert screen.count("› Say something") == 1
