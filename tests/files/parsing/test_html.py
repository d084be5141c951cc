"""D6, D7: web pages: their depth, forms, pictures and line ends."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recto.files.parsing.formats.web import DEEPEST
from tests.files.parsing.reading import read

WRAPPERS = ("div", "span", "font", "blockquote", "ul li", "table tr td", "form fieldset")


def within(wrapper: str, depth: int, words: str) -> str:
    names = wrapper.split()
    before, after = "".join(f"<{name}>" for name in names), "".join(f"</{name}>" for name in reversed(names))
    return before * depth + words + after * depth


@pytest.mark.parametrize("wrapper", WRAPPERS)
@pytest.mark.parametrize("depth", [DEEPEST, 5_000])
def test_D6_words_are_read_however_deep_they_stand(wrapper: str, depth: int):
    page = f"<h1>Title</h1>{within(wrapper, depth, '<p>deep words</p>')}<p>after it</p>"
    text = read(page.encode(), "html").text
    assert text.startswith("# Title")
    assert "deep words" in text
    assert text.endswith("after it")


@pytest.mark.parametrize("tag", ["p", "font", "b", "li", "dd"])
def test_D6_elements_that_nobody_ended_are_not_taken_for_deep(tag: str):
    page = "".join(f"<{tag}>word{number}\n" for number in range(2_000))
    assert re.findall(r"word\d+", read(page.encode(), "html").text) == [f"word{number}" for number in range(2_000)]


def test_D6_a_page_that_shows_nothing_before_its_scripts_run_is_read_without_structure():
    page = "<body style='display:none'><script>let a = 1</script><p>First &amp; foremost</p><p>Second</p></body>"
    assert read(page.encode(), "html").texts("paragraph") == ["First & foremost", "Second"]
    assert read(b"<html><script>let a = 1</script></html>", "html").text == ""


def test_D6_a_picture_within_a_page_is_told_by_its_words_only():
    picture = f"data:image/png;base64,{'A' * 5_000}"
    page = f"<p>before <img src='{picture}' alt='a chart'> after</p><p><img src='{picture}'>end</p>"
    assert read(page.encode(), "html").text == "before a chart after\n\nend"


def test_D6_no_part_of_a_page_is_left_out_but_passwords():
    page = (
        '<form>Name <input name="n" value="Ann &amp; Lee > 3"><br><input type="checkbox" checked> yes'
        "<input type=password value=secret><input type=hidden value=token>"
        "<textarea>a note\non two lines</textarea><select><option>Red<option selected>Blue</select>done</form>"
        "<header>a</header><nav>b</nav><footer>c</footer>"
    )
    text = read(page.encode(), "html").text
    assert [line for line in text.split("\n") if line] == [
        *("Name Ann & Lee > 3", "[x] yes", "a note", "on two lines", "[ ] Red", "[x] Blue", "done", *"abc")
    ]


def test_D6_lines_end_where_the_page_says_so_and_not_where_its_source_does():
    page = (
        "<p>one<br>two\nstill two<br><br>three</p><ul><li>a<br>b<li>c</ul><blockquote>q<br>r</blockquote>"
        "<h2>x<br>y</h2><pre>k\\\nl</pre>"
    )
    assert read(page.encode(), "html").text == (
        "one\ntwo still two\n\nthree\n\n- a\n  b\n- c\n\n> q\n> r\n\n## x y\n\n```\nk\\\nl\n```"
    )


@pytest.mark.parametrize("page", ["<!---->" * 9_000, "<!-- a -->\n" * 6_000 + "x", "<!--" * 15_000])
def test_D7_a_page_of_comments_is_read_in_linear_time(page: str):
    assert len(read(page.encode(), "xls").text) <= len(page)


@pytest.mark.parametrize("head", ["", "<!-- by a program -->\n", "<!----><!-- > --> "])
@pytest.mark.parametrize("tag", ["html", "div", "table"])
def test_D6_a_page_under_an_old_name_is_known_by_how_it_begins(head: str, tag: str):
    cells = "<table><tr><td>a</td><td>b</td></tr></table>"
    page = head + (cells if tag == "table" else f"<{tag}>{cells}</{tag}>")
    assert read(page.encode(), "xls").cells() == [("a", "b")]


TAGS = st.sampled_from(["<div>", "</div>", "<p>", "</p>", "<b>", "</b>", "<br>", "<li>", "<!--x-->", "<input value=y>"])


@given(parts=st.lists(TAGS, max_size=60))
def test_D6_no_word_between_any_tags_is_lost(parts: list[str]):
    page = "".join(f"{part} w{number}w " for number, part in enumerate(parts))
    text = read(f"<body>{page}</body>".encode(), "html").text
    assert re.findall(r"w(\d+)w", text) == [str(number) for number in range(len(parts))]
