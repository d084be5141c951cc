"""DESIGN "Events and resuming": what was said of a reply that is lost is closed, taken back once, and never again."""

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recto.conversation.events import (
    Discarded,
    Event,
    ReasoningContent,
    ReasoningEnded,
    ReasoningStarted,
    StepFinished,
    StepStarted,
    TextContent,
    TextEnded,
    TextStarted,
    ToolCallArguments,
    ToolCallEnded,
    ToolCallResult,
    ToolCallStarted,
    ViewSnapshot,
    discard_lost,
    encode_event,
)
from recto.conversation.json import load_object
from tests.conversation.event_strategies import streams

WHY = "It was lost."
LAST = "the last entry of the log"
VIEW_SNAPSHOT = ViewSnapshot(upto=LAST)

said_half = (TextStarted(message="m"), TextContent(message="m", delta="We"))
reasoning_events = (
    ReasoningStarted(message="t"),
    ReasoningContent(message="t", delta="hm"),
    ReasoningEnded(message="t"),
)
call_events = (ToolCallStarted(call="c", name="ls", message="m"), ToolCallArguments(call="c", delta="{"))


def discard_event(id: str) -> Discarded:
    return Discarded(message=id, reason=WHY)


def result_event(call: str) -> ToolCallResult:
    return ToolCallResult(message=f"{call}-discarded", call=call, content=WHY)


def without(*thoughts: str) -> ViewSnapshot:
    return ViewSnapshot(upto=LAST, thoughts=thoughts)


def bodies(stream: Sequence[Event]) -> list[bytes]:
    return [body for event in stream for body in encode_event(event)]


@pytest.mark.parametrize(
    ("stream", "logged", "expected"),
    [
        # in the middle of a step
        ((StepStarted(step="compact"),), "", (StepFinished(step="compact"),)),
        pytest.param(said_half, "", (TextEnded(message="m"), discard_event("m"), VIEW_SNAPSHOT), id="half a text"),
        pytest.param(said_half, "m", (TextEnded(message="m"),), id="logged, but its end was not said"),
        # a whole thought and half a text
        (
            (*reasoning_events, *said_half),
            "",
            (TextEnded(message="m"), discard_event("t"), discard_event("m"), without("t")),
        ),
        # a text and half a call are one message
        (
            (*said_half, TextEnded(message="m"), *call_events),
            "",
            (ToolCallEnded(call="c"), result_event("c"), discard_event("m"), VIEW_SNAPSHOT),
        ),
        pytest.param(
            (*call_events, ToolCallStarted(call="d", name="ls", message="m")),
            "",
            (
                ToolCallEnded(call="c"),
                ToolCallEnded(call="d"),
                result_event("c"),
                result_event("d"),
                discard_event("m"),
                VIEW_SNAPSHOT,
            ),
            id="calls at once",
        ),
        pytest.param(
            (*said_half, TextEnded(message="m"), discard_event("m"), TextStarted(message="n")),
            "",
            (TextEnded(message="n"), discard_event("n"), VIEW_SNAPSHOT),
            id="lost a second time, under another id",
        ),
    ],
)
def test_a_lost_reply_is_closed_and_taken_back(stream: Sequence[Event], logged: str, expected: Sequence[Event]):
    assert discard_lost(bodies(stream), logged=logged.split(), reason=WHY, upto=LAST) == tuple(expected)


def test_bytes_that_are_no_event_are_passed_over():
    assert discard_lost([b"{", b"[]", b'{"type":"NEW","messageId":"m"}'], logged=(), reason=WHY, upto=LAST) == ()


@given(streams, st.sets(st.sampled_from(["m1", "m2", "m3"])))
def test_after_a_discard_nothing_is_open_and_each_lost_message_is_taken_back_exactly_once(
    stream: Sequence[Event], logged: set[str]
):
    events = discard_lost(bodies(stream), logged=logged, reason=WHY, upto=LAST)
    whole = [*stream, *events]
    assert not left_open(whole)
    taken_back = [event.message for event in events if isinstance(event, Discarded)]
    assert len(taken_back) == len(set(taken_back))
    assert set(taken_back) == standing(stream) - logged
    assert [event for event in events if isinstance(event, ViewSnapshot)] == list(events[-1:] if taken_back else ())
    assert discard_lost(bodies(whole), logged=logged, reason=WHY, upto=LAST) == ()


def left_open(stream: Sequence[Event]) -> set[str]:
    """What a reader still waits for the end of."""
    waiting: set[str] = set()
    for body in bodies(stream):
        event = load_object(body) or {}
        kind, _, phase = str(event["type"]).rpartition("_")
        thing = f"{kind} {event.get('toolCallId') or event.get('messageId') or event.get('stepName')}"
        if phase in ("START", "STARTED") and kind != "RUN":
            waiting.add(thing)
        elif phase in ("END", "FINISHED"):
            waiting.discard(thing)
    return waiting


def standing(stream: Sequence[Event]) -> set[str]:
    """Messages begun and not taken back since."""
    open_ids: set[str] = set()
    for event in stream:
        match event:
            case TextStarted() | ReasoningStarted() | ToolCallStarted():
                open_ids.add(event.message)
            case Discarded():
                open_ids.discard(event.message)
            case _:
                pass
    return open_ids
