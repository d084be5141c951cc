"""`recto chat "question"`: one answer, printed to stdout. Everything else goes to stderr."""

from __future__ import annotations

import asyncio
import os
import shutil
import signal
import sys
import time
from collections.abc import Generator, Sequence
from contextlib import aclosing, contextmanager
from dataclasses import dataclass
from types import FrameType
from typing import TextIO

from rich.text import Text

from recto.cli.chat.chat_settings import CHOOSE, ChatSettings
from recto.cli.chat.rendering import live_run
from recto.cli.chat.rendering.block_views import TerminalRenderer, block_view, clean, needs_gap, summarize_arguments
from recto.cli.chat.thread_api import ThreadApi, rows
from recto.cli.command import FAILED
from recto.cli.translation import _
from recto.client.exchange import FileToSend
from recto.conversation.json import Json, Object, dump
from recto.errors import RectoError, SettingsError
from recto.ids import new_id

DONE = 0
# File names for piped input that is sent as a file.
FILE, TEXT_FILE = "stdin", "stdin.txt"


@dataclass(frozen=True, kw_only=True)
class SingleQuestion:
    """A question and its thread: `resume`, or a new one. With `as_json`, events are printed instead of the answer."""

    text: str
    files: Sequence[FileToSend] = ()
    agent: str | None = None
    thread: str
    resume: str | None = None
    as_json: bool = False


def build_question(
    argument: str | None, agent: str | None, thread: str | None, settings: ChatSettings, *, as_json: bool
) -> SingleQuestion:
    """Build the question from the command line and piped input. Raise SettingsError if both are empty."""
    if thread == CHOOSE:
        allowed = "name the thread to continue; without a question, you can choose it from a list"
        raise SettingsError(name="--resume", value="", allowed=allowed)
    text, files = combine_input(argument, read_piped(settings), settings)
    return SingleQuestion(
        text=text, files=files, agent=agent, thread=thread or new_id(), resume=thread, as_json=as_json
    )


def combine_input(argument: str | None, piped: bytes, settings: ChatSettings) -> tuple[str, Sequence[FileToSend]]:
    """Combine question and piped input: short text follows the question, long text and binary data become a file.

    Raise SettingsError if both are empty, or the input is too large.
    """
    if len(piped) > settings.piped_bytes:
        allowed = f"pipe at most {settings.piped_bytes:,} bytes, or name the file in a message: @PATH"
        raise SettingsError(name="stdin", value=f"{len(piped):,} bytes or more", allowed=allowed)
    question = (argument or "").strip()
    try:
        text = piped.decode("utf-8-sig")
    except UnicodeDecodeError:
        return question, [(FILE, piped)]
    if "\0" in text:
        return question, [(FILE, piped)]
    full_text = "\n\n".join(part for part in (question, text.strip()) if part)
    if not full_text:
        raise SettingsError(name="QUESTION", value=argument or "", allowed="pass a question or pipe one in")
    if text.strip() and len(full_text) > settings.message_characters:
        return question, [(TEXT_FILE, piped)]
    return full_text, ()


def read_piped(settings: ChatSettings) -> bytes:
    """Read piped input, up to one byte more than the limit. Return nothing for a terminal."""
    if sys.stdin is None or sys.stdin.closed or sys.stdin.isatty():
        return b""
    return sys.stdin.buffer.read(settings.piped_bytes + 1)


async def answer_once(api: ThreadApi, question: SingleQuestion) -> int:
    """Ask, print the answer as it streams, and return the exit code."""
    await api.check(question.agent, question.resume)
    parts = await api.upload(question.files, question.agent) if question.files else ()
    text_parts: Sequence[Json] = [{"type": "text", "text": question.text}] if question.text else []
    props: dict[str, Json] = {"agent": question.agent} if question.agent else {}
    printer = JsonPrinter() if question.as_json else AnswerPrinter()
    # Handle Ctrl-C from here on, because the server may start the run before its response arrives.
    run = asyncio.ensure_future(
        api.send_message(question.thread, [*text_parts, *parts] if parts else question.text, props)
    )
    try:
        with _cancel_on_ctrl_c(api, run):
            await _print_events(api, await run, printer)
    except asyncio.CancelledError:
        printer.end()
        return FAILED
    printer.end()
    row = await api.thread(question.thread)
    pending = rows(row, "interrupts") if row else []
    for line in pending_lines(pending, question.thread):
        print(line, file=sys.stderr)  # noqa: T201 - for the user
    return FAILED if pending or not printer.is_complete else DONE


async def _print_events(api: ThreadApi, run: str, printer: AnswerPrinter | JsonPrinter) -> None:
    try:
        async with aclosing(api.events(run)) as events:
            async for event in events:
                printer.print_event(event)
    except BrokenPipeError:
        # Cancel the run, because nobody reads its output any more.
        await api.cancel(run)
        raise


def pending_lines(pending: Sequence[Object], thread: str) -> Generator[str]:
    """Yield the pending calls, and how to resume."""
    for row in pending:
        call = live_run.LiveCall(id=str(row["id"]), name=str(row["tool"]), arguments=str(row["arguments"]))
        yield _("{tool} needs your approval").format(tool=clean(call.name)) + f": {summarize_arguments(call)}"
    if pending:
        yield _("Resume with: recto chat --resume {thread}").format(thread=thread)


@contextmanager
def _cancel_on_ctrl_c(api: ThreadApi, run: asyncio.Future[str]) -> Generator[None]:
    """Cancel the run on the first Ctrl-C, once its id is known; exit on the second."""
    loop, task = asyncio.get_running_loop(), asyncio.current_task()
    cancel_tasks = list[asyncio.Task[None]]()

    async def cancel_run() -> None:
        if not run.done():
            print(_("Press Ctrl-C again to quit."), file=sys.stderr)  # noqa: T201 - the server has not answered yet
            await asyncio.wait([run])
        if run.cancelled() or run.exception():
            return
        try:
            await api.cancel(run.result())
        except RectoError as error:
            print(error, file=sys.stderr)  # noqa: T201 - for the user: the run continues

    def press() -> None:
        if cancel_tasks and task:
            task.cancel()
        cancel_tasks.append(loop.create_task(cancel_run()))

    def on_signal(_number: int, _frame: FrameType | None) -> None:
        loop.call_soon_threadsafe(press)

    previous_handler = signal.signal(signal.SIGINT, on_signal)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, previous_handler)


class JsonPrinter:
    """Output of `--json`: one event per line."""

    def __init__(self) -> None:
        self.is_complete = False

    def print_event(self, event: Object) -> None:
        """Print an event."""
        self.is_complete = _is_complete(event)
        sys.stdout.write(dump(event).decode() + "\n")
        sys.stdout.flush()

    def end(self) -> None:
        """Do nothing: every line is complete."""


class AnswerPrinter:
    """Output of the answer: rendered blocks in a terminal, the raw text elsewhere."""

    def __init__(self) -> None:
        self._renderer = TerminalRenderer(os.environ)
        self._is_rendered = sys.stdout.isatty()
        self._live = live_run.LiveRun()
        self._previous_block: live_run.Block | None = None
        self._last = ""
        self.is_complete = False

    def print_event(self, event: Object) -> None:
        """Print the text and the finished blocks that an event adds."""
        self.is_complete = _is_complete(event)
        match event:
            case {"type": "TEXT_MESSAGE_START"} if self._last and not self._is_rendered:
                self._write("\n" if self._last == "\n" else "\n\n")
            case {"type": "TEXT_MESSAGE_CONTENT", "delta": str(text)} if not self._is_rendered:
                self._write(text)
            case _:
                pass
        self._live, blocks = live_run.apply_event(self._live, event, time.monotonic())
        for block in blocks:
            self._show(block)

    def end(self) -> None:
        """End the last line."""
        if self._last not in ("", "\n"):
            self._write("\n")

    def _write(self, text: str) -> None:
        self._last = text[-1:] or self._last
        sys.stdout.write(text)
        sys.stdout.flush()

    def _show(self, block: live_run.Block) -> None:
        """Print a finished block: text to stdout if rendered, other blocks to stderr. Skip reasoning."""
        if isinstance(block, live_run.ReasoningBlock | live_run.UserBlock) or (
            isinstance(block, live_run.TextBlock) and not self._is_rendered
        ):
            return
        gap = "\n" if self._is_rendered and self._previous_block and needs_gap(block, self._previous_block) else ""
        self._previous_block = block
        if isinstance(block, live_run.TextBlock):
            self._write(gap + self._renderer.render(block_view(block), _width(sys.stdout)))
            return
        output = self._renderer.render(block_view(block), _width(sys.stderr))
        if not sys.stderr.isatty():
            output = Text.from_ansi(output).plain.rstrip("\n") + "\n"
        sys.stderr.write(gap + output)
        sys.stderr.flush()


def _is_complete(event: Object) -> bool:
    """Return True for the end event of a complete answer."""
    match event:
        case {"type": "RUN_FINISHED", "outcome": {"type": "success"}, "result": {"finish": "length" | "refused"}}:
            return False
        case {"type": "RUN_FINISHED", "outcome": {"type": "success"}}:
            return True
        case _:
            return False


def _width(stream: TextIO) -> int:
    return os.get_terminal_size(stream.fileno()).columns if stream.isatty() else shutil.get_terminal_size().columns
