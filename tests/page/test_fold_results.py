"""The traps of R8, R9 and R11: commands, searches, and what settings change."""

from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

import recto
from recto.errors import SettingsError
from recto.page.fold.rules import READS, SEARCH, TERMINAL
from tests.page.conversations import Row, answers, asks, at, on_wire, reads, runs, user

READ = "[该文件的历史读取内容已压缩,请参看最新读取结果]"
COMMAND = "此命令返回内容已过时"
SEARCHED = "本次搜索结果已过时,故精简为占位符"
DEFAULTS = recto.FoldSettings()
WITH_SEARCH = recto.FoldSettings(search=SEARCH)


def moment(minute: float) -> datetime:
    return datetime.fromtimestamp(at(minute) / 1000, tz=UTC)


def assert_folds(
    rows: list[Row], folded: Mapping[str, object], settings: recto.FoldSettings = DEFAULTS, now: float | None = None
) -> None:
    """The conversation goes out as it is, but for the answers in `folded`."""
    __tracebackhide__ = True
    done = recto.fold(recto.decode(rows), settings=settings, now=None if now is None else moment(now))
    assert list(recto.encode(done.messages)) == on_wire(rows, folded)


def commands(count: int, first: float = 0, tool: str = "terminal-execute") -> list[Row]:
    """That many good commands, a minute apart: r0 is the oldest."""
    return [row for n in range(count) for row in runs(f"r{n}", f"output {n}", first + n, tool)]


# R8: commands


def test_R8_a_sixth_command_of_exactly_fifteen_minutes_stays():
    assert_folds(commands(6), {}, now=15)


def test_R8_a_sixth_command_older_than_fifteen_minutes_is_replaced():
    assert_folds(commands(6), {"r0": COMMAND}, now=15 + 1 / 60_000)


def test_R8_every_command_before_the_newest_five_is_judged_by_its_own_age():
    assert_folds(commands(9), {"r0": COMMAND, "r1": COMMAND}, now=17)


def test_R8_now_is_the_newest_time_in_the_log_unless_it_is_given():
    rows = commands(6)
    assert_folds(rows, {})
    assert_folds([*rows, user("next", timestamp=at(15))], {})
    assert_folds([*rows, user("next", timestamp=at(16))], {"r0": COMMAND})
    assert_folds([user("before", timestamp=at(16)), *rows], {"r0": COMMAND})


@pytest.mark.parametrize(
    "failure",
    [
        "Error: command not found",
        "  Error: timeout",
        '{"stdout": "", "stderr": "boom", "exitCode": 0}',
        '{"stdout": "", "stderr": " ", "exitCode": 0}',
        '{"stdout": "out", "stderr": "", "exitCode": 1}',
        '{"stdout": "out", "exitCode": -9}',
        '{"exitCode": "1"}',
        '{"exit_code": 127}',
        '{"returncode": 2}',
        '{"output": "x", "metadata": {"exit_code": 2, "duration_seconds": 0.1}}',
        '{"output": "x", "metadata": {"exit_code": "2"}}',
        '{"output": "x", "metadata": {"stderr": "boom"}}',
        '\n {"exitCode": 3}\n',
        [{"type": "text", "text": '{"exitCode"'}, {"type": "text", "text": ": 3}"}],
    ],
)
def test_R8_a_failed_command_is_neither_counted_nor_replaced(failure: object):
    five = commands(5, first=1)
    assert_folds([*runs("bad", failure, 0), *five], {}, now=60)
    assert_folds([*five, *runs("bad", failure, 9)], {}, now=60)


@pytest.mark.parametrize(
    "success",
    [
        "",
        "plain output that names exitCode 1",
        "stderr: nothing here",
        "[1, 2]",
        "{not json",
        '{"exitCode": 1',
        '{"stdout": "Error: said the program", "stderr": "", "exitCode": 0}',
        '{"stderr": null, "exitCode": null}',
        '{"stderr": "", "exitCode": "0"}',
        '{"exit_code": 0}',
        '{"output": "x", "metadata": {"exit_code": 0}}',
        '{"output": "x", "metadata": "exit_code 1"}',
        '{"result": {"deep": {"exitCode": 1}}}',
    ],
)
def test_R8_a_command_that_went_well_counts_and_is_replaced(success: object):
    assert_folds([*runs("old", success, 0), *commands(5, first=1)], {"old": COMMAND}, now=60)


def test_R8_a_command_that_has_no_time_at_all_is_never_replaced():
    untimed = [asks("old", "terminal-execute", {"command": "ls"}), answers("old", "files")]
    assert_folds([*untimed, *commands(5)], {}, now=100_000)
    nowhere: list[Row] = [{name: row[name] for name in row if name != "timestamp"} for row in commands(9)]
    assert_folds(nowhere, {})
    assert_folds(nowhere, {}, now=100_000)


# R9: searches


def test_R9_searches_stay_unless_asked_for():
    assert_folds(commands(9, tool="ace-text_search"), {}, now=100_000)


def test_R9_a_sixth_search_older_than_ten_minutes_is_replaced():
    rows = commands(6, tool="ace-text_search")
    assert_folds(rows[:10], {}, settings=WITH_SEARCH, now=100_000)
    assert_folds(rows, {}, settings=WITH_SEARCH, now=10)
    assert_folds(rows, {"r0": SEARCHED}, settings=WITH_SEARCH, now=10.001)


# R11: settings


def test_R11_a_placeholder_longer_than_the_content_still_replaces_it():
    rows = [row for n in range(6) for row in reads(f"r{n}", "a.py", "", n)]
    assert_folds(rows, {"r0": READ})


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


def test_R11_large_files_may_keep_fewer_reads():
    rule = replace(READS, keep=3, keep_by_size=((10, 2), (20, 1)))
    small = [row for n in range(4) for row in reads(f"s{n}", "small.py", "x" * 9, n)]
    medium = [row for n in range(4) for row in reads(f"m{n}", "medium.py", "x" * 10, n)]
    large = [row for n in range(4) for row in reads(f"l{n}", "large.py", "x" * 20, n)]
    folded = dict.fromkeys(["s0", "m0", "m1", "l0", "l1", "l2"], READ)
    assert_folds([*small, *medium, *large], folded, recto.FoldSettings(reads=rule))


def test_R11_the_size_of_a_file_is_that_of_its_newest_read():
    rule = replace(READS, keep=3, keep_by_size=((10, 1),))
    rows = [*reads("r0", "a.py", "x" * 99, 0), *reads("r1", "a.py", "x" * 99, 1), *reads("r2", "a.py", "short", 2)]
    assert_folds(rows, {}, recto.FoldSettings(reads=rule))
    rows += reads("r3", "a.py", "x" * 10, 3)
    assert_folds(rows, dict.fromkeys(["r0", "r1", "r2"], READ), recto.FoldSettings(reads=rule))


def test_R11_the_size_of_a_file_in_a_batch_is_that_of_its_own_part():
    rule = replace(READS, keep=2, keep_by_size=((10, 1),))
    parts = [{"type": "text", "text": "x" * 9, "path": "a.py"}, {"type": "text", "text": "x" * 10, "path": "b.py"}]
    rows = [*reads("a", "a.py", "old", 0), *reads("b", "b.py", "old", 1), *reads("batch", ["a.py", "b.py"], parts, 2)]
    sent: list[Row] = [{"type": "text", "text": "x" * 9}, {"type": "text", "text": "x" * 10}]
    assert_folds(rows, {"b": READ, "batch": sent}, recto.FoldSettings(reads=rule))


def test_R11_size_never_raises_what_stays():
    rule = replace(READS, keep=1, keep_by_size=((0, 5),))
    rows = [*reads("r0", "a.py", "one", 0), *reads("r1", "a.py", "two", 1)]
    assert_folds(rows, {"r0": READ}, recto.FoldSettings(reads=rule))


@pytest.mark.parametrize("keep", [0, -1])
def test_R11_a_file_of_which_nothing_stays_is_refused(keep: int):
    with pytest.raises(SettingsError, match=rf"^Setting reads\.keep is {keep}; at least 1 read of a file must stay\.$"):
        replace(READS, keep=keep)
    with pytest.raises(SettingsError, match=rf"^Setting reads\.keep is {keep}; at least 1 read of a file must stay\.$"):
        replace(READS, keep_by_size=((100, keep),))


def test_R11_less_than_no_commands_or_a_negative_age_is_refused():
    with pytest.raises(SettingsError, match=r"^Setting terminal\.keep is -1; it is 0 or more\.$"):
        replace(TERMINAL, tools=("sh",), keep=-1, max_age=timedelta(0), placeholder="")
    with pytest.raises(SettingsError, match=r"^Setting terminal\.minutes is .*; it is 0 or more\.$"):
        replace(TERMINAL, tools=("sh",), keep=0, max_age=timedelta(minutes=-1), placeholder="")
