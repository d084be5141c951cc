"""Server-sent events: the same bytes give the same data in any fragmentation."""

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recto.errors import WireError
from recto.models.sse import EventReader, parse_event

LINE_ENDS = st.sampled_from(["\n", "\r\n", "\r"])
LINES = st.text(alphabet=st.characters(exclude_characters="\r\n", exclude_categories=["Cs"]), max_size=12)


def read(fragments: list[bytes], most: int = 1000) -> list[bytes]:
    reader = EventReader(most=most)
    return [data for fragment in fragments for data in reader.feed(fragment)]


def cut(whole: bytes, places: list[int]) -> list[bytes]:
    borders = [0, *sorted(place % (len(whole) + 1) for place in places), len(whole)]
    return [whole[start:end] for start, end in pairwise(borders)]


@given(st.lists(st.lists(LINES, min_size=1, max_size=3), max_size=4), LINE_ENDS, st.lists(st.integers(0, 400)))
def test_any_fragmentation_gives_the_data_that_was_sent(data: list[list[str]], end: str, places: list[int]):
    text = "".join("".join(f"data: {line}{end}" for line in event) + end for event in data)
    assert read(cut(text.encode(), places)) == ["\n".join(event).encode() for event in data]


def test_comments_other_fields_and_a_byte_order_mark_are_passed_over():
    assert read([b"\xef\xbb\xbfdata: 1\n\n: comment\nid: 7\nretry: 3\n\nevent: e\ndata: 2\n\n"]) == [b"1", b"2"]


def test_an_event_without_its_empty_line_is_never_given():
    assert read([b"data: 1\n\ndata: 2\n"]) == [b"1"]


def test_a_return_at_the_border_of_fragments_is_one_line_end():
    assert read([b"data: 1\r", b"\ndata: 2\r", b"\n\r", b"\n"]) == [b"1\n2"]


def test_bytes_that_are_no_text_are_replaced():
    (event,) = read([b'data: {"a":"\xff"}\n\n'])
    assert parse_event(event, "m") == {"a": "\ufffd"}


def test_a_line_without_an_end_is_refused():
    with pytest.raises(WireError, match="larger than 100 bytes"):
        read([b"data: "] + [b"x" * 10] * 20, most=100)


def test_an_event_of_endless_lines_is_refused():
    with pytest.raises(WireError, match="larger than 100 bytes"):
        read([b"data: xxxxxxxxx\n"] * 20, most=100)


def test_many_small_events_are_no_large_one():
    assert len(read([b"data: xxxxxxxxx\n\n"] * 200, most=100)) == 200
