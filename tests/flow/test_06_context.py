"""Step 6: who speaks, what is known, which tools are offered. For every entry point the same."""

import re
from collections.abc import Mapping, Sequence
from typing import cast

from recto.conversation.json import Json, dump
from recto.page.preamble import OF_REMINDERS
from tests.flow.in_process import CHAT, STREAM, InProcess, messages_of

TIME = re.compile(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d \w+")


async def test_F11_a_chat_and_a_run_of_the_same_words_give_the_same_page(server: InProcess):
    await server.run("hello")
    await server.send("POST", CHAT, {"message": "hello", "agent": "helper"}, headers=STREAM)
    first, second = [TIME.sub("", dump(page).decode()) for page in server.pages]
    assert first == second


async def test_P11_the_agent_speaks_and_its_tools_are_offered(server: InProcess):
    await server.run("hello")
    (page,) = server.pages
    assert messages_of(page)[0] == {"role": "system", "content": f"You are a careful helper.\n\n{OF_REMINDERS['en']}"}
    tools = cast("Sequence[Mapping[str, Mapping[str, Json]]]", page["tools"])
    assert [tool["function"]["name"] for tool in tools] == ["current_time", "note"]
