"""Seeded random conversations as JSON, with settings: much to fold, and every way to be left alone."""

import json
from dataclasses import dataclass
from random import Random

from tests.page.conversations import START, Row, answers, asks_all, function_call, user

ROOTS = (None, None, "/srv/app", "/srv/app/", "F:/app", "f:\\App\\")
# Few files, many spellings.
PATHS = (
    *("a.py", "./a.py", "A.py", "src/../a.py", "/srv/app/a.py", "F:/app/a.py", "f:\\app\\a.py", "/app/a.py"),
    *("src/b.py", "src\\b.py", "src//b.py", "SRC/b.py", "/srv/app/src/b.py", "F:\\app\\src\\b.py", "../app/src/b.py"),
    *("docs", "docs/", "./docs/.", "/srv/app/docs/", "../other.py", "/srv/other.py", "C:/other.py", "文档.md"),
)
ODD_ARGUMENTS = (
    *("", "{", "null", "7", "[]", '"a.py"', '["a.py"]', "{}", '{"filePath": 7}', '{"filePath": "a.py"'),
    *(
        '{"filePath": "a.py"} and more',
        ' { "filePath" : "a.py" } ',
        '{"filePath": "\\u0061.py"}',
        '{"FILEPATH": "a.py"}',
    ),
    *('{"file": "a.py"}', '{"filePath": "", "path": "a.py"}', '{"filePath": null, "file_path": "a.py", "endLine": 9}'),
)
READ_TEXTS = (
    *("1→x", "📄 a.py (lines 1-2/2)\n1→x\n2→y", "", "  ", "x" * 200, "error: gone", "Errors: none", "1→Error: in it"),
    *("exitCode 1", "stderr: nothing here", "[1, 2]", "{not json", '{"exitCode": 1'),
)
ERRORS = ("Error: ENOENT", " \n\t Error: gone", "Error:", "\u3000Error:x")
REPORTS: tuple[Row, ...] = (
    {"stdout": "ok", "stderr": "", "exitCode": 0},
    {"stdout": "", "stderr": "boom", "exitCode": 0},
    {"stdout": "Error: said it", "exitCode": "0"},
    {"stdout": "", "exitCode": 1},
    {"exit_code": "2"},
    {"returncode": 2},
    {"stdout": "", "stderr": " ", "exitCode": None},
    {"stdout": "", "stderr": None, "exitCode": ""},
    {"result": {"deep": {"exitCode": 1}}},
    {"output": "x", "metadata": "exit_code 1"},
    {"output": "x", "metadata": {"exit_code": 0}},
    {"output": "x", "metadata": {"exit_code": 3}},
    {"output": "x", "metadata": {"stderr": "boom"}},
)


@dataclass(frozen=True, kw_only=True)
class Options:
    """Settings of folding, as plain as they can be. Minutes are floats; `now` is milliseconds."""

    root: str | None = None
    case_sensitive: bool = True
    keep_reads: int = 5
    keep_commands: int = 5
    command_minutes: float = 15
    search: bool = False
    now: int | None = None


@dataclass(frozen=True, kw_only=True)
class Case:
    """A conversation and how to fold it."""

    rows: list[Row]
    options: Options


def make_case(seed: int) -> Case:
    """The same case for the same seed."""
    random = Random(seed)
    paths = random.sample(PATHS, random.randint(2, 6)) if random.random() < 0.7 else list(PATHS)
    talk = _Talk(random, paths)
    for _ in range(random.randint(0, 40)):
        talk.go_on()
    return Case(rows=talk.rows, options=_make_options(random))


def _make_options(random: Random) -> Options:
    defaults = random.random() < 0.3
    return Options(
        root=random.choice(ROOTS),
        case_sensitive=random.random() < 0.7,
        keep_reads=5 if defaults else random.randint(1, 4),
        keep_commands=5 if defaults else random.randint(0, 3),
        command_minutes=15 if defaults else random.choice((0, 1, 7.5)),
        search=random.random() < 0.5,
        now=None if random.random() < 0.5 else START + random.randint(0, 60) * 60_000,
    )


class _Talk:
    def __init__(self, random: Random, paths: list[str]) -> None:
        self.random = random
        self.paths = paths
        self.rows: list[Row] = []
        self.minute = 0.0
        self.ids = [f"c{n}" for n in range(random.choice((3, 10, 1_000)))]
        self.without_times = random.choice((0.0, 0.2, 0.2, 1.0))

    def go_on(self) -> None:
        steps = (self.read, self.batch, self.run, self.search, self.other, self.several, self.stray, self.say)
        (step,) = self.random.choices(steps, weights=(8, 3, 5, 3, 1, 2, 1, 1))
        step()

    def log(self) -> Row:
        """What the log knows of the next message: a time, mostly later, often equal, sometimes earlier or none."""
        self.minute += self.random.choice((0, 0, 0.5, 1, 3, -4))
        status: Row = {"messageStatus": "success"} if self.random.random() < 0.1 else {}
        return status if self.random.random() < self.without_times else {"timestamp": self.stamp(), **status}

    def stamp(self) -> int:
        return START + round(self.minute * 60_000)

    def exchange(self, tool: str, arguments: object, content: object) -> None:
        id = self.random.choice(self.ids)
        status: Row = {"messageStatus": "error"} if self.random.random() < 0.05 else {}
        self.rows.append(asks_all(function_call(id, tool, arguments), **self.log()))
        if self.random.random() < 0.95:
            self.rows.append(answers(id, content, **(self.log() | status)))

    def read(self) -> None:
        self.exchange("filesystem-read", self.read_arguments(), self.read_content())

    def read_arguments(self) -> object:
        if self.random.random() < 0.08:
            return self.random.choice(ODD_ARGUMENTS)
        name = self.random.choices(("filePath", "path", "file_path"), weights=(8, 1, 1))[0]
        path = self.random.choice(self.paths)
        shapes: tuple[object, ...] = (
            path,
            path,
            path,
            [path],
            [{"path": path, "startLine": 1}],
            [path, {"path": path}],
            ["", None, 7, True, {"path": None}, {"path": ["b.py"]}, {"name": "b.py"}, ["b.py"], path],
            {"path": path},
        )
        junk: tuple[object, ...] = (
            "",
            None,
            "   ",
            [],
            [None, ""],
            [{"path": None}],
            {"path": {"path": path}},
            [[path]],
        )
        return {name: self.random.choice(shapes if self.random.random() < 0.9 else junk)}

    def read_content(self) -> object:
        return self.random.choice(ERRORS if self.random.random() < 0.12 else READ_TEXTS)

    def batch(self) -> None:
        paths = self.random.choices(self.paths, k=self.random.randint(1, 3))
        wrapped = [{"path": path} if self.random.random() < 0.4 else path for path in paths]
        junk: list[object] = [None, "", {"path": ""}, ["nested.py"], 7] if self.random.random() < 0.2 else []
        parts = [{"type": "text", "text": self.read_content(), "path": path} for path in paths]
        content = parts if self.random.random() < 0.5 else self.read_content()
        self.exchange("filesystem-read", {"filePath": [*junk, *wrapped]}, content)

    def run(self) -> None:
        self.exchange("terminal-execute", {"command": "make"}, self.report())

    def report(self) -> object:
        if self.random.random() < 0.3:
            return self.read_content()
        text = json.dumps(self.random.choice(REPORTS))
        split = self.random.randint(0, len(text)) if self.random.random() < 0.3 else 0
        pieces = [{"type": "text", "text": piece} for piece in (text[:split], text[split:])]
        return text if self.random.random() < 0.9 else pieces

    def search(self) -> None:
        self.exchange("ace-text_search", {"pattern": "x"}, self.report())

    def other(self) -> None:
        tool = self.random.choice(("filesystem-edit", "filesystem-create", "Filesystem-Read"))
        self.exchange(tool, {"filePath": self.random.choice(self.paths)}, self.read_content())

    def several(self) -> None:
        """Parallel calls, of one id perhaps, answered in any order."""
        ids = self.random.choices(self.ids, k=self.random.randint(2, 3))
        tools = ("filesystem-read", "filesystem-read", "terminal-execute", "ace-text_search")
        calls = [function_call(id, self.random.choice(tools), self.read_arguments()) for id in ids]
        self.rows.append(asks_all(*calls, **self.log()))
        self.random.shuffle(ids)
        self.rows += [answers(id, self.report(), **self.log()) for id in ids if self.random.random() < 0.9]

    def stray(self) -> None:
        """A result of no call, or of one long answered, or of one that is yet to come."""
        self.rows.append(answers(self.random.choice((*self.ids[:5], "never")), self.read_content(), **self.log()))

    def say(self) -> None:
        system: Row = {"role": self.random.choice(("system", "developer")), "content": "Be brief.", **self.log()}
        reply_row: Row = {"role": "assistant", "content": "I see.", **self.log()}
        self.rows.append(self.random.choice((user("Go on.", **self.log()), system, reply_row)))
