"""The events of a run that ended long ago, made from the log (P7): AG-UI accepts them, and clients see the same."""

from collections.abc import Mapping
from typing import cast

import pytest
from ag_ui.core import events as official
from hypothesis import given
from pydantic import TypeAdapter

from recto.conversation.events import ends_run
from recto.conversation.json import Json, dump, load
from recto.conversation.log import Entry, Interrupted, ReplyEnded, RolledBack, view
from recto.conversation.message_files import FileRef
from recto.conversation.message_snapshots import EndedRun, RenderContext, message_rows, snapshot_events
from recto.conversation.messages import (
    AssistantMessage,
    File,
    Key,
    Opaque,
    ReasoningMessage,
    Text,
    ToolCall,
    ToolMessage,
    UserMessage,
)
from recto.conversation.ui.compile_ui import compile_ui
from tests.page.log_strategies import logs

PARSER: TypeAdapter[official.Event] = TypeAdapter(official.Event)
RUN = EndedRun(thread="t", run="r", outcome="done")
STATE = Opaque(provider="p", model=None, place="block", name="thinking", data="{}")
PICTURE = File(kind="image", source=Key(key="k"), mime_type="image/png", name="a.png")
CALL = ToolCall(id="c", name="look", arguments="{}", state=STATE, encrypted_value="x")


def no_url(_file: File) -> str | None:
    return None


def parse_bodies(bodies: tuple[bytes, ...]) -> list[Mapping[str, Json]]:
    return [cast("Mapping[str, Json]", load(body)) for body in bodies]


def replayed(run: EndedRun, *log: Entry) -> list[Mapping[str, Json]]:
    return parse_bodies(snapshot_events(run, log, RenderContext(url_of=no_url)))


def test_P7_a_run_is_replayed_as_its_start_the_conversation_and_its_end():
    log = (
        UserMessage(id="u", parts=(Text(text="Look"), PICTURE), encrypted_value="x"),
        ReasoningMessage(id="r", text="Hm."),
        AssistantMessage(id="a", parts=(STATE, Text(text="I "), CALL, Text(text="look"))),
        ToolMessage(id="t", tool_call_id="c", parts=(Text(text="4"), STATE), error="error"),
        AssistantMessage(id="silent", parts=(STATE,)),
        UserMessage(id="gone", parts=(Text(text="No"),)),
        RolledBack(id="b", to="gone"),
    )
    start, snapshot, end = replayed(EndedRun(thread="t", run="r", outcome="done", usage={"inputTokens": 1}), *log)
    call = {"id": "c", "type": "function", "function": {"name": "look", "arguments": "{}"}}
    assert start == {"type": "RUN_STARTED", "threadId": "t", "runId": "r"}
    assert snapshot == {
        "type": "MESSAGES_SNAPSHOT",
        "messages": [
            {"id": "u", "role": "user", "content": "Look"},
            {"id": "r", "role": "reasoning", "content": "Hm."},
            {"id": "a", "role": "assistant", "content": "I look", "toolCalls": [call]},
            {"id": "t", "role": "tool", "content": "4", "toolCallId": "c", "error": "error"},
        ],
    }
    finished = {"type": "RUN_FINISHED", "threadId": "t", "runId": "r", "outcome": {"type": "success"}}
    assert end == {**finished, "usage": [{"inputTokens": 1}]}


def test_P10_files_that_can_be_signed_are_in_it():
    user = UserMessage(id="u", parts=(PICTURE,))
    _, snapshot, _ = parse_bodies(
        snapshot_events(RUN, (user,), RenderContext(url_of=lambda file: f"https://signed.test/{file.name}"))
    )
    source = {"type": "url", "value": "https://signed.test/a.png", "mimeType": "image/png"}
    part = {"type": "image", "source": source, "metadata": {"filename": "a.png"}}
    assert snapshot["messages"] == [{"id": "u", "role": "user", "content": [part]}]


HINTS = {"title": "Done"}
CARD = Text(text=dump({"ui_hints": HINTS}).decode())


def test_P14_messages_with_hints_are_sent_as_they_are_shown_behind_the_snapshot():
    log = (
        UserMessage(id="u", parts=(CARD,)),
        AssistantMessage(id="a", parts=(CALL,)),
        ToolMessage(id="t", tool_call_id="c", parts=(CARD,)),
        AssistantMessage(id="b", parts=(CARD,)),
    )
    run = EndedRun(thread="t", run="r", outcome="done", events=9)
    bodies = snapshot_events(run, log, RenderContext(url_of=no_url, locale="en"))
    _, snapshot, *cards, _ = parse_bodies(bodies)
    assert snapshot["type"] == "MESSAGES_SNAPSHOT"
    schema = compile_ui(HINTS, locale="en-US")
    assert [(card["name"], card["value"]) for card in cards] == [
        ("recto.ui", {"messageId": id, "uiSchema": schema}) for id in "tb"
    ]
    assert [PARSER.validate_json(body).type.value for body in bodies][2:4] == ["CUSTOM", "CUSTOM"]


@pytest.mark.parametrize(("events", "expected"), [(0, ""), (2, ""), (3, ""), (4, "t2"), (5, "t1 t2"), (9, "t0 t1 t2")])
def test_P14_no_more_is_found_an_old_run_than_it_had_events(events: int, expected: str):
    log = [ToolMessage(id=f"t{n}", tool_call_id="c", parts=(CARD,)) for n in range(3)]
    calls = AssistantMessage(id="a", parts=(CALL,))
    bodies = replayed(EndedRun(thread="t", run="r", outcome="done", events=events), UserMessage(id="u"), calls, *log)
    values = [cast("Mapping[str, Json]", event["value"]) for event in bodies if event["type"] == "CUSTOM"]
    assert [value["messageId"] for value in values] == expected.split()


@pytest.mark.parametrize(
    ("outcome", "end"),
    [
        ("done", {"outcome": {"type": "success"}}),
        ("length", {"result": {"finish": "length"}, "outcome": {"type": "success"}}),
        ("refused", {"result": {"finish": "refused"}, "outcome": {"type": "success"}}),
        ("cancelled", {"outcome": {"type": "cancelled"}}),
        ("waiting", {"outcome": {"type": "success", "pendingToolCallIds": ["c"]}}),
    ],
)
def test_P8_a_run_that_finished_ends_as_it_did(outcome: str, end: Mapping[str, Json]):
    log = (UserMessage(id="u"), AssistantMessage(id="a", parts=(CALL,)))
    *_, last = replayed(EndedRun(thread="t", run="r", outcome=outcome), *log)
    assert last == {"type": "RUN_FINISHED", "threadId": "t", "runId": "r", **end}


def test_P8_a_run_that_failed_ends_with_its_error():
    *_, last = replayed(EndedRun(thread="t", run="r", outcome="deadline", error="No model."))
    assert last == {"type": "RUN_ERROR", "message": "No model.", "code": "deadline"}


@given(logs())
def test_P7_whatever_the_log_holds_the_official_client_takes_the_events(log: tuple[Entry, ...]):
    bodies = snapshot_events(RUN, log, RenderContext(url_of=no_url))
    kinds = [PARSER.validate_json(body).type.value for body in bodies]
    assert kinds == ["RUN_STARTED", "MESSAGES_SNAPSHOT", "RUN_FINISHED"]
    assert [ends_run(body) for body in bodies] == [False, False, True]


def test_F8_a_call_of_the_client_s_tool_is_sent_with_urls_and_one_of_ours_with_ids():
    arguments = '{"file":"resp-0","ids":["resp-1"]}'
    refs = (
        FileRef(id="resp-0", attachment="k", name="a.png", kind="image"),
        FileRef(id="resp-1", attachment="gone", name="b.png", kind="image", is_there=False),
    )
    calls = [ToolCall(id=name, name=name, arguments=arguments) for name in ("send", "read_files", "ours")]
    log = (UserMessage(id="u", parts=(PICTURE,)), AssistantMessage(id="a", parts=tuple(calls)))
    how = RenderContext(
        url_of=lambda file: f"https://signed.test/{file.name}", refs=refs, own_tools=frozenset({"ours"})
    )
    _, snapshot, _ = parse_bodies(snapshot_events(RUN, log, how))
    calls = cast("list[Mapping[str, list[dict[str, dict[str, str]]]]]", snapshot["messages"])[1]["toolCalls"]
    assert [call["function"]["arguments"] for call in calls] == [
        '{"file":"https://signed.test/a.png","ids":["resp-1"]}',
        arguments,
        arguments,
    ]


def test_P8_replies_that_are_not_whole_are_marked_where_clients_have_a_place_for_it():
    messages = [AssistantMessage(id=f"a{n}", parts=(Text(text="Once"),)) for n in range(3)]
    marks = (Interrupted(id="i", message="a0", reason="x"), ReplyEnded(id="e", message="a1", finish="length"))
    log = (UserMessage(id="u"), *messages, *marks)
    expected_rows = message_rows(view(log), RenderContext(url_of=lambda _: None))
    assert [row.get("status") for row in expected_rows] == [None, "interrupted", "length", None]
    snapshot = replayed(RUN, *log)[1]
    rows = cast("list[Mapping[str, Json]]", snapshot["messages"])
    # AG-UI has none in its events.
    assert [row.get("status") for row in rows] == [None] * 4
