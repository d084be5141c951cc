"""D6, D9: elements of a document, the one text they make, and elements as data and back."""

from typing import get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recto.conversation.document import Element, ElementKind, element_from, element_row, joint, text_of

KINDS: tuple[ElementKind, ...] = get_args(ElementKind)
CELLS = st.lists(st.lists(st.text(max_size=5), max_size=3).map(tuple), max_size=3).map(tuple)
ELEMENTS = st.builds(
    Element,
    kind=st.sampled_from(KINDS),
    text=st.text(max_size=20),
    page=st.none() | st.integers(1, 9),
    level=st.none() | st.integers(1, 6),
    rows=CELLS,
)


def test_D6_elements_make_one_text_in_which_what_belongs_together_stands_close():
    elements = [
        Element(kind="page", text="[page 1]", page=1),
        Element(kind="heading", text="# 年度报告", level=1, page=1),
        Element(kind="item", text="- one"),
        Element(kind="item", text="- two"),
        Element(kind="table", text="| a |\n| --- |\n| 1 |"),
        Element(kind="rows", text="| 2 |"),
        Element(kind="paragraph", text="The end."),
    ]
    assert text_of(elements) == ("[page 1]\n\n# 年度报告\n\n- one\n- two\n\n| a |\n| --- |\n| 1 |\n| 2 |\n\nThe end.")


def test_D6_pieces_of_a_plain_text_are_joined_as_they_are():
    assert text_of([Element(kind="text", text="half a li"), Element(kind="text", text="ne\n")]) == "half a line\n"


def test_D6_nothing_stands_before_the_first_element():
    assert joint(None, "paragraph") == ""
    assert text_of([]) == ""


@given(st.lists(ELEMENTS), st.integers(0, 20))
def test_D6_a_text_is_the_same_in_whatever_pieces_it_comes(elements: list[Element], place: int):
    first, second = elements[:place], elements[place:]
    before = first[-1].kind if first else None
    assert text_of(first) + text_of(second, before) == text_of(elements)


@given(ELEMENTS)
def test_D9_an_element_is_data_and_back(element: Element):
    assert element_from(element_row(element)) == element


def test_D9_what_an_element_does_not_have_is_not_in_its_data():
    assert element_row(Element(kind="note", text="n")) == {"kind": "note", "text": "n"}


@pytest.mark.parametrize("row", [{"kind": "sound", "text": ""}, {"kind": None, "text": ""}])
def test_D9_data_of_an_unknown_kind_is_no_element(row: dict[str, str]):
    with pytest.raises(ValueError, match="no kind of element"):
        element_from(row)
