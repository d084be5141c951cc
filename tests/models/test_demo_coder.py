"""The demo model as a coder: page in, reply out. What it did is read from the calls, also where results are folded."""

import json
from collections.abc import Mapping, Sequence

import pytest

from recto.conversation.json import Json
from recto.models.demo.demo_coder import NEEDED
from recto.models.demo.demo_model import reply_to
from recto.models.demo.demo_page import DemoReply

WORDS = "Fix the failing tests, please."
FOLDED = "[该文件的历史读取内容已压缩,请参看最新读取结果]"
DENIED = "filesystem-edit was not called: a person was asked, and denied it. They said: not today"
CODE = "def add(a, b):\n    return a - b\n"
TEST = (
    "import unittest\nfrom sums import add\n\n\nclass SumTest(unittest.TestCase):\n"
    "    def test_add(self):\n        self.assertEqual(add(1, 2), 3)\n"
)
FOUND = "📄 tests/test_sums.py\n  6: def test_add(self):"
FAILED = json.dumps(
    {
        "stdout": "",
        "stderr": "FAIL: test_add\nTraceback (most recent call last):\n"
        '  File "/workspace/tests/test_sums.py", line 7, in test_add'
        "\n    self.assertEqual(add(1, 2), 3)\nAssertionError: -1 != 3\n\nFAILED (failures=1)",
        "exitCode": 1,
    }
)
PASSED = json.dumps({"stdout": "", "stderr": "OK", "exitCode": 0})
DEFINED = "📄 sums.py\n  1: def add(a, b):"
DIFF = "--- a/sums.py\n+++ b/sums.py\n@@ -2 +2 @@\n-old\n+new"

Step = tuple[str, Mapping[str, Json], str]


def shown(path: str, text: str) -> str:
    lines = text.splitlines()
    numbered = [f"{number}→{line}" for number, line in enumerate(lines, 1)]
    return "\n".join((f"📄 {path} (lines 1-{len(lines)}/{len(lines)})", *numbered))


RUN = {"command": "python3 -B -m unittest -q tests/test_sums.py", "timeout": 60_000}
EDIT = {"filePath": "sums.py", "searchContent": "    return a - b", "replaceContent": "    return a + b"}
BACK = {"filePath": "sums.py", "searchContent": "    return a + b", "replaceContent": "    return a - b"}
# Each call, with what is answered to it.
BEGINNING: tuple[Step, ...] = (
    ("ace-text_search", {"pattern": "def test_", "fileGlob": "*.py"}, FOUND),
    ("terminal-execute", RUN, FAILED),
    ("filesystem-read", {"filePath": "tests/test_sums.py"}, shown("tests/test_sums.py", TEST)),
    ("ace-text_search", {"pattern": r"(def|class) (add)\b", "fileGlob": "*.py", "isRegex": True}, DEFINED),
    ("filesystem-read", {"filePath": "sums.py"}, shown("sums.py", CODE)),
)
TRIED: tuple[Step, ...] = (*BEGINNING, ("filesystem-edit", EDIT, DIFF))
REPAIRED: tuple[Step, ...] = (
    *TRIED,
    ("terminal-execute", RUN, PASSED),
    ("filesystem-read", {"filePath": "sums.py"}, shown("sums.py", CODE.replace("-", "+"))),
)


def reply(steps: Sequence[Step], words: str = WORDS, tools: Sequence[str] = tuple(NEEDED)) -> DemoReply:
    messages: list[Json] = [{"role": "user", "content": words}]
    for number, (name, arguments, answer) in enumerate(steps):
        function: Json = {"name": name, "arguments": json.dumps(arguments)}
        call: Json = {"id": f"c{number}", "type": "function", "function": function}
        messages.append({"role": "assistant", "content": "So.", "tool_calls": [call]})
        messages.append({"role": "tool", "tool_call_id": f"c{number}", "content": answer})
    offers = [{"type": "function", "function": {"name": name, "parameters": True}} for name in sorted(tools)]
    return reply_to(json.dumps({"model": "demo", "messages": messages, "tools": offers}).encode())


@pytest.mark.parametrize("done", range(len(REPAIRED)))
def test_R15_each_call_of_a_repair_follows_from_those_before_it(done: int):
    name, arguments, _ = REPAIRED[done]
    following = reply(REPAIRED[:done])
    assert following.calls == [(name, arguments)]
    # A sentence goes with each, so that people can follow.
    assert following.text.endswith(".")


def test_R15_what_does_not_help_is_taken_back_before_the_next_try():
    failed: tuple[Step, ...] = (*TRIED, ("terminal-execute", RUN, FAILED))
    assert reply(failed).calls == [("filesystem-edit", BACK)]
    (following,) = reply((*failed, ("filesystem-edit", BACK, DIFF))).calls
    assert following[1] == {**EDIT, "replaceContent": "    return not a - b"}


def test_R15_where_nothing_helps_it_gives_up_with_what_the_tests_said():
    steps = list(BEGINNING)
    while (following := reply(steps)).calls:
        (name, arguments), *_ = following.calls
        steps.append((name, dict(arguments), DIFF if name == "filesystem-edit" else FAILED))
    tries = (len(steps) - len(BEGINNING)) // 3
    assert f"{tries} of them, in add, did not make the tests pass" in following.text
    assert "AssertionError: -1 != 3" in following.text


def test_R2_a_read_that_was_folded_is_made_again():
    steps = (*BEGINNING[:-1], ("filesystem-read", {"filePath": "sums.py"}, FOLDED))
    assert reply(steps).calls == [("filesystem-read", {"filePath": "sums.py"})]


@pytest.mark.parametrize(
    ("steps", "words"),
    [
        ((*BEGINNING, ("filesystem-edit", EDIT, DENIED)), "not today"),
        ((*TRIED, ("terminal-execute", RUN, FAILED), ("filesystem-edit", BACK, "Error: changed")), "Error: changed"),
        ((*BEGINNING[:1], ("terminal-execute", RUN, "Error: no sandbox")), "Error: no sandbox"),
    ],
)
def test_R15_it_stops_where_it_cannot_go_on_and_says_why(steps: Sequence[Step], words: str):
    told = reply(steps)
    assert not told.calls
    assert words in told.text


@pytest.mark.parametrize("words", ["there is a bug", "请修复这个错误", "测试失败了", "My tests are FAILING"])
def test_R15_words_in_both_languages_ask_for_a_repair(words: str):
    (call,) = reply((), words).calls
    assert call[0] == "ace-text_search"
