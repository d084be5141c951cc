"""A thread's messages in AG-UI form: what is told of each, and how much of a long thread at once (P17)."""

from collections.abc import Sequence
from typing import cast

import pytest
from ag_ui.core import Message
from hypothesis import given
from hypothesis import strategies as st
from pydantic import TypeAdapter

from recto.conversation.events import for_older_client, rename_thread
from recto.conversation.json import Json, dump
from recto.conversation.log import Entry, Interrupted, view
from recto.conversation.message_snapshots import RenderContext, message_rows
from recto.conversation.messages import (
    ActivityMessage,
    AssistantMessage,
    File,
    Key,
    ReasoningMessage,
    SystemMessage,
    Text,
    ToolCall,
    ToolMessage,
    UserMessage,
)
from recto.conversation.messages import Message as OwnMessage
from tests.page.log_strategies import logs

PARSER: TypeAdapter[Message] = TypeAdapter(Message)
SIGNED_CONTEXT = RenderContext(url_of=lambda file: f"https://signed.test/{file.name}")
PICTURE = File(kind="image", source=Key(key="k"), mime_type="image/png", name="a.png")
IMAGE_PART = {"type": "image", "source": {"type": "url", "value": "https://signed.test/a.png", "mimeType": "image/png"}}


ONE = {"type": "text", "text": "1"}
NAMED_IMAGE = {**IMAGE_PART, "metadata": {"filename": "a.png"}}


def rows(*log: Entry, most_bytes: int | None = None) -> list[dict[str, Json]]:
    context = RenderContext(url_of=SIGNED_CONTEXT.url_of, most_bytes=most_bytes)
    return [dict(row) for row in message_rows(view(log), context)]


def result(*parts: Text | File) -> ToolMessage:
    return ToolMessage(id="m", tool_call_id="c", parts=parts)


@pytest.mark.parametrize(
    ("message", "expected"),
    [
        (ReasoningMessage(id="m", text="Hm.", encrypted_value="x"), {"role": "reasoning", "content": "Hm."}),
        (
            ActivityMessage(id="m", activity_type="plan", content='{"step": 1}'),
            {"role": "activity", "activityType": "plan", "content": {"step": 1}},
        ),
        (ActivityMessage(id="m", activity_type="plan", content="[]"), None),
        (SystemMessage(id="m", text="Never told."), None),
        (AssistantMessage(id="m"), None),
        (UserMessage(id="m", client_id="theirs"), {"role": "user", "content": ""}),
        (result(), {"role": "tool", "content": "", "toolCallId": "c"}),
        (result(Text(text="1"), PICTURE), {"role": "tool", "content": [ONE, NAMED_IMAGE], "toolCallId": "c"}),
    ],
)
def test_P17_each_kind_of_message_is_told_as_AG_UI_has_it(message: OwnMessage, expected: dict[str, Json] | None):
    assert rows(message) == ([{"id": "m", **expected}] if expected else [])


@given(logs())
def test_P17_whatever_the_log_holds_the_official_package_reads_each_message(log: tuple[Entry, ...]):
    for row in rows(*log):
        official = PARSER.validate_json(dump({name: value for name, value in row.items() if name != "status"}))
        assert (official.id, official.role) == (row["id"], row["role"])


LONG = [
    UserMessage(id="u1", parts=(Text(text="x" * 100),)),
    AssistantMessage(id="a1", parts=(Text(text="x" * 100),)),
    UserMessage(id="u2", parts=(Text(text="x" * 100),)),
    AssistantMessage(id="a2", parts=(Text(text="x" * 100),)),
]


@pytest.mark.parametrize(
    ("most", "expected"),
    [(None, "u1 a1 u2 a2"), (10_000, "u1 a1 u2 a2"), (500, "u2 a2"), (300, "u2 a2"), (200, "a2"), (1, "a2")],
)
def test_P17_of_a_thread_that_is_too_long_the_newest_turns_are_told(most: int | None, expected: str):
    assert [row["id"] for row in rows(*LONG, most_bytes=most)] == expected.split()


@pytest.mark.full
@given(logs(), st.integers(1, 2_000))
def test_P17_what_is_told_of_a_long_thread_is_its_end_and_fits(log: tuple[Entry, ...], most: int):
    whole, newest = rows(*log), rows(*log, most_bytes=most)
    assert newest == whole[len(whole) - len(newest) :]
    assert len(newest) == bool(whole) or sum(len(dump(row)) for row in newest) <= most + 40 * len(newest)


@pytest.mark.parametrize(
    ("content", "plain"),
    [
        ("as it was", "as it was"),
        ([{"type": "text", "text": "1"}, {"type": "text", "text": "2"}], "1\n2"),
        ([{"type": "text", "text": "1"}, {"type": "image", "source": "s"}], '1\n{"type":"image","source":"s"}'),
        ([], ""),
    ],
)
def test_P7_older_clients_get_results_as_words(content: Json, plain: str):
    result: dict[str, Json] = {"type": "TOOL_CALL_RESULT", "messageId": "t", "toolCallId": "c", "content": content}
    assert for_older_client(dump(result)) == dump({**result, "content": plain})
    user: Json = {"id": "u", "role": "user", "content": [{"type": "text", "text": "kept"}]}
    tool: dict[str, Json] = {"id": "t", "role": "tool", "toolCallId": "c", "content": content}
    snapshot: dict[str, Json] = {"type": "MESSAGES_SNAPSHOT", "messages": [user, tool]}
    expected = dump({**snapshot, "messages": [user, {**tool, "content": plain}]})
    assert for_older_client(dump(snapshot)) == expected


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        (b'{"type":"RUN_STARTED","threadId":"t","runId":"r"}', b'{"type":"RUN_STARTED","threadId":"n","runId":"r"}'),
        (b'{"type":"RUN_FINISHED","threadId":"t","runId":"r"}', b'{"type":"RUN_FINISHED","threadId":"n","runId":"r"}'),
        (b'{"type":"RUN_ERROR","message":"m"}', b'{"type":"RUN_ERROR","message":"m"}'),
        (b'{"type":"CUSTOM","threadId":"t"}', b'{"type":"CUSTOM","threadId":"t"}'),
    ],
)
def test_P15_a_run_names_its_thread_as_the_client_does(body: bytes, expected: bytes):
    assert rename_thread(body, "n") == expected


CALL = ToolCall(id="c", name="ask", arguments="{}")
LOG = (UserMessage(id="u1", parts=(Text(text="Go."),)), AssistantMessage(id="a1", parts=(Text(text="Hm."), CALL)))
NEXT = UserMessage(id="u2", parts=(Text(text="Never mind."),))
BROKEN_OFF = Interrupted(id="i", message="a1", reason="cancelled")


@pytest.mark.parametrize(
    ("log", "calls"),
    [
        pytest.param(LOG, ["c"], id="it waits"),
        pytest.param((*LOG, ToolMessage(id="t", tool_call_id="c"), NEXT), ["c"], id="answered"),
        pytest.param((*LOG, NEXT), [], id="the user went on without it"),
        pytest.param((*LOG, BROKEN_OFF), [], id="the reply was broken off"),
    ],
)
def test_P15_a_call_that_nobody_will_answer_is_not_told(log: Sequence[Entry], calls: list[str]):
    message_row = next(row for row in rows(*log) if row["id"] == "a1")
    assert message_row["content"] == "Hm."
    assert [call["id"] for call in cast("list[dict[str, str]]", message_row.get("toolCalls", []))] == calls
