"""R1-R10, R15: a session of 300 steps with the tools of the shipped coder, every page held to what was said before."""

import json
import random
import sqlite3
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field, replace
from pathlib import Path

import pytest

from recto.agents.folders import SHIPPED
from recto.conversation.log import Entry
from recto.conversation.messages import AssistantMessage, ToolMessage, words_of
from recto.ids import new_id
from recto.testing.model_server import Answer, Call, ModelServer, Request
from recto.testing.process import ServerProcess
from tests.end_to_end.harness import read_log
from tests.naive_pages import COMMAND, READ, SEARCH, PageSettings, ToolRule, check_page, paths_named, rows_of
from tests.support.client import ask, run

pytestmark = pytest.mark.full

STEPS, TURNS, READS = 300, 6, 60
FILES = tuple(f"src/part{number}.py" for number in range(8))
# Ages are taken at a time that only the server knows, so what may grow old is old at once.
EAGER = "fold:\n  terminal: {minutes: 0}\n  search: {minutes: 0}\n"
NOW_OLD = {"fold: cost\n": EAGER, "limits:": "window: 100000000\nlimits:"}
SETTINGS = PageSettings(
    commands=ToolRule(tools=("terminal-execute",), placeholder=COMMAND, minutes=0),
    searches=ToolRule(tools=("ace-text_search",), placeholder=SEARCH, minutes=0),
)
COMMANDS = ("ls src", "cat src/part1.py | wc -l", "echo oops >&2", "exit 3", "python3 -c 'print(6 * 7)'")
MISTAKES = (
    ("filesystem-read", '{"filePath": "src/nowhere.py"}'),
    ("filesystem-read", '{"filePath": ""}'),
    ("filesystem-read", '{"filePath": 7}'),
    ("filesystem-read", '{"filePath": '),
    ("filesystem-read", '{"filePath": "../outside.py"}'),
    ("filesystem-edit", '{"filePath": "src/part0.py", "searchContent": "never there", "replaceContent": "x"}'),
    ("ace-text_search", '{"pattern": "(", "isRegex": true}'),
    ("terminal-execute", '{"command": "ls", "workingDirectory": "/etc"}'),
    ("write_poem", "{}"),
)


@dataclass(kw_only=True)
class Script:
    """Answers of the model in a seeded order. `values` are the contents of files after all edits."""

    folder: Path
    chance: random.Random = field(default_factory=lambda: random.Random(19))
    values: dict[str, int] = field(default_factory=lambda: dict.fromkeys(FILES, 0))
    count: int = 0

    def turns(self) -> Iterator[tuple[str, Sequence[Answer]]]:
        kinds = [*[self.read] * READS, *[self.edit] * 70, *[self.command] * 70, *[self.search] * 50]
        kinds += [self.mistake] * 30
        kinds += [self.batch] * (STEPS - TURNS - len(kinds))
        self.chance.shuffle(kinds)
        for number in range(TURNS):
            replies = [self.reply(kind) for kind in kinds[number::TURNS]]
            yield f"Task {number}.", [*replies, Answer(text=f"Done with {number}.")]

    def reply(self, kind: Callable[[], tuple[str, Mapping[str, object]]]) -> Answer:
        """Return one call, sometimes with a second one that changes nothing."""
        kinds = [kind, self.command] if self.chance.random() < 0.1 else [kind]
        return Answer(text=f"Step {self.count}.", calls=tuple([self.call(*kind()) for kind in kinds]))

    def call(self, name: str, arguments: Mapping[str, object]) -> Call:
        self.count += 1
        spelling = arguments.get("as written")
        return Call(name=name, arguments=str(spelling) if spelling else json.dumps(arguments), id=f"call_{self.count}")

    def read(self) -> tuple[str, Mapping[str, object]]:
        path = self.spell(self.chance.choice(FILES))
        lines: Mapping[str, object] = {"startLine": 1, "endLine": 3} if self.chance.random() < 0.3 else {}
        return "filesystem-read", {"filePath": path, **lines}

    def batch(self) -> tuple[str, Mapping[str, object]]:
        paths = [self.spell(path) for path in self.chance.sample(FILES, 3)]
        return "filesystem-read", {"filePath": [*paths[:2], {"path": paths[2]}, "src/nowhere.py"]}

    def spell(self, path: str) -> str:
        ways = (path, f"./{path}", str(self.folder / path), f"src/../{path}", path.replace("/", "//"))
        return self.chance.choice(ways)

    def edit(self) -> tuple[str, Mapping[str, object]]:
        path = self.chance.choice(FILES)
        before, self.values[path] = self.values[path], self.values[path] + 1
        change = {"searchContent": f"VALUE = {before}\n", "replaceContent": f"VALUE = {before + 1}\n"}
        return "filesystem-edit", {"filePath": path, **change}

    def command(self) -> tuple[str, Mapping[str, object]]:
        return "terminal-execute", {"command": self.chance.choice(COMMANDS)}

    def search(self) -> tuple[str, Mapping[str, object]]:
        return "ace-text_search", {"pattern": self.chance.choice(("VALUE", "def ", "nothing like it")), "maxResults": 9}

    def mistake(self) -> tuple[str, Mapping[str, object]]:
        name, arguments = self.chance.choice(MISTAKES)
        return name, {"as written": arguments}


@dataclass(kw_only=True)
class Played:
    """A session, the next answers, and the pages of its turn."""

    data: Path
    settings: PageSettings
    thread: str = field(default_factory=new_id)
    answers: list[Answer] = field(default_factory=list[Answer])
    pages: list[bytes] = field(default_factory=list[bytes])
    rows: list[tuple[object, ...]] = field(default_factory=list[tuple[object, ...]])

    def answer(self, model_request: Request) -> Answer:
        self.pages.append(model_request.body)
        return self.answers.pop(0)

    def say(self, url: str, words: str, replies: Sequence[Answer]) -> None:
        """Play a turn. Check its pages, and that the log only grew."""
        self.pages.clear()
        self.answers += replies
        run(url, ask(words, thread=self.thread))
        assert len(self.pages) == len(replies)
        log_rows = rows_of(self.log())
        places = [place for place, row in enumerate(log_rows) if row["role"] == "assistant"]
        for place, page in zip(places[-len(self.pages) :], self.pages, strict=True):
            check_page(page, log_rows[:place], self.settings, float("inf"))
        rows = self.stored_rows()
        assert rows[: len(self.rows)] == self.rows
        self.rows = rows

    def log(self) -> Sequence[Entry]:
        return read_log(f"sqlite:///{self.data / 'recto.db'}", self.thread)

    def stored_rows(self) -> list[tuple[object, ...]]:
        with closing(sqlite3.connect(self.data / "recto.db")) as database:
            return list(database.execute("SELECT * FROM log ORDER BY seq"))


def text_of(path: str, value: int) -> str:
    return f'"""{path}"""\nVALUE = {value}\n\n\ndef double():\n    return VALUE * 2\n'


def project(folder: Path) -> Path:
    (folder / "src").mkdir(parents=True)
    for path in FILES:
        (folder / path).write_text(text_of(path, 0), encoding="utf-8")
    return folder


def agents(folder: Path) -> Path:
    """Write the shipped coder with results that are old at once."""
    text = (SHIPPED / "coder" / "AGENT.md").read_text(encoding="utf-8")
    for shipped, changed in NOW_OLD.items():
        assert shipped in text
        text = text.replace(shipped, changed, 1)
    (folder / "coder").mkdir(parents=True)
    (folder / "coder" / "AGENT.md").write_text(text, encoding="utf-8")
    return folder


def counted_reads(log: Sequence[object]) -> int:
    calls = [call for entry in log if isinstance(entry, AssistantMessage) for call in entry.tool_calls]
    names = [paths_named(json.loads(call.arguments), SETTINGS) for call in calls if _is_read(call.name, call.arguments)]
    return sum(1 for paths in names if len(paths) == 1 and Path(paths[0]).name in {Path(path).name for path in FILES})


def _is_read(name: str, arguments: str) -> bool:
    return name == "filesystem-read" and arguments.endswith("}")


def test_R15_R1_to_R10_hold_of_every_page_of_300_steps_of_the_coder_and_the_log_only_grows(tmp_path: Path):
    folder = project(tmp_path / "project")
    script = Script(folder=folder)
    played = Played(data=tmp_path / "data", settings=replace(SETTINGS, root=str(folder)))
    with ModelServer(played.answer, keep=False) as model:
        environment = {
            "RECTO_MODEL": "compatible:scripted",
            "RECTO_MODEL_URL": model.url,
            "RECTO_AGENTS": str(agents(tmp_path / "agents")),
            "RECTO_AGENT": "coder",
        }
        pages = 0
        with ServerProcess.serve(played.data, environment, "--workspace", str(folder), "--mode", "full") as server:
            for words, replies in script.turns():
                played.say(server.url, words, replies)
                pages += len(played.pages)
    log, last = played.log(), played.pages[-1].decode()
    assert pages == STEPS
    assert counted_reads(log) == READS
    assert min(last.count(READ), last.count(COMMAND), last.count(SEARCH)) > 10
    # Errors are never folded: each is in the last page as it is in the log.
    failed = {entry.tool_call_id: words_of(entry) for entry in log if isinstance(entry, ToolMessage) and entry.error}
    results = {one["tool_call_id"]: one["content"] for one in json.loads(last)["messages"] if one["role"] == "tool"}
    assert len(failed) >= 30
    assert {id: results[id] for id in failed} == failed
    assert {path: (folder / path).read_text(encoding="utf-8") for path in FILES} == {
        path: text_of(path, value) for path, value in script.values.items()
    }
