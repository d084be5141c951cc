"""R4, R6 to R9 and R11 by example. A naive implementation (test_fold_naive.py) does the rest."""

from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

import recto
from recto.errors import SettingsError
from recto.page.fold.rules import READS, SEARCH, TERMINAL, FoldRule
from tests.page.conversations import Row, answers, asks, at, on_wire, reads, runs, user

READ = "[该文件的历史读取内容已压缩,请参看最新读取结果]"
COMMAND = "此命令返回内容已过时"
SEARCHED = "本次搜索结果已过时,故精简为占位符"
DEFAULTS = recto.FoldSettings()
KEEP_ONE = recto.FoldSettings(reads=replace(READS, keep=1))
MINUTE = timedelta(minutes=1)
NO_CALL = "no tool call before it has its id"
NO_PATH = "the arguments of its call name no file"


def moment(minute: float) -> datetime:
    return datetime.fromtimestamp(at(minute) / 1000, tz=UTC)


def assert_folds(
    rows: list[Row], folded_ids: Mapping[str, object], settings: recto.FoldSettings = DEFAULTS, now: float | None = None
) -> None:
    """The conversation goes out as it is, but for the answers in `folded_ids`."""
    __tracebackhide__ = True
    done = recto.fold(recto.decode(rows), settings=settings, now=None if now is None else moment(now))
    assert list(recto.encode(done.messages)) == on_wire(rows, folded_ids)


def commands(count: int, tool: str = "terminal-execute") -> list[Row]:
    """That many good commands, a minute apart: r0 is the oldest."""
    return [row for n in range(count) for row in runs(f"r{n}", f"output {n}", n, tool)]


def test_R4_the_name_of_the_tool_and_of_its_argument_are_settings():
    settings = recto.FoldSettings(reads=replace(READS, tools=("cat", "view"), path_args=("target",), keep=1))
    rows = [
        *[asks("r1", "cat", {"target": "a.py"}), answers("r1", "old")],
        *[asks("r2", "view", {"target": "a.py", "filePath": "b.py"}), answers("r2", "new")],
        *[row for n in (3, 4) for row in reads(f"r{n}", "a.py", "of another tool now", n)],
    ]
    assert_folds(rows, {"r1": READ}, settings)


def test_R6_what_is_left_alone_is_reported_in_the_order_of_the_conversation():
    rows = [
        *[asks("r1", "filesystem-read", "{"), answers("r1", "1→x")],
        *[answers("r2", "before its call"), user("hi")],
        *[asks("r2", "filesystem-read", {"filePath": ""}), answers("r2", "1→x")],
    ]
    log = recto.decode(rows)
    results = [(one.place, one.message, one.reason) for one in recto.fold(log).left_alone]
    assert results == [(1, log[1], NO_PATH), (2, log[2], NO_CALL), (5, log[5], NO_PATH)]


def test_R7_a_result_without_a_time_takes_that_of_the_nearest_earlier_message():
    untimed = [asks("r1", "filesystem-read", {"filePath": "a.py"}), answers("r1", "1→x")]
    between = reads("r2", "a.py", "1→x", 5)
    assert_folds([user("late", timestamp=at(9)), *untimed, *between], {"r2": READ}, KEEP_ONE)
    assert_folds(
        [user("late", timestamp=at(9)), user("early", timestamp=at(1)), *untimed, *between], {"r1": READ}, KEEP_ONE
    )
    assert_folds([*untimed, *between], {"r1": READ}, KEEP_ONE)


def test_R8_commands_before_the_newest_five_are_replaced_when_older_than_fifteen_minutes():
    assert_folds(commands(6), {}, now=15)
    assert_folds(commands(6), {"r0": COMMAND}, now=15 + 1 / 60_000)
    assert_folds(commands(9), {"r0": COMMAND, "r1": COMMAND}, now=17)
    assert_folds([*commands(6), user("next", timestamp=at(16))], {"r0": COMMAND})


def test_R8_a_failed_command_is_neither_counted_nor_replaced():
    failed = runs("bad", '{"stdout": "out", "stderr": "", "exitCode": 1}', 0)
    assert_folds([*failed, *commands(5)], {}, now=60)
    assert_folds([*failed, *commands(6)], {"r0": COMMAND}, now=60)


def test_R9_searches_stay_unless_asked_for_and_then_go_after_ten_minutes():
    rows = commands(6, tool="ace-text_search")
    assert_folds(rows, {}, now=100_000)
    assert_folds(rows, {}, recto.FoldSettings(search=SEARCH), now=10)
    assert_folds(rows, {"r0": SEARCHED}, recto.FoldSettings(search=SEARCH), now=10.001)


# R11: settings


def test_R11_a_placeholder_longer_than_the_content_still_replaces_it():
    assert_folds([row for n in range(6) for row in reads(f"r{n}", "a.py", "", n)], {"r0": READ})


def test_R11_tools_numbers_ages_and_placeholders_of_commands_are_settings():
    rule = replace(TERMINAL, tools=("bash", "sh"), keep=1, max_age=timedelta(seconds=90), placeholder="(old)")
    rows = [
        *[*runs("r0", "zero", 0, "bash"), *runs("r1", "one", 1, "sh"), *runs("r2", "two", 2, "bash")],
        *[*runs("t0", "not ours", 0), *runs("t1", "not ours", 0)],
    ]
    assert_folds(rows, {"r0": "(old)"}, recto.FoldSettings(terminal=rule), now=2.5)
    assert_folds(rows, {"r0": "(old)", "r1": "(old)"}, recto.FoldSettings(terminal=rule), now=2.6)


def test_R11_a_rule_that_is_none_is_off():
    rows = [*commands(9), *[row for n in range(9) for row in reads(f"f{n}", "a.py", f"{n}→x", n)]]
    assert_folds(rows, {}, recto.FoldSettings(reads=None, terminal=None), now=100_000)


def test_R11_large_files_may_keep_fewer_reads_and_size_never_raises_what_stays():
    rule = replace(READS, keep=3, keep_by_size=((10, 2), (20, 1), (30, 5)))
    sizes = {"small": 9, "medium": 10, "large": 20, "huge": 30}
    rows = [row for name, size in sizes.items() for n in range(4) for row in reads(f"{name}{n}", name, "x" * size, n)]
    folded_ids = ["small0", "medium0", "medium1", "large0", "large1", "large2", "huge0", "huge1", "huge2"]
    assert_folds(rows, dict.fromkeys(folded_ids, READ), recto.FoldSettings(reads=rule))


def test_R11_the_size_of_a_file_is_that_of_its_newest_read_and_in_a_batch_that_of_its_own_part():
    rule = replace(READS, keep=3, keep_by_size=((10, 1),))
    rows = [row for n, size in enumerate((99, 99, 5)) for row in reads(f"r{n}", "a.py", "x" * size, n)]
    assert_folds(rows, {}, recto.FoldSettings(reads=rule))
    rows += reads("r3", "a.py", "x" * 10, 3)
    assert_folds(rows, dict.fromkeys(["r0", "r1", "r2"], READ), recto.FoldSettings(reads=rule))
    parts = [{"type": "text", "text": "x" * 9, "path": "a.py"}, {"type": "text", "text": "x" * 10, "path": "b.py"}]
    rows = [*reads("a", "a.py", "old", 0), *reads("b", "b.py", "old", 1), *reads("batch", ["a.py", "b.py"], parts, 2)]
    message_rows: list[Row] = [{"type": "text", "text": "x" * 9}, {"type": "text", "text": "x" * 10}]
    assert_folds(rows, {"b": READ, "batch": message_rows}, recto.FoldSettings(reads=replace(rule, keep=2)))


@pytest.mark.parametrize(
    ("rule", "changes", "problem"),
    [
        (READS, {"keep": 0}, "reads.keep is 0; at least 1 read of a file must stay."),
        (READS, {"keep_by_size": ((100, -1),)}, "reads.keep is -1; at least 1 read of a file must stay."),
        (TERMINAL, {"keep": -1}, "terminal.keep is -1; it is 0 or more."),
        (TERMINAL, {"max_age": -MINUTE}, f"terminal.minutes is {-MINUTE!r}; it is 0 or more."),
    ],
)
def test_R11_settings_by_which_nothing_can_stay_are_refused(rule: FoldRule, changes: dict[str, object], problem: str):
    with pytest.raises(SettingsError) as caught_error:
        replace(rule, **changes)
    assert str(caught_error.value) == f"Setting {problem}"
