"""The terminal that tests look into: what a program writes, asks and is told arrives as in a real one."""

import signal
import sys
from collections.abc import Generator
from pathlib import Path

import pytest

from tests.terminal.terminal import Terminal

PROGRAM = r"""
import os, shutil, signal, sys, termios, tty

def told(*_):
    print("size", *shutil.get_terminal_size(), flush=True)

signal.signal(signal.SIGWINCH, told)
told()
print("\x1b[31mred\x1b[0m 天气 after\n>", end="", flush=True)
for line in sys.stdin:
    match line.split():
        case ["count", end]:
            print("\n".join(f"line {number}" for number in range(int(end))))
        case ["where"]:
            kept = termios.tcgetattr(0)
            tty.setcbreak(0)
            print("12345\x1b[6n", end="", flush=True)
            answer = os.read(0, 32)
            termios.tcsetattr(0, termios.TCSADRAIN, kept)
            print("", answer)
        case ["end", code]:
            sys.exit(int(code))
    print("done", flush=True)
"""


@pytest.fixture
def terminal(tmp_path: Path) -> Generator[Terminal]:
    with Terminal([sys.executable, "-c", PROGRAM], folder=tmp_path) as found:
        found.wait_for("\n>")
        yield found


def test_a_screen_has_words_colours_and_wide_characters(terminal: Terminal):
    assert terminal.lines()[:2] == ["size 80 24", "red 天气 after"]
    assert terminal.cell("red").fg == "red"
    assert terminal.cell("天气").fg == "default"
    assert terminal.column("after") == len("red ") + 2 * len("天气") + 1
    assert terminal.cursor() == (1, 2)


def test_lines_that_leave_the_screen_can_be_read(terminal: Terminal):
    terminal.say("count 40")
    terminal.wait_for("done")
    assert "line 0" not in terminal.lines()
    assert [line for line in terminal.scrolled() if line.startswith("line")] == [f"line {n}" for n in range(18)]
    assert "line 0\nline 1\n" in terminal.text()


def test_a_program_that_asks_for_its_cursor_is_told(terminal: Terminal):
    terminal.say("where")
    assert r"b'\x1b[4;6R'" in terminal.wait_for("done")


def test_a_window_of_another_size_is_told_by_a_signal(terminal: Terminal):
    terminal.resize(60, 2)
    terminal.wait_for("size 60 2")
    assert len(terminal.lines()) == 2
    assert terminal.scrolled()[0] == "size 80 24"


def test_what_does_not_come_fails_with_the_screen(terminal: Terminal):
    with pytest.raises(AssertionError, match=r"(?s)waited 0 s for 'never'; it runs.*red 天气 after"):
        terminal.wait_for("never", timeout=0.01)
    terminal.say("end 3")
    assert terminal.wait_end() == 3
    with pytest.raises(AssertionError, match="it ended before it showed 'never'; it ended with 3"):
        terminal.wait_for("never")


def test_keys_that_are_signals_and_signals_end_it(terminal: Terminal, tmp_path: Path):
    terminal.press("ctrl-c")
    assert terminal.wait_end() == -signal.SIGINT
    assert "KeyboardInterrupt" in terminal.text()
    with Terminal([sys.executable, "-c", PROGRAM], folder=tmp_path) as other:
        other.wait_for("\n>")
        other.kill()
        assert other.wait_end() == -signal.SIGKILL
