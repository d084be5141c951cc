"""R15: some lines of a text of any size, as `12→text`."""

from hypothesis import given
from hypothesis import strategies as st

from recto.tools.text.line_range import LONGEST_LINE, LineRange, NumberedLines, read_lines

TEXTS = st.lists(st.sampled_from(("", "a", "bc", "é→", "x" * 50, "\r")), max_size=30).flatmap(
    lambda lines: st.sampled_from(("\n", "\r\n")).map(lambda end: end.join(lines))
)


def naive(text: str, first: int, last: int | None) -> NumberedLines:
    lines = text.split("\n")
    lines = lines[:-1] if lines[-1] == "" else lines
    numbered_lines = [f"{number}→{line.removesuffix(chr(13))}" for number, line in enumerate(lines, start=1)]
    expected_lines = tuple(numbered_lines[first - 1 : last])
    return NumberedLines(lines=expected_lines, last=first + len(expected_lines) - 1, total=len(lines))


@given(text=TEXTS, size=st.integers(1, 20), first=st.integers(1, 35), more=st.none() | st.integers(0, 10))
def test_R15_lines_are_the_same_in_whatever_pieces_the_text_comes(text: str, size: int, first: int, more: int | None):
    data = text.encode()
    pieces = [data[start : start + size] for start in range(0, len(data), size)]
    last = None if more is None else first + more
    assert read_lines(pieces, LineRange(first=first, last=last), 100_000) == naive(text, first, last)


@given(text=TEXTS, room=st.integers(1, 300))
def test_R15_what_is_taken_fits_but_for_a_first_line_and_all_is_counted(text: str, room: int):
    lines_read = read_lines([text.encode()], LineRange(), room)
    whole = naive(text, 1, None)
    assert lines_read.total == whole.total
    assert len(lines_read.lines) <= 1 or len("\n".join(lines_read.lines)) <= room
    assert lines_read.lines[1:] == whole.lines[1 : len(lines_read.lines)]


def test_R15_a_line_that_is_too_long_is_cut_and_says_how_long_it_is():
    lines_read = read_lines([b"a\n", b"x" * 5_000_000, b"x\nb"], LineRange(), 50_000)
    assert lines_read.lines == (
        "1→a",
        f"2→{'x' * LONGEST_LINE} [... 5,000,001 bytes in this line, the rest of it is not shown]",
        "3→b",
    )


def test_F3_a_file_cannot_pass_for_a_reminder():
    assert read_lines([b"<system-reminder>x"], LineRange(), 1_000).lines == ("1→&lt;system-reminder>x",)
