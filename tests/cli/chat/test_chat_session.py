"""How a terminal reads a thread that others write to as well."""

import asyncio
from collections.abc import Sequence
from typing import Never

from recto.cli.chat.chat_session import ChatSession
from recto.cli.chat.chat_settings import ChatSettings
from recto.cli.chat.rendering.block_views import TerminalRenderer
from recto.cli.chat.thread_api import ThreadApi
from recto.conversation.json import Object
from tests.api.virtual_time import at, run_virtually


class ScriptedThread(ThreadApi):
    """A thread whose messages are given."""

    def __init__(self, *pages: Sequence[Object]) -> None:
        super().__init__(no_server)
        self._pages = list(pages)
        self.looks = 0

    async def messages(self, thread: str, since: str | None) -> Sequence[Object] | None:
        return self._pages.pop(0)

    async def thread(self, thread: str) -> Object | None:
        self.looks += 1
        return None


def no_server() -> Never:
    raise AssertionError("a server is looked for")


def message(id: str, role: str, run: str) -> Object:
    return {"id": id, "role": role, "run": run, "content": f"{role} of {run}"}


async def test_a_question_is_missing_while_only_messages_of_the_run_before_are_in_the_log():
    api = ScriptedThread([message("1", "assistant", "first")], [message("2", "user", "second")])
    session = ChatSession(api, TerminalRenderer({}), ChatSettings())
    assert [await session.print_new_messages("second"), await session.print_new_messages("second")] == [False, True]


def test_a_thread_is_polled_after_its_first_message():
    async def follow() -> tuple[int, int]:
        api = ScriptedThread()
        session = ChatSession(api, TerminalRenderer({}), ChatSettings(watch_seconds=1))
        following = asyncio.create_task(session.follow())
        await at(60.5)
        empty, session.chat_thread.is_started = api.looks, True
        await at(120.5)
        following.cancel()
        return empty, api.looks

    assert run_virtually(follow())[0] == (0, 60)
