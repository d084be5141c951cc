"""What is in view, found from rollbacks and undos alone, is what the view of the whole log says (P13, R12)."""

from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recto.conversation.log import (
    MESSAGES,
    Entry,
    NumberRange,
    RolledBack,
    Undone,
    VisibleNumbers,
    fork,
    view,
    visible_numbers,
)
from recto.conversation.messages import UserMessage
from tests.page.entry_strategies import entry_logs


def number_entries(log: Sequence[Entry]) -> tuple[Entry, ...]:
    return tuple(replace(entry, seq=place) for place, entry in enumerate(log, start=1))


def seen_in(log: Sequence[Entry]) -> VisibleNumbers:
    turns = [entry for entry in log if isinstance(entry, (RolledBack, Undone))]
    return visible_numbers(turns, {entry.id: entry.seq or 0 for entry in log if isinstance(entry, MESSAGES)})


def turning() -> st.SearchStrategy[tuple[Entry, ...]]:
    """Logs of little else than user messages and turns back, so that rollbacks meet rollbacks."""
    turn = st.one_of(
        st.builds(UserMessage),
        st.builds(UserMessage),
        st.builds(RolledBack, to=st.integers(0, 20).map(lambda place: f"m{place}")),
        st.just(Undone()),
    )
    return st.lists(turn, max_size=25).map(
        lambda items: tuple(replace(entry, id=f"m{place}") for place, entry in enumerate(items))
    )


@given(entry_logs(30) | turning())
def test_P13_the_numbers_in_view_are_those_of_the_view(log: tuple[Entry, ...]):
    entries = number_entries(log)
    visible = seen_in(entries)
    expected = [entry.seq for entry in view(entries).entries]
    assert [number for number in range(1, len(entries) + 1) if number in visible] == expected
    assert len(entries) + 1 in visible
    assert visible.can_undo is view(entries).can_undo


@given(turning(), turning())
def test_R12_before_the_number_at_which_two_part_both_have_the_same(one: tuple[Entry, ...], other: tuple[Entry, ...]):
    ours, theirs = seen_in(number_entries(one)), seen_in(number_entries(other))
    apart = ours.shared_until(theirs)
    assert all((number in ours) is (number in theirs) for number in range(1, apart))
    assert apart == theirs.shared_until(ours)


@given(turning())
def test_P17_what_stands_before_a_message_in_view_is_what_a_fork_there_begins_with(log: tuple[Entry, ...]):
    entries = number_entries(log)
    visible = seen_in(entries)
    for user in [entry for entry in view(entries).entries if isinstance(entry, UserMessage)]:
        before = visible.before(user.seq or 0)
        expected = [entry.seq for entry in fork(entries, before=user.id)]
        assert [number for number in range(1, len(entries) + 2) if number in before] == expected


@given(turning())
def test_P13_stretches_ascend_without_touching_those_they_hide(log: tuple[Entry, ...]):
    stretches = seen_in(number_entries(log)).ranges
    ends = [(one.first, one.last) for one in stretches]
    assert all(last is not None and first <= last for first, last in ends[:-1])
    assert ends[-1][1] is None
    assert all((one.last or 0) < two.first for one, two in pairwise(stretches))


@pytest.mark.parametrize(("number", "is_in"), [(0, False), (1, True), (10**12, True)])
def test_P13_where_nothing_was_turned_back_all_is_in_view(number: int, is_in: bool):
    assert (number in VisibleNumbers()) is is_in
    assert visible_numbers((), {}) == VisibleNumbers(ranges=(NumberRange(first=1),))


def test_P13_thousands_of_rollbacks_cost_little():
    entries = [
        RolledBack(id=f"b{place}", to=f"m{place - 1}") if place % 2 else UserMessage(id=f"m{place}")
        for place in range(20_000)
    ]
    assert seen_in(number_entries(entries)).ranges == (NumberRange(first=20_001),)
