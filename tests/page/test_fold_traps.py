"""The traps of R3, R4, R6 and R7. A naive implementation (test_fold_naive.py) covers the others and R5.

Reads are kept down to 1 where that is not the point, so that a conversation fits on the screen.
"""

from dataclasses import replace

import pytest

import recto
from recto.page.fold.fold import Folded
from recto.page.fold.observations import LeftAlone
from recto.page.fold.rules import READS
from tests.page.conversations import Row, answers, asks, at, on_wire, reads, user

PLACEHOLDER = "[该文件的历史读取内容已压缩,请参看最新读取结果]"
KEEP_ONE = recto.FoldSettings(reads=replace(READS, keep=1))
NO_CALL = "no tool call before it has its id"
NO_PATH = "the arguments of its call name no file"


def fold(rows: list[Row], settings: recto.FoldSettings = KEEP_ONE) -> Folded:
    return recto.fold(recto.decode(rows), settings=settings)


def assert_folds(rows: list[Row], *ids: str, settings: recto.FoldSettings = KEEP_ONE) -> None:
    """Of these rows the answers to these calls are folded, and nothing else is changed."""
    __tracebackhide__ = True
    assert list(recto.encode(fold(rows, settings).messages)) == on_wire(rows, dict.fromkeys(ids, PLACEHOLDER))


def assert_left_alone(rows: list[Row], reason: str) -> None:
    """Nothing is folded, and each result is reported as left alone for that reason."""
    __tracebackhide__ = True
    assert_folds(rows)
    log = recto.decode(rows)
    expected = tuple(LeftAlone(place, found, reason) for place, found in enumerate(log) if found.role == "tool")
    assert fold(rows).left_alone == expected


def text_parts(*texts: str) -> list[Row]:
    return [{"type": "text", "text": text} for text in texts]


# R3: errors


@pytest.mark.parametrize("text", ["Error: gone", "  Error: gone", "\n\t Error: gone", "Error:", "\u3000Error:x"])
def test_R3_a_text_that_begins_with_error_after_trimming_is_neither_counted_nor_replaced(text: str):
    failed = reads("old", "a.py", text, 0)
    assert_folds([*failed, *reads("r1", "a.py", "1→x", 1)])
    assert_folds([*reads("r1", "a.py", "1→x", 1), *reads("new", "a.py", text, 2)])


@pytest.mark.parametrize("text", ["error: gone", "Errors: none", "1→Error: in the file", "An Error: gone", ""])
def test_R3_a_text_that_only_mentions_an_error_is_a_read_like_any_other(text: str):
    assert_folds([*reads("old", "a.py", text, 0), *reads("new", "a.py", "1→x", 1)], "old")


def test_R3_an_error_in_the_first_words_of_a_result_in_pieces_is_an_error():
    failed = reads("old", "a.py", text_parts("  ", "Error: gone"), 0)
    assert_folds([*failed, *reads("r1", "a.py", "1→x", 1)])


# R4: which file a read was of


@pytest.mark.parametrize(
    "arguments",
    [
        {"filePath": "a.py"},
        {"path": "a.py"},
        {"file_path": "a.py"},
        {"filePath": ["a.py"]},
        {"filePath": [{"path": "a.py"}]},
        {"filePath": {"path": "a.py"}},
        {"filePath": ["", None, 7, True, {"path": None}, {"path": ["b.py"]}, {"name": "b.py"}, ["b.py"], "a.py"]},
        {"filePath": ["a.py", {"path": "./a.py"}, "src/../a.py"]},
        {"filePath": [{"path": "a.py", "startLine": 1, "endLine": 50}]},
        {"filePath": "", "path": "a.py"},
        {"filePath": None, "file_path": "a.py"},
        {"startLine": 1, "filePath": "./a.py", "endLine": 50},
        ' { "filePath" : "a.py" } ',
        '{"filePath": "\\u0061.py"}',
    ],
)
def test_R4_every_shape_of_arguments_that_names_a_file_names_it(arguments: object):
    shaped = [asks("old", "filesystem-read", arguments), answers("old", "1→old")]
    assert_folds([*shaped, *reads("new", "a.py", "1→new", 1)], "old")


def test_R4_the_name_of_the_tool_and_of_its_argument_are_settings():
    settings = recto.FoldSettings(reads=replace(READS, tools=("cat", "view"), path_args=("target",), keep=1))
    rows = [
        *[asks("r1", "cat", {"target": "a.py"}), answers("r1", "old")],
        *[asks("r2", "view", {"target": "a.py", "filePath": "b.py"}), answers("r2", "new")],
        *reads("r3", "a.py", "of another tool now", 0),
        *reads("r4", "a.py", "of another tool now", 1),
    ]
    assert_folds(rows, "r1", settings=settings)


# R6: left alone


def test_R6_a_result_without_a_call_is_left_alone():
    assert_left_alone([user("hi"), answers("r1", "1→x"), answers("r1", "1→x")], NO_CALL)


def test_R6_a_result_before_its_call_is_left_alone():
    call = asks("r1", "filesystem-read", {"filePath": "a.py"})
    assert_left_alone([answers("r1", "1→x"), call], NO_CALL)


@pytest.mark.parametrize(
    "arguments",
    [
        *("", "{", '{"filePath": "a.py"', "null", "7", '"a.py"', '["a.py"]', '{"filePath": "a.py"} and more'),
        *({}, {"filePath": ""}, {"filePath": None}, {"filePath": "  \t"}, {"filePath": []}, {"filePath": [""]}),
        *({"filePath": {"path": None}}, {"filePath": [{"path": ""}, None]}, {"filePath": 7}, {"FILEPATH": "a.py"}),
        *({"filePath": [["a.py"]]}, {"filePath": {"path": {"path": "a.py"}}}, {"file": "a.py"}),
    ],
)
def test_R6_a_read_whose_call_names_no_file_is_left_alone(arguments: object):
    nameless = [
        row for n in range(3) for row in (asks(f"r{n}", "filesystem-read", arguments), answers(f"r{n}", f"{n}→x"))
    ]
    assert_left_alone(nameless, NO_PATH)


def test_R6_what_is_left_alone_is_reported_in_the_order_of_the_conversation():
    rows = [
        *[asks("r1", "filesystem-read", "{"), answers("r1", "1→x")],
        *[answers("lost", "1→x"), user("hi")],
        *[asks("r2", "filesystem-read", {"filePath": ""}), answers("r2", "1→x")],
    ]
    log = recto.decode(rows)
    found = [(one.place, one.message, one.reason) for one in recto.fold(log).left_alone]
    assert found == [(1, log[1], NO_PATH), (2, log[2], NO_CALL), (5, log[5], NO_PATH)]


# R7: what is newest


def test_R7_a_result_without_a_time_takes_that_of_the_nearest_earlier_message():
    untimed = [asks("r1", "filesystem-read", {"filePath": "a.py"}), answers("r1", "1→x")]
    between = reads("r2", "a.py", "1→x", 5)
    assert_folds([user("late", timestamp=at(9)), *untimed, *between], "r2")
    assert_folds([user("early", timestamp=at(1)), *untimed, *between], "r1")
    assert_folds([user("late", timestamp=at(9)), user("early", timestamp=at(1)), *untimed, *between], "r1")
    assert_folds([*between, user("early", timestamp=at(1)), user("none"), *untimed], "r1")
    assert_folds([*untimed, *between], "r1")
