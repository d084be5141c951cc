"""`recto chat "question"`: prints one answer and exits. The answer goes to stdout, everything else to stderr."""

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

from recto.cli.chat.chat_settings import CHOOSE, ChatSettings
from recto.cli.chat.rendering.block_views import Pen, block_view, clean, starts_apart, telling
from recto.cli.chat.rendering.chat_words import ChatWords
from recto.cli.chat.rendering.live_run import Block, LiveRun, Said, ShownCall, Thought, Words, take_event
from recto.cli.chat.thread_api import ThreadApi, rows
from recto.cli.command import FAILED
from recto.client.file_upload import FileToSend
from recto.conversation.json import Json, Object, dump
from recto.errors import RectoError, SettingsError
from recto.ids import new_id

DONE = 0
# File names for piped input that is sent as a file.
FILE, TEXT_FILE = "stdin", "stdin.txt"
NAME_THREAD = "name the thread that the question is for; without a question, one can be chosen from a list"


@dataclass(frozen=True, kw_only=True)
class OneQuestion:
    """A question and its thread: `resumed`, or a new one. With `as_json`, print events instead of the answer."""

    words: str
    files: Sequence[FileToSend] = ()
    agent: str | None = None
    thread: str
    resumed: str | None = None
    as_json: bool = False


def one_question(
    words: str | None, agent: str | None, thread: str | None, settings: ChatSettings, *, as_json: bool
) -> OneQuestion:
    """Build the question from the command line and piped input. Raise SettingsError if both are empty."""
    if thread == CHOOSE:
        raise SettingsError(name="--resume", value="", allowed=NAME_THREAD)
    said, files = question_of(words, read_piped(settings), settings)
    return OneQuestion(words=said, files=files, agent=agent, thread=thread or new_id(), resumed=thread, as_json=as_json)


def question_of(words: str | None, piped: bytes, settings: ChatSettings) -> tuple[str, Sequence[FileToSend]]:
    """Combine question and piped input: short text follows the question, long text and binary data become a file.

    Raise SettingsError if both are empty, or the input is too large.
    """
    if len(piped) > settings.piped_bytes:
        raise SettingsError(name="stdin", value=f"{len(piped):,} bytes or more", allowed=_too_much(settings))
    asked, text = (words or "").strip(), _text_in(piped)
    if text is None:
        return asked, [(FILE, piped)]
    said = "\n\n".join(part for part in (asked, text.strip()) if part)
    if not said:
        raise SettingsError(name="QUESTION", value=words or "", allowed="say something, or pipe it in")
    if text.strip() and len(said) > settings.message_characters:
        return asked, [(TEXT_FILE, piped)]
    return said, ()


def _too_much(settings: ChatSettings) -> str:
    return f"input up to {settings.piped_bytes:,} bytes can be piped in. Name the file in a message instead: @PATH"


def _text_in(data: bytes) -> str | None:
    """Decode text; return None for binary data."""
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError:
        return None
    return None if "\0" in text else text


def read_piped(settings: ChatSettings) -> bytes:
    """Read piped input, none from a terminal; at most one byte more than the limit."""
    if sys.stdin is None or sys.stdin.closed or sys.stdin.isatty():
        return b""
    return sys.stdin.buffer.read(settings.piped_bytes + 1)


async def answer_once(api: ThreadApi, question: OneQuestion, words: ChatWords) -> int:
    """Ask, print the answer as it streams, and return the exit code."""
    await api.check(question.agent, question.resumed)
    parts = await api.send(question.files, question.agent) if question.files else ()
    said: Sequence[Json] = [{"type": "text", "text": question.words}] if question.words else []
    props: dict[str, Json] = {"agent": question.agent} if question.agent else {}
    printed = EventLines() if question.as_json else PrintedAnswer(words)
    # The server may start the run before its response arrives: handle Ctrl-C from the first byte on.
    run = asyncio.ensure_future(api.say(question.thread, [*said, *parts] if parts else question.words, props))
    try:
        with _ctrl_c_ends(api, run, words):
            await _print(api, await run, printed)
    except asyncio.CancelledError:
        printed.end()
        return FAILED
    printed.end()
    row = await api.thread(question.thread)
    waiting = rows(row, "interrupts") if row else []
    for line in waiting_lines(waiting, question.thread, words):
        print(line, file=sys.stderr)  # noqa: T201 - what a person is to do
    return FAILED if waiting or not printed.is_whole else DONE


async def _print(api: ThreadApi, run: str, printed: EventLines | PrintedAnswer) -> None:
    try:
        async with aclosing(api.events(run)) as events:
            async for event in events:
                printed.take(event)
    except BrokenPipeError:
        # Nobody reads the output any more; stop paying for it.
        await api.cancel(run)
        raise


def waiting_lines(waiting: Sequence[Object], thread: str, words: ChatWords) -> Generator[str]:
    """Yield the pending calls, and how to resume."""
    for row in waiting:
        call = ShownCall(id=str(row["id"]), name=str(row["tool"]), arguments=str(row["arguments"]))
        yield f"{words.ask.format(tool=clean(call.name))}: {telling(call)}"
    if waiting:
        yield words.to_resume.format(thread=thread)


@contextmanager
def _ctrl_c_ends(api: ThreadApi, run: asyncio.Future[str], words: ChatWords) -> Generator[None]:
    """Cancel the run on the first Ctrl-C, once its id is known; exit on the second."""
    loop, task = asyncio.get_running_loop(), asyncio.current_task()
    ending = list[asyncio.Task[None]]()

    async def end_run() -> None:
        if not run.done():
            print(words.again_leaves, file=sys.stderr)  # noqa: T201 - the server has not answered yet
            await asyncio.wait([run])
        if run.cancelled() or run.exception():
            return
        try:
            await api.cancel(run.result())
        except RectoError as error:
            print(error, file=sys.stderr)  # noqa: T201 - its run goes on, and the person is told why

    def press() -> None:
        if ending and task:
            task.cancel()
        ending.append(loop.create_task(end_run()))

    def heard(_number: int, _frame: FrameType | None) -> None:
        loop.call_soon_threadsafe(press)

    before = signal.signal(signal.SIGINT, heard)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


class EventLines:
    """Output of `--json`: one event per line."""

    def __init__(self) -> None:
        self.is_whole = False

    def take(self, event: Object) -> None:
        """Print an event."""
        self.is_whole = _is_whole(event)
        sys.stdout.write(dump(event).decode() + "\n")
        sys.stdout.flush()

    def end(self) -> None:
        """Do nothing: every line is complete."""


class PrintedAnswer:
    """Output of the answer: rendered blocks in a terminal, the raw text elsewhere."""

    def __init__(self, words: ChatWords) -> None:
        self._words, self._pen = words, Pen(os.environ)
        self._is_drawn = sys.stdout.isatty()
        self._live = LiveRun()
        self._before: Block | None = None
        self._last = ""
        self.is_whole = False

    def take(self, event: Object) -> None:
        """Print what an event adds."""
        self.is_whole = _is_whole(event)
        match event:
            case {"type": "TEXT_MESSAGE_START"} if self._last and not self._is_drawn:
                self._write("\n" if self._last == "\n" else "\n\n")
            case {"type": "TEXT_MESSAGE_CONTENT", "delta": str(said)} if not self._is_drawn:
                self._write(said)
            case _:
                pass
        self._live, blocks = take_event(self._live, event, time.monotonic())
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

    def _show(self, block: Block) -> None:
        """Print a finished block: text to stdout if rendered, other blocks to stderr; thoughts are skipped."""
        if isinstance(block, Thought | Said) or (isinstance(block, Words) and not self._is_drawn):
            return
        gap = "\n" if self._is_drawn and self._before and starts_apart(block, self._before) else ""
        self._before = block
        if isinstance(block, Words):
            self._write(gap + self._pen.draw(block_view(block, self._words), _width(sys.stdout)))
            return
        sys.stderr.write(gap + self._drawn_beside(block))
        sys.stderr.flush()

    def _drawn_beside(self, block: Block) -> str:
        drawn = self._pen.draw(block_view(block, self._words), _width(sys.stderr))
        if sys.stderr.isatty():
            return drawn
        from rich.text import Text  # here: what is no terminal takes no colours

        return Text.from_ansi(drawn).plain.rstrip("\n") + "\n"


def _is_whole(event: Object) -> bool:
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
