"""A seeded conversation of a coding agent in OpenAI form, of any length: the longer, the more files it works on."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from random import Random
from typing import TypeAlias

from recto.conversation.json import Json

Row: TypeAlias = dict[str, Json]
Step: TypeAlias = list[Row]

BEGIN_MS = 1_767_225_600_000
MESSAGES_PER_FILE = 40
# How many of the newest files the agent mostly works on.
AT_HAND = 10
SYSTEM = "You are a coding agent. Read before you edit, run the tests after, answer in the user's language."
AREAS = ("billing", "catalog", "gateway", "ledger", "notify", "search", "session", "storage", "sync", "worker")
THINGS = """
    account address batch buffer cache cart channel chunk client config cursor customer digest entry event field filter
    frame header index invoice item job key lease limit line locale lock message metric offset order owner page parser
    path payment plan policy price profile quota record region report request result retry role route row schema scope
    segment shard signature slot snapshot source stage status stream table tag task tenant ticket token trace user
"""
DEEDS = "apply build check close collect decode delete encode fetch find flush load merge open parse read save send"
NOUNS, VERBS = tuple(THINGS.split()), tuple(DEEDS.split())
ASKS = (
    "The {a} test fails when the {b} is empty. Find out why and fix it.",
    "Please rename {a} to {b} everywhere and keep the old name as an alias for one release.",
    "Why is {a} called twice for each {b}? I would expect once.",
    "Add a limit to {a}, configurable, default {n}, and a test for the {b} case.",
    "{a} 在 {b} 为空时会抛出异常,请先找到原因,再修复并补上测试。",
    "把 {a} 的缓存改成按 {b} 失效,默认 {n} 秒,注意不要影响现有接口。",
)
THOUGHTS = (
    "I'll look at {a} first, then at where {b} is built.",
    "The {a} is built before the {b} is known, so I check the caller.",
    "That explains it: {a} keeps the old {b}. I change it and run the tests.",
    "先看一下 {a} 的实现,再确认 {b} 是在哪里创建的。",
    "Now the test for {b}.",
)
COMMENTS = ("# The {a} may be gone by now.", "# {a} 可能已经过期,这里重新读取 {b}。", "# Keep the {a} before the {b}.")


@dataclass(frozen=True, kw_only=True)
class Source:
    """A file of the project the agent works on."""

    path: str
    lines: tuple[str, ...]


def converse(count: int, *, seed: int = 7) -> list[Row]:
    """A conversation of exactly `count` messages, each with an id and a time."""
    return _Agent(Random(seed)).work(count)


def more_questions(rows: Sequence[Row], count: int) -> list[Step]:
    """Steps a conversation may go on with: the user says something."""
    agent = _Agent(Random(count), begin=len(rows), prefix="ask")
    return [[agent.ask()] for _ in range(count)]


def more_reads(rows: Sequence[Row], count: int) -> list[Step]:
    """Steps a conversation may go on with: the file it read most often is read again."""
    agent, file = _Agent(Random(count), begin=len(rows), prefix="read"), _most_read(rows)
    return [agent.read_one(file) for _ in range(count)]


def more_commands(rows: Sequence[Row], count: int) -> list[Step]:
    """Steps a conversation may go on with: the tests are run again."""
    agent = _Agent(Random(count), begin=len(rows), prefix="run")
    return [agent.run_tests() for _ in range(count)]


def _most_read(rows: Sequence[Row]) -> Source:
    counts: dict[str, int] = {}
    for row in rows:
        head = str(row.get("content"))[:200]
        if row["role"] == "tool" and head.startswith("📄 "):
            path = head.split()[1]
            counts[path] = counts.get(path, 0) + 1
    return _source(Random(0), max(counts, key=lambda path: counts[path]))


class _Agent:
    """Writes one conversation. Ids and times follow from how many messages there are."""

    def __init__(self, random: Random, *, begin: int = 0, prefix: str = "msg") -> None:
        self.random = random
        self.begin, self.prefix, self.written_steps = begin, prefix, 0
        self.files = [_source(random, _path(random, number)) for number in range(4)]

    def work(self, count: int) -> list[Row]:
        rows: list[Row] = [self._row("system", SYSTEM)]
        while len(rows) < count:
            for step in self._turn():
                if len(rows) + len(step) <= count:
                    rows += step
            if count - len(rows) <= 2:
                rows += [self.ask() for _ in range(count - len(rows))]
        return rows

    def ask(self) -> Row:
        return self._row("user", self._say(ASKS))

    def read_one(self, file: Source) -> Step:
        first = self.random.randrange(max(1, len(file.lines) - 30))
        last = min(len(file.lines), first + self.random.randint(10, 56))
        spelling = self.random.choice((file.path, f"./{file.path}", file.path.replace("/", "\\")))
        arguments: Row = {"filePath": spelling, "startLine": first + 1, "endLine": last}
        return self._call("filesystem-read", arguments, _show(file, first, last))

    def run_tests(self, *, good: bool = True) -> Step:
        words = self.random.choices(NOUNS, k=24)
        ran = [
            f"tests/test_{a}.py::test_{b}_{a} {'PASSED' if good else 'FAILED'}"
            for a, b in zip(words[::2], words, strict=False)
        ]
        command = f"python -m pytest -q tests/test_{words[0]}.py"
        report: Row = {
            "stdout": "\n".join(
                [*ran, f"{len(ran)} {'passed' if good else 'failed'} in 0.{self.random.randint(10, 99)}s"]
            ),
            "stderr": "" if good else f"KeyError: '{words[1]}'",
            "exitCode": 0 if good else 1,
            "command": command,
        }
        return self._call("terminal-execute", {"command": command, "timeout": 30000}, json.dumps(report))

    def _turn(self) -> Iterator[Step]:
        yield [self.ask()]
        for _ in range(self.random.randint(4, 11)):
            if len(self.files) < self.written_steps / MESSAGES_PER_FILE:
                yield self._create()
            yield self._step()
        yield [self._row("assistant", " ".join(self._say(THOUGHTS) for _ in range(self.random.randint(1, 4))))]

    def _step(self) -> Step:
        roll = self.random.random()
        if roll < 0.36:
            return self.read_one(self._pick())
        if roll < 0.46:
            return self._read_several()
        if roll < 0.49:
            return self._fail_to_read()
        if roll < 0.68:
            return self._edit()
        if roll < 0.88:
            return self.run_tests(good=self.random.random() < 0.8)
        if roll < 0.99:
            return self._search()
        return self._interrupted()

    def _read_several(self) -> Step:
        files = list({file.path: file for file in (self._pick(), self._pick(), self._pick())}.values())
        texts = [_show(file, 0, min(len(file.lines), 25)) for file in files]
        if self.random.random() < 0.5:
            return self._call("filesystem-read", {"filePath": [file.path for file in files]}, "\n\n".join(texts))
        parts = [{"type": "text", "text": text, "path": file.path} for text, file in zip(texts, files, strict=True)]
        return self._call("filesystem-read", {"filePath": [{"path": file.path} for file in files]}, parts)

    def _fail_to_read(self) -> Step:
        path = _path(self.random, 900 + self.random.randrange(99))
        call, result = self._call("filesystem-read", {"filePath": path}, f"Error: {path} does not exist")
        return [call, result | {"messageStatus": "error"}]

    def _edit(self) -> Step:
        file = self._pick()
        place = self.random.randrange(len(file.lines) - 4)
        old, new = file.lines[place : place + 3], tuple(_code(self.random, self.random.randint(2, 6)))
        lines = (*file.lines[:place], *new, *file.lines[place + 3 :])
        self.files[self.files.index(file)] = Source(path=file.path, lines=lines)
        arguments: Row = {"filePath": file.path, "searchContent": "\n".join(old), "replaceContent": "\n".join(new)}
        around = "\n".join(f"{n + 1}→{lines[n]}" for n in range(max(0, place - 4), min(len(lines), place + 10)))
        return self._call("filesystem-edit", arguments, f"✅ {file.path}: 1 place changed\n{around}")

    def _create(self) -> Step:
        file = _source(self.random, _path(self.random, len(self.files)))
        self.files.append(file)
        arguments: Row = {"filePath": file.path, "content": "\n".join(file.lines[:40])}
        return self._call("filesystem-create", arguments, f"✅ {file.path} created, 40 lines")

    def _search(self) -> Step:
        word = self.random.choice(NOUNS)
        picked = [(self._pick(), self.random.randrange(60)) for _ in range(self.random.randint(3, 10))]
        matches = [f"{file.path}:{line + 1}: {file.lines[line].strip()}" for file, line in picked]
        return self._call("ace-text_search", {"pattern": f"{word}_\\w+", "isRegex": True}, "\n".join(matches))

    def _interrupted(self) -> Step:
        """A call whose result never came, because the user spoke again."""
        return [self._call("terminal-execute", {"command": "make watch"}, "")[0], self.ask()]

    def _call(self, name: str, arguments: Row, content: Json) -> Step:
        id = f"call_{self.prefix}_{self.begin + self.written_steps:06d}"
        function: Row = {"name": name, "arguments": json.dumps(arguments, ensure_ascii=False)}
        thought_text = self._say(THOUGHTS) if self.random.random() < 0.4 else None
        call = self._row("assistant", thought_text) | {
            "tool_calls": [{"id": id, "type": "function", "function": function}]
        }
        return [call, self._row("tool", content) | {"tool_call_id": id}]

    def _row(self, role: str, content: Json) -> Row:
        number = self.begin + self.written_steps
        self.written_steps += 1
        time = BEGIN_MS + 12_000 * number + self.random.randrange(9_000)
        return {"id": f"{self.prefix}_{number:06d}", "timestamp": time, "role": role, "content": content}

    def _say(self, texts: Sequence[str]) -> str:
        a, b = (f"{self.random.choice(VERBS)}_{self.random.choice(NOUNS)}" for _ in range(2))
        return self.random.choice(texts).format(a=a, b=b, n=self.random.randint(2, 500))

    def _pick(self) -> Source:
        """Mostly a file that came lately, the newer the likelier; sometimes any."""
        near = self.files[-AT_HAND:]
        if self.random.random() < 0.1:
            return self.random.choice(self.files)
        return self.random.choices(near, weights=range(2, len(near) + 2))[0]


def _path(random: Random, number: int) -> str:
    return f"src/{random.choice(AREAS)}/{random.choice(NOUNS)}_{number}.py"


def _source(random: Random, path: str) -> Source:
    return Source(path=path, lines=tuple(_code(random, random.randint(90, 240))))


def _show(file: Source, first: int, last: int) -> str:
    lines = [f"{number + 1}→{file.lines[number]}" for number in range(first, last)]
    return "\n".join([f"📄 {file.path} (lines {first + 1}-{last}/{len(file.lines)})", *lines])


def _code(random: Random, count: int) -> list[str]:
    return [_line(random) for _ in range(count)]


def _line(random: Random) -> str:
    a, b, c = random.choices(NOUNS, k=3)
    verb = random.choice(VERBS)
    match random.randrange(9):
        case 0:
            return ""
        case 1:
            return f"def {verb}_{a}({b}: {b.title()}, *, {c}: int = {random.randint(0, 4096)}) -> {a.title()}:"
        case 2:
            return "    " + random.choice(COMMENTS).format(a=a, b=b)
        case 3:
            return f"    if {a}.{b} is None or len({c}) > {random.randint(1, 99)}:"
        case 4:
            return f'        raise {a.title()}Error(f"{b} {{{c}!r}} cannot be {verb}ed")'
        case 5:
            return f"    return {a.title()}({b}={b}.{c}, {c}=self._{verb}_{a}({c}))"
        case 6:
            return f'    {a.upper()}_{b.upper()} = {c}Of{a.title()}{verb.title()}("{random.randrange(16**5):05x}")'
        case 7:
            return f"        {a}_{b} = {verb}({c}, key=lambda {a}: ({a}.{b}, -{a}.{c}))"
        case _:
            return f"    self.{a}[{b}.{c}] = await {verb}_{b}({a}, {c})"
