"""Answers of recall: an earlier result below a line about it, or the available ones."""

import asyncio
from collections.abc import Sequence
from dataclasses import replace

import pytest

import recto
from recto.conversation.messages import Message
from recto.errors import ToolError
from recto.page.earlier_results import NotRecalled, Recalled, find_result
from recto.page.facts import Facts
from recto.page.manifest import Recall
from recto.tools.builtin.recall import recall
from tests.page.conversations import Row, reads, runs, user
from tests.tools.runs import context, text_of

READ = "filesystem-read"
FAILED = '{"exitCode": 1, "stdout": "no"}'
ROWS = [user("Go."), *reads("r0", "a.py", "first", 0), *reads("r1", "a.py", "second", 1), *runs("t0", "ok", 2)]
HEAD = "[filesystem-read of ./a.py, result 2 of 2 counted from the newest, of 2026-01-31 02:20:00 UTC; "


class Log:
    """Return a log of these messages."""

    def __init__(self, messages: Sequence[Message]) -> None:
        self._facts = Facts(log=messages)

    async def recall(self, wish: Recall) -> Recalled | NotRecalled:
        return find_result(self._facts, wish)


def answer(tool: str, n: int, path: str | None = None, rows: Sequence[Row] = ROWS) -> str:
    return text_of(asyncio.run(recall(tool, n, replace(context(), log=Log(recto.decode(rows))), path)))


def test_X5_a_result_stands_behind_a_line_that_says_what_it_is_and_a_blank_path_is_none():
    assert answer(READ, 2, "./a.py") == f"{HEAD}it may be out of date]\nfirst"
    assert answer("terminal-execute", 1, " ").endswith("\nok")


@pytest.mark.parametrize(
    ("tool", "n", "path", "text"),
    [
        (READ, 3, "a.py", "filesystem-read of a.py has 2 results, so n is 1 (the newest) to 2; it was 3."),
        (READ, 1, "b.py", "filesystem-read of b.py has no results. Files that have: a.py."),
        ("read", 1, None, "read has no results. Tools that have: filesystem-read, terminal-execute."),
        ("terminal-execute", 1, "a.py", "Results of terminal-execute are not counted by file. Leave path out: n then "),
        ("recall", 1, None, "Results of recall cannot be recalled. Ask for the tool and the file that they came from."),
    ],
)
def test_X5_the_model_is_told_what_there_is(tool: str, n: int, path: str | None, text: str):
    with pytest.raises(ToolError) as caught_error:
        answer(tool, n, path)
    assert str(caught_error.value).startswith(text)


def test_X5_where_all_there_is_failed_that_is_said_and_many_names_are_not_all_listed():
    with pytest.raises(ToolError, match=r"^terminal-execute has no results in this conversation\. Failed ones "):
        answer("terminal-execute", 1, rows=runs("t0", FAILED, 0))
    with pytest.raises(ToolError, match=r"tool28, tool29 and 10 more\.$"):
        answer("tool", 1, rows=[row for n in range(40) for row in runs(f"t{n}", "ok", n, f"tool{n:02}")])
