"""S1, S2: the newest messages of history, with calls and results together; the current turn whole."""

from collections.abc import Sequence
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recto.conversation.log import View, view
from recto.conversation.messages import ActivityMessage, DeveloperMessage, Message, ReasoningMessage, SystemMessage
from recto.page.draft import Draft
from recto.page.manifest import Note
from recto.page.steps.window import window
from tests.page.entry_strategies import answered_calls, talks
from tests.page.talk import asks, result, says, user

Talk = tuple[Message, ...]

now: Talk = (user("u9", "now"),)
# Six turns of words: twelve messages.
TWELVE: Talk = tuple(one for turn in range(6) for one in (user(f"u{turn}"), says(f"a{turn}")))
LONG_TURN: Talk = (user("u9"), asks("a9", "c1", "c2"), result("r1", "c1"), result("r2", "c2"), asks("b9", "c3"))


def out(limit: int) -> Note:
    reason = f"outside the newest {limit} messages of history"
    return Note(decision="dropped", rule="S2", reason=reason)


def without(messages: Talk, places: Sequence[int], limit: int) -> Draft:
    """The whole draft that leaves out the messages at these places."""
    origins = [place for place in range(len(messages)) if place not in places]
    left = tuple(messages[place] for place in origins)
    return Draft(messages=left, origins=origins, notes={place: out(limit) for place in places})


def whole(messages: Talk) -> Draft:
    return Draft(messages=messages, origins=range(len(messages)), notes={})


def set_window(messages: Talk, limit: int | None) -> Draft:
    return window(messages, View(entries=messages).turn_start, limit)


@pytest.mark.parametrize(
    ("limit", "dropped"),
    [
        pytest.param(5, range(7), id="five, as while a skill is chosen"),
        pytest.param(10, range(2), id="ten, as while a skill is at work"),
        pytest.param(1, range(11), id="one"),
        pytest.param(0, range(12), id="none"),
        pytest.param(11, range(1), id="all but one"),
    ],
)
def test_S1_the_newest_messages_of_history_stay(limit: int, dropped: range):
    assert set_window(TWELVE + now, limit) == without(TWELVE + now, dropped, limit)


@pytest.mark.parametrize("limit", [None, 12, 13, 1_000])
def test_S1_a_window_that_is_large_enough_keeps_all(limit: int | None):
    assert set_window(TWELVE + now, limit) == whole(TWELVE + now)


def test_S2_a_window_of_five_written_out():
    messages = (*TWELVE[:6], *now)
    assert set_window(messages, 5) == Draft(
        messages=(says("a0"), user("u1"), says("a1"), user("u2"), says("a2"), user("u9", "now")),
        origins=[1, 2, 3, 4, 5, 6],
        notes={0: Note(decision="dropped", rule="S2", reason="outside the newest 5 messages of history")},
    )


@pytest.mark.parametrize("limit", [0, 1, 5, None])
@pytest.mark.parametrize(
    "turn",
    [
        pytest.param(now, id="just asked"),
        pytest.param(LONG_TURN, id="in the middle of its tools"),
        pytest.param((*LONG_TURN, *LONG_TURN[1:] * 3), id="longer than any window"),
    ],
)
def test_S2_the_current_turn_is_always_whole(turn: Talk, limit: int | None):
    kept = [place for place in set_window(TWELVE + turn, limit).origins if place >= len(TWELVE)]
    assert kept == list(range(len(TWELVE), len(TWELVE) + len(turn)))
    assert set_window(turn, limit) == whole(turn)


@pytest.mark.parametrize("limit", [0, 5, None])
def test_S2_a_log_without_messages_has_an_empty_window(limit: int | None):
    assert set_window((), limit) == whole(())


def test_S2_without_a_user_message_everything_is_history():
    assert set_window((says("a0"), says("a1"), says("a2")), 1) == without(
        (says("a0"), says("a1"), says("a2")), (0, 1), 1
    )


# Calls and their results


PAIR: Talk = (user("u0"), asks("a0", "c1"), result("r0", "c1"), says("b0"), *now)
PARALLEL: Talk = (
    user("u0"),
    asks("a0", "c1", "c2", "c3"),
    result("r1", "c1"),
    result("r2", "c2"),
    result("r3", "c3"),
    says("b0"),
    *now,
)
REUSED: Talk = (asks("a0", "c1"), result("r0", "c1"), user("u1"), asks("a1", "c1"), result("r1", "c1"), *now)
BETWEEN: Talk = (asks("a0", "c1"), user("u1"), says("a1"), result("r0", "c1"), user("u2"), *now)


@pytest.mark.parametrize(
    ("messages", "limit", "dropped"),
    [
        pytest.param(PAIR, 4, (), id="the pair is in"),
        pytest.param(PAIR, 3, (0,), id="its call is the oldest in the window"),
        pytest.param(PAIR, 2, (0,), id="its result is the oldest in the window, so the call comes too"),
        pytest.param(PAIR, 1, (0, 1, 2), id="the pair is out"),
        pytest.param(PARALLEL, 5, (0,), id="all calls at once are in"),
        pytest.param(PARALLEL, 4, (0,), id="the caller of all came first"),
        pytest.param(PARALLEL, 2, (0,), id="one of three results is in, so all are"),
        pytest.param(PARALLEL, 1, (0, 1, 2, 3, 4), id="none of three results is in"),
        pytest.param(REUSED, 1, (0, 1, 2), id="a call id used again names the newer call"),
        pytest.param(REUSED, 4, (), id="and the older result names the older call"),
        pytest.param(BETWEEN, 2, (1, 2), id="what stood between call and late result is no part of the group"),
    ],
)
def test_S2_calls_and_results_are_kept_whole_if_any_falls_into_the_window(
    messages: Talk, limit: int, dropped: tuple[int, ...]
):
    found = set_window(messages, limit)
    assert replace(found, origins=list(found.origins)) == without(messages, dropped, limit)


LATE: Talk = (user("u0"), says("a0"), asks("a1", "c1", "c2"), result("r1", "c1"), user("u2"), result("r2", "c2"))


@pytest.mark.parametrize("limit", [0, 1])
def test_S2_a_call_of_history_answered_in_the_current_turn_stays_with_its_other_results(limit: int):
    assert set_window(LATE, limit) == without(LATE, (0, 1), limit)


ORPHANS: Talk = (result("r0", "never"), user("u0"), asks("a0", "lost"), says("b0"), result("r1", "unknown"), *now)


@pytest.mark.parametrize(
    ("limit", "dropped"),
    [
        pytest.param(4, (0,), id="a result without a call counts and goes alone"),
        pytest.param(2, (0, 1, 2), id="a call without a result goes alone"),
        pytest.param(1, (0, 1, 2, 3), id="a result without a call brings nothing back"),
    ],
)
def test_S2_orphans_in_history_count_as_messages_and_keep_nothing(limit: int, dropped: tuple[int, ...]):
    # They are not repaired here: R10 comes after the window.
    assert set_window(ORPHANS, limit) == without(ORPHANS, dropped, limit)


def test_S2_the_first_message_left_may_be_an_assistants():
    assert set_window(PAIR, 3).messages[0] == asks("a0", "c1")
    assert set_window(TWELVE + now, 5).messages[0] == says("a3")


# Who counts

QUIET: Talk = (
    SystemMessage(id="s", text="Be kind."),
    DeveloperMessage(id="d", text="Be brief."),
    ReasoningMessage(id="t", text="hm"),
    ActivityMessage(id="p", activity_type="PLAN", content="{}"),
)


def test_S2_only_user_assistant_and_tool_messages_count():
    messages = (user("u0"), says("a0"), *QUIET, user("u1"), *QUIET, says("a1"), *now)
    assert set_window(messages, 4) == whole(messages)
    assert set_window(messages, 3) == without(messages, (0,), 3)
    assert set_window(messages, 2) == without(messages, (0, 1, 4, 5), 2)


def test_S2_what_does_not_count_stays_where_it_stands_in_the_window():
    messages = (user("u0"), *QUIET, says("a0"), *QUIET, *now)
    assert set_window(messages, 1) == without(messages, (0, 3, 4), 1)


def test_S2_system_and_developer_messages_before_the_window_are_not_dropped():
    messages = (QUIET[0], user("u0"), *QUIET, says("a0"), *QUIET, *now)
    assert set_window(messages, 0).messages == (QUIET[0], *QUIET[:2], *QUIET[:2], *now)
    assert set_window(messages, 0) == without(messages, (1, 4, 5, 6, 9, 10), 0)


def test_S2_history_is_read_from_the_view_that_rollback_leaves():
    seen = view(TWELVE + now)
    assert window(seen.messages, seen.turn_start, 2).messages == (user("u5"), says("a5"), user("u9", "now"))


# Whatever the conversation

limits = st.integers(0, 6)


@given(talks(), limits)
def test_S2_no_call_in_the_window_loses_its_result_nor_a_result_its_call(messages: Talk, limit: int):
    kept = set(set_window(messages, limit).origins)
    for caller, answer in answered_calls(messages):
        assert (caller in kept) == (answer in kept)


@given(talks(), limits)
def test_S2_the_newest_are_in_and_beyond_them_only_groups_they_belong_to(messages: Talk, limit: int):
    start = View(entries=messages).turn_start
    kept = set(set_window(messages, limit).origins)
    counted = [place for place in range(start) if messages[place].role in {"user", "assistant", "tool"}]
    newest = set(counted[len(counted) - min(limit, len(counted)) :])
    certain = newest | set(range(start, len(messages)))
    assert certain <= kept
    pairs = answered_calls(messages)
    callers = certain | {caller for caller, answer in pairs if answer in certain}
    grouped = callers | {answer for caller, answer in pairs if caller in callers}
    assert kept.intersection(counted) == grouped.intersection(counted)


@given(talks(), limits | st.none())
def test_S2_order_is_kept_the_turn_is_whole_and_what_is_out_has_a_note(messages: Talk, limit: int | None):
    start = View(entries=messages).turn_start
    draft = set_window(messages, limit)
    assert list(draft.origins) == sorted(set(draft.origins))
    assert draft.messages == tuple(messages[place] for place in draft.origins)
    assert set(range(start, len(messages))) <= set(draft.origins)
    assert set(draft.notes) == set(range(len(messages))) - set(draft.origins)


@given(talks(), limits)
def test_S2_a_larger_window_never_keeps_less(messages: Talk, limit: int):
    assert set(set_window(messages, limit).origins) <= set(set_window(messages, limit + 1).origins)
