"""History over HTTP (P13): one day of a thread, in the seed's form."""

from collections.abc import AsyncIterator
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pytest

from recto.api.threads import thread_messages
from recto.conversation.json import Json, dump
from recto.conversation.log import Entry
from recto.conversation.messages import Text, ToolMessage, UserMessage
from recto.conversation.ui.compile_ui import compile_ui
from recto.store.ports import RunChange, RunEnding
from tests.api.local_api import LocalApi, assert_problem, local_api
from tests.store.suite.samples import NODE, admit, at, lease_of, message_of

THREAD, OTHER = "550e8400-e29b-41d4-a716-44665544000a", "650e8400-e29b-41d4-a716-44665544000a"
HISTORY = "/api/v1/agent/history"
HINTS = {"status": "success", "title": "日程已创建"}


@pytest.fixture
async def api(tmp_path: Path) -> AsyncIterator[LocalApi]:
    async with local_api(tmp_path, thread_messages.ROUTES) as server:
        yield server


async def write(api: LocalApi, *entries: Entry, thread: str = THREAD) -> None:
    await admit(api.store, f"run of {thread}", thread)
    (run,) = await api.store.runs.claim(NODE, at(0), 1)
    await api.store.runs.record(lease_of(run), RunChange(entries=entries, ending=RunEnding(outcome="done")), at(1))


def noon(day: int, hour: int = 12) -> datetime:
    return datetime(2026, 3, day, hour, tzinfo=UTC)


async def test_P13_a_day_is_told_as_the_seed_has_it(api: LocalApi):
    result = ToolMessage(id="t", time=noon(2), tool_call_id="c", parts=(Text(text=dump({"ui_hints": HINTS}).decode()),))
    words = UserMessage(id="u", time=noon(2), parts=(Text(text="帮我"), Text(text="创建")))
    await write(api, replace(message_of("old"), time=noon(1)), words, result)
    answer = await api.ask("GET", f"{HISTORY}?threadId={THREAD.upper()}")
    user, tool = answer.rows("messages")
    day = {"scope": "history_day", "threadId": THREAD, "day": "2026-03-02", "hasMore": True}
    assert {**answer.json, "messages": 2} == {**day, "messages": 2}
    time = "2026-03-02T12:00:00.000Z"
    rest: dict[str, Json] = {"url": None, "files": [], "timestamp": time}
    assert user == {"id": "u", "seq": 2, "role": "user", "content": "帮我\n创建", **rest}
    assert (tool["uiSchema"], tool["seq"]) == (compile_ui(HINTS), 3)


async def test_P13_without_a_thread_the_latest_is_told(api: LocalApi):
    for thread in (THREAD, OTHER):
        await write(api, message_of("m1"), thread=thread)
    assert (await api.ask("GET", HISTORY)).json["threadId"] == OTHER


async def test_P13_days_go_back_by_the_day_before_and_by_the_zone(api: LocalApi):
    await write(api, replace(message_of("m1"), time=noon(1)), replace(message_of("m2"), time=noon(1, 20)))
    days = {"": 1, "before=2026-03-02": 1, "tz=Asia/Shanghai": 2, "tz=Asia/Shanghai&before=2026-03-02": 1}
    for query, day in days.items():
        assert (await api.ask("GET", f"{HISTORY}?{query}")).json["day"] == f"2026-03-0{day}"
    assert (await api.ask("GET", f"{HISTORY}?before=2026-03-01")).json["day"] is None


@pytest.mark.parametrize(
    ("name", "values", "words"),
    [
        ("threadId", ("x", "550e8400e29b41d4a71644665544000a", "", f"{THREAD}%00"), "threadId must be a valid UUID"),
        ("before", ("", "20260301", "2026-02-30", "2026-03-01T00:00", "٢٠٢٦-٠٣-٠١"), "YYYY-MM-DD"),
        ("tz", ("x", "", "../../etc/passwd", "America", "%00", "UTC%0A"), "Asia/Shanghai"),
    ],
)
async def test_P13_a_thread_a_day_and_a_zone_that_are_none_are_refused(
    api: LocalApi, name: str, values: tuple[str, ...], words: str
):
    for value in values:
        assert_problem(await api.ask("GET", f"{HISTORY}?{name}={value}"), 422, words)
