"""The terminal put together: a session, its screen, and what is typed given to the one or the other."""

from __future__ import annotations

import asyncio
import contextlib
import signal
import time
from collections.abc import Coroutine, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import typer
from prompt_toolkit.history import FileHistory, History, InMemoryHistory

from recto.cli.chat.approvals import Approvals
from recto.cli.chat.chat_session import ChatSession
from recto.cli.chat.chat_settings import CHOOSE, ChatSettings
from recto.cli.chat.completing import ChatCompleter
from recto.cli.chat.local_server import FindServer
from recto.cli.chat.screen import Handlers, Screen
from recto.cli.chat.seen.block_views import Pen, call_view
from recto.cli.chat.seen.chat_words import WORDS
from recto.cli.chat.slash_commands import SlashCommands
from recto.cli.chat.thread_api import ThreadApi
from recto.cli.chat.typed import Pastes, TypedCommand, TypedMessage, is_double, read_typed
from recto.cli.command import FAILED
from recto.cli.hello import language_of_terminal
from recto.errors import RectoError

if TYPE_CHECKING:
    from recto.cli.calls.call_words import Language

HISTORY = "chat-history"
# It waits for nothing that was typed before it.
QUIT = "/quit"
# A server elsewhere is asked again for half an hour: whoever sits here sees it, and may leave.
PATIENT_TRIES = 1_000


class ChatTerminal:
    """Everything of `recto chat` in a terminal."""

    def __init__(self, find: FindServer, settings: ChatSettings, environment: Mapping[str, str]) -> None:
        self._language: Language = language_of_terminal(environment)
        self._words, self._settings = WORDS[self._language], settings
        self._environment = environment
        self._api = ThreadApi(find, PATIENT_TRIES)
        # What was typed, done one by one: a message with a long file is said before what was typed behind it.
        self._typed: asyncio.Queue[TypedCommand | TypedMessage] = asyncio.Queue()
        self._tasks: set[asyncio.Task[None]] = set()
        self._interrupted: float | None = None
        self._opened = 0
        self._problem: BaseException | None = None

    async def talk(self, agent: str | None, resume: str | None) -> None:
        """Talk until somebody leaves."""
        session = self._session = ChatSession(
            self._api, Pen(self._environment), self._language, self._words, self._settings
        )
        handlers = Handlers(
            submit=self._submit,
            interrupt=self._interrupt,
            escape_twice=lambda: self._typed.put_nowait(TypedCommand(name="/rollback")),
            open_call=self._open_call,
            live=session.live_text,
            status=session.status_text,
            is_busy=lambda: session.is_busy,
        )
        completer = ChatCompleter(self._words, Path.cwd(), self._settings.listed_files)
        screen = session.screen = self._screen = Screen(
            self._words, self._settings, handlers, completer, _history(self._environment)
        )
        session.talk.asked = agent
        approvals = Approvals(session, screen)
        session.approvals = approvals.notice
        self._api.on_lost = session.touch
        self._commands = SlashCommands(session, screen, approvals)
        # The terminal is left as it was, and a server of our own ends in order.
        asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, screen.leave)
        self._do(self._do_typed())
        working = asyncio.create_task(self._work(agent, resume))
        working.add_done_callback(lambda _: screen.leave())
        try:
            await screen.run()
        finally:
            approvals.stop()
            unsent = list(session.sending)
            for task in (working, *self._tasks):
                task.cancel()
                with contextlib.suppress(asyncio.CancelledError):
                    await task
        self._part(unsent)

    def _part(self, unsent: Sequence[str]) -> None:
        """Tell how to go on, and what was not sent."""
        if self._problem:
            raise self._problem
        if self._session.talk.last:
            typer.echo(self._words.to_resume.format(thread=self._session.talk.thread))
        if unsent:
            typer.echo("\n".join([self._words.unsent.format(words=words) for words in unsent]), err=True)
            raise typer.Exit(FAILED)

    async def _work(self, agent: str | None, resume: str | None) -> None:
        """Connect, then follow the thread. What keeps it from that ends the program."""
        try:
            await self._begin(agent, resume)
            self._session.ready.set()
        except (RectoError, OSError) as error:
            self._problem = error
            return
        await self._session.follow()

    async def _begin(self, agent: str | None, resume: str | None) -> None:
        session = self._session
        await self._api.exchange()
        await self._api.check(agent, resume if resume != CHOOSE else None)
        names = {str(one["name"]): bool(one["default"]) for one in await self._api.agents()}
        session.default_agent = next((name for name in names if names[name]), "")
        session.talk.asked, session.talk.agent = agent, session.default_agent
        found = self._api.found
        server = found.address.url if found else ""
        session.tell(self._words.greeting.format(agent=agent or session.talk.agent, server=server))
        if resume == CHOOSE:
            await self._commands.resume(agent=agent)
        elif resume:
            await session.enter(resume, agent)

    def _submit(self, text: str, pastes: Pastes) -> None:
        sent, files = pastes.send(text, self._settings.message_characters)
        typed = read_typed(sent)
        if isinstance(typed, TypedMessage):
            self._session.sending.append(typed.words)
            self._session.touch()
            typed = replace(typed, pasted=files, typed=text)
        if isinstance(typed, TypedCommand) and typed.name == QUIT:
            self._screen.leave()
        elif typed:
            self._typed.put_nowait(typed)

    async def _do_typed(self) -> None:
        await self._session.ready.wait()
        while True:
            typed = await self._typed.get()
            if isinstance(typed, TypedCommand):
                await self._told(self._commands.run(typed))
                continue
            await self._told(self._commands.say(typed))
            self._session.sending.pop(0)
            self._session.touch()

    def _do(self, coroutine: Coroutine[object, object, None]) -> None:
        """Do something beside what goes on."""
        task = asyncio.get_running_loop().create_task(self._told(coroutine))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _told(self, coroutine: Coroutine[object, object, None]) -> None:
        try:
            await coroutine
        except (RectoError, OSError) as error:
            self._session.tell(str(error), "red")

    def _interrupt(self) -> bool:
        """Ctrl-C: end the run; where none is at work, or it does not end, leave with the second."""
        if self._session.is_busy and not self._session.is_ending:
            self._do(self._session.end_run())
            return False
        now = time.monotonic()
        twice, self._interrupted = is_double(self._interrupted, now, self._settings.leave_ms), now
        if not twice:
            self._session.tell(self._words.again_leaves)
        return twice

    def _open_call(self) -> None:
        """Open the newest call; with the next press the one before it."""
        calls = list(self._session.live.calls.values())
        if not calls:
            self._session.tell(self._words.nothing_to_open)
            return
        self._opened = self._opened % len(calls) + 1
        self._session.tell(call_view(calls[-self._opened], self._words))


def _history(environment: Mapping[str, str]) -> History:
    """What was typed, kept for the user alone, in whatever folder they stand; only meanwhile where it cannot be."""
    state = environment.get("XDG_STATE_HOME") or Path(environment.get("HOME") or ".") / ".local" / "state"
    folder = Path(state) / "recto"
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        (folder / HISTORY).touch(mode=0o600)
        (folder / HISTORY).chmod(0o600)
    except OSError:
        return InMemoryHistory()
    return FileHistory(str(folder / HISTORY))
