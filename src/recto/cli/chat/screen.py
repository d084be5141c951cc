"""The terminal screen: a prompt_toolkit application below the scrolling output.

The screen handles keys and layout. The callbacks in `Handlers` implement the actions.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import sys
import time
from collections.abc import Awaitable, Callable, Generator, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import cast

from prompt_toolkit.application import Application
from prompt_toolkit.application.current import set_app
from prompt_toolkit.buffer import Buffer
from prompt_toolkit.completion import Completer, ThreadedCompleter
from prompt_toolkit.filters import Condition, FilterOrBool
from prompt_toolkit.formatted_text import ANSI, AnyFormattedText, StyleAndTextTuples
from prompt_toolkit.history import History
from prompt_toolkit.input import create_input
from prompt_toolkit.key_binding import KeyBindings, KeyPressEvent
from prompt_toolkit.keys import Keys
from prompt_toolkit.layout import (
    BufferControl,
    ConditionalContainer,
    Dimension,
    FormattedTextControl,
    HSplit,
    Layout,
    Window,
)
from prompt_toolkit.layout.processors import BeforeInput
from prompt_toolkit.output import ColorDepth
from prompt_toolkit.output.vt100 import Vt100_Output
from rich.cells import cell_len, set_cell_size

from recto.cli.chat.chat_settings import ChatSettings
from recto.cli.chat.prompt_input import Pastes, is_double
from recto.cli.translation import _
from recto.errors import RectoError

# Time to wait for the rest of an escape sequence.
ESCAPE_SECONDS = 0.05
TICK_SECONDS = 0.1
MOST_INPUT_LINES, MOST_COMPLETIONS = 10, 8


@dataclass(frozen=True, kw_only=True)
class Row:
    """Choice in a list."""

    value: str
    text: str


Load = Callable[[str], Awaitable[Sequence[Row]]]


@dataclass(kw_only=True)
class PendingQuestion:
    """Open question. `answer` is None if the user cancels."""

    title: str
    keys: str = ""
    rows: Sequence[Row] = ()
    load: Load | None = None
    place: int = 0
    is_text: bool = False
    # Input text to restore afterwards.
    saved_text: str = ""
    answer: asyncio.Future[str | None] = field(default_factory=lambda: asyncio.get_running_loop().create_future())

    @property
    def has_rows(self) -> bool:
        """True for a choice from a list."""
        return self.load is not None


@dataclass(frozen=True, kw_only=True)
class Handlers:
    """Callbacks of the screen. `live` receives width and height."""

    submit: Callable[[str, Pastes], None]
    interrupt: Callable[[], bool]
    escape_twice: Callable[[], None]
    open_call: Callable[[], None]
    live: Callable[[int, int], str]
    status: Callable[[int], str]
    is_busy: Callable[[], bool]


def truncate(text: str, cells: int) -> str:
    """Truncate a line to a width in cells."""
    return text if cell_len(text) <= cells else set_cell_size(text, cells - 1) + "…"


class BufferedOutput(Vt100_Output):
    """Terminal output that can be buffered, so that no partial frame is visible."""

    _is_buffering = False

    def flush(self) -> None:
        """Flush, unless buffering."""
        if not self._is_buffering:
            super().flush()

    @contextlib.contextmanager
    def buffer_frame(self) -> Generator[None]:
        """Buffer all output in this context."""
        self._is_buffering = True
        try:
            yield
        finally:
            self._is_buffering = False
            self.flush()


class Screen:
    """Input, live output above it, a status line below, and questions."""

    def __init__(self, settings: ChatSettings, handlers: Handlers, completer: Completer, history: History) -> None:
        self._settings, self._handlers = settings, handlers
        self._pastes = Pastes()
        self._question: PendingQuestion | None = None
        # One question at a time. An offered question waits until the user stops typing or presses Tab.
        self._question_lock = asyncio.Lock()
        self._offer: asyncio.Event | None = None
        self._last_press = 0.0
        self._to_print: list[str] = []
        self._dirty = asyncio.Event()
        self._last_escape: float | None = None
        self._loading: asyncio.Task[None] | None = None
        self.buffer = Buffer(
            multiline=True,
            completer=ThreadedCompleter(completer),
            complete_while_typing=Condition(lambda: self._question is None),
            history=history,
            on_text_changed=lambda _buffer: self._search(),
        )
        self._output = cast("BufferedOutput", BufferedOutput.from_pty(sys.stdout, term=os.environ.get("TERM")))
        # The answer to a cursor position request would mix with typed input over a slow connection.
        self._output.enable_cpr = False
        self.app: Application[None] = Application(
            layout=Layout(self._layout(), focused_element=self.buffer),
            key_bindings=self._keys(),
            input=create_input(),
            output=self._output,
            color_depth=ColorDepth.DEPTH_1_BIT if os.environ.get("NO_COLOR") else None,
            erase_when_done=True,
        )
        self.app.key_processor.before_key_press += self._note_press
        self.app.ttimeoutlen = self.app.timeoutlen = ESCAPE_SECONDS

    async def run(self) -> None:
        """Run until the user leaves."""
        paint_task = asyncio.create_task(self._paint())
        try:
            await self.app.run_async(handle_sigint=False)
        finally:
            paint_task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await paint_task
            self._print_now()

    def leave(self) -> None:
        """Exit the application."""
        if self.app.is_running and not self.app.is_done:
            self.app.exit()

    def print(self, text: str) -> None:
        """Print text above the input."""
        self._to_print.append(text)
        self.request_redraw()

    def request_redraw(self) -> None:
        """Redraw with the next frame."""
        self._dirty.set()

    def set_text(self, text: str) -> None:
        """Set the input text."""
        self.buffer.set_document(type(self.buffer.document)(text), bypass_readonly=True)

    def restore_text(self, text: str) -> None:
        """Restore unsent text if the input is empty. Otherwise the user finds the text in the history."""
        if self._question is None and not self.buffer.text:
            self.set_text(text)

    @property
    def size(self) -> tuple[int, int]:
        """Columns and rows."""
        terminal_size = self.app.output.get_size()
        return terminal_size.columns, terminal_size.rows

    async def choose(self, title: str, load: Load) -> str | None:
        """Ask for one of several rows; `load` filters them by a search text."""
        rows = await load("")
        return await self._ask(PendingQuestion(title=title, rows=rows, load=load))

    async def ask_key(self, title: str, keys: str) -> str | None:
        """Ask for one of `keys`. Wait until the user stops typing or presses Tab, so that typed text is no answer."""
        return await self._ask(PendingQuestion(title=title, keys=keys))

    async def ask_text(self, title: str, initial: str) -> str | None:
        """Ask for text, with an initial value."""
        return await self._ask(PendingQuestion(title=title, is_text=True), initial)

    async def _ask(self, question: PendingQuestion, initial: str = "") -> str | None:
        async with self._question_lock:
            if question.keys:
                await self._wait_until_quiet()
            self._question, question.saved_text = question, self.buffer.text
            self.buffer.cancel_completion()
            self.set_text(initial)
            self.request_redraw()
            try:
                return await question.answer
            finally:
                self._close_question(question)

    def _close_question(self, question: PendingQuestion) -> None:
        """Restore the input."""
        if self._question is question:
            self._question = None
            self.set_text(question.saved_text)
            self.request_redraw()

    async def _wait_until_quiet(self) -> None:
        """Wait until the user stops typing, so that a key meant for a message does not answer the question."""
        offer = self._offer = asyncio.Event()
        seconds, began = self._settings.quiet_ms / 1000, time.monotonic()
        self.request_redraw()
        try:
            while not offer.is_set():
                remaining = seconds if self.buffer.text else max(began, self._last_press) + seconds - time.monotonic()
                if remaining <= 0:
                    return
                with contextlib.suppress(TimeoutError):
                    await asyncio.wait_for(offer.wait(), remaining)
        finally:
            self._offer = None
            self.request_redraw()

    def _note_press(self, _event: object) -> None:
        self._last_press = time.monotonic()

    async def _paint(self) -> None:
        """Redraw after changes, at a limited rate."""
        while True:
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._dirty.wait(), TICK_SECONDS if self._handlers.is_busy() else None)
            self._dirty.clear()
            self._print_now()
            self.app.invalidate()
            await asyncio.sleep(1 / self._settings.frames)

    def _print_now(self) -> None:
        if not self._to_print:
            return
        text, self._to_print = "".join(self._to_print), []
        text = text.replace("\n", "\r\n")
        if not self.app.is_running or self.app.is_done:
            self._output.write_raw(text)
            self._output.flush()
            return
        with self._output.buffer_frame(), set_app(self.app):
            self.app.renderer.erase(leave_alternate_screen=False)
            self._output.write_raw(text)
            self.app.renderer.render(self.app, self.app.layout)

    def _layout(self) -> HSplit:
        typing = Condition(lambda: self._question is None or self._question.is_text or self._question.has_rows)

        def prompt() -> AnyFormattedText:
            is_search = self._question is not None and self._question.has_rows
            return [("fg:ansibrightblack", _("Search: "))] if is_search else [("bold", "› ")]

        def live_text() -> AnyFormattedText:
            width, rows = self.size
            return ANSI(self._handlers.live(width, max(rows - 12, 3)).rstrip("\n"))

        def rule() -> AnyFormattedText:
            return [("class:rule fg:ansibrightblack", "─" * self.size[0])]

        control = BufferControl(buffer=self.buffer, input_processors=[BeforeInput(prompt)], focusable=True)
        input_window = Window(
            control, height=Dimension(min=1, max=MOST_INPUT_LINES), wrap_lines=True, dont_extend_height=True
        )
        return HSplit(
            [
                Window(FormattedTextControl(live_text), dont_extend_height=True, wrap_lines=False),
                Window(FormattedTextControl(rule), height=1),
                ConditionalContainer(
                    Window(FormattedTextControl(self._question_text), dont_extend_height=True, wrap_lines=True),
                    Condition(lambda: self._question is not None or self._offer is not None),
                ),
                ConditionalContainer(input_window, typing),
                ConditionalContainer(
                    Window(FormattedTextControl(self._completion_menu), dont_extend_height=True),
                    Condition(lambda: self._question is None and bool(self.buffer.complete_state)),
                ),
                Window(FormattedTextControl(lambda: ANSI(self._handlers.status(self.size[0]))), height=1),
            ]
        )

    def _question_text(self) -> AnyFormattedText:
        question = self._question
        if question is None:
            return [("bold", _("A tool call needs your approval. Press Tab to decide."))]
        if not question.has_rows:
            return [("bold", question.title)]
        row_count = self._settings.listed
        first = max(0, min(question.place - row_count // 2, len(question.rows) - row_count))
        help = _("↑ ↓ select · Enter confirm · Esc cancel")
        lines: StyleAndTextTuples = [("bold", f"{question.title}  "), ("fg:ansibrightblack", help)]
        for place, row in list(enumerate(question.rows))[first : first + row_count]:
            is_selected = place == question.place
            mark, style = ("❯", "reverse") if is_selected else (" ", "")
            lines.append((style, f"\n{mark} {truncate(row.text, self.size[0] - 2)}"))
        return lines

    def _completion_menu(self) -> AnyFormattedText:
        """Render the completion menu."""
        state = self.buffer.complete_state
        if state is None:
            return ""
        place = state.complete_index
        first = max(0, min((place or 0) - MOST_COMPLETIONS // 2, len(state.completions) - MOST_COMPLETIONS))
        lines: StyleAndTextTuples = []
        for index, completion in list(enumerate(state.completions))[first : first + MOST_COMPLETIONS]:
            style = "reverse" if index == place else ""
            end = "\n" if lines else ""
            lines.append((style, f"{end}  {completion.display_text}"))
            lines.append(("fg:ansibrightblack", f"  {completion.display_meta_text}"))
        return lines

    def _keys(self) -> KeyBindings:
        keys = KeyBindings()

        def on(do: Callable[[], None], *names: str, when: FilterOrBool = True) -> None:
            def handler(_event: KeyPressEvent) -> None:
                do()

            keys.add(*names, filter=when)(handler)

        by_key = Condition(lambda: self._question is not None and bool(self._question.keys))
        by_row = Condition(lambda: self._question is not None and self._question.has_rows)
        on(self._enter, "enter")
        on(self._newline, "escape", "enter")
        on(self._newline, "c-j")
        on(self._interrupt, "c-c")
        on(self.leave, "c-d", when=Condition(lambda: not self.buffer.text))
        on(self._handlers.open_call, "c-o")
        on(self._escape, "escape")
        on(self._complete, "tab")
        on(partial(self._move, -1), "up", when=by_row)
        on(partial(self._move, 1), "down", when=by_row)
        keys.add(Keys.BracketedPaste, filter=~by_key)(self._paste)
        keys.add(Keys.Any, filter=by_key, eager=True)(self._any_key)
        return keys

    def _newline(self) -> None:
        self.buffer.insert_text("\n")

    def _enter(self) -> None:
        question = self._question
        if question is None:
            state = self.buffer.complete_state
            if state and state.current_completion:
                self.buffer.apply_completion(state.current_completion)
                return
            text = self.buffer.text
            if text.strip():
                self.buffer.history.append_string(self._pastes.expand(text))
                self.buffer.reset()
                self._handlers.submit(text, self._pastes)
        elif question.has_rows:
            self._answer(question.rows[question.place].value if question.rows else None)
        elif question.is_text:
            self._answer(self._pastes.expand(self.buffer.text))

    def _answer(self, answer: str | None) -> None:
        if question := self._question:
            self._close_question(question)
            if not question.answer.done():
                question.answer.set_result(answer)

    def _any_key(self, event: KeyPressEvent) -> None:
        key = event.key_sequence[0].key
        if key in (Keys.Escape, Keys.ControlC):
            self._answer(None)
        elif self._question and key in tuple(self._question.keys):
            self._answer(key)

    def _interrupt(self) -> None:
        if self._question is not None:
            self._answer(None)
        elif self.buffer.text:
            self.set_text("")
        elif self._handlers.interrupt():
            self.leave()

    def _escape(self) -> None:
        if self._question is not None:
            self._answer(None)
            return
        if self.buffer.complete_state:
            self.buffer.cancel_completion()
            return
        now = time.monotonic()
        twice, self._last_escape = is_double(self._last_escape, now, self._settings.escape_ms), now
        if not twice:
            return
        self._last_escape = None
        if self.buffer.text:
            self.set_text("")
        else:
            self._handlers.escape_twice()

    def _complete(self) -> None:
        if self._offer:
            self._offer.set()
        elif self.buffer.complete_state:
            self.buffer.complete_next()
        else:
            self.buffer.start_completion(select_first=True)

    def _move(self, by: int) -> None:
        if self._question and self._question.rows:
            self._question.place = (self._question.place + by) % len(self._question.rows)
            self.request_redraw()

    def _paste(self, event: KeyPressEvent) -> None:
        label = _("[Pasted text #{number}, {lines} lines]")
        self._pastes, text = self._pastes.add(event.data, self._settings.paste_lines, label)
        self.buffer.insert_text(text)

    def _search(self) -> None:
        """Load the rows of a list for the typed search text."""
        question, text = self._question, self.buffer.text
        if question is None or question.load is None:
            return

        async def run(load: Load) -> None:
            try:
                question.rows, question.place = await load(text), 0
            except (RectoError, OSError) as error:
                question.rows = [Row(value="", text=str(error))]
            self.request_redraw()

        if self._loading:
            self._loading.cancel()
        self._loading = asyncio.get_running_loop().create_task(run(question.load))
