"""The traps of R3-R7: what is an error, which file a read was of, what is left alone, what is newest.

Reads are kept down to 1 where that is not the point, so that a conversation fits on the screen.
"""

from dataclasses import replace

import pytest

import recto
from recto.page.fold.fold import Folded
from recto.page.fold.observations import LeftAlone
from recto.page.fold.paths import Project
from recto.page.fold.rules import READS
from tests.page.conversations import Row, answers, asks, asks_all, at, function_call, on_wire, reads, user

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


def path_part(path: str, text: str) -> Row:
    return {"type": "text", "text": text, "path": path}


def text_parts(*texts: str) -> list[Row]:
    return [{"type": "text", "text": text} for text in texts]


def test_R2_an_empty_conversation_stays_empty():
    assert recto.fold(()).messages == ()


# R3: errors


@pytest.mark.parametrize("text", ["Error: gone", "  Error: gone", "\n\t Error: gone", "Error:", "\u3000Error:x"])
def test_R3_a_text_that_begins_with_error_after_trimming_is_neither_counted_nor_replaced(text: str):
    failed = reads("old", "a.py", text, 0)
    assert_folds([*failed, *reads("r1", "a.py", "1→x", 1)])
    assert_folds([*reads("r1", "a.py", "1→x", 1), *reads("new", "a.py", text, 2)])


@pytest.mark.parametrize("text", ["error: gone", "Errors: none", "1→Error: in the file", "An Error: gone", ""])
def test_R3_a_text_that_only_mentions_an_error_is_a_read_like_any_other(text: str):
    assert_folds([*reads("old", "a.py", text, 0), *reads("new", "a.py", "1→x", 1)], "old")


def test_R3_a_result_of_status_error_is_neither_counted_nor_replaced():
    failed = [asks("bad", "filesystem-read", {"filePath": "a.py"}), answers("bad", "1→x", messageStatus="error")]
    assert_folds([*failed, *reads("r1", "a.py", "1→x", 1)])
    assert_folds([*reads("r1", "a.py", "1→x", 1), *failed])


def test_R3_a_result_of_status_success_is_a_read_like_any_other():
    fine = [asks("ok", "filesystem-read", {"filePath": "a.py"}), answers("ok", "1→x", messageStatus="success")]
    assert_folds([*fine, *reads("r1", "a.py", "1→x", 1)], "ok")


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


def test_R4_a_batch_of_strings_and_objects_is_of_all_its_files():
    mixed = reads("old", ["a.py", {"path": "b.py"}], "1→a\n1→b", 0)
    one, other = reads("a", "a.py", "1→a", 1), reads("b", "b.py", "1→b", 2)
    assert_folds([*mixed, *one])
    assert_folds([*mixed, *other])
    assert_folds([*mixed, *one, *other], "old")


def test_R4_the_name_of_the_tool_and_of_its_argument_are_settings():
    settings = recto.FoldSettings(reads=replace(READS, tools=("cat", "view"), path_args=("target",), keep=1))
    rows = [
        *[asks("r1", "cat", {"target": "a.py"}), answers("r1", "old")],
        *[asks("r2", "view", {"target": "a.py", "filePath": "b.py"}), answers("r2", "new")],
        *reads("r3", "a.py", "of another tool now", 0),
        *reads("r4", "a.py", "of another tool now", 1),
    ]
    assert_folds(rows, "r1", settings=settings)


def test_R4_paths_are_told_apart_by_the_project():
    rows = [*reads("old", "/srv/app/A.py", "1→x", 0), *reads("new", "a.py", "1→x", 1)]
    rule = replace(READS, keep=1)
    assert_folds(rows)
    assert_folds(rows, settings=recto.FoldSettings(reads=rule, project=Project(root="/srv/app")))
    any_case = Project(root="/srv/app", case_sensitive=False)
    assert_folds(rows, "old", settings=recto.FoldSettings(reads=rule, project=any_case))


# R5: batches


def test_R5_a_file_named_twice_in_a_batch_counts_once():
    twice = reads("batch", ["a.py", "./a.py", {"path": "a.py"}], "1→x", 0)
    settings = recto.FoldSettings(reads=replace(READS, keep=2))
    assert_folds([*twice, *reads("r1", "a.py", "1→x", 1)], settings=settings)
    assert_folds([*twice, *reads("r1", "a.py", "1→x", 1), *reads("r2", "a.py", "1→x", 2)], "batch", settings=settings)


def test_R5_a_batch_counts_for_each_file_even_while_another_file_keeps_it():
    rows = [
        *reads("r1", "a.py", "1→a", 0),
        *reads("batch", ["a.py", "b.py"], "1→a\n1→b", 1),
        *reads("r2", "a.py", "1→a", 2),
    ]
    assert_folds(rows, "r1")


def test_R5_a_batch_with_a_part_for_each_file_is_folded_part_by_part():
    batch = reads("batch", ["a.py", "b.py"], [path_part("./a.py", "1→a"), path_part("b.py", "1→b")], 0)
    rows = [*batch, *reads("r1", "a.py", "1→a", 1)]
    sent = recto.encode(fold(rows).messages)
    assert list(sent) == on_wire(rows, {"batch": text_parts(PLACEHOLDER, "1→b")})
    rows += reads("r2", "b.py", "1→b", 2)
    sent = recto.encode(fold(rows).messages)
    assert list(sent) == on_wire(rows, {"batch": text_parts(PLACEHOLDER, PLACEHOLDER)})


@pytest.mark.parametrize("bad_first", [True, False])
def test_R5_a_part_that_reports_an_error_is_neither_counted_nor_replaced(bad_first: bool):
    parts = [path_part("a.py", " Error: gone"), path_part("b.py", "1→b")]
    batch = reads("batch", ["a.py", "b.py"], parts if bad_first else parts[::-1], 1)
    texts = [" Error: gone", PLACEHOLDER]
    rows = [*reads("r1", "a.py", "1→a", 0), *batch, *reads("r2", "b.py", "1→b", 2), *reads("r3", "b.py", "1→b", 3)]
    folded = {"batch": text_parts(*(texts if bad_first else texts[::-1])), "r2": PLACEHOLDER}
    assert list(recto.encode(fold(rows).messages)) == on_wire(rows, folded)


def test_R5_a_batch_of_nothing_but_errors_is_neither_counted_nor_replaced():
    parts = [*text_parts("2 files"), path_part("a.py", "Error: gone"), path_part("b.py", "Error: gone")]
    batch = reads("batch", ["a.py", "b.py"], parts, 1)
    rows = [*reads("r1", "a.py", "1→a", 0), *batch]
    sent = on_wire(rows, {"batch": text_parts("2 files", "Error: gone", "Error: gone")})
    assert list(recto.encode(fold(rows).messages)) == sent
    rows += [*reads("r2", "a.py", "1→a", 2), *reads("r3", "b.py", "1→b", 3)]
    texts = text_parts("2 files", "Error: gone", "Error: gone")
    assert list(recto.encode(fold(rows).messages)) == on_wire(rows, {"r1": PLACEHOLDER, "batch": texts})


def test_R5_a_batch_of_status_error_is_left_whole():
    parts = [path_part("a.py", "1→a"), path_part("b.py", "1→b")]
    rows = reads("batch", ["a.py", "b.py"], parts, 0)
    rows[1]["messageStatus"] = "error"
    rows += [*reads("r1", "a.py", "1→a", 1), *reads("r2", "b.py", "1→b", 2)]
    assert list(recto.encode(fold(rows).messages)) == on_wire(rows, {"batch": text_parts("1→a", "1→b")})


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


def test_R6_a_result_that_only_looks_like_a_read_is_untouched():
    look = "📄 a.py (lines 1-2/2)\n123→x\n124→y"
    arguments = {"filePath": "a.py"}
    rows = [
        *[row for n in range(7) for row in (asks(f"e{n}", "filesystem-edit", arguments), answers(f"e{n}", look))],
        *[row for n in range(7) for row in (asks(f"g{n}", "FileSystem-Read", arguments), answers(f"g{n}", look))],
    ]
    assert_folds(rows)


def test_R6_an_unnamed_read_counts_for_no_file():
    nameless = [asks("r2", "filesystem-read", {"filePath": ""}), answers("r2", "1→x")]
    assert_folds([*reads("r1", "a.py", "1→x", 0), *nameless])


# Which call a result belongs to


def test_R6_a_call_id_used_again_means_the_nearest_earlier_call():
    rows = [
        *[user("one"), *reads("c", "a.py", "1→a", 0)],
        *[user("two"), *reads("c", "b.py", "1→b", 1)],
        *[user("three"), *reads("c", "a.py", "1→a again", 2)],
    ]
    sent = on_wire(rows)
    sent[2]["content"] = PLACEHOLDER
    assert list(recto.encode(fold(rows).messages)) == sent


def test_R6_parallel_calls_are_told_apart_by_id():
    both = [function_call("x", "filesystem-read", {"filePath": "a.py"}), function_call("y", "filesystem-edit", {})]
    rows = [asks_all(*both), answers("y", "1→edit"), answers("x", "1→a"), *reads("z", "a.py", "1→a", 0)]
    assert_folds(rows, "x")


# R7: what is newest


def test_R7_newest_is_by_time_not_by_position():
    assert_folds([*reads("late", "a.py", "1→x", 9), *reads("early", "a.py", "1→x", 3)], "early")


def test_R7_of_equal_times_the_later_in_the_log_is_newer():
    assert_folds([*reads("r1", "a.py", "1→x", 3), *reads("r2", "a.py", "1→x", 3)], "r1")


def test_R7_without_any_time_the_later_in_the_log_is_newer():
    call = {"filePath": "a.py"}
    rows = [row for n in range(3) for row in (asks(f"r{n}", "filesystem-read", call), answers(f"r{n}", f"{n}→x"))]
    assert_folds(rows, "r0", "r1")


def test_R7_a_result_without_a_time_takes_that_of_the_nearest_earlier_message():
    untimed = [asks("r1", "filesystem-read", {"filePath": "a.py"}), answers("r1", "1→x")]
    between = reads("r2", "a.py", "1→x", 5)
    assert_folds([user("late", timestamp=at(9)), *untimed, *between], "r2")
    assert_folds([user("early", timestamp=at(1)), *untimed, *between], "r1")
    assert_folds([user("late", timestamp=at(9)), user("early", timestamp=at(1)), *untimed, *between], "r1")
    assert_folds([*between, user("early", timestamp=at(1)), user("none"), *untimed], "r1")
    assert_folds([*untimed, *between], "r1")


def test_R7_the_time_of_the_result_counts_not_that_of_its_call():
    call = {"filePath": "a.py"}
    rows = [
        *[asks("r1", "filesystem-read", call, timestamp=at(1)), answers("r1", "1→x", timestamp=at(9))],
        *[asks("r2", "filesystem-read", call, timestamp=at(8)), answers("r2", "1→x", timestamp=at(8))],
    ]
    assert_folds(rows, "r2")


def test_R7_times_may_be_written_as_iso_8601():
    call = {"filePath": "a.py"}
    rows = [
        *[asks("r1", "filesystem-read", call), answers("r1", "1→x", timestamp="2026-01-31T10:30:00+08:00")],
        *[asks("r2", "filesystem-read", call), answers("r2", "1→x", timestamp="2026-01-31T02:29:00Z")],
    ]
    assert_folds(rows, "r2")
