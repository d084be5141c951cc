"""Titles (P17): the first words said, in one line that is short enough; and what a user may give."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recto.conversation.title import CHARACTER, CUT, LONGEST, check_title, title_from
from recto.errors import WireError

WORDS = "The quick brown fox jumps over the lazy dog and then it sleeps for a very long while"


@pytest.mark.parametrize(
    ("words", "title"),
    [
        (" \n\t ", None),
        ("\x00\x1b\u202e", None),
        ("  Plan\n\nmy\tweek  ", "Plan my week"),
        ("a\x00b\x1b[0m", "ab[0m"),
        ("x" * 61, "x" * 59 + CUT),
        (WORDS, "The quick brown fox jumps over the lazy dog and then it…"),
        ("请看 " + "四" * 80, "请看 " + "四" * 56 + CUT),
        ("👨‍👩‍👧" * 60, "👨‍👩‍👧" * 60),
        ("é" * 61, "é" * 59 + CUT),
        ("می‌خواهم", "می‌خواهم"),
    ],
)
def test_P17_the_first_words_become_a_title(words: str, title: str | None):
    assert title_from(words) == title


@given(st.text(max_size=300) | st.text("ab 四\n👍🏽\u0301", max_size=300))
def test_P17_a_title_is_one_short_line_without_control_characters(words: str):
    title = title_from(words)
    if title is None:
        return
    assert title == " ".join(title.split())
    assert all(letter.isprintable() or letter in "\u200c\u200d" for letter in title)
    assert len(CHARACTER.findall(title)) <= LONGEST
    assert title.endswith(CUT) or len(title) <= len(words)


@given(st.lists(st.text("abcdef", min_size=1, max_size=12), min_size=1, max_size=40))
def test_P17_words_are_kept_whole_and_at_most_sixty_characters_of_them(words: list[str]):
    title = title_from(" ".join(words))
    assert title is not None
    assert len(title) <= LONGEST
    assert words[: len(words_kept := title.removesuffix(CUT).split())] == words_kept
    assert title.endswith(CUT) or words_kept == words


def test_P17_very_long_words_cost_no_more_than_their_beginning():
    assert title_from("word " * 10_000_000) == " ".join(["word"] * 12) + CUT


@pytest.mark.parametrize("title", ["Mine", " 四柱 八字 ", "x" * 200, " " * 300 + "y", "a\u3000b", "👍🏽"])
def test_P17_a_given_title_is_trimmed(title: str):
    assert check_title(title) == title.strip()


@pytest.mark.parametrize("title", [None, 7, [], "", "  ", "x" * 201, "a\nb", "a\tb", "a\x00b", "a\x7fb", "a\u2029b"])
def test_P17_what_is_no_title_is_refused(title: object):
    with pytest.raises(WireError, match="title: "):
        check_title(title)
