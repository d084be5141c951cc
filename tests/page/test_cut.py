"""D2, D5: what is too long is cut to one common length, says so, and fills what it may."""

from collections.abc import Sequence

from hypothesis import given
from hypothesis import strategies as st

from recto.page.text.cut import FULL_ENOUGH, NEVER_CUT, Try, common_length, is_cut, shorten, widest

MARK = "[{shown} of {total}]"


def test_D5_a_text_within_the_limit_stays_as_it_is():
    assert shorten("x" * 100, 100, MARK) == "x" * 100
    assert shorten("x" * 101, 100, MARK) == "x" * 100 + "\n[100 of 101]"
    assert shorten("x" * 101, 0, MARK) == "[0 of 101]"


def test_D5_a_text_as_short_as_its_mark_is_never_cut():
    assert shorten("x" * NEVER_CUT, 0, MARK) == "x" * NEVER_CUT
    assert is_cut("x" * (NEVER_CUT + 1), 0)


def test_D5_the_beginning_of_a_longer_text_always_says_so():
    assert shorten("abc", 100, MARK, "9000+") == "abc\n[3 of 9000+]"


def test_D5_no_character_people_see_is_cut_in_two():
    assert shorten("x" * 99 + "e\u0301" + "y" * 9, 100, MARK) == "x" * 99 + "\n[99 of 110]"


@given(lengths=st.lists(st.integers(0, 3_000), min_size=1, max_size=6), budget=st.integers(600, 8_000))
def test_D5_the_longest_cut_that_fits_is_found(lengths: Sequence[int], budget: int):
    def attempt(limit: int) -> Try:
        text = "".join(shorten("x" * length, limit, MARK) for length in lengths)
        return Try(limit, text, len(text))

    whole = attempt(max(lengths))
    if whole.size <= budget:
        return
    result = widest(attempt(0), whole, budget, attempt)
    assert result == attempt(result.limit)
    assert result.size <= budget
    assert result.size >= budget * FULL_ENOUGH or attempt(result.limit + 1).size > budget


@given(st.lists(st.integers(0, 100), max_size=8), st.integers(0, 500))
def test_D2_the_common_length_is_the_longest_that_the_room_holds(lengths: list[int], room: int):
    result = common_length(lengths, room)
    assert sum(min(length, result) for length in lengths) <= room
    if result < max(lengths, default=0):
        assert sum(min(length, result + 1) for length in lengths) > room
