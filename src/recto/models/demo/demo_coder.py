"""The demo model as a coder: a small bug fix, one call a reply, from the search for tests to the repaired line.

It repairs what a change of one token repairs: it tries such changes where the failing tests lead, and takes back each
that does not help. What was done is read from the calls of this turn, so that the page is all it takes.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import PurePosixPath

from recto.conversation.json import Json
from recto.models.demo.code_changes import (
    CodeChange,
    CodeFunction,
    changes_of,
    functions_in,
    names_used,
    reached_from,
)
from recto.models.demo.demo_page import DemoPage, DemoReply, ToolAnswer, text_of
from recto.page.prompt.reminder import Locale

READ, EDIT, CREATE = "filesystem-read", "filesystem-edit", "filesystem-create"
RUN, SEARCH = "terminal-execute", "ace-text_search"
NEEDED = frozenset({READ, EDIT, CREATE, RUN, SEARCH})
ASKED = re.compile(r"\b(?:fix\w*|bugs?|debug\w*|repair\w*|broken|fail\w*)\b|修|测试|报错|出错|故障", re.IGNORECASE)
MOST_TRIES, MOST_SEARCHES, MOST_NAMES, MOST_FILES, MOST_READS = 60, 3, 30, 20, 2
RUN_MILLISECONDS, LINES_SHOWN, LINES_AROUND = 60_000, 8, 3

TESTS = "def test_"
# -B: an edit in the same second leaves what was compiled before in force.
UNITTEST = ("python3", "-B", "-m", "unittest", "-q")
PYTEST = ("python3", "-B", "-m", "pytest", "-q", "--tb=native", "-p", "no:cacheprovider")
PATH = re.compile(r"^\W*([\w./-]+\.py)\b", re.MULTILINE)
NUMBERED = re.compile(r"^\s*\d+→(.*)$", re.MULTILINE)
LOOKED_FOR = re.compile(r"\(def\|class\) \((.*)\)\\b")
FRAME = re.compile(r'^\s*File "(.+?)", line \d+, in (\S+)', re.MULTILINE)
DIFF, EMPTY = re.compile(r"^@@ ", re.MULTILINE), "workspace is empty"
DENIED = "was not called: a person was asked"

# A project for who has none: ten things are to be cheaper, and only eleven are.
PROJECT = {
    "shop.py": '''"""Prices of a small shop, in cents."""


def price_of(count, each):
    """What some of one thing cost. From ten on, each is a tenth cheaper."""
    if count > 10:
        each = each - each // 10
    return count * each
''',
    "test_shop.py": '''"""What the shop promises."""

import unittest

from shop import price_of


class PriceTest(unittest.TestCase):
    def test_nine_cost_the_full_price(self):
        self.assertEqual(price_of(9, 100), 900)

    def test_ten_are_cheaper(self):
        self.assertEqual(price_of(10, 100), 900)

    def test_twenty_are_cheaper(self):
        self.assertEqual(price_of(20, 100), 1800)
''',
}

SAY: Mapping[str, Mapping[Locale, str]] = {
    "tests": {"en": "I look for the tests.", "zh": "先找测试。"},
    "folder": {"en": "There are none. I look at what is in the folder.", "zh": "没有找到。看看文件夹里有什么。"},
    "create": {
        "en": "The folder is empty, so I make a small project with a bug in it to show you: {path}.",
        "zh": "文件夹是空的，我先建一个带 bug 的小项目给你看：{path}。",
    },
    "run": {"en": "I run the tests.", "zh": "运行测试。"},
    "run_again": {"en": "I run the tests again.", "zh": "再运行一次测试。"},
    "names": {
        "en": "Some fail. I look for what they use: {names}.",
        "zh": "有测试失败。找一找它们用到的：{names}。",
    },
    "read": {"en": "I read {path}.", "zh": "读 {path}。"},
    "try": {
        "en": "I change `{old}` to `{new}` in {path}.",
        "zh": "把 {path} 里的 `{old}` 改成 `{new}`。",
    },
    "undo": {"en": "That does not help, so I take it back.", "zh": "没有用，改回去。"},
    "read_again": {"en": "All tests pass. I read {path} again.", "zh": "测试全部通过。再读一遍 {path}。"},
    "done": {
        "en": "Fixed: the tests pass. What was wrong is one line of {path}:\n\n```diff\n{diff}\n```\n\nIt reads now:"
        "\n\n```python\n{code}\n```\n\nI am the demo model: I tried {tries} changes of one token where the failing "
        "tests led ({names}) until one helped. A real model reads the code.",
        "zh": "修好了，测试全部通过。出错的是 {path} 里的一行：\n\n```diff\n{diff}\n```\n\n现在是：\n\n"
        "```python\n{code}\n```\n\n我是演示模型：顺着失败的测试（{names}）试了 {tries} 处只改一个记号的修改，"
        "直到有一处管用。真正的模型会读懂代码。",
    },
    "passing": {"en": "All tests pass: there is nothing to fix.", "zh": "测试全部通过，没有要修的。"},
    "no_tests": {
        "en": "I find no tests here (`def test_...` in a .py file). I am the demo model, and only repair what tests "
        "show to be broken.",
        "zh": "这里没有找到测试（.py 文件里的 `def test_...`）。我是演示模型，只会修测试能指出的错误。",
    },
    "cannot": {
        "en": "I stop here: {name} did not do what I asked of it.\n\n{text}",
        "zh": "到此为止：{name} 没有照我说的做。\n\n{text}",
    },
    "unclear": {
        "en": "I stop here: what the tests say leads to no code that I could change. I am the demo model, and only try "
        "changes of one token in Python functions.\n\n```text\n{text}\n```",
        "zh": "到此为止：测试的输出没有指向我能改的代码。我是演示模型，只会在 Python 函数里试着改一个记号。"
        "\n\n```text\n{text}\n```",
    },
    "given_up": {
        "en": "I did not find it. I am the demo model and only try changes of one token; {tries} of them, in {names}, "
        "did not make the tests pass, and each was taken back. The tests say:\n\n```text\n{text}\n```",
        "zh": "没有找到原因。我是演示模型，只会试着改一个记号；在 {names} 里试了 {tries} 处都没能让测试通过，"
        "每一处都已改回。测试的输出：\n\n```text\n{text}\n```",
    },
}
HINT: Mapping[Locale, str] = {
    "en": ' Say "fix the failing tests", and I show what I can do here.',
    "zh": "说“修复失败的测试”，我就演示一次。",
}


@dataclass(kw_only=True)
class CoderWork:
    """What was done in a turn, told call by call.

    `tests` are paths, `files` texts by path, `looked_for` names whose definitions were searched for. `open` is the
    change that is in force. `failure` is what the tests said before any change; `passes` what came of the last run,
    None where something was changed since.
    """

    tests: tuple[str, ...] = ()
    command: str = ""
    files: dict[str, str] = field(default_factory=dict[str, str])
    found: tuple[str, ...] = ()
    looked_for: frozenset[str] = frozenset()
    searches: int = 0
    tried: tuple[CodeChange, ...] = ()
    open: CodeChange | None = None
    failure: str = ""
    passes: bool | None = None

    def add(self, answer: ToolAnswer) -> None:
        """The next call, and what it answered."""
        arguments = {name: text_of(value) for name, value in answer.arguments.items()}
        path = arguments.get("filePath", "")
        match answer.name:
            case "ace-text_search":
                self._add_search(arguments.get("pattern", ""), answer.text)
            case "filesystem-read" if lines := NUMBERED.findall(answer.text):
                self.files[path] = "\n".join(lines)
            case "filesystem-create":
                self.files[path] = arguments.get("content", "")
                self.tests += (path,) if _is_test(path) else ()
                self.command = shlex.join((*UNITTEST, *self.tests))
            case "filesystem-edit":
                change = CodeChange(
                    path=path, old=arguments.get("searchContent", ""), new=arguments.get("replaceContent", "")
                )
                self._add_change(change, is_made=bool(DIFF.search(answer.text)))
            case "terminal-execute":
                self._add_run(arguments.get("command", ""), answer.data or {})
            case _:
                pass

    def _add_search(self, pattern: str, text: str) -> None:
        paths = tuple(dict.fromkeys(PATH.findall(text)))
        if names := LOOKED_FOR.search(pattern):
            self.searches += 1
            self.looked_for |= {*names[1].split("|")}
            self.found += tuple(path for path in paths if not _is_test(path))
        else:
            self.tests += tuple(path for path in paths if _is_test(path))[:MOST_FILES]
            is_plain = paths and not re.search(r"def test_\w*\(self", text)
            self.command = shlex.join((*(PYTEST if is_plain else UNITTEST), *self.tests))

    def _add_change(self, change: CodeChange, *, is_made: bool) -> None:
        if self.open and change == self.open.undone:
            self.open = None if is_made else self.open
        else:
            self.tried += (change,)
            self.open = change if is_made else None
        self.passes = None

    def _add_run(self, command: str, data: Mapping[str, Json]) -> None:
        # The search that found them may be folded.
        self.tests = tuple(dict.fromkeys((*self.tests, *filter(_is_test, command.split()))))
        code = data.get("exitCode")
        if "exitCode" not in data:
            return
        self.command, self.passes = command, code == 0
        if self.open is None and code != 0:
            self.failure = "\n".join(text_of(data.get(name, "")) for name in ("stdout", "stderr", "ended")).strip()


def is_coder(page: DemoPage) -> bool:
    """Whether there are the tools that a repair takes."""
    return page.tools.keys() >= NEEDED


def asks_for_repair(page: DemoPage) -> bool:
    """Whether something is to be repaired, and can be."""
    return is_coder(page) and bool(ASKED.search(page.words))


def repair(page: DemoPage) -> DemoReply:
    """The next call of a repair, or what came of it."""
    work = CoderWork()
    for answer in page.answers:
        work.add(answer)
    return _stopped(page, work) or _tests_known(page, work) or _change_judged(page, work) or _next_try(page, work)


def _stopped(page: DemoPage, work: CoderWork) -> DemoReply | None:
    """Where a person said no, a command could not be run, or a change not be taken back."""
    if not page.answers:
        return None
    last = page.answers[-1]
    ran = last.name != RUN or "exitCode" in (last.data or {})
    is_stuck = last.name == EDIT and work.open is not None and not DIFF.search(last.text)
    if DENIED in last.text or not ran or is_stuck:
        return _say(page, "cannot", name=last.name, text=_tail(last.text))
    return None


def _tests_known(page: DemoPage, work: CoderWork) -> DemoReply | None:
    """The tests are looked for, or made where there is nothing at all, and run as things are."""
    if not page.answers:
        return _call(page, "tests", SEARCH, {"pattern": TESTS, "fileGlob": "*.py"})
    if not work.tests:
        looks = [answer for answer in page.answers if answer.name == READ]
        if not looks:
            return _call(page, "folder", READ, {"filePath": "."})
        if EMPTY not in looks[0].text:
            return _say(page, "no_tests")
        path = next(path for path in PROJECT if path not in work.files)
        return _call(page, "create", CREATE, {"filePath": path, "content": PROJECT[path]}, path=path)
    if not work.failure and work.passes is None:
        return _run(page, work, "run")
    return _say(page, "passing") if work.passes and work.open is None else None


def _change_judged(page: DemoPage, work: CoderWork) -> DemoReply | None:
    """A change in force is tried by the tests; it stays, and is looked at, or goes."""
    change = work.open
    if change is None:
        return None
    if work.passes is None:
        return _run(page, work, "run_again")
    if not work.passes:
        return _edit(page, "undo", change.undone)
    if page.answers[-1].name != READ:
        return _call(page, "read_again", READ, {"filePath": change.path}, path=change.path)
    old, new = _difference(change)
    lines, at = work.files.get(change.path, "").split("\n"), work.files.get(change.path, "").partition(change.new)[0]
    first = at.count("\n") + change.new.split("\n").index(new)
    code = "\n".join(lines[max(first - LINES_AROUND, 0) : first + LINES_AROUND + 1])
    names = ", ".join(dict.fromkeys(one.name for one in _suspects(page, work)))
    return _say(
        page, "done", path=change.path, diff=f"-{old}\n+{new}", code=code, tries=str(len(work.tried)), names=names
    )


def _next_try(page: DemoPage, work: CoderWork) -> DemoReply:
    """Read what the failure leads to, look for what that uses, and change one thing of it."""
    reads = [text_of(answer.arguments.get("filePath")) for answer in page.answers if answer.name == READ]
    paths = dict.fromkeys((*(path for path, _ in _frames(work)), *work.found))
    for path in list(paths)[:MOST_FILES]:
        if path not in work.files and reads.count(path) < MOST_READS:
            return _call(page, "read", READ, {"filePath": path}, path=path)
    suspects = _suspects(page, work)
    known = work.looked_for.union(one.name for one in functions_in(work.files))
    used = (*_leads(work), *(name for one in suspects for name in names_used(one.text)))
    unknown = [name for name in dict.fromkeys(used) if name not in known][:MOST_NAMES]
    if unknown and work.searches < MOST_SEARCHES:
        pattern = rf"(def|class) ({'|'.join(unknown)})\b"
        arguments: Mapping[str, Json] = {"pattern": pattern, "fileGlob": "*.py", "isRegex": True}
        return _call(page, "names", SEARCH, arguments, names=", ".join(unknown))
    change = next((one for one in changes_of(suspects, work.files) if one not in work.tried), None)
    if change and len(work.tried) < MOST_TRIES:
        return _edit(page, "try", change)
    names = ", ".join(dict.fromkeys(one.name for one in suspects))
    what = "given_up" if work.tried else "unclear"
    return _say(page, what, tries=str(len(work.tried)), names=names, text=_tail(work.failure))


def _frames(work: CoderWork) -> Sequence[tuple[str, str]]:
    """The files and functions of the project that the failure names, by their paths in it; the innermost first."""
    frames: list[tuple[str, str]] = FRAME.findall(work.failure)
    roots = {path.removesuffix(test) for path, _ in frames for test in work.tests if f"/{path}".endswith(f"/{test}")}
    inside = [(path.removeprefix(root), name) for root in roots for path, name in frames if path.startswith(root)]
    return [*dict.fromkeys(reversed([one for one in inside if not one[0].startswith("/")]))]


def _leads(work: CoderWork) -> Iterator[str]:
    """The names that a failure leads to: functions it came through, then what the failing tests use."""
    frames = _frames(work)
    yield from (name for path, name in frames if not _is_test(path) and name.isidentifier())
    failing = {name for path, name in frames if _is_test(path)}
    tests = functions_in({path: text for path, text in work.files.items() if _is_test(path)})
    used = (name for test in tests if test.name in failing for name in names_used(test.text))
    yield from (name for name in used if not name.startswith("assert"))


def _suspects(page: DemoPage, work: CoderWork) -> Sequence[CodeFunction]:
    """The functions that may be wrong: those the user names first."""
    code = functions_in({path: text for path, text in work.files.items() if not _is_test(path)})
    return reached_from((*re.findall(r"\w+", page.words), *_leads(work)), code)


def _is_test(path: str) -> bool:
    stem = PurePosixPath(path).stem
    return stem.startswith("test_") or stem.endswith("_test")


def _difference(change: CodeChange) -> tuple[str, str]:
    """The one line that a change is about, before and after."""
    return next(pair for pair in zip(change.old.split("\n"), change.new.split("\n"), strict=True) if pair[0] != pair[1])


def _edit(page: DemoPage, what: str, change: CodeChange) -> DemoReply:
    arguments = {"filePath": change.path, "searchContent": change.old, "replaceContent": change.new}
    old, new = _difference(change)
    return _call(page, what, EDIT, arguments, path=change.path, old=old.strip(), new=new.strip())


def _run(page: DemoPage, work: CoderWork, what: str) -> DemoReply:
    return _call(page, what, RUN, {"command": work.command, "timeout": RUN_MILLISECONDS})


def _call(page: DemoPage, what: str, tool: str, arguments: Mapping[str, Json], **words: str) -> DemoReply:
    return DemoReply(text=SAY[what][page.language].format(**words), calls=[(tool, arguments)])


def _say(page: DemoPage, what: str, **words: str) -> DemoReply:
    return DemoReply(text=SAY[what][page.language].format(**words))


def _tail(text: str) -> str:
    return "\n".join(text.strip().splitlines()[-LINES_SHOWN:])
