"""One conversation at the terminal: runs of its thread are followed, whoever began them, and shown once each.

What is said here, in another terminal or on a page goes the same way: the server has it, and this reads it.
"""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from itertools import takewhile
from typing import TYPE_CHECKING

from rich.console import RenderableType
from rich.padding import Padding
from rich.text import Text

from recto.cli.chat.chat_settings import ChatSettings
from recto.cli.chat.screen import Screen
from recto.cli.chat.seen.block_views import Pen, block_view, call_line, clean, markdown, starts_apart
from recto.cli.chat.seen.chat_words import ChatWords
from recto.cli.chat.seen.live_run import Block, LiveRun, take_event, take_messages
from recto.cli.chat.thread_api import ThreadApi, rows
from recto.conversation.json import Json, Object, parts_of
from recto.errors import RectoError
from recto.ids import new_id

if TYPE_CHECKING:
    from recto.cli.calls.call_words import Language

SPINNER = "⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏"
OUTPUT_LINES = 5


@dataclass(kw_only=True)
class ChatThread:
    """What is talked about: the thread, who answers, and how far it was read."""

    thread: str = field(default_factory=new_id)
    # Whom the next message asks for, and who answers where nobody is asked for.
    asked: str | None = None
    agent: str = ""
    # Whether anything was said in it: of one that is new the server knows nothing.
    is_begun: bool = False
    skill: str | None = None
    # The skill that the next message asks for.
    next_skill: str | None = None
    # The newest message that was read, the runs whose events were, and those of which they will be.
    last: str | None = None
    followed: set[str] = field(default_factory=set[str])
    expected: set[str] = field(default_factory=set[str])
    # What was said and has not begun, by the runs that answer it.
    pending: dict[str, str] = field(default_factory=dict[str, str])
    model: str = ""
    tokens: int | None = None
    row: Object = field(default_factory=dict[str, Json])


class ChatSession:
    """The conversation, and what is shown of it."""

    def __init__(self, api: ThreadApi, pen: Pen, language: Language, words: ChatWords, settings: ChatSettings) -> None:
        self.api, self.pen, self.words, self.settings = api, pen, words, settings
        self.language: Language = language
        self.screen: Screen | None = None
        self.talk = ChatThread()
        self.live = LiveRun()
        self.at_work: str | None = None
        self._began = 0.0
        self._is_ending = False
        self._before: Block | None = None
        # Tokens that models take, by their names.
        self._windows: dict[str, int] = {}
        self._runs: asyncio.Queue[str] = asyncio.Queue()
        # What is followed, and whose turn it is with the thread: to follow it, or to enter another.
        self._following: asyncio.Task[None] | None = None
        self._turn = asyncio.Lock()
        # Who answers in a new thread where nobody is asked for.
        self.default_agent = ""
        # Set once the server answers; and what is on its way to it.
        self.ready = asyncio.Event()
        self.sending: list[str] = []
        # Is told what waits for a person.
        self.approvals: Callable[[Sequence[Object]], None] | None = None

    # Showing

    def show(self, *blocks: Block) -> None:
        """Print blocks, for good."""
        for block in blocks:
            gap = "\n" if starts_apart(block, self._before) else ""
            self._print(gap + self.pen.draw(block_view(block, self.words), self.width))
            self._before = block

    def tell(self, what: RenderableType | str, style: str = "dim") -> None:
        """Print something that is not of the conversation."""
        view = Text(clean(what), style=style) if isinstance(what, str) else what
        self._print("\n" + self.pen.draw(view, self.width))
        self._before = None

    def _print(self, text: str) -> None:
        if self.screen:
            self.screen.print(text)

    @property
    def width(self) -> int:
        """Columns of the terminal."""
        return self.screen.size[0] if self.screen else 80

    def touch(self) -> None:
        """Have the screen drawn again."""
        if self.screen:
            self.screen.touch()

    @property
    def is_busy(self) -> bool:
        """Whether something moves."""
        return self.at_work is not None

    def live_text(self, width: int, height: int) -> str:
        """What is at work: the unfinished end of the answer, calls, what waits for its turn."""
        drawn = "".join([self.pen.draw(view, width) for view in self._live_views()])
        return "\n".join(drawn.rstrip("\n").splitlines()[-height:])

    def _live_views(self) -> list[RenderableType]:
        run, now = self.live, time.monotonic()
        views: list[RenderableType] = []
        if run.thought.text.strip():
            views += [Text(""), Padding(Text(clean(run.thought.shown.strip()), style="dim italic"), (0, 0, 0, 2))]
        if run.words.text.strip():
            views += [*([] if run.words.joins else [Text("")]), markdown(run.words.shown)]
        if self.at_work:
            mark = SPINNER[int(now * 10) % len(SPINNER)]
            for call in run.at_work:
                views.append(call_line(call, mark, now - call.started if call.started else None))
                views += [Text(f"    {line}", style="dim") for line in clean(call.output).splitlines()[-OUTPUT_LINES:]]
            views += [Text(""), self._spinner(mark, now)]
        for words in (*self.talk.pending.values(), *self.sending):
            line = " ".join(words.split())
            views.append(
                Text(f"› {clean(line)}  ({self.words.queued})", style="dim", no_wrap=True, overflow="ellipsis")
            )
        return views

    def _spinner(self, mark: str, now: float) -> Text:
        doing = self.words.cancelling if self._is_ending else clean(self.live.progress) or self.words.thinking
        if self.live.at_work and not self._is_ending:
            doing = self.words.running
        tokens = f" · ~{self.live.tokens:,} tokens" if self.live.tokens else ""
        return Text(f"{mark} {doing} {now - self._began:.0f} s{tokens} · Ctrl-C", style="cyan")

    def status_text(self, width: int) -> str:
        """One line: who answers, in what skill, with which model, how long the page is, how many messages wait.

        While nobody answers, it says that.
        """
        if self.api.is_lost:
            return self.pen.draw(Text(self.words.lost, style="red", no_wrap=True), width).rstrip("\n")
        talk = self.talk
        parts = [talk.asked or talk.agent, talk.next_skill or talk.skill or "", talk.model]
        parts += [self._fill(talk.tokens)] if talk.tokens is not None else []
        parts += [f"{len(talk.pending)} {self.words.queued}"] if talk.pending else []
        said = clean(" · ".join([part for part in parts if part]))
        line = Text(said, style="dim", no_wrap=True, overflow="ellipsis")
        return self.pen.draw(line, width).rstrip("\n")

    def _fill(self, tokens: int) -> str:
        window = self._windows.get(self.talk.model)
        return f"{tokens:,} tokens" + (f" ({tokens / window:.0%})" if window else "")

    # Talking

    async def say(self, words: str, content: Json) -> None:
        """Say something. It is shown when its turn has come."""
        talk = self.talk
        skill: dict[str, Json] = {"skill": talk.next_skill} if talk.next_skill else {}
        run = await self.api.say(talk.thread, content, {**self.props(), **skill})
        talk.next_skill = None
        if self.expect(run):
            talk.pending[run] = words

    def props(self) -> dict[str, Json]:
        """What each run of this session says besides."""
        return {"agent": self.talk.asked} if self.talk.asked else {}

    async def decide(self, answers: Sequence[Object]) -> None:
        """Answer what waits for a person, and follow the run that goes on."""
        self.expect(await self.api.decide(self.talk.thread, answers, self.props()))

    async def always(self, tool: str) -> None:
        """Have a tool ask no more in this thread."""
        agreed = [*[str(name) for name in parts_of(self.talk.row.get("agreed"))], tool]
        self.talk.row = await self.api.agree(self.talk.thread, agreed)
        self.tell(self.words.always.format(tool=tool))

    def expect(self, run: str) -> bool:
        """Follow a run when its turn has come. It may have been found at work already."""
        if run == self.at_work or run in self.talk.followed:
            return False
        self.talk.is_begun = True
        self.talk.expected.add(run)
        self._runs.put_nowait(run)
        self.touch()
        return True

    @property
    def is_ending(self) -> bool:
        """Whether the run at work was asked to end."""
        return self._is_ending

    async def end_run(self) -> None:
        """End the run at work."""
        if self.at_work and not self._is_ending:
            self._is_ending = True
            self.touch()
            await self.api.cancel(self.at_work)

    # Reading

    async def follow(self) -> None:
        """Follow the thread for as long as the screen is there."""
        problem = ""
        while True:
            try:
                async with self._turn:
                    await self._follow_until_left()
                problem = ""
            except RectoError as error:
                if str(error) != problem:
                    self.tell(self.words.unreachable.format(problem=error), "red")
                problem = str(error)
                await asyncio.sleep(self.settings.watch_seconds)

    async def _follow_until_left(self) -> None:
        """Follow the next run, if there is one, until it is over or another thread is entered."""
        following = self._following = asyncio.create_task(self._follow_next())
        try:
            await asyncio.wait([following])
        finally:
            following.cancel()
        if not following.cancelled():
            following.result()

    async def _follow_next(self) -> None:
        if run := await self._next_run():
            await self._follow_run(run)

    async def _next_run(self) -> str | None:
        """The run to follow next: the one at work, whoever began it, before those of ours that wait."""
        own: str | None = None
        with contextlib.suppress(TimeoutError):
            own = await asyncio.wait_for(self._runs.get(), self.settings.watch_seconds)
        active = await self.look() if self.talk.is_begun else None
        if active and active not in self.talk.followed and active != own:
            if own:
                self._runs.put_nowait(own)
            return active
        return own if own not in self.talk.followed else None

    async def look(self) -> str | None:
        """Look at the thread, and read what others said in it; the run at work on it."""
        talk = self.talk
        row = await self.api.thread(talk.thread)
        if row is None:
            return None
        self._tell_new_server()
        is_other = row.get("updated") != talk.row.get("updated")
        talk.row = row
        talk.agent, talk.skill = str(row["agent"] or "") or talk.agent, str(row["skill"] or "") or None
        self._notice(is_read=False)
        active = row.get("activeRun")
        if is_other and not isinstance(active, str):
            await self.read()
        self._notice(is_read=True)
        self.touch()
        return active if isinstance(active, str) else None

    def _notice(self, *, is_read: bool) -> None:
        """Ask about what waits, once what led to it was shown; what waits no more is asked about no more at once."""
        waiting = self.interrupts()
        is_shown = is_read and not self.talk.expected
        if self.approvals and self.at_work is None and (is_shown or not waiting):
            self.approvals(waiting)

    def _tell_new_server(self) -> None:
        if self.api.is_new and self.api.found:
            how = self.words.taken_over if self.api.found.how == "started" else self.words.joined
            self.tell(how.format(data=self.api.found.data), "yellow")
        self.api.is_new = False

    async def _follow_run(self, run: str) -> None:
        self.at_work, self._began, self._is_ending, is_asked = run, time.monotonic(), False, True
        self.touch()
        try:
            async for event in self.api.events(run):
                if event.get("type") == "RUN_STARTED":
                    is_asked = await self.read(run)
                    self.talk.pending.pop(run, None)
                elif not is_asked:
                    # It may begin a moment before what it answers is in the log.
                    is_asked = True
                    await self.read(run)
                self.live, blocks = take_event(self.live, event, time.monotonic())
                self.show(*blocks)
                self.touch()
        finally:
            self.talk.followed.add(run)
            self.talk.expected.discard(run)
            self.talk.pending.pop(run, None)
            self.at_work, self._is_ending = None, False
            self.touch()
        await self.look()
        await self._learn()

    async def read(self, run: str | None = None, *, again: bool = False) -> bool:
        """Read what was said since, and show what no events have shown. Of a run whose events come: its question.

        `again`: what events have shown is shown too. Return whether there was something, of `run` where one is given.
        """
        talk = self.talk
        messages = await self.api.messages(talk.thread, talk.last)
        if messages is None:
            if talk.last is None:
                return False
            talk.last, self.live = None, LiveRun()
            self.tell(self.words.elsewhere)
            await self.read_all()
            return True
        # What runs of ours said whose events come yet is told by these.
        messages = [*takewhile(lambda one: one.get("run") == run or one.get("run") not in talk.expected, messages)]
        new = [one for one in messages if again or one.get("run") not in talk.followed]
        own = [one for one in new if run is None or one.get("run") != run or one.get("role") == "user"]
        self.live, blocks = take_messages(self.live, own)
        self.show(*blocks)
        talk.last = str(messages[-1]["id"]) if messages else talk.last
        # Messages of the run before may come first: its question may still be on its way into the log.
        return any(run is None or one.get("run") == run for one in messages)

    async def read_all(self) -> None:
        """Show what was said in a thread so far; what is beyond a screen is folded away."""
        talk = self.talk
        row = await self.api.thread(talk.thread)
        active = row.get("activeRun") if row else None
        messages = await self.api.messages(talk.thread, None) or ()
        settled = [one for one in messages if active is None or one.get("run") != active]
        self.live, blocks = take_messages(LiveRun(), settled)
        drawn = [self.pen.draw(block_view(block, self.words), self.width) for block in blocks]
        kept, lines = len(drawn), 0
        while kept and lines < self.settings.history_lines:
            kept -= 1
            lines += drawn[kept].count("\n") + 1
        if kept:
            self.tell(f"… {self.words.folded.format(count=kept)}")
        self.show(*blocks[kept:])
        talk.last = str(settled[-1]["id"]) if settled else None
        talk.row = {}

    async def _learn(self) -> None:
        """What the newest call was: its model, and how long its page."""
        found = await self.api.newest_call(self.talk.thread)
        if found:
            tokens, model = found.get("tokens"), str(found.get("model") or "")
            self.talk.model, self.talk.tokens = model, tokens if isinstance(tokens, int) else None
            if model not in self._windows:
                self._windows[model] = await self.api.window(found)
        self.touch()

    async def enter(self, thread: str | None, asked: str | None, *, quiet: bool = False) -> None:
        """Talk in another thread from now on; in a new one where none is named. `quiet`: what was said is known.

        A run of the old one works on; here it is left.
        """
        if self._following:
            self._following.cancel()
        async with self._turn:
            await self._enter(thread, asked, quiet=quiet)

    async def _enter(self, thread: str | None, asked: str | None, *, quiet: bool) -> None:
        self.talk = ChatThread(
            thread=thread or new_id(), asked=asked, agent=self.default_agent, is_begun=thread is not None
        )
        self.live, self._before = LiveRun(), None
        while not self._runs.empty():
            self._runs.get_nowait()
        if thread is None:
            return
        if quiet:
            await self.skip()
        else:
            await self.read_all()
        await self.look()
        await self._learn()

    async def skip(self) -> None:
        """Take all that is in view for read."""
        messages = await self.api.messages(self.talk.thread, None)
        self.talk.last = str(messages[-1]["id"]) if messages else None

    def interrupts(self) -> Sequence[Object]:
        """The calls that wait for a person."""
        return rows(self.talk.row, "interrupts")
