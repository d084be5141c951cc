"""Joined deltas have the same content."""

from hypothesis import given
from hypothesis import strategies as st

from recto.models.deltas import join_deltas
from recto.models.ports import CallDelta, CallStarted, Delta, ReasoningDelta, ReplyEnd, TextDelta
from tests.models.test_readers import letters

WORDS = st.text(min_size=1, max_size=5)
DELTAS: st.SearchStrategy[list[Delta]] = st.lists(
    st.one_of(
        st.builds(TextDelta, text=WORDS),
        st.builds(ReasoningDelta, text=WORDS),
        st.builds(CallDelta, index=st.integers(0, 2), arguments=WORDS),
        st.builds(CallStarted, index=st.integers(0, 2), id=WORDS, name=WORDS),
        st.just(ReplyEnd(finish="stop")),
    )
)


@given(DELTAS)
def test_joined_deltas_say_the_same_in_the_same_order(deltas: list[Delta]):
    joined_deltas = list(join_deltas(deltas))
    assert letters(joined_deltas) == letters(deltas)
    assert list(join_deltas(joined_deltas)) == joined_deltas


def test_neighbours_that_say_more_of_the_same_become_one():
    start = CallStarted(index=0, id="a", name="note")
    first, second = CallDelta(index=0, arguments="{"), CallDelta(index=0, arguments="}")
    other = CallDelta(index=1, arguments="x")
    deltas: list[Delta] = [TextDelta(text="a"), TextDelta(text="b"), start, first, second, other]
    assert list(join_deltas(deltas)) == [TextDelta(text="ab"), start, CallDelta(index=0, arguments="{}"), other]
