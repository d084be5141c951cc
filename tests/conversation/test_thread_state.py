"""P1, R12: the state of a thread: what is in force of it, what requests change, what readers hear."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import cast

import pytest
from hypothesis import given

from recto.conversation.events import Event, StateDelta, StateSnapshot
from recto.conversation.json import Json
from recto.conversation.log import Entry, RolledBack, StateChanged, Undone, fork, view
from recto.conversation.thread_state import change_events, is_same, merge_sent_state, state_events, state_text
from tests.conversation.test_json_patch import patched, values
from tests.page.talk import says, user

START = datetime(2026, 1, 1, tzinfo=UTC)


def has(state: Json) -> StateChanged:
    return StateChanged(id=f"state {state}", value=state_text(state))


def timed(*entries: Entry) -> tuple[Entry, ...]:
    """A log, an entry a minute."""
    return tuple(replace(entry, time=START + timedelta(minutes=place)) for place, entry in enumerate(entries))


u1, a1, u2, a2 = user("u1"), says("a1"), user("u2"), says("a2")
BACK, UNDO = RolledBack(id="back", to="u2"), Undone(id="undo")


@pytest.mark.parametrize(
    ("log", "state"),
    [
        pytest.param((u1, a1), None, id="never had one"),
        pytest.param((u1, has({"a": 1}), a1, has({"a": 2})), {"a": 2}, id="the newest"),
        pytest.param((u1, has({"a": 1}), a1, has(None)), None, id="taken away"),
        pytest.param((u1, has({"a": 1}), u2, has({"a": 2}), BACK), {"a": 1}, id="rolled back"),
        pytest.param((u1, has({"a": 1}), u2, has({"a": 2}), BACK, UNDO), {"a": 2}, id="undone"),
    ],
)
def test_R12_the_state_is_the_one_that_was_shared_then(log: tuple[Entry, ...], state: Json):
    assert view(log).state == state
    assert view(fork(log)).state == state


def test_R12_a_fork_has_the_state_of_where_it_begins():
    log = (u1, has({"a": 1}), u2, has({"a": 2}))
    assert view(fork(log, before="u2")).state == {"a": 1}


S1, S2 = {"a": 1, "b": {"c": 1}}, {"a": 2, "b": {"c": 1}}


@pytest.mark.parametrize(
    ("before", "since", "answer", "after"),
    [
        pytest.param((u1,), (), {}, None, id="none, and what a client has that knows none"),
        pytest.param((u1, has(S1)), (), {}, S1, id="an empty one: it stays"),
        pytest.param((u1, has(S1)), (), S1, S1, id="a copy"),
        pytest.param((u1, has(S1)), (), S2, S2, id="changed by the client"),
        pytest.param((u1, has(S1)), (), [1], [1], id="another kind"),
        pytest.param((u1, has(S1)), (has(S2),), S1, S2, id="a copy of what a tool changed since"),
        # both changed, elsewhere
        ((u1, has(S1)), (has(S2),), {**S1, "b": {"c": 3}}, {"a": 2, "b": {"c": 3}}),
        pytest.param((u1, has(S1)), (has(S2),), {**S1, "a": 3}, {**S1, "a": 3}, id="both changed the same"),
        pytest.param((u1, has(S1)), (has(S2),), {"a": 1}, {"a": 2}, id="one removed, the other changed elsewhere"),
        pytest.param((u1, has(S1), u2, has(S2)), (BACK,), S2, S1, id="a copy of what is rolled back"),
        pytest.param((u1, has(S1), u2, has(S2), BACK), (), S2, S2, id="what was rolled back before, sent again"),
    ],
)
def test_P1_a_request_changes_of_the_state_what_its_client_did(
    before: tuple[Entry, ...], since: tuple[Entry, ...], answer: Json, after: Json
):
    log = timed(*before, *since)
    admitted_at = START + timedelta(minutes=len(before))
    merged_state = merge_sent_state(log, view(log), answer, admitted_at)
    assert is_same(merged_state, after)


@given(values, values, values)
def test_P1_a_copy_changes_nothing_and_what_nobody_else_changed_is_as_sent(base: Json, answer: Json, now: Json):
    log, admitted_at = timed(u1, has(base)), START + timedelta(minutes=2)
    changed = (*log, replace(has(now), time=admitted_at))
    assert is_same(merge_sent_state(changed, view(changed), base, admitted_at), now)
    expected = base if answer in (None, {}) else answer
    assert is_same(merge_sent_state(log, view(log), answer, admitted_at), expected)


@given(values, values)
def test_P1_who_knew_the_state_before_knows_it_after(before: Json, after: Json):
    client_state = cast("Json", {}) if before is None else before
    for event in change_events(before, after):
        match event:
            case StateSnapshot(state=state):
                client_state = state
            case StateDelta(operations=operations):
                client_state = patched(client_state, list(operations))
    assert is_same(client_state, {} if after is None else after)


@pytest.mark.parametrize(
    ("before", "after", "events"),
    [
        pytest.param(None, {"a": 1}, (StateSnapshot(state={"a": 1}),), id="the first"),
        pytest.param({"a": 1}, None, (StateSnapshot(state={}),), id="taken away"),
        # a change
        ({"a": 1}, {"a": 2}, (StateDelta(operations=[{"op": "replace", "path": "/a", "value": 2}]),)),
        # all of it
        (list(range(200)), list(range(1, 400, 2)), (StateSnapshot(state=list(range(1, 400, 2))),)),
    ],
)
def test_P1_a_change_is_told_as_what_differs(before: Json, after: Json, events: tuple[Event, ...]):
    assert change_events(before, after) == events


def test_P1_who_comes_new_is_told_the_state_where_there_is_one():
    assert state_events(view((u1, a1))) == ()
    assert state_events(view((u1, has({"a": None}), a2))) == (StateSnapshot(state={"a": None}),)
