"""R15: search and replace, exact first, then with other blanks; refused with what is there where it is in doubt."""

import re

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from recto.errors import ToolError
from recto.tools.text.replacement import LOOSE_CHARACTERS, TextEdit, edit_text
from recto.tools.workspace.filesystem_edit import build_line_diff

CODE = "class A:\n    def run(self):\n        go()\n        return 1\n\n    def stop(self):\n        return 1\n"
LINES = st.lists(st.sampled_from(("a", "b", "  a", "\tb", "", "c d", "  ", "é", "x = 1")), max_size=12)
ENDS = st.sampled_from(("\n", "\r\n"))


def join_lines(lines: list[str], end: str, last: str) -> str:
    return end.join(lines) + last


TEXTS = st.builds(join_lines, LINES, ENDS, st.sampled_from(("", "\n", "\r\n")))


def edit(text: str, search: str, replace: str, occurrence: int | None = None) -> str:
    return edit_text(text, [TextEdit(search=search, replace=replace, occurrence=occurrence)]).text


def why_not(text: str, search: str, replace: str = "new", occurrence: int | None = None) -> str:
    with pytest.raises(ToolError) as caught_error:
        edit(text, search, replace, occurrence)
    return str(caught_error.value)


@pytest.mark.parametrize(
    ("text", "search", "replace", "new"),
    [
        ("", "", "first\n", "first\n"),
        # Line ends are the file's.
        ("a\r\nb\r\nc\r\n", "a\nb\n", "x\ny\n", "x\r\ny\r\nc\r\n"),
        ("a\nb\n", "a\r\nb", "x\r\ny", "x\ny\n"),
        ("a\nb\r\nc\nd\n", "b\r\nc", "x", "a\nx\nd\n"),
        ("a\r\nb\r\n", "\nb", "\nc", "a\r\nc\r\n"),
        # Blanks at the ends of lines.
        ("a  \nb\t\nc\n", "a\nb \n", "x\n", "x\nc\n"),
        ("  a  \r\n  b\r\nc\r\n", "  a\n  b", "  x\n  y", "  x\r\n  y\r\nc\r\n"),
        ("f()\n   \ng()\n", "f()\n\ng()", "h()", "h()\n"),
        # An indentation that all lines are shifted by.
        (CODE, "def run(self):\n    go()\n", "def run(self):\n    stay()\n", CODE.replace("go", "stay")),
        ("a:\n  b\n", "    a:\n      b", "    a:\n      c\n        d\n  e", "a:\n  c\n    d\ne\n"),
        ("\tif x:\n\t\ty()\n", "if x:\n\ty()\n", "if z:\n\n\ty()\n", "\tif z:\n\n\t\ty()\n"),
        # Tabs for spaces, and the other way round: what is put in has the file's own.
        ("if a:\n\tx = 1\n\ty = 2\n", "if a:\n    x = 1\n    y = 2", "if b:\n    x = 3", "if b:\n\tx = 3\n"),
        ("\tx = 1\n", "    x = 1", "    if x:\n        y = 1", "\tif x:\n\t\ty = 1\n"),
        ("if a:\n  x\n  if b:\n    y\n", "if a:\n\tx\n\tif b:\n\t\ty", "\tx\n\t\t\tz", "  x\n      z\n"),
        ("\tif a:\n\t\tx\n", "if a:\n  x", "if a:\n  if b:\n    x\n y", "\tif a:\n\t\tif b:\n\t\t\tx\n\t y\n"),
        ("if a:\n\tx\n        y\n", "if a:\n        x\n        y", "        z", "\tz\n"),
        ("\ta\r\n\tb\r\n", "    a\n    b", "    c\n\n    d", "\tc\r\n\r\n\td\r\n"),
        # Other blanks between words.
        ("\tx =\t1\n\ty = 2\n", "    x  = 1\n    y = 2", "    z = 1", "\tz = 1\n"),
        # What a read shows of our own tags.
        ("say <system-reminder>x\n", "&lt;system-reminder>x", "&lt;system-reminder>y", "say <system-reminder>y\n"),
    ],
)
def test_R15_what_is_searched_for_is_replaced(text: str, search: str, replace: str, new: str):
    assert edit(text, search, replace) == new


def test_R15_a_match_that_is_exact_or_differs_less_wins_over_others():
    assert edit("a \nb\na\nb\n", "a\nb", "c") == "a \nb\nc\n"
    assert edit("\ta b\na  b\n", "  a b", "  c") == "\tc\na  b\n"


def test_R15_one_of_several_is_chosen_by_its_number():
    assert [edit("x\nx\nx\n", "x", "y", number) for number in (1, 2, 3)] == ["y\nx\nx\n", "x\ny\nx\n", "x\nx\ny\n"]
    assert edit(" a\n   a\n", "a  \n", "b\n", 2) == " a\n   b\n"


def test_R15_several_without_a_number_are_refused_with_their_places():
    assert why_not(CODE, "return 1") == (
        "searchContent is there 2 times. Add lines around it until it is there once, or say which with occurrence, "
        "from 1 on:\nline 4: return 1\nline 7: return 1"
    )
    assert why_not("x\n" * 30, "x").endswith("line 10: x\nand 20 more")
    assert why_not(CODE, "return 1", "x", 3).startswith("searchContent is there 2 times, so there is no occurrence 3:")


def test_R15_what_is_not_there_is_refused_with_what_comes_nearest():
    assert why_not(CODE, "def run(self):\n    go(1)\n    return 1") == (
        "searchContent is not in it, nor are its lines there with other blanks or another indentation. "
        "What comes nearest is there now, in lines 1-6:\n1→class A:\n"
        "2→    def run(self):\n3→        go()\n4→        return 1\n5→\n"
        "6→    def stop(self):\nSearch for what is there."
    )
    assert "3→        go()" in why_not(CODE, "        go(more)")
    assert why_not(CODE, "nothing of that kind").endswith("Read the file again, and copy what is there.")


@pytest.mark.parametrize(("search", "replace"), [("go", "go"), ("", "x"), ("  go", "  go")])
def test_R15_an_edit_that_changes_nothing_or_searches_for_nothing_is_refused(search: str, replace: str):
    assert why_not(CODE, search, replace)


def test_R15_several_edits_are_made_at_once_or_not_at_all_and_which_had_other_blanks_is_told():
    loose = TextEdit(search="def stop(self):\n    return 1", replace="pass")
    assert edit_text(CODE, [TextEdit(search="go", replace="stay"), loose]).loosely == (2,)
    edits = [TextEdit(search="return 1", replace="return 2", occurrence=2), TextEdit(search="go", replace="stay")]
    assert edit_text(CODE, edits).text == CODE.replace("go", "stay")[:-2] + "2\n"
    with pytest.raises(ToolError, match=r"^edit 2 of 2: searchContent is not in it"):
        edit_text(CODE, [edits[1], TextEdit(search="gone", replace="x")])
    with pytest.raises(ToolError, match=r"^edits 1 and 2 change the same text"):
        edit_text(CODE, [TextEdit(search="run(self)", replace="x"), TextEdit(search="def run", replace="y")])


@pytest.mark.parametrize(
    ("text", "search"),
    [("if a:\n\tx\nif a:\n\tx\n", "if a:\n  x"), ("x  = 1\nx =  1\n", "x = 1"), ("\ta b\n\ta  b\n", "  a   b")],
)
def test_R15_what_is_there_several_times_with_other_blanks_is_refused(text: str, search: str):
    assert "searchContent is there 2 times" in why_not(text, search)


def test_R15_lines_that_are_indented_in_no_regular_way_are_said_to_be_there():
    why = why_not("a:\n  b\n    c\n", "a:\n b\n       c")
    assert why.startswith("searchContent is not in it: its lines are there, but their indentation differs in")
    assert "2→  b\n3→    c" in why
    # Nor is it known which are meant where others are indented so that only tabs account for it.
    assert "differs in no regular way" in why_not("if a:\n\tx\nif a:\n    x\n", "if a:\n  x")
    # A part of a line is not said to be in it with no blanks whatever.
    assert why_not("if a: return  b\n", "return b").startswith("searchContent is not in it, nor are its lines there")


@given(before=TEXTS, search=TEXTS, after=TEXTS, replace=TEXTS)
def test_R15_what_is_there_once_is_replaced_and_nothing_else(before: str, search: str, after: str, replace: str):
    text = (before + search + after).replace("\r\n", "\n")
    search, replace = search.replace("\r\n", "\n"), replace.replace("\r\n", "\n")
    assume(search and text.count(search) == 1 and search != replace)
    assert edit(text, search, replace) == text.replace(search, replace)


@given(text=TEXTS, search=TEXTS, replace=TEXTS)
def test_R15_an_edit_says_why_not_or_changes_one_place_and_keeps_line_ends(text: str, search: str, replace: str):
    try:
        new = edit_text(text, [TextEdit(search=search, replace=replace)])
    except ToolError as error:
        assert str(error)
        return
    (span,) = new.spans
    assert new.text == text[: span.start] + span.text + text[span.end :]
    if text and not re.search(r"(?<!\r)\n", text) and "\n" in text:
        assert not re.search(r"(?<!\r)\n", new.text)


# The diff


def patched(old: str, diff: str) -> str:
    """Apply a diff to a text, trusting nothing but the diff."""
    lines, new, at = old.split("\n"), list[str](), 0
    ends = old.endswith("\n")
    lines = lines[:-1] if ends else lines
    body = diff.split("\n")[2:]
    for place, line in enumerate(body):
        if match := re.fullmatch(r"@@ -(\d+),(\d+) \+(\d+),(\d+) @@", line):
            first = int(match[1]) - (match[2] != "0")
            new += lines[at:first]
            at = first
            assert len(new) == int(match[3]) - (match[4] != "0")
        elif line.startswith("\\"):
            ends = ends if body[place - 1].startswith("-") else False
        elif line.startswith("+"):
            new.append(line[1:])
            ends = True if at >= len(lines) else ends
        else:
            assert lines[at] == line[1:]
            new += [line[1:]] if line.startswith(" ") else []
            at += 1
    new += lines[at:]
    return "\n".join(new) + ("\n" if ends and new else "")


@given(lines=st.lists(st.sampled_from(("a", "b", "", "c d", "e")), min_size=1, max_size=40), data=st.data())
def test_R15_the_diff_makes_the_new_text_of_the_old_one(lines: list[str], data: st.DataObject):
    text = "\n".join([f"{number} {line}" for number, line in enumerate(lines)]) + "\n"
    numbers = data.draw(st.lists(st.integers(0, len(lines) - 1), min_size=1, max_size=4, unique=True))
    replaced = st.sampled_from(("new\n", "one\ntwo\n", "", "three\n\nfour\n"))
    edits = [TextEdit(search=f"{number} {lines[number]}\n", replace=data.draw(replaced)) for number in numbers]
    try:
        new = edit_text(text, edits)
    except ToolError:
        assume(False)
        return
    assert patched(text, build_line_diff(text, new.spans, "a", 100_000)) == new.text


def test_R15_a_diff_has_few_lines_around_each_change_and_says_where_no_line_ends():
    text = "".join(f"line {number}\n" for number in range(1, 41)) + "end"
    new = edit_text(text, [TextEdit(search="line 20\n", replace="x\n"), TextEdit(search="end", replace="END")])
    assert build_line_diff(text, new.spans, "a/b.txt", 10_000) == (
        "--- a/a/b.txt\n+++ b/a/b.txt\n@@ -17,7 +17,7 @@\n line 17\n line 18\n line 19\n-line 20\n+x\n line 21\n"
        " line 22\n line 23\n@@ -38,4 +38,4 @@\n line 38\n line 39\n line 40\n-end\n\\ No newline at end of file\n"
        "+END\n\\ No newline at end of file"
    )


def test_R15_a_long_diff_is_cut_by_whole_lines():
    text = "".join(f"line {number}\n" for number in range(2_000))
    new = edit_text(text, [TextEdit(search=text, replace=text.replace("line", "row"))])
    diff = build_line_diff(text, new.spans, "a", 500)
    assert len(diff) < 600
    assert re.search(r"\n-line \d+\n\[3,\d+ more lines of the diff are left out\. Read the file .*\]$", diff)


def test_R15_a_very_long_text_is_searched_as_it_stands():
    text = "x = 1\n" * (LOOSE_CHARACTERS // 6 + 1) + "last = 2\n"
    assert edit(text, "last = 2", "last = 3").endswith("last = 3\n")
    assert "a file of this size is not searched with other blanks" in why_not(text, "  last = 2")
