"""The coding session that the demo model replays: the n-th call of a turn is the n-th recorded one."""

import json
from collections.abc import Sequence

import pytest

from recto.conversation.json import Json
from recto.models.demo.demo_model import DemoReply, reply_to
from tests.models.test_demo import call_row, page, result, user

TOOLS = ("ace-text_search", "filesystem-create", "filesystem-read", "filesystem-edit", "terminal-execute")
NO_PROJECT = "The workspace is empty, so there is nothing to search."
PROJECT = "1 matching line in 1 file:\n\nrecto-demo/shop.py:\n4: def price_of(count, each):"
DONE, FAILED, PASSED = "Done.", '{"stdout": "", "stderr": "FAILED", "exitCode": 1}', '{"exitCode": 0}'
NEW = (NO_PROJECT, DONE, DONE, DONE, FAILED, DONE, DONE, PASSED)


def replay(results: Sequence[str], words: str = "Fix the failing tests.") -> tuple[list[str], DemoReply]:
    """Answer each call with the next result. Return the names of the calls and the reply after the last one."""
    messages: list[Json] = [user(words)]
    names: list[str] = []
    for number, text in enumerate(results):
        ((name, arguments),) = reply_to(page(*messages, tools=TOOLS)).calls
        messages += [call_row(name, json.dumps(arguments), f"c{number}"), result(text, f"c{number}")]
        names.append(name)
    return names, reply_to(page(*messages, tools=TOOLS))


@pytest.mark.parametrize(
    ("words", "end"),
    [("Fix the failing tests.", "Fixed: the tests pass."), ("请修复失败的测试", "修好了，测试全部通过。")],
)
def test_R15_a_session_creates_the_project_runs_reads_and_edits_it_and_reports(words: str, end: str):
    names, last = replay(NEW, words)
    search, create, read, edit, run = TOOLS
    assert names == [search, create, create, read, run, read, edit, run]
    assert last.text.startswith(end)
    assert not last.calls


def test_R15_where_the_project_exists_the_session_runs_its_tests_and_says_that_it_is_a_demo():
    names, last = replay((PROJECT, FAILED, DONE))
    assert names == ["ace-text_search", "terminal-execute", "filesystem-read"]
    assert "I always replay the same session: delete the folder recto-demo" in last.text


@pytest.mark.parametrize(
    "results",
    [
        (NO_PROJECT, "filesystem-create was not called: a person was asked, and denied it. They said: not today"),
        (*NEW[:4], "Error: no sandbox"),
        (*NEW[:4], '{"stderr": "python3: not found", "exitCode": 127}'),
        (*NEW[:-1], FAILED),
    ],
)
def test_R15_the_session_stops_with_the_result_that_differs_from_the_recording(results: Sequence[str]):
    _, last = replay(results)
    assert not last.calls
    assert last.text == (
        f"I stop here: {replay(results[:-1])[1].calls[0][0]} did not answer as in the recording that I replay."
        f"\n\n{results[-1]}"
    )


@pytest.mark.parametrize("words", ["there is a bug", "请修复这个错误", "测试失败了", "My tests are FAILING"])
def test_R15_words_in_both_languages_start_the_session(words: str):
    assert replay((), words)[1].calls[0][0] == "ace-text_search"


def test_R15_other_words_and_agents_without_the_tools_do_not_start_it():
    assert "fix the failing tests" in replay((), "hello")[1].text
    assert not reply_to(page(user("Fix the bug."), tools=TOOLS[1:])).calls
