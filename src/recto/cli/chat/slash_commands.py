"""Messages and /commands typed at the prompt."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from urllib.parse import quote, urlencode

from rich.cells import cell_len, set_cell_size

from recto.cli.chat.approvals import Approvals
from recto.cli.chat.chat_session import ChatSession
from recto.cli.chat.prompt_input import TypedCommand, TypedMessage, command_help
from recto.cli.chat.rendering.live_run import read_user_block
from recto.cli.chat.screen import Load, Row, Screen, truncate
from recto.cli.chat.thread_api import NOT_FOUND, ApiRequest, rows
from recto.cli.translation import _
from recto.conversation.json import Json, Object, parse_time
from recto.errors import FileRefused, RectoError, RequestRefused

MOST_CALLS, THREADS_LISTED = 500, 30
TITLE_CELLS, AGENT_CELLS, AGE_CELLS = 40, 12, 8
BILLION = 1_000_000_000
# Minutes of an hour and of a day.
HOUR, DAY = 60, 24 * 60
MAX_NAMES = 5


class SlashCommands:
    """The /commands by name."""

    def __init__(self, session: ChatSession, screen: Screen, approvals: Approvals) -> None:
        self._session, self._screen, self._approvals = session, screen, approvals
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
        handler = self._by_name.get(command.name)
        if handler is None:
            self._session.notify(
                _("Unknown command {name}. /help lists all commands.").format(name=command.name), "yellow"
            )
            return
        await handler(command.argument)

    async def send_message(self, message: TypedMessage) -> None:
        """Send a message with the files it names."""
        session, thread = self._session, self._session.chat_thread
        try:
            files_by_path = {path: read_file_at(path) for path in message.paths}
            if missing := [path for path, file in files_by_path.items() if file is None]:
                text = _("No such file: {path}. The message is sent as written.")
                session.notify(text.format(path=", ".join(missing)), "yellow")
            files = [*message.pasted, *filter(None, files_by_path.values())]
            parts = await session.api.upload(files, thread.requested_agent or thread.agent) if files else ()
            content: Json = [{"type": "text", "text": message.text}, *parts] if parts else message.text
            await session.send(message.text, content)
        except (RectoError, OSError):
            self._screen.restore_text(message.raw_text)
            raise

    async def _agents(self, name: str) -> None:
        choices = [_build_row(agent, "name") for agent in await self._session.api.agents()]
        choice = name or await self._screen.choose(_("Which agent?"), _filter_rows(choices))
        if choice:
            self._session.chat_thread.requested_agent = choice
            self._session.notify(_("Switched to the agent {agent}.").format(agent=choice))

    async def _skills(self, name: str) -> None:
        thread = self._session.chat_thread
        agent = thread.requested_agent or thread.agent
        matches = [one for one in await self._session.api.agents() if one["name"] == agent]
        skills = rows(matches[0], "skills") if matches else ()
        if not skills:
            self._session.notify(_("{agent} has no skills.").format(agent=agent))
            return
        choices = [*[_build_row(skill, "title") for skill in skills], Row(value="core", text="core")]
        choice = name or await self._screen.choose(_("Which skill?"), _filter_rows(choices))
        if choice:
            thread.next_skill = choice
            self._session.notify(_("Your next message uses the skill {skill}.").format(skill=choice))

    async def _model(self, _argument: str) -> None:
        session = self._session
        body = {"forwardedProps": session.props()}
        page = await session.api.thread_resource(session.chat_thread.thread, "preview", body)
        text = _("{agent} uses {model}. Set another one in AGENT.md (model) or for the server (RECTO_MODEL).")
        session.notify(text.format(agent=page["agent"], model=page["model"]))

    async def _context(self, _argument: str) -> None:
        from recto.cli.calls.page_views import report_context  # slow to import, and rarely used

        thread = self._session.chat_thread
        self._session.notify(await report_context(self._ask, thread.thread, thread.requested_agent))

    async def _explain(self, number: str) -> None:
        from recto.cli.calls.page_views import report_call

        n = int(number) if number.isdecimal() else 0 if number else 1
        self._session.notify(await report_call(self._ask, self._session.chat_thread.thread, n))

    async def _ask(self, path: str, body: Object | None) -> Object:
        return await self._session.api.ask(ApiRequest(path=path, method="GET" if body is None else "POST", body=body))

    async def _compact(self, _argument: str) -> None:
        accepted = await self._session.api.thread_resource(self._session.chat_thread.thread, "compact", {})
        self._session.expect(str(accepted["taskId"]))

    async def _cost(self, _argument: str) -> None:
        api = self._session.api
        calls = await api.calls(self._session.chat_thread.thread, MOST_CALLS)
        call = next((call for call in calls if call.get("price")), None)
        prices = (await api.read_call(call)).get("prices") if call else None
        currency = prices.get("currency") if isinstance(prices, Mapping) else None
        self._session.notify(cost_line(calls, str(currency or "")), "")

    async def _files(self, _argument: str) -> None:
        session = self._session
        messages = await session.api.messages(session.chat_thread.thread, None) or ()
        uploads = [str(file["name"]) for message in messages if "files" in message for file in rows(message, "files")]
        first = next((str(message["id"]) for message in messages if message["role"] == "user"), None)
        answer: Object = {}
        try:
            path = f"files/changes?since={quote(first or '')}"
            answer = await session.api.thread_resource(session.chat_thread.thread, path) if first else answer
        except RequestRefused as error:
            # The server responds with 404 if it has no snapshots.
            if error.status != NOT_FOUND:
                raise
        lines = ["  " + _("uploaded") + f"  {name}" for name in dict.fromkeys(uploads)]
        lines += ["  " + _("changed") + f"  {row['path']} ({row['change']})" for row in rows(answer, "changes")]
        session.notify("\n".join(lines) or _("No files were uploaded or changed."), "")

    async def rollback(self, _argument: str = "") -> None:
        """Remove a user message and everything after it; put its text back into the input."""
        session, thread = self._session, self._session.chat_thread.thread
        if session.active_run:
            session.notify(_("A run is active. Stop it with Ctrl-C first."), "yellow")
            return
        messages = await session.api.messages(thread, None) or ()
        user_messages = [message for message in reversed(messages) if message["role"] == "user"]
        if not user_messages:
            session.notify(_("There are no messages to go back to."))
            return
        choices = [
            Row(value=str(one["id"]), text=_line(read_user_block(one.get("content")).text, session.width))
            for one in user_messages
        ]
        choice = await self._screen.choose(_("Go back to which message?"), _filter_rows(choices))
        if choice is None:
            return
        answer = await session.api.thread_resource(thread, "rollback", {"messageId": choice})
        await session.mark_read()
        session.notify(_("Rolled back. /undo restores the messages."), "yellow")
        try:
            if answer.get("changedFiles"):
                await self._offer_restore(thread, choice, rows(answer, "changedFiles"))
        finally:
            self._screen.set_text(read_user_block(answer.get("content")).text)

    async def _offer_restore(self, thread: str, message: str, changed: Sequence[Object]) -> None:
        """Offer to restore changed files."""
        names = ", ".join([str(row["path"]) for row in changed[:MAX_NAMES]])
        text = _("Files changed since then ({count}): {names}. Restore them? y yes · n no")
        question = text.format(count=len(changed), names=names + (" …" if len(changed) > MAX_NAMES else ""))
        if await self._screen.ask_key(question, "yn") != "y":
            return
        done = await self._session.api.thread_resource(thread, "files/restore", {"messageId": message})
        for text, which in ((_("Restored: {names}"), "restored"), (_("Not restored: {names}"), "left")):
            value = done.get(which)
            rows = value if isinstance(value, Sequence) and not isinstance(value, str) else ()
            if paths := [str(one.get("path")) if isinstance(one, Mapping) else str(one) for one in rows]:
                self._session.notify(text.format(names=", ".join(paths)))

    async def _undo(self, _argument: str) -> None:
        done = await self._session.api.thread_resource(self._session.chat_thread.thread, "undo", {})
        self._session.notify(_("Messages restored: {count}").format(count=done["count"]), "yellow")
        await self._session.print_new_messages(again=True)

    async def _fork(self, _argument: str) -> None:
        forked = await self._session.api.thread_resource(self._session.chat_thread.thread, "fork", {})
        await self._session.open_thread(str(forked["id"]), self._session.chat_thread.requested_agent, quiet=True)
        self._session.notify(_("Continuing in a copy of the thread: {thread}").format(thread=forked["id"]))

    async def resume(self, thread: str = "", agent: str | None = None) -> None:
        """Switch to `thread`, or to one that the user chooses from a list. `agent` replaces the thread's agent."""
        choice = thread or await self._screen.choose(_("Open which thread?"), self._list_threads)
        if choice:
            self._approvals.stop()
            await self._session.open_thread(choice, agent)

    async def _list_threads(self, search: str) -> Sequence[Row]:
        """Return the newest threads that match a search text."""
        api, query = self._session.api, urlencode({"limit": THREADS_LISTED, **({"search": search} if search else {})})
        threads = rows(await api.ask(ApiRequest(path=f"/threads?{query}")), "threads")
        newest = await asyncio.gather(*[api.newest_call(str(row["id"])) for row in threads])
        choices: list[Row] = []
        for row, call in zip(threads, newest, strict=True):
            title = set_cell_size(_line(str(row["title"] or _("(untitled)")), TITLE_CELLS), TITLE_CELLS)
            agent = set_cell_size(str(row["agent"] or ""), AGENT_CELLS)
            age = set_cell_size(_age(parse_time(str(row["updated"]))), AGE_CELLS)
            tokens = f"{call['tokens']:,} tokens" if call and isinstance(call.get("tokens"), int) else ""
            choices.append(Row(value=str(row["id"]), text=f"{title} {agent} {age} {tokens}"))
        return choices

    async def _approve(self, _argument: str) -> None:
        self._approvals.ask_again()

    async def _new(self, _argument: str) -> None:
        self._approvals.stop()
        await self._session.open_thread(None, self._session.chat_thread.requested_agent)
        self._session.notify(_("Started a new thread."))

    async def _help(self, _argument: str) -> None:
        text = _(
            "Enter sends. Alt-Enter or Ctrl-J starts a new line. @ attaches a file, / runs a command. Esc Esc clears "
            "the input, or goes back to an earlier message. Ctrl-O opens the newest tool call, again the one before. "
            "Ctrl-C stops the run; pressed twice at the prompt, it quits, as Ctrl-D does."
        )
        lines = [f"  {name:<10} {help}" for name, help in command_help().items()]
        self._session.notify("\n".join([text, *lines]), "")


def _age(time: datetime) -> str:
    minutes = int((datetime.now(UTC) - time).total_seconds() // 60)
    if minutes < 1:
        return _("now")
    if minutes < HOUR:
        return _("{n} min").format(n=minutes)
    return _("{n} h").format(n=minutes // HOUR) if minutes < 2 * DAY else _("{n} d").format(n=minutes // DAY)


def read_file_at(path: str) -> tuple[str, bytes] | None:
    """Read a file named in a message; return None if it does not exist. Raise FileRefused if it is unreadable."""
    try:
        file = Path(path).expanduser()
    except RuntimeError:  # the home folder of an unknown user
        return None
    try:
        return (file.name, file.read_bytes()) if file.is_file() else None
    except OSError as error:
        raise FileRefused(f"{path} cannot be read: {error.strerror}", code="not_read") from error


def _filter_rows(choices: Sequence[Row]) -> Load:
    async def load(search: str) -> Sequence[Row]:
        return [row for row in choices if search.lower() in row.text.lower()]

    return load


def _build_row(entry: Object, title_field: str) -> Row:
    """Return the choice of an agent or skill."""
    title, about = str(entry[title_field]), _line(str(entry["description"]), TITLE_CELLS * 2)
    return Row(value=str(entry["name"]), text=f"{set_cell_size(title, max(AGENT_CELLS, cell_len(title)))}  {about}")


def _line(text: str, cells: int) -> str:
    """Return the text in one line, truncated."""
    return truncate(" ".join(text.split()), cells)


def cost_line(calls: Sequence[Object], currency: str) -> str:
    """Format the usage of calls; note if older calls are missing."""
    usages = [usage for call in calls if isinstance(usage := call.get("usage"), Mapping)]
    price = _sum(calls, "price")
    text = _("{calls} calls, {input} tokens in ({cached} cached), {output} out, {saved} saved by folding{price}")
    line = text.format(
        calls=len(calls),
        input=f"{_sum(usages, 'inputTokens'):,}",
        cached=f"{_sum(usages, 'cachedInputTokens'):,}",
        output=f"{_sum(usages, 'outputTokens'):,}",
        saved=f"{_sum(calls, 'saved'):,}",
        price=f", {price / BILLION:.4f} {currency}".rstrip() if price else "",
    )
    return line + (_(" (newest {count} calls only)").format(count=MOST_CALLS) if len(calls) == MOST_CALLS else "")


def _sum(objects: Sequence[Object], name: str) -> int:
    return sum([value for one in objects if isinstance(value := one.get(name), int)])
