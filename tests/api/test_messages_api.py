"""A thread's messages in AG-UI form over HTTP (P17): whole, since one of them, and a page at a time."""

from collections.abc import AsyncIterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import cast

import pytest
from ag_ui.core import Message
from pydantic import TypeAdapter

from recto.api.threads import thread_messages
from recto.conversation.json import Json
from recto.conversation.log import Entry, Interrupted, RolledBack
from recto.conversation.message_files import FileRef
from recto.conversation.messages import (
    AssistantMessage,
    File,
    Key,
    ReasoningMessage,
    Text,
    ToolCall,
    ToolMessage,
    UserMessage,
)
from recto.conversation.ui.compile_ui import ui_of
from recto.ids import new_id
from recto.store.ports import RunChange, RunEnding
from recto.store.threads.threads import ForkOptions
from tests.api.local_api import BASE, LocalApi, assert_problem, local_api
from tests.store.suite.attachments import attachment
from tests.store.suite.samples import NODE, admission, admit, at, lease_of

THREAD = "550e8400-e29b-41d4-a716-44665544000a"
PATH = f"/api/v1/agent/threads/{THREAD}/messages"
PARSER: TypeAdapter[Message] = TypeAdapter(Message)


@pytest.fixture
async def api(tmp_path: Path) -> AsyncIterator[LocalApi]:
    async with local_api(tmp_path, thread_messages.ROUTES) as server:
        yield server


async def write(api: LocalApi, *entries: Entry) -> None:
    await admit(api.store, new_id(), THREAD)
    (run,) = await api.store.runs.claim(NODE, at(0), 1)
    await api.store.runs.record(lease_of(run), RunChange(entries=entries, ending=RunEnding(outcome="done")), at(1))


def user_message(id: str, words: str = "Hi") -> UserMessage:
    return UserMessage(id=id, time=at(0), parts=(Text(text=words),))


def assistant_message(id: str, words: str = "Hello") -> AssistantMessage:
    return AssistantMessage(id=id, time=at(0), parts=(Text(text=words),))


async def with_files(api: LocalApi) -> None:
    """A message with two files, of which the first is gone."""
    one = replace(attachment(name="a.png"), id="k1", kind="image", mime_type="image/png")
    await api.store.files.add(one, user_bytes=0)
    ref = FileRef(id="resp-1", attachment="k1", name="a.png", kind="image")
    await api.store.runs.admit(replace(admission(new_id(), THREAD), files=(ref,)))
    (run,) = await api.store.runs.claim(NODE, at(0), 1)
    picture = File(kind="image", source=Key(key="k1"), mime_type="image/png", name="a.png")
    missing_file = File(kind="image", source=Key(key="gone"), name="b.png")
    user = UserMessage(id="u", time=at(0), response_id="resp", parts=(Text(text="See"), missing_file, picture))
    await api.store.runs.record(lease_of(run), RunChange(entries=[user], ending=RunEnding(outcome="done")), at(1))


async def test_P10_F4_files_are_told_by_urls_signed_now_and_with_details_by_the_ids_the_model_knows(api: LocalApi):
    await with_files(api)
    signed_url = f"{BASE}/api/v1/agent/files/k1/a.png?"
    (row,) = (await api.ask("GET", PATH)).rows("messages")
    text, image = cast("list[dict[str, dict[str, str]]]", row["content"])
    assert (text, image["type"], image["metadata"]) == ({"type": "text", "text": "See"}, "image", {"filename": "a.png"})
    assert image["source"]["value"].startswith(signed_url)
    (row,) = await detailed(api)
    (picture,) = cast("list[dict[str, str]]", row["files"])
    assert picture.pop("url").startswith(signed_url)
    assert picture == {"id": "resp-1", "name": "a.png", "type": "image", "mimeType": "image/png"}


async def test_P17_with_details_each_message_has_its_time_and_its_run(api: LocalApi):
    await write(api, user_message("u1"), ReasoningMessage(id="r", time=at(0), text="Hm."), assistant_message("a1"))
    await write(api, user_message("u2"))
    newer, older = (await api.store.runs.list_page("ann", THREAD, None, 9)).runs
    time = "2026-03-01T12:00:00.123Z"
    plain, rows = (await api.ask("GET", PATH)).rows("messages"), await detailed(api)
    runs = [older.id, older.id, older.id, newer.id]
    assert rows == [{**row, "timestamp": time, "run": run} for row, run in zip(plain, runs, strict=True)]
    assert [row["run"] for row in await detailed(api, "&since=a1")] == [newer.id]
    assert await detailed(api, "&since=u2") == []


async def test_P17_what_a_fork_has_copied_is_of_no_run(api: LocalApi):
    await write(api, user_message("u1"))
    fork = ForkOptions(thread=THREAD, id=new_id(), now=at(2))
    await api.store.threads.fork("ann", fork)
    (row,) = (await api.ask("GET", f"{PATH.replace(THREAD, fork.id)}?details=1")).rows("messages")
    assert (row["id"], row["run"]) == ("u1", None)


async def test_P17_with_details_results_and_answers_have_their_cards(api: LocalApi):
    card = '{"content": "Seven.", "ui_hints": {"title": "Seven"}}'
    call = ToolCall(id="c", name="look", arguments="{}", runner="server")
    result = ToolMessage(id="t", time=at(0), tool_call_id="c", parts=(Text(text=card),))
    plain = ToolMessage(id="p", time=at(0), tool_call_id="d", parts=(Text(text="7"),))
    call_message = AssistantMessage(id="a", time=at(0), parts=(call, replace(call, id="d")))
    await write(api, user_message("u"), call_message, result, plain, assistant_message("b", card))
    rows = {row["id"]: row for row in await detailed(api)}
    assert rows["t"]["uiSchema"] == rows["b"]["uiSchema"] == ui_of(card)
    assert (rows["t"]["content"], rows["b"]["content"]) == (card, "Seven.")
    assert [id for id, row in rows.items() if "uiSchema" in row] == ["t", "b"]
    assert "content" not in rows["a"]
    assert (await api.ask("GET", PATH)).rows("messages")[-1] == {"id": "b", "role": "assistant", "content": card}


async def detailed(api: LocalApi, query: str = "") -> list[Mapping[str, Json]]:
    return (await api.ask("GET", f"{PATH}?details=1{query}")).rows("messages")


@pytest.mark.parametrize("limit", [1, 3, 9])
async def test_P17_pages_follow_each_other_without_gap_or_repeat(api: LocalApi, limit: int):
    await write(api, user_message("u1"), ReasoningMessage(id="r", time=at(0), text="Hm."), assistant_message("a1"))
    await write(
        api, user_message("u2"), assistant_message("a2"), Interrupted(id="i", time=at(0), message="a2", reason="x")
    )
    found_rows, query = list[Json](), f"?limit={limit}"
    while True:
        answer = await api.ask("GET", PATH + query)
        rows = answer.rows("messages")
        assert len(rows) <= limit
        found_rows += [(row["id"], row.get("status")) for row in rows]
        if answer.json["next"] is None:
            break
        query = f"?limit={limit}&since={answer.json['next']}"
    assert found_rows == [("u1", None), ("r", None), ("a1", None), ("u2", None), ("a2", "interrupted")]


async def test_R12_P17_what_was_rolled_back_is_not_told_and_nothing_follows_it(api: LocalApi):
    await write(api, user_message("u1"), assistant_message("a1"), user_message("u2"), assistant_message("a2"))
    await write(api, RolledBack(id="b", time=at(0), to="u2"), user_message("u3"))
    rows = (await api.ask("GET", f"{PATH}?since=a1")).rows("messages")
    assert [row["id"] for row in rows] == ["u3"]
    for since in ("a2", "nobody", "", "%00"):
        words = "in this thread; read it from its beginning, without `since`"
        assert_problem(await api.ask("GET", f"{PATH}?since={since}"), 422, words)
    for limit in ("0", "1001", "many"):
        assert_problem(await api.ask("GET", f"{PATH}?limit={limit}"), 422, "limit")
