"""Approval dialog: shows pending tool calls and asks for a decision."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence

from rich.console import Group
from rich.text import Text

from recto.cli.chat.chat_session import ChatSession
from recto.cli.chat.rendering.block_views import arguments_view, clean
from recto.cli.chat.screen import Screen
from recto.client.chat_turn import Approval
from recto.conversation.json import Object, load_object, parts_of
from recto.errors import RectoError, RequestRefused

ONCE, ALWAYS, DENY, EDIT = "y", "a", "n", "e"


class Approvals:
    """Asks about pending calls one by one; stops when another client decides."""

    def __init__(self, session: ChatSession, screen: Screen) -> None:
        self._session, self._screen = session, screen
        self._ids: tuple[str, ...] = ()
        self._task: asyncio.Task[None] | None = None

    def ask(self, waiting: Sequence[Object]) -> None:
        """Ask about the pending calls, unless the user was asked about them already."""
        ids = tuple([str(row["id"]) for row in waiting])
        if ids == self._ids:
            return
        self.stop()
        self._ids = ids
        if waiting:
            self._task = asyncio.get_running_loop().create_task(self._decide(waiting))

    def ask_again(self) -> None:
        """Ask again about postponed calls."""
        if not (self._task and not self._task.done()):
            self._ids = ()
            self.ask(self._session.interrupts())

    def stop(self) -> None:
        """Stop asking."""
        if self._task:
            self._task.cancel()
        self._ids = ()

    async def _decide(self, waiting: Sequence[Object]) -> None:
        """Ask about all calls, then resume the run. Postponing one call leaves all of them pending."""
        session, answers = self._session, list[Object]()
        for row in waiting:
            if row["tool"] in parts_of(session.chat_thread.row.get("agreed")):
                answers.append(_build_answer(row, Approval()))
                continue
            self._show(row)
            approval = await self._ask(row)
            if approval is None:
                session.notify(session.words.aside.format(count=len(waiting)), "yellow")
                return
            answers.append(_build_answer(row, approval))
        try:
            await session.decide(answers)
        except RequestRefused as error:
            session.notify(str(error), "red")
            # The user may fix invalid arguments, or another client was faster.
            self._ids = ()
        except RectoError as error:
            session.notify(str(error), "red")

    def _show(self, row: Object) -> None:
        words, tool = self._session.words, str(row["tool"])
        title = Text(clean(f"? {words.ask.format(tool=tool)}"), style="bold yellow")
        self._session.notify(Group(title, arguments_view(load_object(str(row["arguments"])) or {}, words)))

    async def _ask(self, row: Object) -> Approval | None:
        words, tool = self._session.words, str(row["tool"])
        while True:
            match await self._screen.ask_key(
                f"{words.ask.format(tool=tool)}\n{words.keys}", ONCE + ALWAYS + DENY + EDIT
            ):
                case "y":
                    return Approval()
                case "a":
                    if await self._screen.ask_key(words.sure_always.format(tool=tool), ALWAYS) == ALWAYS:
                        await self._approve_always(tool)
                        return Approval()
                case "n":
                    text = await self._screen.ask_words(words.deny_words, "")
                    if text is not None:
                        return Approval(approved=False, message=text.strip() or None)
                case "e":
                    if changed := await self._edit_arguments(row):
                        return changed
                case _:
                    return None

    async def _approve_always(self, tool: str) -> None:
        """Save the permanent approval; if that fails, approve once."""
        try:
            await self._session.approve_always(tool)
        except (RectoError, OSError) as error:
            self._session.notify(str(error), "red")

    async def _edit_arguments(self, row: Object) -> Approval | None:
        """Let the user edit the arguments; return None if they cancel."""
        words = self._session.words
        text = json.dumps(load_object(str(row["arguments"])) or {}, ensure_ascii=False, indent=2)
        while True:
            edited = await self._screen.ask_words(words.edit_arguments, text)
            if edited is None:
                return None
            arguments = load_object(edited)
            if arguments is not None:
                return Approval(arguments=arguments)
            self._session.notify(words.not_json, "red")
            text = edited


def _build_answer(row: Object, approval: Approval) -> Object:
    return {"interruptId": row["id"], "status": "resolved", "payload": approval.payload()}
