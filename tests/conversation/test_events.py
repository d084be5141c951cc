"""P7, P8: events of a run as AG-UI 1.0 has them, merged where they follow each other; and as older clients get them."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import pairwise
from typing import get_args

import pytest
from ag_ui.core import events as official
from hypothesis import given
from pydantic import TypeAdapter

from recto.conversation.events import (
    MAX_DELTA,
    ActivityUpdate,
    Discarded,
    Event,
    MessagesSnapshot,
    ReasoningContent,
    ReasoningEnded,
    ReasoningStarted,
    RunFailed,
    RunFinished,
    RunStarted,
    StateDelta,
    StateSnapshot,
    StepFinished,
    StepStarted,
    TextContent,
    TextEnded,
    TextStarted,
    ToolCallArguments,
    ToolCallEnded,
    ToolCallResult,
    ToolCallStarted,
    UiUpdate,
    ViewSnapshot,
    encode_event,
    ends_run,
    for_older_client,
    merge,
)
from recto.conversation.json import Json, dump, load_object
from tests.conversation.event_strategies import ends, events, streams

PARSER: TypeAdapter[official.Event] = TypeAdapter(official.Event)
USAGE: Mapping[str, Json] = {"inputTokens": 3, "outputTokens": 2, "totalTokens": 5}
EXAMPLES: list[tuple[Event, str]] = [
    (
        MessagesSnapshot(messages=[{"id": "u", "role": "user", "content": "Hi"}]),
        '{"type":"MESSAGES_SNAPSHOT","messages":[{"id":"u","role":"user","content":"Hi"}]}',
    ),
    (ViewSnapshot(upto="a", thoughts=("r",)), '{"type":"MESSAGES_SNAPSHOT","rectoView":{"upto":"a","thoughts":["r"]}}'),
    (RunStarted(thread="t", run="r"), '{"type":"RUN_STARTED","threadId":"t","runId":"r"}'),
    (
        RunStarted(thread="t", run="r", parent="p"),
        '{"type":"RUN_STARTED","threadId":"t","runId":"r","parentRunId":"p"}',
    ),
    (
        RunFinished(thread="t", run="r"),
        '{"type":"RUN_FINISHED","threadId":"t","runId":"r","outcome":{"type":"success"}}',
    ),
    (
        RunFinished(thread="t", run="r", pending=("c1", "c2"), finish="length", usage=USAGE),
        '{"type":"RUN_FINISHED","threadId":"t","runId":"r","result":{"finish":"length"},'
        '"outcome":{"type":"success","pendingToolCallIds":["c1","c2"]},'
        '"usage":[{"inputTokens":3,"outputTokens":2,"totalTokens":5}]}',
    ),
    (
        RunFinished(thread="t", run="r", outcome="cancelled"),
        '{"type":"RUN_FINISHED","threadId":"t","runId":"r","outcome":{"type":"cancelled"}}',
    ),
    (RunFailed(message="no", code="deadline"), '{"type":"RUN_ERROR","message":"no","code":"deadline"}'),
    (TextStarted(message="m"), '{"type":"TEXT_MESSAGE_START","messageId":"m","role":"assistant"}'),
    (TextContent(message="m", delta="é\n"), '{"type":"TEXT_MESSAGE_CONTENT","messageId":"m","delta":"é\\n"}'),
    (TextEnded(message="m"), '{"type":"TEXT_MESSAGE_END","messageId":"m"}'),
    (
        ReasoningStarted(message="m"),
        '{"type":"REASONING_START","messageId":"m"}\n'
        '{"type":"REASONING_MESSAGE_START","messageId":"m","role":"reasoning"}',
    ),
    (ReasoningContent(message="m", delta="hm"), '{"type":"REASONING_MESSAGE_CONTENT","messageId":"m","delta":"hm"}'),
    (
        ReasoningEnded(message="m"),
        '{"type":"REASONING_MESSAGE_END","messageId":"m"}\n{"type":"REASONING_END","messageId":"m"}',
    ),
    (
        ToolCallStarted(call="c", name="ls", message="m"),
        '{"type":"TOOL_CALL_START","toolCallId":"c","toolCallName":"ls","parentMessageId":"m"}',
    ),
    (ToolCallArguments(call="c", delta="{}"), '{"type":"TOOL_CALL_ARGS","toolCallId":"c","delta":"{}"}'),
    (ToolCallEnded(call="c"), '{"type":"TOOL_CALL_END","toolCallId":"c"}'),
    (
        ToolCallResult(message="m", call="c", content="out"),
        '{"type":"TOOL_CALL_RESULT","messageId":"m","toolCallId":"c","content":"out","role":"tool"}',
    ),
    (
        ActivityUpdate(message="m", activity="recto.progress", content={"done": 3}),
        '{"type":"ACTIVITY_SNAPSHOT","messageId":"m","activityType":"recto.progress",'
        '"content":{"done":3},"replace":true}',
    ),
    (
        Discarded(message="m", reason="lost"),
        '{"type":"CUSTOM","name":"recto.discarded","value":{"messageId":"m","reason":"lost"}}',
    ),
    (
        UiUpdate(message="m", schema={"version": "2.0", "root": {"type": "stack", "children": []}}),
        '{"type":"CUSTOM","name":"recto.ui","value":{"messageId":"m",'
        '"uiSchema":{"version":"2.0","root":{"type":"stack","children":[]}}}}',
    ),
    (StateSnapshot(state={"a": [1]}), '{"type":"STATE_SNAPSHOT","snapshot":{"a":[1]}}'),
    (
        StateDelta(operations=[{"op": "replace", "path": "/a/0", "value": 2}]),
        '{"type":"STATE_DELTA","delta":[{"op":"replace","path":"/a/0","value":2}]}',
    ),
    (StepStarted(step="compact"), '{"type":"STEP_STARTED","stepName":"compact"}'),
    (StepFinished(step="compact"), '{"type":"STEP_FINISHED","stepName":"compact"}'),
]


@pytest.mark.parametrize(("event", "bodies"), EXAMPLES)
def test_P7_an_event_is_written_as_ag_ui_writes_it(event: Event, bodies: str):
    assert b"\n".join(encode_event(event)).decode() == bodies


def test_P7_every_kind_of_event_has_an_example_here():
    assert {type(event) for event, _ in EXAMPLES} == set(get_args(Event))


@given(events)
def test_P7_every_event_is_one_the_official_package_accepts_with_no_nulls_and_its_type_first(event: Event):
    for body in encode_event(event):
        assert body.startswith(b'{"type":"')
        value = load_object(body)
        assert value is not None
        assert None not in list(leaves(value))
        parsed_event = PARSER.validate_json(body)
        # Nothing is lost on the way: what we wrote is what the official models read.
        assert load_object(parsed_event.model_dump_json(by_alias=True, exclude_none=True)) == value


def leaves(value: Json) -> Iterator[Json]:
    match value:
        case dict():
            for inner in value.values():
                yield from leaves(inner)
        case list():
            for inner in value:
                yield from leaves(inner)
        case _:
            yield value


@given(events)
def test_P7_only_the_end_of_a_run_ends_it(event: Event):
    assert [ends_run(body) for body in encode_event(event)][-1] == isinstance(event, RunFinished | RunFailed)


# Merging


@given(streams)
def test_P7_merging_keeps_what_each_thing_said_and_the_order_of_all_else(stream: Sequence[Event]):
    events = merge(stream)
    assert texts_by_id(events) == texts_by_id(stream)
    assert [event for event in events if thing(event) is None] == [event for event in stream if thing(event) is None]
    assert order_of_things(events) == order_of_things(stream)


@given(streams)
def test_P7_merging_twice_changes_nothing_and_no_two_neighbours_are_of_one_thing(stream: Sequence[Event]):
    events = merge(stream)
    assert merge(events) == events
    things = [thing(event) for event in events]
    assert not [one for one, next_one in pairwise(things) if one and one == next_one]


def test_P7_what_is_said_at_once_is_sent_in_events_of_a_bounded_size():
    words = "abcde" * MAX_DELTA
    events = merge([TextContent(message="m", delta=words), TextContent(message="m", delta="f")])
    assert [len(event.delta) for event in events if isinstance(event, TextContent)] == [MAX_DELTA] * 5 + [1]
    assert texts_by_id(events) == texts_by_id([TextContent(message="m", delta=words + "f")])
    assert merge(events) == events


def test_P7_of_one_activity_s_updates_in_a_row_the_last_is_kept():
    updates = [
        ActivityUpdate(message=id, activity="recto.progress", content={"done": n}) for n, id in enumerate("aabb")
    ]
    event = TextContent(message="m", delta="Hi")
    assert merge([updates[0], updates[1], event, updates[2], updates[3]]) == [updates[1], event, updates[3]]
    assert merge([updates[1], updates[2]]) == [updates[1], updates[2]]


@given(streams, streams)
def test_P7_merging_in_pieces_gives_the_same_as_merging_at_once(first: Sequence[Event], second: Sequence[Event]):
    assert merge([*merge(first), *merge(second)]) == merge([*first, *second])


def thing(event: Event) -> tuple[type[Event], str] | None:
    """What a delta is of; None for other events."""
    match event:
        case TextContent(message=id) | ReasoningContent(message=id) | ToolCallArguments(call=id):
            return type(event), id
        case _:
            return None


def texts_by_id(stream: Sequence[Event]) -> dict[tuple[type[Event], str], str]:
    words: dict[tuple[type[Event], str], str] = {}
    for event in stream:
        if isinstance(event, TextContent | ReasoningContent | ToolCallArguments):
            of = thing(event) or (type(event), "")
            words[of] = words.get(of, "") + event.delta
    return words


def order_of_things(stream: Sequence[Event]) -> list[object]:
    """Deltas by what they are of, all else as it is; a thing that goes on is named once."""
    things = [thing(event) or event for event in stream]
    return [one for place, one in enumerate(things) if place == 0 or one != things[place - 1] or isinstance(one, Event)]


# Older clients


@given(ends)
def test_P8_older_clients_get_no_field_they_die_on(event: Event):
    body = for_older_client(encode_event(event)[0])
    event_sent = load_object(body) or {}
    assert not event_sent.keys() & {"outcome", "usage", "pendingToolCallIds"}
    assert b"pendingToolCallIds" not in body.replace(dump(event_sent.get("message")), b"")
    assert ends_run(body)


FINISHED = RunFinished(thread="t", run="r", usage=USAGE)
OLDER = '{"type":"RUN_FINISHED","threadId":"t","runId":"r"'


@pytest.mark.parametrize(
    ("event", "body"),
    [
        (replace(FINISHED, pending=("c",)), OLDER + "}"),
        (replace(FINISHED, finish="length"), OLDER + ',"result":{"finish":"length"}}'),
        (
            replace(FINISHED, outcome="cancelled"),
            '{"type":"RUN_ERROR","message":"The run was cancelled.","code":"cancelled"}',
        ),
        (
            RunFailed(message="no", code="deadline", usage=USAGE),
            '{"type":"RUN_ERROR","message":"no","code":"deadline"}',
        ),
    ],
    ids=["finished", "cut at its length", "cancelled", "failed"],
)
def test_P8_older_clients_get_the_end_of_a_run_without_what_is_new_in_1_0(event: Event, body: str):
    assert for_older_client(encode_event(event)[0]).decode() == body


@given(events)
def test_P8_all_other_events_are_the_same_bytes_for_older_clients(event: Event):
    for body in encode_event(event):
        assert ends_run(body) or for_older_client(body) is body
