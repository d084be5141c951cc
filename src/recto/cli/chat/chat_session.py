"""A conversation in the terminal. It follows the runs of its thread and prints each once.

All messages take the same path, also those of this terminal: the server stores them and the session reads them.
"""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from itertools import takewhile

from rich.console import RenderableType
from rich.padding import Padding
from rich.text import Text

from recto.cli.chat.chat_settings import ChatSettings
from recto.cli.chat.rendering.block_views import TerminalRenderer, block_view, call_line, clean, markdown, needs_gap
from recto.cli.chat.rendering.live_run import Block, LiveRun, apply_event, apply_messages
from recto.cli.chat.screen import Screen
from recto.cli.chat.thread_api import ThreadApi, rows
from recto.cli.translation import _
from recto.conversation.json import Json, Object
from recto.errors import RectoError
from recto.ids import new_id

SPINNER = "⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏"
OUTPUT_LINES = 5


@dataclass(kw_only=True)
class ChatThread:
    """State of the open thread: agent, skill, read position and pending messages."""

    thread: str = field(default_factory=new_id)
    # Agent requested for the next message, and the agent that answers without a request.
    requested_agent: str | None = None
    agent: str = ""
    # False for a new thread, which the server does not know yet.
    is_started: bool = False
    skill: str | None = None
    next_skill: str | None = None
    # Last message read; runs whose events were read; own runs whose events are still to come.
    last_message: str | None = None
    followed_runs: set[str] = field(default_factory=set[str])
    expected_runs: set[str] = field(default_factory=set[str])
    # Text of queued messages, by run.
    pending: dict[str, str] = field(default_factory=dict[str, str])
    model: str = ""
    tokens: int | None = None
    row: Object = field(default_factory=dict[str, Json])


class ChatSession:
    """Conversation state and its output."""

    def __init__(self, api: ThreadApi, renderer: TerminalRenderer, settings: ChatSettings) -> None:
        self.api, self.renderer, self.settings = api, renderer, settings
        self.screen: Screen | None = None
        self.chat_thread = ChatThread()
        self.live = LiveRun()
        self.active_run: str | None = None
        self._run_started_at = 0.0
        # True after a request to cancel the active run.
        self.is_cancelling = False
        self._previous_block: Block | None = None
        # Context windows by model.
        self._windows: dict[str, int] = {}
        self._runs: asyncio.Queue[str] = asyncio.Queue()
        # The task that follows a run. Following a run and switching threads hold the lock.
        self._follow_task: asyncio.Task[None] | None = None
        self._thread_lock = asyncio.Lock()
        # Agent of new threads without a requested agent.
        self.default_agent = ""
        # `ready` is set once the server answers. `sending` lists messages that it has not accepted yet.
        self.ready = asyncio.Event()
        self.sending: list[str] = []
        # Receives the calls that wait for approval.
        self.approvals: Callable[[Sequence[Object]], None] | None = None

    def show(self, *blocks: Block) -> None:
        """Print blocks."""
        for block in blocks:
            gap = "\n" if needs_gap(block, self._previous_block) else ""
            self._print(gap + self.renderer.render(block_view(block), self.width))
            self._previous_block = block

    def notify(self, content: RenderableType | str, style: str = "dim") -> None:
        """Print text that is not part of the conversation."""
        view = Text(clean(content), style=style) if isinstance(content, str) else content
        self._print("\n" + self.renderer.render(view, self.width))
        self._previous_block = None

    def _print(self, text: str) -> None:
        if self.screen:
            self.screen.print(text)

    @property
    def width(self) -> int:
        """Terminal width in columns."""
        return self.screen.size[0] if self.screen else 80

    def request_redraw(self) -> None:
        """Redraw the screen."""
        if self.screen:
            self.screen.request_redraw()

    def live_text(self, width: int, height: int) -> str:
        """Render the unfinished answer, running calls and queued messages."""
        text = "".join([self.renderer.render(view, width) for view in self._live_views()])
        return "\n".join(text.rstrip("\n").splitlines()[-height:])

    def _live_views(self) -> list[RenderableType]:
        run, now = self.live, time.monotonic()
        views: list[RenderableType] = []
        if run.reasoning.text.strip():
            reasoning = Text(clean(run.reasoning.visible_text.strip()), style="dim italic")
            views += [Text(""), Padding(reasoning, (0, 0, 0, 2))]
        if run.answer.text.strip():
            views += [*([] if run.answer.joins else [Text("")]), markdown(run.answer.visible_text)]
        if self.active_run:
            mark = SPINNER[int(now * 10) % len(SPINNER)]
            for call in run.running_calls:
                views.append(call_line(call, mark, now - call.start_time if call.start_time else None))
                views += [Text(f"    {line}", style="dim") for line in clean(call.output).splitlines()[-OUTPUT_LINES:]]
            if self.is_cancelling:
                label = _("stopping")
            else:
                label = _("running") if run.running_calls else clean(run.progress) or _("thinking")
            tokens = f" · ~{run.tokens:,} tokens" if run.tokens else ""
            line = f"{mark} {label} {now - self._run_started_at:.0f} s{tokens} · Ctrl-C"
            views += [Text(""), Text(line, style="cyan")]
        for text in (*self.chat_thread.pending.values(), *self.sending):
            line = " ".join(text.split())
            label = _("queued")
            views.append(Text(f"› {clean(line)}  ({label})", style="dim", no_wrap=True, overflow="ellipsis"))
        return views

    def status_text(self, width: int) -> str:
        """Render the status line: agent, skill, model, page size and queued messages, or the lost connection."""
        if self.api.is_lost:
            line = Text(_("The server does not answer. Reconnecting …"), style="red", no_wrap=True)
            return self.renderer.render(line, width).rstrip("\n")
        thread = self.chat_thread
        parts = [thread.requested_agent or thread.agent, thread.next_skill or thread.skill or "", thread.model]
        if thread.tokens is not None:
            window = self._windows.get(thread.model)
            parts.append(f"{thread.tokens:,} tokens" + (f" ({thread.tokens / window:.0%})" if window else ""))
        parts += [f"{len(thread.pending)} " + _("queued")] if thread.pending else []
        text = clean(" · ".join([part for part in parts if part]))
        line = Text(text, style="dim", no_wrap=True, overflow="ellipsis")
        return self.renderer.render(line, width).rstrip("\n")

    async def send(self, text: str, content: Json) -> None:
        """Send a message. It is printed when its run starts."""
        thread = self.chat_thread
        skill: dict[str, Json] = {"skill": thread.next_skill} if thread.next_skill else {}
        run = await self.api.send_message(thread.thread, content, {**self.props(), **skill})
        thread.next_skill = None
        if self.expect(run):
            thread.pending[run] = text

    def props(self) -> dict[str, Json]:
        """Return the forwarded properties of every run of this session."""
        return {"agent": self.chat_thread.requested_agent} if self.chat_thread.requested_agent else {}

    def expect(self, run: str) -> bool:
        """Queue a run to be followed; return False if that already happened."""
        if run == self.active_run or run in self.chat_thread.followed_runs:
            return False
        self.chat_thread.is_started = True
        self.chat_thread.expected_runs.add(run)
        self._runs.put_nowait(run)
        self.request_redraw()
        return True

    async def cancel_run(self) -> None:
        """Cancel the active run."""
        if self.active_run and not self.is_cancelling:
            self.is_cancelling = True
            self.request_redraw()
            await self.api.cancel(self.active_run)

    async def follow(self) -> None:
        """Follow the thread until the task is cancelled."""
        problem = ""
        while True:
            try:
                async with self._thread_lock:
                    # Follow the next run until it is over or the user enters another thread
                    task = self._follow_task = asyncio.create_task(self._follow_next())
                    try:
                        await asyncio.wait([task])
                    finally:
                        task.cancel()
                    if not task.cancelled():
                        task.result()
                problem = ""
            except RectoError as error:
                if str(error) != problem:
                    self.notify(_("{problem} Retrying …").format(problem=error), "red")
                problem = str(error)
                await asyncio.sleep(self.settings.watch_seconds)

    async def _follow_next(self) -> None:
        """Follow the next run: an active run of any client before queued runs of our own."""
        run: str | None = None
        with contextlib.suppress(TimeoutError):
            run = await asyncio.wait_for(self._runs.get(), self.settings.watch_seconds)
        active = await self.refresh() if self.chat_thread.is_started else None
        if active and active not in self.chat_thread.followed_runs and active != run:
            if run:
                self._runs.put_nowait(run)
            run = active
        if run and run not in self.chat_thread.followed_runs:
            await self._follow_run(run)

    async def refresh(self) -> str | None:
        """Fetch the thread, print new messages and return the active run."""
        thread = self.chat_thread
        row = await self.api.thread(thread.thread)
        if row is None:
            return None
        if self.api.is_new and self.api.location:
            if self.api.location.how == "started":
                text = _("The server stopped. This terminal now serves {data}; nothing was lost.")
            else:
                text = _("Connected to the server of {data}.")
            self.notify(text.format(data=self.api.location.data), "yellow")
        self.api.is_new = False
        is_updated = row.get("updated") != thread.row.get("updated")
        thread.row = row
        thread.agent, thread.skill = str(row["agent"] or "") or thread.agent, str(row["skill"] or "") or None
        self._ask_approvals(is_read=False)
        active = row.get("activeRun")
        if is_updated and not isinstance(active, str):
            await self.print_new_messages()
        self._ask_approvals(is_read=True)
        self.request_redraw()
        return active if isinstance(active, str) else None

    def _ask_approvals(self, *, is_read: bool) -> None:
        """Ask about pending calls once the preceding messages are printed; withdraw obsolete questions at once."""
        waiting = rows(self.chat_thread.row, "interrupts")
        is_printed = is_read and not self.chat_thread.expected_runs
        if self.approvals and self.active_run is None and (is_printed or not waiting):
            self.approvals(waiting)

    async def _follow_run(self, run: str) -> None:
        self.active_run, self._run_started_at, self.is_cancelling, has_question = run, time.monotonic(), False, True
        self.request_redraw()
        try:
            async for event in self.api.events(run):
                if event.get("type") == "RUN_STARTED":
                    has_question = await self.print_new_messages(run)
                    self.chat_thread.pending.pop(run, None)
                elif not has_question:
                    # A run may start a moment before its question reaches the log.
                    has_question = True
                    await self.print_new_messages(run)
                self.live, blocks = apply_event(self.live, event, time.monotonic())
                self.show(*blocks)
                self.request_redraw()
        finally:
            self.chat_thread.followed_runs.add(run)
            self.chat_thread.expected_runs.discard(run)
            self.chat_thread.pending.pop(run, None)
            self.active_run, self.is_cancelling = None, False
            self.request_redraw()
        await self.refresh()
        await self._fetch_newest_call()

    async def print_new_messages(self, run: str | None = None, *, again: bool = False) -> bool:
        """Print new messages, except those that were printed from events. For `run`, print only its question.

        With `again`, also print messages that were printed from events. Return True if there are new messages, of `run`
        if given.
        """
        thread = self.chat_thread
        messages = await self.api.messages(thread.thread, thread.last_message)
        if messages is None:
            if thread.last_message is None:
                return False
            thread.last_message, self.live = None, LiveRun()
            self.notify(_("This thread was rolled back in another client. It now contains:"))
            await self._print_history()
            return True
        # Stop at messages of expected runs, because their events will print them.
        messages = [
            *takewhile(lambda one: one.get("run") == run or one.get("run") not in thread.expected_runs, messages)
        ]
        new = [one for one in messages if again or one.get("run") not in thread.followed_runs]
        printable = [one for one in new if run is None or one.get("run") != run or one.get("role") == "user"]
        self.live, blocks = apply_messages(self.live, printable)
        self.show(*blocks)
        thread.last_message = str(messages[-1]["id"]) if messages else thread.last_message
        # Count only messages of `run`: messages of the previous run may arrive before its question.
        return any(run is None or one.get("run") == run for one in messages)

    async def _print_history(self) -> None:
        """Print the history of a thread, limited to the last lines."""
        thread = self.chat_thread
        row = await self.api.thread(thread.thread)
        active = row.get("activeRun") if row else None
        messages = await self.api.messages(thread.thread, None) or ()
        past_messages = [one for one in messages if active is None or one.get("run") != active]
        self.live, blocks = apply_messages(LiveRun(), past_messages)
        texts = [self.renderer.render(block_view(block), self.width) for block in blocks]
        first, lines = len(texts), 0
        while first and lines < self.settings.history_lines:
            first -= 1
            lines += texts[first].count("\n") + 1
        if first:
            self.notify("… " + _("{count} earlier messages are hidden").format(count=first))
        self.show(*blocks[first:])
        thread.last_message = str(past_messages[-1]["id"]) if past_messages else None
        thread.row = {}

    async def _fetch_newest_call(self) -> None:
        """Fetch the model and page size of the newest call."""
        call = await self.api.newest_call(self.chat_thread.thread)
        if call:
            tokens, model = call.get("tokens"), str(call.get("model") or "")
            self.chat_thread.model, self.chat_thread.tokens = model, tokens if isinstance(tokens, int) else None
            if model not in self._windows:
                window = (await self.api.read_call(call)).get("window")
                self._windows[model] = window if isinstance(window, int) else 0
        self.request_redraw()

    async def open_thread(self, thread: str | None, agent: str | None, *, quiet: bool = False) -> None:
        """Switch to another thread, or a new one. With `quiet`, do not print its history.

        A run of the previous thread continues on the server.
        """
        if self._follow_task:
            self._follow_task.cancel()
        async with self._thread_lock:
            self.chat_thread = ChatThread(requested_agent=agent, agent=self.default_agent)
            self.live, self._previous_block = LiveRun(), None
            while not self._runs.empty():
                self._runs.get_nowait()
            if thread is None:
                return
            self.chat_thread.thread, self.chat_thread.is_started = thread, True
            await (self.mark_read() if quiet else self._print_history())
            await self.refresh()
            await self._fetch_newest_call()

    async def mark_read(self) -> None:
        """Mark all messages as read."""
        messages = await self.api.messages(self.chat_thread.thread, None)
        self.chat_thread.last_message = str(messages[-1]["id"]) if messages else None
