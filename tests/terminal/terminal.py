"""A program in a pseudo terminal, and its screen.

What it writes is taken in by a thread, which also answers when the program asks where its cursor is. Waiting is for
what the screen shows, never for time to pass; who waits in vain is shown the whole screen.
"""

import fcntl
import os
import pty
import signal
import struct
import subprocess
import sys
import termios
import threading
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Self

import pyte
from pyte.screens import Char
from wcwidth import wcwidth

COLUMNS, LINES = 80, 24
PATIENCE = 30.0
RECTO = (sys.executable, "-m", "recto")
# Whoever leads a session and opens a terminal has it as its own: so Ctrl-C and changes of its size arrive as signals.
OPEN = 'exec <>"$0" >&0 2>&0; exec "$@"'
# What the surroundings of the tests would tell a program about its terminal, its language and its server.
FOREIGN = ("RECTO_", "OPENAI_", "ANTHROPIC_", "GEMINI_", "LC_", "LANG", "COLUMNS", "LINES", "NO_COLOR", "FORCE_COLOR")
KEYS: Mapping[str, str] = {
    "enter": "\r",
    "newline": "\x1b\r",
    "tab": "\t",
    "escape": "\x1b",
    "up": "\x1b[A",
    "down": "\x1b[B",
    "right": "\x1b[C",
    "left": "\x1b[D",
    "backspace": "\x7f",
    "ctrl-c": "\x03",
    "ctrl-d": "\x04",
    "ctrl-u": "\x15",
}
PASTE = ("\x1b[200~", "\x1b[201~")


class Screen(pyte.Screen):
    """A screen with scrollback."""

    def __init__(self, columns: int, lines: int, answer: Callable[[str], None]) -> None:
        self.gone: list[str] = []
        self._answer = answer
        super().__init__(columns, lines)

    def index(self) -> None:
        """Move the cursor down; at the bottom, scroll."""
        if self.margins is None and self.cursor.y == self.lines - 1:
            self.gone.append(self.line(0))
        super().index()

    def resize(self, lines: int | None = None, columns: int | None = None) -> None:
        """Resize as terminals do: remove lines below the cursor first, then at the top."""
        above = self.cursor.y - ((lines or self.lines) - 1)
        for _ in range(above):
            self.cursor.y = self.lines - 1
            self.index()
        if above > 0:
            self.cursor.y = (lines or self.lines) - 1
        self.lines, self.columns = lines or self.lines, columns or self.columns
        for y in [y for y in self.buffer if y >= self.lines]:
            del self.buffer[y]
        for row in self.buffer.values():
            for x in [x for x in row if x >= self.columns]:
                del row[x]
        self.margins = None
        self.ensure_hbounds()

    def write_process_input(self, data: str) -> None:
        """Answer a query of the program."""
        self._answer(data)

    def cells(self, y: int) -> list[tuple[int, Char]]:
        """Return the characters of a line with their columns; a wide one takes two."""
        row, result, x = self.buffer[y], list[tuple[int, Char]](), 0
        while x < self.columns:
            result.append((x, row[x]))
            x += max(1, wcwidth(row[x].data[:1]))
        return result

    def line(self, y: int) -> str:
        """Return the text of a line without trailing blanks."""
        return "".join(cell.data for _, cell in self.cells(y)).rstrip()


class Terminal:
    """A program in a pseudo terminal. Leaving the context ends the program."""

    def __init__(
        self,
        command: Sequence[str],
        *,
        folder: Path,
        settings: Mapping[str, str] | None = None,
        size: tuple[int, int] = (COLUMNS, LINES),
    ) -> None:
        self.received = bytearray()
        self._changed = threading.Condition()
        self._is_over = False
        self._master, slave = pty.openpty()
        self._screen = Screen(*size, answer=self.send)
        self._stream = pyte.ByteStream(self._screen)
        self._set_size(*size)
        clean = {name: value for name, value in os.environ.items() if not name.startswith(FOREIGN)}
        environment = {"TERM": "xterm-256color", "LANG": "C.UTF-8", **(settings or {})}
        started = ["sh", "-c", OPEN, os.ttyname(slave), *command]
        self._process = subprocess.Popen(
            started,
            cwd=folder,
            env=clean | environment,
            start_new_session=True,
            stdin=slave,
            stdout=slave,
            stderr=slave,
            # Tests that a shell runs in the background ignore it, and who ignores it hands that on.
            preexec_fn=partial(signal.signal, signal.SIGINT, signal.SIG_DFL),  # noqa: PLW1509 - it takes no lock
        )
        os.close(slave)
        self._reader = threading.Thread(target=self._read, name="terminal", daemon=True)
        self._reader.start()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self._process.poll() is None:
            self._process.kill()
        self.wait_end()
        os.close(self._master)

    @property
    def pid(self) -> int:
        """Process id of the program."""
        return self._process.pid

    # What a person does

    def send(self, text: str) -> None:
        """Send input."""
        os.write(self._master, text.encode())

    def press(self, *names: str) -> None:
        """Press keys in order."""
        self.send("".join(KEYS[name] for name in names))

    def say(self, text: str) -> None:
        """Type a text, wait until it is on the screen, and press Enter."""
        self.send(text)
        self.wait_for(text[-20:])
        self.press("enter")

    def paste(self, text: str) -> None:
        """Paste text with bracketed paste."""
        self.send(text.join(PASTE))

    def resize(self, columns: int, lines: int) -> None:
        """Resize the window; the program receives a signal."""
        with self._changed:
            self._screen.resize(lines, columns)
        self._set_size(columns, lines)

    def kill(self, sign: signal.Signals = signal.SIGKILL) -> None:
        """Send the program a signal."""
        self._process.send_signal(sign)

    def wait_end(self, timeout: float = PATIENCE) -> int:
        """Wait until the program has ended and its output is on the screen; return its exit code."""
        code = self._process.wait(timeout)
        self._reader.join(timeout)
        return code

    # What a person sees

    def lines(self) -> list[str]:
        """Return the lines of the screen without trailing blanks."""
        with self._changed:
            return [self._screen.line(y) for y in range(self._screen.lines)]

    def screen(self) -> str:
        """Return the screen as text, without trailing empty lines."""
        return "\n".join(self.lines()).rstrip("\n")

    def scrolled(self) -> list[str]:
        """Return the lines that scrolled off."""
        with self._changed:
            return list(self._screen.gone)

    def text(self) -> str:
        """Return the scrollback and the screen."""
        return "\n".join([*self.scrolled(), self.screen()])

    def cells(self, y: int) -> list[Char]:
        """Return the characters of a line with their colours."""
        with self._changed:
            return [cell for _, cell in self._screen.cells(y)]

    def cell(self, text: str) -> Char:
        """Return the first character of a text on the screen, with its colours: `fg`, `bg`, `bold`, `italics` ..."""
        return self.cells(self.row(text))[self.lines()[self.row(text)].index(text)]

    def row(self, text: str) -> int:
        """Return the first line of the screen that contains a text."""
        rows = [y for y, line in enumerate(self.lines()) if text in line]
        assert rows, self._describe_screen(f"{text!r} is not on the screen")
        return rows[0]

    def wait_for(self, expected: str | Callable[[str], bool], timeout: float = PATIENCE) -> str:
        """Wait until the screen contains a text or meets a condition; return the screen."""

        def is_there(screen: str) -> bool:
            return expected in screen if isinstance(expected, str) else expected(screen)

        return self._wait(is_there, self.screen, timeout, expected)

    def wait_for_text(self, expected: str, timeout: float = PATIENCE) -> str:
        """Wait until the screen or the scrollback contains a text."""
        return self._wait(lambda text: expected in text, self.text, timeout, expected)

    def wait_gone(self, text: str, timeout: float = PATIENCE) -> str:
        """Wait until a text has left the screen."""
        return self.wait_for(lambda screen: text not in screen, timeout)

    def _wait(self, is_there: Callable[[str], bool], look: Callable[[], str], timeout: float, expected: object) -> str:
        with self._changed:
            self._changed.wait_for(lambda: is_there(look()) or self._is_over, timeout)
            text = look()
            reason = "it ended before it showed" if self._is_over else f"waited {timeout:.0f} s for"
            assert is_there(text), self._describe_screen(f"{reason} {expected!r}")
        return text

    def _describe_screen(self, what: str) -> str:
        code = self._process.poll()
        state = "it runs" if code is None else f"it ended with {code}"
        edge = "-" * self._screen.columns
        return f"{what}; {state}, {len(self.scrolled())} lines scrolled off:\n{edge}\n{self.screen()}\n{edge}"

    def _set_size(self, columns: int, lines: int) -> None:
        fcntl.ioctl(self._master, termios.TIOCSWINSZ, struct.pack("HHHH", lines, columns, 0, 0))

    def _read(self) -> None:
        while data := self._next():
            with self._changed:
                self.received += data
                self._stream.feed(data)
                self._changed.notify_all()
        with self._changed:
            self._is_over = True
            self._changed.notify_all()

    def _next(self) -> bytes:
        try:
            return os.read(self._master, 65536)
        except OSError:  # how Linux says that nobody has the other end open
            return b""
