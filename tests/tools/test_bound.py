"""One place bounds what tools answer."""

from hypothesis import given
from hypothesis import strategies as st

from recto.conversation.messages import File, Opaque, Text, ToolPart, Url
from recto.tools.call import LEAST_CHARACTERS, bound
from recto.tools.ports import ToolResult
from tests.tools.runs import text_of

IMAGE = File(kind="image", source=Url(url="u"))
STATE = Opaque(provider="p", model=None, place="block", name="n", data="{}")


def result(*parts: ToolPart, error: str | None = None) -> ToolResult:
    return ToolResult(parts=parts, error=error)


def results() -> st.SearchStrategy[ToolResult]:
    words = st.builds(Text, text=st.text(max_size=300), path=st.sampled_from((None, "a.py")))
    return st.builds(result, words, words, st.just(IMAGE), words, st.just(STATE), words, error=st.none() | st.just("x"))


def test_a_short_result_stays_as_it_is_and_a_long_text_keeps_head_and_tail_around_a_mark():
    short = result(Text(text="x" * 50_000), IMAGE)
    assert bound(short) is short
    text = text_of(bound(result(Text(text="a" * 500 + "b" * 500)), limit_characters=300))
    mark = "\n[798 of 1000 characters left out here. Ask for less at a time: a range, a filter, fewer items.]\n"
    assert text == "a" * 101 + mark + "b" * 101


def test_a_cut_over_several_parts_leaves_out_the_middle_ones_and_keeps_files_and_paths():
    parts = [Text(text=letter * 400, path=f"{letter}.py") for letter in "abc"]
    kept = bound(result(parts[0], IMAGE, parts[1], STATE, parts[2], error="half"), limit_characters=400)
    first, image, state, last = kept.parts
    assert (image, state, kept.error) == (IMAGE, STATE, "half")
    assert isinstance(first, Text) and isinstance(last, Text)
    assert (first.path, last.path) == ("a.py", "c.py")
    assert ("characters left out here" in first.text, set(last.text)) == (True, {"c"})


def test_halves_of_surrogate_pairs_are_scrubbed():
    assert bound(result(Text(text="a\ud800b"))) == result(Text(text="a\ufffdb"))


@given(given_result=results(), limit=st.integers(0, 1000))
def test_no_result_has_more_than_the_limit_and_bounding_twice_changes_nothing(given_result: ToolResult, limit: int):
    bounded = bound(given_result, limit_characters=limit)
    assert len(text_of(bounded)) <= max(limit, LEAST_CHARACTERS)
    assert bound(bounded, limit_characters=limit) == bounded
    assert [one for one in bounded.parts if not isinstance(one, Text)] == [IMAGE, STATE]


@given(given_result=results(), limit=st.integers(0, 1000))
def test_what_is_left_out_is_counted(given_result: ToolResult, limit: int):
    before, after = text_of(given_result), text_of(bound(given_result, limit_characters=limit))
    if after == before:
        return
    head, _, rest = after.rpartition(f" of {len(before)} characters left out here")
    head, _, count = head.rpartition("\n[")
    tail = rest.partition(".]\n")[2]
    assert before == head + before[len(head) : len(head) + int(count)] + tail
