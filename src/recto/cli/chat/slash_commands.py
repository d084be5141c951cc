"""Messages and /commands typed at the prompt."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path

from rich.cells import cell_len, set_cell_size

from recto.cli.chat.approvals import Approvals
from recto.cli.chat.chat_session import ChatSession
from recto.cli.chat.prompt_input import TypedCommand, TypedMessage
from recto.cli.chat.rendering.chat_words import ChatWords
from recto.cli.chat.rendering.live_run import said_in
from recto.cli.chat.screen import Load, Row, Screen, within
from recto.cli.chat.thread_api import ApiRequest, rows
from recto.conversation.json import Json, Object, parse_time
from recto.errors import FileRefused, RectoError

MOST_CALLS, THREADS_LISTED = 500, 30
TITLE_CELLS, AGENT_CELLS, AGE_CELLS = 40, 12, 8
BILLION = 1_000_000_000
FILES_NAMED = 5


class SlashCommands:
    """The /commands by name."""

    def __init__(self, session: ChatSession, screen: Screen, approvals: Approvals) -> None:
        self._session, self._screen, self._approvals = session, screen, approvals
        self._words = session.words
        self._by_name: Mapping[str, Callable[[str], Awaitable[None]]] = {
            "/agents": self._agents,
            "/skills": self._skills,
            "/model": self._model,
            "/files": self._files,
            "/context": self._context,
            "/explain": self._explain,
            "/compact": self._compact,
            "/rollback": self.rollback,
            "/undo": self._undo,
            "/fork": self._fork,
            "/approve": self._approve,
            "/resume": self.resume,
            "/new": self._new,
            "/cost": self._cost,
            "/help": self._help,
        }

    async def run(self, command: TypedCommand) -> None:
        """Run a command."""
        known = self._by_name.get(command.name)
        if known is None:
            self._session.notify(self._words.unknown_command.format(name=command.name), "yellow")
            return
        await known(command.rest)

    async def say(self, message: TypedMessage) -> None:
        """Send a message with the files it names."""
        try:
            await self._send(message)
        except (RectoError, OSError):
            self._screen.put_back(message.typed)
            raise

    async def _send(self, message: TypedMessage) -> None:
        session, talk = self._session, self._session.chat_thread
        named = {path: read_named(path) for path in message.paths}
        if missing := [path for path, file in named.items() if file is None]:
            session.notify(self._words.no_file.format(path=", ".join(missing)), "yellow")
        files = [*message.pasted, *filter(None, named.values())]
        parts = await session.api.send(files, talk.requested_agent or talk.agent) if files else ()
        content: Json = [{"type": "text", "text": message.words}, *parts] if parts else message.words
        await session.send(message.words, content)

    async def _agents(self, name: str) -> None:
        agents = await self._session.api.agents()
        found = [
            Row(value=str(one["name"]), text=_columns(str(one["name"]), str(one["description"]))) for one in agents
        ]
        chosen = name or await self._screen.choose(self._words.choose_agent, _among(found))
        if chosen:
            self._session.chat_thread.requested_agent = chosen
            self._session.notify(self._words.now_agent.format(agent=chosen))

    async def _skills(self, name: str) -> None:
        talk = self._session.chat_thread
        agent = talk.requested_agent or talk.agent
        known = [one for one in await self._session.api.agents() if one["name"] == agent]
        skills = rows(known[0], "skills") if known else ()
        if not skills:
            self._session.notify(self._words.no_skills.format(agent=agent))
            return
        found = [
            Row(value=str(one["name"]), text=_columns(str(one["title"]), str(one["description"]))) for one in skills
        ]
        none = Row(value="core", text="core")
        chosen = name or await self._screen.choose(self._words.choose_skill, _among([*found, none]))
        if chosen:
            talk.next_skill = chosen
            self._session.notify(self._words.now_skill.format(skill=chosen))

    async def _model(self, _: str) -> None:
        session = self._session
        page = await session.api.of_thread(session.chat_thread.thread, "preview", {"forwardedProps": session.props()})
        self._session.notify(self._words.model_is.format(agent=page["agent"], model=page["model"]))

    async def _context(self, _: str) -> None:
        from recto.cli.calls.thread_views import look_at_context  # here: who does not look needs none of it

        session, talk = self._session, self._session.chat_thread
        session.notify(await look_at_context(self._ask, talk.thread, talk.requested_agent, session.language))

    async def _explain(self, number: str) -> None:
        from recto.cli.calls.thread_views import look_at_call

        session, n = self._session, int(number) if number.isdecimal() else 0 if number else 1
        session.notify(await look_at_call(self._ask, session.chat_thread.thread, n, session.language))

    async def _ask(self, path: str, body: Object | None) -> Object:
        return await self._session.api.ask(ApiRequest(path=path, method="GET" if body is None else "POST", body=body))

    async def _compact(self, _: str) -> None:
        accepted = await self._session.api.of_thread(self._session.chat_thread.thread, "compact", {})
        self._session.expect(str(accepted["taskId"]))

    async def _cost(self, _: str) -> None:
        api = self._session.api
        calls = await api.calls(self._session.chat_thread.thread, MOST_CALLS)
        priced = next((call for call in calls if call.get("price")), None)
        self._session.notify(cost_line(calls, await api.currency(priced) if priced else "", self._words), "")

    async def _files(self, _: str) -> None:
        session = self._session
        messages = await session.api.messages(session.chat_thread.thread, None) or ()
        sent = [str(file["name"]) for message in messages if "files" in message for file in rows(message, "files")]
        first = next((str(message["id"]) for message in messages if message["role"] == "user"), None)
        changed = await session.api.changed_files(session.chat_thread.thread, first) if first else ()
        lines = [f"  {self._words.attached}  {name}" for name in dict.fromkeys(sent)]
        lines += [f"  {self._words.changed}  {row['path']} ({row['change']})" for row in changed]
        session.notify("\n".join(lines) or self._words.no_files, "")

    async def rollback(self, _: str = "") -> None:
        """Remove a user message and everything after it; put its text back into the input."""
        session, thread = self._session, self._session.chat_thread.thread
        if session.active_run:
            session.notify(self._words.end_first, "yellow")
            return
        messages = await session.api.messages(thread, None) or ()
        said = [message for message in reversed(messages) if message["role"] == "user"]
        if not said:
            session.notify(self._words.nothing_said)
            return
        found = [
            Row(value=str(one["id"]), text=_line(said_in(one.get("content")).words, session.width)) for one in said
        ]
        chosen = await self._screen.choose(self._words.rollback, _among(found))
        if chosen is None:
            return
        answer = await session.api.of_thread(thread, "rollback", {"messageId": chosen})
        await session.mark_read()
        session.notify(self._words.rolled_back, "yellow")
        try:
            await self._put_back(thread, chosen, rows(answer, "changedFiles") if answer.get("changedFiles") else ())
        finally:
            self._screen.put(said_in(answer.get("content")).words)

    async def _put_back(self, thread: str, message: str, changed: Sequence[Object]) -> None:
        """Offer to restore changed files."""
        names = [str(row["path"]) for row in changed]
        if not names:
            return
        shown = ", ".join(names[:FILES_NAMED]) + (" …" if len(names) > FILES_NAMED else "")
        asked = self._words.put_back_files.format(count=len(names), names=shown)
        if await self._screen.ask_key(asked, "yn") != "y":
            return
        done = await self._session.api.of_thread(thread, "files/restore", {"messageId": message})
        for said, which in ((self._words.restored, "restored"), (self._words.left_files, "left")):
            if found := _names(done, which):
                self._session.notify(said.format(names=", ".join(found)))

    async def _undo(self, _: str) -> None:
        done = await self._session.api.of_thread(self._session.chat_thread.thread, "undo", {})
        self._session.notify(self._words.undone.format(count=done["count"]), "yellow")
        await self._session.print_new_messages(again=True)

    async def _fork(self, _: str) -> None:
        forked = await self._session.api.of_thread(self._session.chat_thread.thread, "fork", {})
        await self._session.open_thread(str(forked["id"]), self._session.chat_thread.requested_agent, quiet=True)
        self._session.notify(self._words.forked.format(thread=forked["id"]))

    async def resume(self, thread: str = "", agent: str | None = None) -> None:
        """Switch to a thread, chosen from a list unless given, with its own agent unless `agent` is given."""
        chosen = thread or await self._screen.choose(self._words.resume, self._threads)
        if chosen:
            self._approvals.stop()
            await self._session.open_thread(chosen, agent)

    async def _threads(self, search: str) -> Sequence[Row]:
        found = await self._session.api.threads(search, THREADS_LISTED)
        newest = await asyncio.gather(*[self._session.api.newest_call(str(row["id"])) for row in found])
        return [
            Row(value=str(row["id"]), text=self._thread_line(row, call))
            for row, call in zip(found, newest, strict=True)
        ]

    def _thread_line(self, row: Object, call: Object | None) -> str:
        title = set_cell_size(_line(str(row["title"] or self._words.untitled), TITLE_CELLS), TITLE_CELLS)
        agent = set_cell_size(str(row["agent"] or ""), AGENT_CELLS)
        age = set_cell_size(self._age(parse_time(str(row["updated"]))), AGE_CELLS)
        tokens = f"{call['tokens']:,} tokens" if call and isinstance(call.get("tokens"), int) else ""
        return f"{title} {agent} {age} {tokens}"

    def _age(self, then: datetime) -> str:
        now, minutes, hours, days = self._words.ages
        passed = int((datetime.now(UTC) - then).total_seconds() // 60)
        if passed < 1:
            return now
        if passed < 60:  # noqa: PLR2004 - minutes of an hour
            return minutes.format(n=passed)
        passed //= 60
        return hours.format(n=passed) if passed < 48 else days.format(n=passed // 24)  # noqa: PLR2004 - hours of two days

    async def _approve(self, _: str) -> None:
        self._approvals.ask_again()

    async def _new(self, _: str) -> None:
        self._approvals.stop()
        await self._session.open_thread(None, self._session.chat_thread.requested_agent)
        self._session.notify(self._words.new_thread)

    async def _help(self, _: str) -> None:
        lines = [f"  {name:<10} {help}" for name, help in self._words.commands.items()]
        self._session.notify("\n".join([self._words.prompt_help, *lines]), "")


def read_named(path: str) -> tuple[str, bytes] | None:
    """Read a file named in a message; return None if it does not exist. Raise FileRefused if it is unreadable."""
    try:
        file = Path(path).expanduser()
    except RuntimeError:  # a home of nobody
        return None
    try:
        return (file.name, file.read_bytes()) if file.is_file() else None
    except OSError as error:
        raise FileRefused(f"{path} cannot be read: {error.strerror}", code="not_read") from error


def _among(found: Sequence[Row]) -> Load:
    async def load(search: str) -> Sequence[Row]:
        return [row for row in found if search.lower() in row.text.lower()]

    return load


def _columns(name: str, about: str) -> str:
    return f"{set_cell_size(name, max(AGENT_CELLS, cell_len(name)))}  {_line(about, TITLE_CELLS * 2)}"


def _line(text: str, cells: int) -> str:
    """Return the text in one line, truncated."""
    return within(" ".join(text.split()), cells)


def cost_line(calls: Sequence[Object], currency: str, words: ChatWords) -> str:
    """Format the usage of calls; note if older calls are missing."""
    used = [usage for call in calls if isinstance(usage := call.get("usage"), Mapping)]
    price = _sum(calls, "price")
    line = words.cost.format(
        calls=len(calls),
        input=f"{_sum(used, 'inputTokens'):,}",
        cached=f"{_sum(used, 'cachedInputTokens'):,}",
        output=f"{_sum(used, 'outputTokens'):,}",
        saved=f"{_sum(calls, 'saved'):,}",
        price=f", {price / BILLION:.4f} {currency}".rstrip() if price else "",
    )
    return line + (words.newest_only.format(count=MOST_CALLS) if len(calls) == MOST_CALLS else "")


def _sum(found: Sequence[Object], name: str) -> int:
    return sum([value for one in found if isinstance(value := one.get(name), int)])


def _names(answer: Object, name: str) -> list[str]:
    found = answer.get(name)
    rows = found if isinstance(found, Sequence) and not isinstance(found, str) else ()
    return [str(one.get("path")) if isinstance(one, Mapping) else str(one) for one in rows]
