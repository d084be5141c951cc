"""P14 over the routes: a card is in the language of the thread's agent, in history and in a replay from the log."""

import re
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path
from typing import cast

import pytest

from recto.agents.agent import CHAT
from recto.api.runs import routes as runs
from recto.api.threads import thread_messages
from recto.conversation.json import Json, dump, load_object
from recto.conversation.messages import Text, ToolMessage, UserMessage
from recto.conversation.ui.compile_ui import ui_of
from recto.store.ports import RunChange, RunEnding
from recto.store.threads.cleanup import Retention
from tests.api.local_api import LocalApi, local_api
from tests.store.suite.samples import NODE, admit, at, lease_of

THREAD = "550e8400-e29b-41d4-a716-44665544000a"
CARD = Text(text=dump({"ui_hints": {"title": "Done"}}).decode())
LOG = (
    UserMessage(id="u", time=at(0), parts=(Text(text="Hi"),)),
    ToolMessage(id="t", time=at(0), tool_call_id="c", parts=(CARD,)),
)


@pytest.fixture
async def api(tmp_path: Path) -> AsyncIterator[LocalApi]:
    async with local_api(tmp_path, (*thread_messages.ROUTES, *runs.ROUTES)) as server:
        await admit(server.store, "run-1", THREAD)
        (run,) = await server.store.runs.claim(NODE, at(0), 1)
        problem = [dump({"type": "STEP"})] * 5
        await server.store.runs.record(
            lease_of(run), RunChange(entries=LOG, ending=RunEnding(outcome="done"), events=problem), at(1)
        )
        yield server


@pytest.mark.parametrize(("locale", "problem"), [("zh", "zh-CN"), ("en", "en-US"), (None, "zh-CN")])
async def test_P14_history_has_cards_in_the_language_of_the_agent(api: LocalApi, locale: str | None, problem: str):
    speak(api, locale)
    (_, row) = (await api.ask("GET", f"/api/v1/agent/history?threadId={THREAD}")).rows("messages")
    assert cast("dict[str, Json]", row["uiSchema"])["locale"] == problem


def speak(api: LocalApi, locale: str | None) -> None:
    """Let the thread's agent have a language; without one there is no such agent any more."""
    agents = {"vibe": replace(CHAT, name="vibe", locale=locale)} if locale else {}
    api.change(by_name=agents)


async def test_P14_a_run_whose_events_are_gone_is_told_with_its_cards(api: LocalApi):
    speak(api, "en")
    events = "/api/v1/agent/runs/run-1/events?protocolVersion=1.0"
    assert b"recto.ui" not in (await api.ask("GET", events)).body
    await api.store.threads.clean(Retention(events_before=at(9)))
    lines = (await api.ask("GET", events)).body.decode().splitlines()
    event_rows = [load_object(line.removeprefix("data: ")) or {} for line in lines if line.startswith("data: ")]
    assert [event["type"] for event in event_rows] == ["RUN_STARTED", "MESSAGES_SNAPSHOT", "CUSTOM", "RUN_FINISHED"]
    card = cast("dict[str, dict[str, Json]]", event_rows[2]["value"])
    assert (card["messageId"], card["uiSchema"]["locale"]) == ("t", "en-US")
    assert [line for line in lines if line.startswith("id: ")] == [f"id: {number}" for number in (2, 3, 4, 5)]
    # A late subscriber receives the same (P7).
    event_text = (await api.ask("GET", f"{events}&join=1")).body.decode()
    assert re.findall(r'data: {"type":"(\w+)"', event_text) == [event["type"] for event in event_rows]


def test_P14_hints_that_say_nothing_make_no_card():
    nothing: list[Json] = [{"title": None}, {"title": " ", "fields": {}, "items": [None, [], {"label": ""}]}, [], ""]
    for hints in nothing:
        assert ui_of(dump({"ui_hints": hints}).decode()) is None, hints
    for hints in ({"title": None, "body": "x"}, {"items": [None, 0]}, {"type": "divider"}, {"status": "success"}):
        assert ui_of(dump({"ui_hints": hints}).decode()), hints
