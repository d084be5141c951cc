"""Calls that wait for a person: each is shown with its diff or command, and decided by a key."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence

from rich.console import Group
from rich.text import Text

from recto.cli.chat.chat_session import ChatSession
from recto.cli.chat.screen import Screen
from recto.cli.chat.seen.block_views import arguments_view, clean
from recto.client.chat_turn import Approval
from recto.conversation.json import Object, load_object, parts_of
from recto.errors import RectoError, RequestRefused

ONCE, ALWAYS, DENY, EDIT = "y", "a", "n", "e"


class Approvals:
    """What waits in a thread, asked about one by one. What somebody else decided meanwhile is asked no more."""

    def __init__(self, session: ChatSession, screen: Screen) -> None:
        self._session, self._screen = session, screen
        self._asked: tuple[str, ...] = ()
        self._asking: asyncio.Task[None] | None = None

    def notice(self, waiting: Sequence[Object]) -> None:
        """Ask about what waits now, unless that is asked, or was put aside."""
        ids = tuple([str(row["id"]) for row in waiting])
        if ids == self._asked:
            return
        self.stop()
        self._asked = ids
        if waiting:
            self._asking = asyncio.get_running_loop().create_task(self._decide(waiting))

    def again(self) -> None:
        """Ask about what was put aside."""
        if not (self._asking and not self._asking.done()):
            self._asked = ()
            self.notice(self._session.interrupts())

    def stop(self) -> None:
        """Ask no more."""
        if self._asking:
            self._asking.cancel()
        self._asked = ()

    async def _decide(self, waiting: Sequence[Object]) -> None:
        """All of them, then the run goes on. One that is put aside leaves all of them waiting."""
        session, answers = self._session, list[Object]()
        for row in waiting:
            if row["tool"] in parts_of(session.talk.row.get("agreed")):
                answers.append(_answer(row, Approval()))
                continue
            self._show(row)
            approval = await self._ask(row)
            if approval is None:
                session.tell(session.words.aside.format(count=len(waiting)), "yellow")
                return
            answers.append(_answer(row, approval))
        try:
            await session.decide(answers)
        except RequestRefused as error:
            session.tell(str(error), "red")
            # What it says may be put right: arguments that no tool takes; or somebody was quicker.
            self._asked = ()
        except RectoError as error:
            session.tell(str(error), "red")

    def _show(self, row: Object) -> None:
        words, tool = self._session.words, str(row["tool"])
        title = Text(clean(f"? {words.ask.format(tool=tool)}"), style="bold yellow")
        self._session.tell(Group(title, arguments_view(load_object(str(row["arguments"])) or {}, words)))

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
                        await self._always(tool)
                        return Approval()
                case "n":
                    said = await self._screen.ask_words(words.deny_words, "")
                    if said is not None:
                        return Approval(approved=False, message=said.strip() or None)
                case "e":
                    if changed := await self._changed(row):
                        return changed
                case _:
                    return None

    async def _always(self, tool: str) -> None:
        """Once and for all; where that is not kept, once."""
        try:
            await self._session.always(tool)
        except (RectoError, OSError) as error:
            self._session.tell(str(error), "red")

    async def _changed(self, row: Object) -> Approval | None:
        """The call with other arguments; None where they stay as they are."""
        words = self._session.words
        text = json.dumps(load_object(str(row["arguments"])) or {}, ensure_ascii=False, indent=2)
        while True:
            edited = await self._screen.ask_words(words.edit_arguments, text)
            if edited is None:
                return None
            arguments = load_object(edited)
            if arguments is not None:
                return Approval(arguments=arguments)
            self._session.tell(words.not_json, "red")
            text = edited


def _answer(row: Object, approval: Approval) -> Object:
    return {"interruptId": row["id"], "status": "resolved", "payload": approval.payload()}
