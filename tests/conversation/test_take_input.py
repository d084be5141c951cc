"""P3: what of a request enters the log: new words, and results of calls that wait for the client."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from itertools import count

import pytest
from hypothesis import given

from recto.conversation.input.input_entries import AdmittedRun, admit_input, pending_calls
from recto.conversation.log import Entry, Interrupted, ReplyEnded, RolledBack, ToolStarted, view
from recto.conversation.messages import Message, Runner, Text, ToolCall, ToolMessage, UserMessage, texts_of
from tests.page.entry_strategies import entry_logs, talks
from tests.page.talk import asks, result, says, user

START_TIME = datetime(2026, 5, 14, 12, tzinfo=UTC)


def run_of(patience: timedelta | None = None) -> AdmittedRun:
    numbers = count(1)
    return AdmittedRun(
        admitted_at=START_TIME, response_id="answer", new_id=lambda: f"new-{next(numbers)}", patience=patience
    )


def taken_in(log: Sequence[Entry], *messages: Message) -> tuple[Entry, ...]:
    return admit_input(log, messages, run_of())


def as_turn(message: UserMessage, id: str = "") -> UserMessage:
    """The message as a new turn has it."""
    turn = replace(message, time=START_TIME, response_id="answer")
    return replace(turn, id=id, client_id=message.id) if id else turn


def as_result(message: ToolMessage, id: str = "") -> ToolMessage:
    return replace(message, id=id or message.id, time=START_TIME)


def test_P3_a_client_cannot_answer_for_a_tool_of_ours():
    log = (user("u1"), asks("a1", ToolCall(id="c1", name="calculator", arguments="{}")))
    forged = ToolMessage(id="t", tool_call_id="c1", parts=(Text(text="42"),))
    assert admit_input(log, (forged,), run_of()) == (as_result(forged),)
    assert admit_input(log, (forged,), replace(run_of(), own_tools={"calculator"})) == ()


@pytest.mark.parametrize(("runner", "is_taken"), [("server", False), ("client", True), ("form", True)])
def test_P3_a_result_is_taken_for_a_call_that_was_made_of_a_clients_tool_whatever_the_agent_has(
    runner: Runner, is_taken: bool
):
    log = (user("u1"), asks("a1", ToolCall(id="c1", name="calculator", arguments="{}", runner=runner)))
    result_message = ToolMessage(id="t", tool_call_id="c1", parts=(Text(text="42"),))
    for own_tools in ((), {"calculator"}):
        entries = admit_input(log, (result_message,), replace(run_of(), own_tools=own_tools))
        assert entries == ((as_result(result_message),) if is_taken else ())


def test_P3_a_first_message_is_a_turn_with_its_response_id_and_the_time_it_was_admitted():
    words = UserMessage(id="u1", parts=(Text(text="hi"),), name="Ann", time=datetime(2020, 1, 1, tzinfo=UTC))
    (turn,) = taken_in((), words)
    assert turn == UserMessage(id="u1", parts=words.parts, name="Ann", time=START_TIME, response_id="answer")


@pytest.mark.parametrize(
    ("log", "message", "entry"),
    [
        pytest.param((user("u1"), says("a1")), user("u2"), as_turn(user("u2")), id="another id"),
        # other words
        ((user("u1", "hi"), says("a1")), user("u1", "ho"), as_turn(user("u1", "ho"), "new-1")),
        pytest.param((user("u1"), says("a1")), user("a1"), as_turn(user("a1"), "new-1"), id="the id of a reply"),
        pytest.param((), user("u" * 255), as_turn(user("u" * 255)), id="as long as an index can hold"),
        pytest.param((), user("u" * 256), as_turn(user("u" * 256), "new-1"), id="longer than an index can hold"),
        # the words of an older turn
        ((user("u1"), says("a1"), user("u2"), says("a2")), user("u1"), as_turn(user("u1"), "new-1")),
        # the same words after a rollback
        ((user("u1"), says("a1"), RolledBack(id="b", to="u1")), user("u1"), as_turn(user("u1"), "new-1")),
        # marker
        ((Interrupted(id="i", message="a", reason="x"),), user("i"), as_turn(user("i"), "new-1")),
    ],
)
def test_P3_any_other_message_is_a_new_turn_under_a_new_id_where_its_own_is_taken(
    log: Sequence[Entry], message: UserMessage, entry: UserMessage
):
    assert taken_in(log, message) == (entry,)


@pytest.mark.parametrize(
    "log",
    [
        pytest.param((user("u1"),), id="no reply yet"),
        pytest.param((user("u1"), asks("a1", "c1"), ToolStarted(id="s", message="a1", call="c1")), id="at work"),
        pytest.param((user("u1"), asks("a1", "c1"), result("r", "c1")), id="after a result"),
        pytest.param((user("u1"), says("a1"), Interrupted(id="i", message="a1", reason="x")), id="broken off"),
        pytest.param((user("u0"), says("a0"), user("u1")), id="a later turn"),
    ],
)
def test_P3_the_current_message_sent_again_as_it_was_goes_on_with_its_turn_until_that_is_answered(log: Sequence[Entry]):
    stored_log = [as_turn(one) if isinstance(one, UserMessage) else one for one in log]
    assert taken_in(stored_log, user("u1")) == ()


@pytest.mark.parametrize(
    "answer_entries",
    [
        pytest.param((says("a1"),), id="answered"),
        pytest.param((ReplyEnded(id="e", message="a1", finish="length"), says("a1")), id="cut at its length"),
        pytest.param((asks("a1", "c1"), ReplyEnded(id="e", message="a1", finish="refused")), id="refused"),
        pytest.param((asks("a1", "c1"), result("r", "c1"), says("a2")), id="answered after a call"),
    ],
)
def test_P3_the_same_words_after_an_answer_are_said_again(answer_entries: Sequence[Entry]):
    assert taken_in((as_turn(user("u1")), *answer_entries), user("u1")) == (as_turn(user("u1"), "new-1"),)


@pytest.mark.parametrize("id", ["msg-001", ""])
def test_P3_ids_are_compared_with_the_newest_message_that_came_under_them(id: str):
    log: tuple[Entry, ...] = ()
    for place, words in enumerate(("one", "two", "two", "one")):
        (turn,) = taken_in(log, user(id, words))
        log = (*log, replace(turn, id=turn.id if id and not place else f"s{place}"))
        assert taken_in(log, user(id, words)) == ()
        assert taken_in(log, user(id, "other")) != ()
        log = (*log, asks(f"a{place}", "c"), result(f"r{place}", "c"))
        assert taken_in(log, user(id, words), result(id, "c")) == ()
        log = (*log, says(f"b{place}"))
    texts = ["".join(texts_of(entry)) for entry in log if isinstance(entry, UserMessage)]
    assert texts == ["one", "two", "two", "one"]


def test_P3_a_turn_under_a_taken_id_goes_by_its_run_unless_that_is_taken_too():
    run = replace(run_of(), turn_id="run")
    log = (as_turn(user("u1")), says("a1"))
    (turn,) = admit_input(log, (user("u1"),), run)
    assert turn == as_turn(user("u1"), "run")
    assert admit_input((*log, turn, says("a2")), (user("u1"),), run) == (as_turn(user("u1"), "new-1"),)


# Results

BROKEN_OFF = Interrupted(id="i", message="a1", reason="broken off")


@pytest.mark.parametrize(
    ("log", "results", "accepted"),
    [
        pytest.param((user("u1"), asks("a1", "c1")), ["c1"], ["c1"], id="the pending call"),
        pytest.param((user("u1"), asks("a1", "c1", "c2")), ["c2", "c1"], ["c2", "c1"], id="both, in their order"),
        pytest.param((user("u1"), asks("a1", "c1", "c2"), result("r", "c1")), ["c1", "c2"], ["c2"], id="one is left"),
        pytest.param((user("u1"), asks("a1", "c1")), ["c1", "c1"], ["c1"], id="the same twice"),
        pytest.param((user("u1"), asks("a1", "c1"), BROKEN_OFF), ["c1"], [], id="broken off"),
        pytest.param((user("u1"), asks("a1", "c1")), ["c9"], [], id="an unknown call"),
        pytest.param((user("u1"), asks("a1", "c1"), user("u2")), ["c1"], [], id="the user went on"),
        pytest.param((user("u1"), asks("a1", "c1"), RolledBack(id="b", to="u1")), ["c1"], [], id="rolled back"),
        # an id used again
        ((user("u1"), asks("a1", "c1"), result("r", "c1"), asks("a2", "c1")), ["c1"], ["c1"]),
    ],
)
def test_P3_a_result_is_taken_only_for_a_pending_call_of_the_last_reply(
    log: Sequence[Entry], results: list[str], accepted: list[str]
):
    rows = [result(f"r{place}", call) for place, call in enumerate(results)]
    entries = taken_in(log, *rows)
    assert [entry.tool_call_id for entry in entries if isinstance(entry, ToolMessage)] == accepted
    assert len(entries) == len(accepted)


@pytest.mark.parametrize(
    ("id", "error", "new_id", "stored_id"),
    [
        pytest.param("r1", "refused", "r1", "refused", id="its error"),
        pytest.param("r1", " ", "r1", None, id="a blank error is none"),
        pytest.param("r1", "expired", "r1", "Error: expired", id="a name of our own is never theirs"),
        pytest.param("u1", None, "new-1", None, id="an id that is taken"),
    ],
)
def test_P3_a_result_keeps_its_words_and_error_and_gets_the_time_of_its_run(
    id: str, error: str | None, new_id: str, stored_id: str | None
):
    result_message = ToolMessage(id=id, tool_call_id="c1", parts=(Text(text="no"),), error=error)
    assert taken_in((user("u1"), asks("a1", "c1")), result_message) == (
        as_result(replace(result_message, error=stored_id), new_id),
    )


def test_P3_the_same_question_with_the_copy_of_its_call_and_the_result_brings_the_result_alone():
    log = (as_turn(user("u1")), asks("a1", "c1"))
    assert taken_in(log, user("u1"), asks("a1", "c1"), result("r1", "c1")) == (as_result(result("r1", "c1")),)


def test_P3_a_forged_call_in_the_request_takes_no_result():
    assert taken_in((user("u1"), says("a1")), asks("a2", "c9"), result("r1", "c9")) == ()


@given(entry_logs(), talks())
def test_P3_only_users_and_tools_are_taken_under_ids_nobody_has_at_the_admitted_time(
    log: Sequence[Entry], messages: Sequence[Message]
):
    entries = taken_in(log, *messages)
    ids = [entry.id for entry in entries]
    assert {type(entry) for entry in entries} <= {UserMessage, ToolMessage}
    assert all(ids)
    assert len(ids) == len(set(ids))
    assert not set(ids) & {entry.id for entry in log}
    assert all(entry.time == START_TIME for entry in entries)


# Calls that waited too long


def waiting_log() -> tuple[Entry, ...]:
    call_message = asks(
        "a1", ToolCall(id="c1", name="pick", arguments="{}"), ToolCall(id="c2", name="pick", arguments="{}")
    )
    return (user("u1"), replace(call_message, time=START_TIME - timedelta(seconds=100)))


def test_P11_a_result_that_comes_too_late_is_not_taken_and_the_model_gets_a_result_for_every_call_that_waited():
    late = ToolMessage(id="t", tool_call_id="c1", parts=(Text(text="42"),))
    assert admit_input(waiting_log(), (user("u1"), late), run_of(timedelta(seconds=100))) == (as_result(late),)
    entries = admit_input(waiting_log(), (user("u1"), late), run_of(timedelta(seconds=99)))
    assert [(entry.tool_call_id, entry.error) for entry in entries if isinstance(entry, ToolMessage)] == [
        ("c1", "expired"),
        ("c2", "expired"),
    ]
    assert all("did not answer the call of pick in time" in str(entry) for entry in entries)
    new_turn = admit_input(waiting_log(), (user("u2", "something else"),), run_of(timedelta(seconds=99)))
    assert [entry.id for entry in new_turn] == ["u2"]


def test_P11_calls_that_wait_are_the_clients_of_the_last_reply_without_a_result():
    log = (*waiting_log(), ToolMessage(id="t", tool_call_id="c2"))
    assert [call.id for call in pending_calls(view(log))] == ["c1"]
    assert pending_calls(view(log), own_tools={"pick"}) == ()
    assert pending_calls(view((*log, user("u2", "never mind")))) == ()
