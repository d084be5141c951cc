"""A reply of the model while it comes in: what readers get of it, and what the log has in the end."""

from collections.abc import Sequence
from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recto.conversation.events import (
    Event,
    ReasoningContent,
    ReasoningEnded,
    ReasoningStarted,
    TextContent,
    TextEnded,
    TextStarted,
    ToolCallArguments,
    ToolCallEnded,
    ToolCallStarted,
    discard_lost,
    encode_event,
)
from recto.conversation.log import Entry, Finish, ReplyEnded
from recto.conversation.messages import AssistantMessage, Opaque, ReasoningMessage, Text, ToolCall
from recto.models.ports import CallDelta, CallStarted, Delta, ReasoningDelta, ReplyEnd, TextDelta
from recto.worker.model.reply import Reply

NOW = datetime(2026, 5, 14, 12, tzinfo=UTC)
STATE = Opaque(provider="openai", model="x", place="field", name="reasoning_details", data='{"a":1}')


def played(*deltas: Delta) -> tuple[list[Event], list[Entry], Reply]:
    """Return the events, the log entries, and the reply."""
    reply = Reply(id="m", reasoning_id="t")
    events = [event for delta in deltas for event in reply.add(delta)]
    events += reply.close()
    return events, reply.entries(NOW, "marker"), reply


def a_call(id: str, name: str, arguments: str = "", state: Opaque | None = None) -> ToolCall:
    return ToolCall(id=id, name=name, arguments=arguments, state=state, runner="server")


def message(*parts: Text | ToolCall | Opaque) -> AssistantMessage:
    return AssistantMessage(id="m", time=NOW, parts=parts)


def test_words_are_sent_as_they_come_and_kept_as_one_text():
    events, entries, _ = played(TextDelta(text="Hel"), TextDelta(text="lo."), ReplyEnd(finish="stop"))
    assert events == [
        TextStarted(message="m"),
        TextContent(message="m", delta="Hel"),
        TextContent(message="m", delta="lo."),
        TextEnded(message="m"),
    ]
    assert entries == [message(Text(text="Hello."))]


def test_thoughts_end_where_the_words_begin_and_are_a_message_of_their_own_before_them():
    events, entries, _ = played(ReasoningDelta(text="Hm."), TextDelta(text="Yes."), ReplyEnd(finish="stop"))
    assert events == [
        ReasoningStarted(message="t"),
        ReasoningContent(message="t", delta="Hm."),
        ReasoningEnded(message="t"),
        TextStarted(message="m"),
        TextContent(message="m", delta="Yes."),
        TextEnded(message="m"),
    ]
    assert entries == [ReasoningMessage(id="t", time=NOW, text="Hm."), message(Text(text="Yes."))]


def test_calls_at_once_stay_open_together_and_keep_the_order_of_their_index():
    deltas = (
        TextDelta(text="Two."),
        CallStarted(index=1, id="c2", name="look"),
        CallStarted(index=0, id="c1", name="note"),
        CallDelta(index=0, arguments='{"a"'),
        CallDelta(index=1, arguments="{}"),
        CallDelta(index=0, arguments=":1}"),
        ReplyEnd(finish="tool_calls"),
    )
    events, entries, _ = played(*deltas)
    assert events == [
        TextStarted(message="m"),
        TextContent(message="m", delta="Two."),
        TextEnded(message="m"),
        ToolCallStarted(call="c2", name="look", message="m"),
        ToolCallStarted(call="c1", name="note", message="m"),
        ToolCallArguments(call="c1", delta='{"a"'),
        ToolCallArguments(call="c2", delta="{}"),
        ToolCallArguments(call="c1", delta=":1}"),
        ToolCallEnded(call="c2"),
        ToolCallEnded(call="c1"),
    ]
    first, second = a_call("c1", "note", '{"a":1}'), a_call("c2", "look", "{}")
    assert entries == [message(Text(text="Two."), first, second)]


def test_a_call_without_arguments_is_a_call():
    events, entries, _ = played(CallStarted(index=0, id="c", name="look"), ReplyEnd(finish="tool_calls"))
    assert events == [ToolCallStarted(call="c", name="look", message="m"), ToolCallEnded(call="c")]
    assert entries == [message(a_call("c", "look"))]


@pytest.mark.parametrize("finish", ["length", "refused", "filtered"])
def test_how_a_reply_ended_is_in_the_log_before_the_message_so_that_no_step_is_taken_without_it(finish: Finish):
    _, entries, _ = played(ReasoningDelta(text="Hm."), TextDelta(text="We"), ReplyEnd(finish=finish))
    assert entries == [
        ReasoningMessage(id="t", time=NOW, text="Hm."),
        ReplyEnded(id="marker", time=NOW, message="m", finish=finish),
        message(Text(text="We")),
    ]


def test_state_of_the_provider_goes_into_the_message_and_state_of_a_call_into_the_call():
    reply_end = ReplyEnd(finish="tool_calls", state=(STATE,), call_state={0: STATE})
    _, entries, _ = played(TextDelta(text="We"), CallStarted(index=0, id="c", name="x"), reply_end)
    assert entries == [message(STATE, Text(text="We"), a_call("c", "x", state=STATE))]


def test_a_reply_that_was_broken_off_is_kept_as_far_as_it_came():
    events, entries, reply = played(TextDelta(text="We"), CallStarted(index=0, id="c", name="x"))
    assert events[-1] == ToolCallEnded(call="c")
    assert entries == [message(Text(text="We"), a_call("c", "x"))]
    assert not reply.is_empty


def test_a_reply_that_said_nothing_is_empty_and_sends_nothing():
    events, entries, reply = played(ReplyEnd(finish="stop"))
    assert events == []
    assert entries == [message()]
    assert reply.is_empty


@st.composite
def replies(draw: st.DrawFn) -> list[Delta]:
    """Draw words, thoughts and calls in any order; arguments follow the start of their call."""
    deltas: list[Delta] = []
    start_count = 0
    for _ in range(draw(st.integers(0, 14))):
        kind = draw(st.sampled_from(["text", "thought", "call", "arguments"]))
        words = draw(st.text("ab", min_size=1, max_size=3))
        if kind == "call":
            deltas.append(CallStarted(index=start_count, id=f"c{start_count}", name=words))
            start_count += 1
        elif kind == "arguments" and start_count:
            deltas.append(CallDelta(index=draw(st.integers(0, start_count - 1)), arguments=words))
        else:
            deltas.append(TextDelta(text=words) if kind == "text" else ReasoningDelta(text=words))
    return deltas


@given(replies())
def test_readers_put_together_from_events_what_the_log_has(deltas: list[Delta]):
    events, entries, reply = played(*deltas, ReplyEnd(finish="stop"))
    logged = next(entry for entry in entries if isinstance(entry, AssistantMessage))
    assert "".join(event.delta for event in events if isinstance(event, TextContent)) == words_of(logged)
    assert {call.id: call.arguments for call in logged.tool_calls} == arguments_of(events)
    thoughts = [entry.text for entry in entries if isinstance(entry, ReasoningMessage)]
    assert "".join(event.delta for event in events if isinstance(event, ReasoningContent)) == "".join(thoughts)
    assert reply.close() == []


@given(replies())
def test_a_reply_that_is_taken_back_half_way_leaves_nothing_open(deltas: list[Delta]):
    reply = Reply(id="m", reasoning_id="t")
    events = [event for delta in deltas for event in reply.add(delta)]
    # What the reply says it has announced is enough to take all of it back.
    back = discard_lost(encoded(reply.announced_events), logged=(), reason="lost", upto="u")
    assert discard_lost(encoded([*events, *back]), logged=(), reason="lost", upto="u") == ()


def encoded(events: Sequence[Event]) -> list[bytes]:
    return [body for event in events for body in encode_event(event)]


def words_of(logged: AssistantMessage) -> str:
    return "".join(part.text for part in logged.parts if isinstance(part, Text))


def arguments_of(events: Sequence[Event]) -> dict[str, str]:
    arguments_by_call = {event.call: "" for event in events if isinstance(event, ToolCallStarted)}
    for event in events:
        if isinstance(event, ToolCallArguments):
            arguments_by_call[event.call] += event.delta
    return arguments_by_call


@pytest.mark.parametrize("has_parts", [True, False])
def test_P11_of_calls_beyond_the_limit_only_the_first_is_sent_and_kept(has_parts: bool):
    calls = [ToolCall(id=f"c{n}", name="look", arguments="{}", runner="server") for n in range(5)]
    reply = Reply(id="m", reasoning_id="t", max_calls=2)
    deltas: list[Delta] = []
    for number, call in enumerate(calls):
        deltas += [CallStarted(index=number, id=call.id, name=call.name), CallDelta(index=number, arguments="{}")]
    events = [event for delta in deltas for event in reply.add(delta)] + reply.close()
    reply.add(ReplyEnd(finish="tool_calls", parts=(Text(text="Hm."), *calls) if has_parts else ()))
    assert [event.call for event in events if isinstance(event, ToolCallStarted)] == ["c0", "c1", "c2"]
    assert [event.call for event in events if isinstance(event, ToolCallEnded)] == ["c0", "c1", "c2"]
    [entry] = reply.entries(NOW, "marker")
    assert isinstance(entry, AssistantMessage)
    assert entry.tool_calls == tuple(calls[:3])
