"""The interactive terminal: session, screen and input."""

from __future__ import annotations

import asyncio
import contextlib
import signal
import time
from collections.abc import Coroutine, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import typer
from prompt_toolkit.history import FileHistory, History, InMemoryHistory

from recto.cli.chat.approvals import Approvals
from recto.cli.chat.chat_session import ChatSession
from recto.cli.chat.chat_settings import CHOOSE, ChatSettings
from recto.cli.chat.local_server import FindServer
from recto.cli.chat.prompt_input import ChatCompleter, Pastes, TypedCommand, TypedMessage, is_double, parse_input
from recto.cli.chat.rendering.block_views import TerminalRenderer, call_view
from recto.cli.chat.screen import Handlers, Screen
from recto.cli.chat.slash_commands import SlashCommands
from recto.cli.chat.thread_api import ThreadApi
from recto.cli.command import FAILED
from recto.cli.translation import _
from recto.errors import RectoError

HISTORY = "chat-history"
# The command that runs at once, before queued input.
QUIT = "/quit"
# Maximum retries for a remote server: half an hour. The user sees each retry and can leave.
REMOTE_TRIES = 1_000


class ChatTerminal:
    """Interactive mode of `recto chat`."""

    def __init__(self, find: FindServer, settings: ChatSettings, environment: Mapping[str, str]) -> None:
        self._settings, self._environment = settings, environment
        self._api = ThreadApi(find, REMOTE_TRIES)
        # Queue that keeps the order of input, so that a message with an upload is sent before later input.
        self._input: asyncio.Queue[TypedCommand | TypedMessage] = asyncio.Queue()
        self._tasks: set[asyncio.Task[None]] = set()
        self._interrupted_at: float | None = None
        self._open_index = 0
        self._problem: BaseException | None = None

    async def run(self, agent: str | None, resume: str | None) -> None:
        """Run until the user leaves."""
        session = self._session = ChatSession(self._api, TerminalRenderer(self._environment), self._settings)
        handlers = Handlers(
            submit=self._submit,
            interrupt=self._interrupt,
            escape_twice=lambda: self._input.put_nowait(TypedCommand(name="/rollback")),
            open_call=self._open_call,
            live=session.live_text,
            status=session.status_text,
            is_busy=lambda: session.active_run is not None,
        )
        completer = ChatCompleter(Path.cwd(), self._settings.listed_files)
        screen = session.screen = self._screen = Screen(
            self._settings, handlers, completer, _open_history(self._environment)
        )
        session.chat_thread.requested_agent = agent
        approvals = Approvals(session, screen)
        session.approvals = approvals.ask
        self._api.on_lost = session.request_redraw
        self._commands = SlashCommands(session, screen, approvals)
        # On SIGTERM, leave in order: restore the terminal and stop a local server.
        asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, screen.leave)
        self._start_task(self._handle_input())
        working = asyncio.create_task(self._work(agent, resume))
        working.add_done_callback(lambda _task: screen.leave())
        try:
            await screen.run()
        finally:
            approvals.stop()
            unsent = list(session.sending)
            for task in (working, *self._tasks):
                task.cancel()
                with contextlib.suppress(asyncio.CancelledError):
                    await task
        self._print_goodbye(unsent)

    def _print_goodbye(self, unsent: Sequence[str]) -> None:
        """Print how to resume, and any unsent messages."""
        if self._problem:
            raise self._problem
        if self._session.chat_thread.last_message:
            typer.echo(_("Resume with: recto chat --resume {thread}").format(thread=self._session.chat_thread.thread))
        if unsent:
            typer.echo("\n".join([_("Not sent: {text}").format(text=text) for text in unsent]), err=True)
            raise typer.Exit(FAILED)

    async def _work(self, agent: str | None, resume: str | None) -> None:
        """Connect, then follow the thread. A failure to connect ends the program."""
        try:
            session = self._session
            await self._api.exchange()
            await self._api.check(agent, resume if resume != CHOOSE else None)
            names = {str(one["name"]): bool(one["default"]) for one in await self._api.agents()}
            session.default_agent = next((name for name in names if names[name]), "")
            session.chat_thread.requested_agent, session.chat_thread.agent = agent, session.default_agent
            location = self._api.location
            server = location.address.url if location else ""
            greeting = _("{agent} on {server}. Type /help for keys and commands.")
            session.notify(greeting.format(agent=agent or session.chat_thread.agent, server=server))
            if resume == CHOOSE:
                await self._commands.resume(agent=agent)
            elif resume:
                await session.open_thread(resume, agent)
            self._session.ready.set()
        except (RectoError, OSError) as error:
            self._problem = error
            return
        await self._session.follow()

    def _submit(self, text: str, pastes: Pastes) -> None:
        text_to_send, files = pastes.send(text, self._settings.message_characters)
        entry = parse_input(text_to_send)
        if isinstance(entry, TypedMessage):
            self._session.sending.append(entry.text)
            self._session.request_redraw()
            entry = replace(entry, pasted=files, raw_text=text)
        if isinstance(entry, TypedCommand) and entry.name == QUIT:
            self._screen.leave()
        elif entry:
            self._input.put_nowait(entry)

    async def _handle_input(self) -> None:
        await self._session.ready.wait()
        while True:
            entry = await self._input.get()
            if isinstance(entry, TypedCommand):
                await self._report_errors(self._commands.run(entry))
                continue
            await self._report_errors(self._commands.send_message(entry))
            self._session.sending.pop(0)
            self._session.request_redraw()

    def _start_task(self, coroutine: Coroutine[object, object, None]) -> None:
        """Run a coroutine in the background."""
        task = asyncio.get_running_loop().create_task(self._report_errors(coroutine))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _report_errors(self, coroutine: Coroutine[object, object, None]) -> None:
        try:
            await coroutine
        except (RectoError, OSError) as error:
            self._session.notify(str(error), "red")

    def _interrupt(self) -> bool:
        """Handle Ctrl-C: cancel the run; without one, or if it does not end, leave on the second press."""
        if self._session.active_run and not self._session.is_cancelling:
            self._start_task(self._session.cancel_run())
            return False
        now = time.monotonic()
        is_second, self._interrupted_at = is_double(self._interrupted_at, now, self._settings.leave_ms), now
        if not is_second:
            self._session.notify(_("Press Ctrl-C again to quit."))
        return is_second

    def _open_call(self) -> None:
        """Show the newest call; each further press shows the previous one."""
        calls = list(self._session.live.calls.values())
        if not calls:
            self._session.notify(_("No tool calls to open."))
            return
        self._open_index = self._open_index % len(calls) + 1
        self._session.notify(call_view(calls[-self._open_index]))


def _open_history(environment: Mapping[str, str]) -> History:
    """Return the input history, readable by the user only; in memory if the file cannot be written."""
    state = environment.get("XDG_STATE_HOME") or Path(environment.get("HOME") or ".") / ".local" / "state"
    folder = Path(state) / "recto"
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        (folder / HISTORY).touch(mode=0o600)
        (folder / HISTORY).chmod(0o600)
    except OSError:
        return InMemoryHistory()
    return FileHistory(str(folder / HISTORY))
