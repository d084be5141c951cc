"""Approval dialog for pending tool calls."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence

from rich.console import Group
from rich.text import Text

from recto.cli.chat.chat_session import ChatSession
from recto.cli.chat.rendering.block_views import arguments_view, clean
from recto.cli.chat.screen import Screen
from recto.cli.chat.thread_api import ApiRequest, rows
from recto.cli.translation import _
from recto.client.chat_client import Approval
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
            self.ask(rows(self._session.chat_thread.row, "interrupts"))

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
            text = "? " + _("{tool} needs your approval").format(tool=row["tool"])
            arguments = arguments_view(load_object(str(row["arguments"])) or {})
            session.notify(Group(Text(clean(text), style="bold yellow"), arguments))
            approval = await self._ask(row)
            if approval is None:
                text = _("Tool calls that need approval: {count}. /approve reviews them; a new message denies them.")
                session.notify(text.format(count=len(waiting)), "yellow")
                return
            answers.append(_build_answer(row, approval))
        try:
            thread = session.chat_thread.thread
            session.expect(await session.api.start_run(thread, session.props(), messages=[], resume=answers))
        except RequestRefused as error:
            session.notify(str(error), "red")
            # Allow asking again, because the user may fix invalid arguments, or another client was faster.
            self._ids = ()
        except RectoError as error:
            session.notify(str(error), "red")

    async def _ask(self, row: Object) -> Approval | None:
        tool = str(row["tool"])
        question = _("Allow {tool}?").format(tool=tool)
        keys = _("y once · a always in this thread · n deny · e edit arguments · Esc later")
        while True:
            match await self._screen.ask_key(f"{question}\n{keys}", ONCE + ALWAYS + DENY + EDIT):
                case "y":
                    return Approval()
                case "a":
                    text = _("Always allow {tool} in this thread? Press a again to confirm · Esc goes back")
                    if await self._screen.ask_key(text.format(tool=tool), ALWAYS) == ALWAYS:
                        # Save the permanent approval; if that fails, approve once
                        thread = self._session.chat_thread
                        tools = [*[str(name) for name in parts_of(thread.row.get("agreed"))], tool]
                        request = ApiRequest(path=f"/threads/{thread.thread}", method="PATCH", body={"agreed": tools})
                        try:
                            thread.row = await self._session.api.ask(request)
                            text = _("{tool} no longer needs approval in this thread.")
                            self._session.notify(text.format(tool=tool))
                        except (RectoError, OSError) as error:
                            self._session.notify(str(error), "red")
                        return Approval()
                case "n":
                    title = _("Reason for the model (optional). Enter denies the call · Esc goes back")
                    reason = await self._screen.ask_text(title, "")
                    if reason is not None:
                        return Approval(approved=False, message=reason.strip() or None)
                case "e":
                    if approval := await self._edit_arguments(row):
                        return approval
                case _:
                    return None

    async def _edit_arguments(self, row: Object) -> Approval | None:
        """Let the user edit the arguments; return None if they cancel."""
        title = _("Arguments as JSON. Enter runs the call with them · Esc goes back")
        text = json.dumps(load_object(str(row["arguments"])) or {}, ensure_ascii=False, indent=2)
        while True:
            new_text = await self._screen.ask_text(title, text)
            if new_text is None:
                return None
            arguments = load_object(new_text)
            if arguments is not None:
                return Approval(arguments=arguments)
            self._session.notify(_("This is not a JSON object."), "red")
            text = new_text


def _build_answer(row: Object, approval: Approval) -> Object:
    return {"interruptId": row["id"], "status": "resolved", "payload": approval.payload()}
