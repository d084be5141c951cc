"""D6: Jupyter notebooks are read cell by cell, with their output; other files stay text."""

from hypothesis import given
from hypothesis import strategies as st

from recto.conversation.json import Json, dump
from tests.files.parsing.reading import read

CELLS: list[Json] = [
    {"cell_type": "markdown", "source": ["# Sales\n", "\n", "| a | b |\n| --- | --- |\n| 1 | 2 |"]},
    {
        "cell_type": "code",
        "source": "print('苹果')\n",
        "outputs": [
            {"output_type": "stream", "name": "stdout", "text": ["苹果\n", "梨\n"]},
            {"output_type": "execute_result", "data": {"text/plain": "42", "image/png": "iVBORw0KGgo="}},
            {"output_type": "display_data", "data": {"image/png": "iVBORw0KGgo="}},
            {"output_type": "error", "ename": "E", "traceback": ["\u001b[0;31mE\u001b[0m: no", "at line 1"]},
        ],
    },
    {"cell_type": "raw", "source": "as it is, with ``` in it"},
    {"cell_type": "code", "source": ["  \n"], "outputs": []},
]
META: Json = {"language_info": {"name": "python"}}


def notebook(cells: Json, metadata: Json = META) -> bytes:
    return dump({"cells": cells, "metadata": metadata, "nbformat": 4, "nbformat_minor": 5})


def test_D6_a_notebook_is_its_cells_and_what_they_printed():
    reading = read(notebook(CELLS), "ipynb")
    assert reading.texts("heading") == ["# Sales"]
    assert reading.cells() == [("a", "b"), ("1", "2")]
    assert reading.texts("code") == [
        "```python\nprint('苹果')\n```",
        "```output\n苹果\n梨\n```",
        "```output\n42\n```",
        "```output\nE: no\nat line 1\n```",
        "````\nas it is, with ``` in it\n````",
    ]
    assert "iVBOR" not in reading.text


def test_D6_what_is_no_notebook_is_read_as_the_text_it_is():
    for text in ("{broken", "[]", '{"cells": 1}', '{"worksheets": []}', "words\nand more"):
        assert read(text.encode(), "ipynb").text == text


def test_D6_cells_that_are_none_are_passed_over():
    cells: list[Json] = [1, {}, {"cell_type": "code", "source": 5, "outputs": [3, {}, {"text": 4}, {"data": 1}]}]
    assert read(notebook([*cells, {"cell_type": "code", "source": "x"}], 7), "ipynb").text == "```\nx\n```"


@given(
    st.lists(
        st.fixed_dictionaries(
            {"cell_type": st.sampled_from(["code", "markdown", "raw", "x"]), "source": st.text() | st.lists(st.text())},
            optional={"outputs": st.lists(st.dictionaries(st.sampled_from(["text", "traceback", "data"]), st.text()))},
        )
    )
)
def test_D6_any_cells_give_a_legal_answer(cells: Json):
    assert read(notebook(cells), "ipynb").start is not None
