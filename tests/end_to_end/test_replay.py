"""Whole coding sessions played through a real server: every page it sends is held to what was said before it.

The model gives the recorded replies, and the agent's tools the recorded results. A call that never got one is a
client's, which the user speaks past.
"""

import asyncio
import json
import sqlite3
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field, replace
from pathlib import Path

import pytest

from recto.cli.sessions.detect import read_session
from recto.cli.sessions.session import Session
from recto.conversation.log import Entry
from recto.conversation.messages import AssistantMessage, ToolCall, ToolMessage, UserMessage, texts_of, words_of
from recto.ids import new_id
from recto.store.store import open_store
from recto.testing.client import ask, run
from recto.testing.model_server import Answer, Call, ModelServer, Request
from recto.testing.process import ServerProcess
from tests.long_session import Known, sessions
from tests.naive_pages import COMMAND, READ, PageSettings, ToolRule, check_page, rows_of

pytestmark = pytest.mark.full

AGENT = """---
tools: []
window: 100000000
limits: {{steps: 1000, tool_characters: 1000000}}
fold:
  root: {root}
  reads: {{tools: [read], path_args: [path]}}
  terminal: {{tools: [bash], minutes: 0}}
---
You write code.
"""
TOOLS = '''
import json
from pathlib import Path

from recto import ToolContext, tool
from recto.errors import ToolError

RESULTS = json.loads(Path(__file__).with_name("results.json").read_text(encoding="utf-8"))


def _recorded(context: ToolContext) -> str:
    text, has_failed = RESULTS[context.call]
    if has_failed:
        raise ToolError(text)
    return text


@tool
def read(path: str, context: ToolContext, offset: int | None = None, limit: int | None = None) -> str:
    """Read a file."""
    return _recorded(context)


@tool
def edit(path: str, oldText: str, newText: str, context: ToolContext) -> str:
    """Change a file."""
    return _recorded(context)


@tool
def write(path: str, content: str, context: ToolContext) -> str:
    """Write a file."""
    return _recorded(context)


@tool
def bash(command: str, context: ToolContext) -> str:
    """Run a command."""
    return _recorded(context)
'''
UNANSWERED = "ask_person"
CLIENT_TOOL = {"name": UNANSWERED, "description": "Ask a person.", "parameters": {"type": "object"}}
# Ages are taken at a time that only the server knows, so a command is old at once.
SETTINGS = PageSettings(
    reads=ToolRule(tools=("read",), placeholder=READ),
    commands=ToolRule(tools=("bash",), placeholder=COMMAND, minutes=0),
    searches=None,
    path_args=("path",),
)
LATER = float("inf")
LONGEST_WORDS = 10_000


@dataclass(kw_only=True)
class Turn:
    """What a person says, and the replies it gets. `is_over` says that the last of them ended the run."""

    words: str
    replies: list[Answer] = field(default_factory=list[Answer])
    is_over: bool = False


def turns_of(session: Session, results: Mapping[str, object]) -> Iterator[Turn]:
    """The turns of a session, each of which ends with words or with a call that is never answered."""
    turn = Turn(words="")
    for message in session.messages:
        if isinstance(message, UserMessage):
            if turn.replies:
                yield ended(turn)
                turn = Turn(words="")
            turn.words += f"{words_of(message)}\n"
        elif isinstance(message, AssistantMessage) and (words_of(message).strip() or message.tool_calls):
            if turn.is_over:
                yield turn
                turn = Turn(words="Go on.")
            calls = [played(call, results) for call in message.tool_calls]
            turn.replies.append(Answer(text=words_of(message), calls=tuple(calls)))
            turn.is_over = not calls or any(call.name == UNANSWERED for call in calls)
    if turn.replies:
        yield ended(turn)


def ended(turn: Turn) -> Turn:
    return turn if turn.is_over else Turn(words=turn.words, replies=[*turn.replies, Answer(text="Stopped.")])


def played(call: ToolCall, results: Mapping[str, object]) -> Call:
    is_answered = call.id in results
    arguments = call.arguments if is_answered else "{}"
    return Call(name=call.name if is_answered else UNANSWERED, arguments=arguments, id=call.id)


@dataclass(kw_only=True)
class Played:
    """A session on its way through a server: what the model is to say, and the pages it got for the turn."""

    data: Path
    settings: PageSettings
    thread: str = field(default_factory=new_id)
    answers: list[Answer] = field(default_factory=list[Answer])
    pages: list[bytes] = field(default_factory=list[bytes])
    rows: list[tuple[object, ...]] = field(default_factory=list[tuple[object, ...]])

    def answer(self, asked: Request) -> Answer:
        self.pages.append(asked.body)
        return self.answers.pop(0)

    def say(self, url: str, turn: Turn) -> None:
        """Play a turn, and check each of its pages; and that the log has all it had, byte for byte."""
        self.pages.clear()
        self.answers += turn.replies
        run(url, ask(turn.words.strip()[:LONGEST_WORDS], thread=self.thread, tools=[CLIENT_TOOL]))
        assert len(self.pages) == len(turn.replies)
        said = rows_of(self.log())
        replies = [place for place, row in enumerate(said) if row["role"] == "assistant"]
        for place, page in zip(replies[-len(self.pages) :], self.pages, strict=True):
            check_page(page, said[:place], self.settings, LATER)
        rows = self.stored()
        assert rows[: len(self.rows)] == self.rows
        self.rows = rows

    def log(self) -> Sequence[Entry]:
        return asyncio.run(self._log())

    async def _log(self) -> Sequence[Entry]:
        store = await open_store(f"sqlite:///{self.data / 'recto.db'}")
        try:
            return await store.log_after(self.thread)
        finally:
            await store.close()

    def stored(self) -> list[tuple[object, ...]]:
        """The rows of the log as the database has them."""
        with closing(sqlite3.connect(self.data / "recto.db")) as database:
            return list(database.execute("SELECT * FROM log ORDER BY seq"))


def agents(folder: Path, session: Session, results: Mapping[str, object]) -> Path:
    agent = folder / "agents" / "coder"
    agent.mkdir(parents=True)
    (agent / "AGENT.md").write_text(AGENT.format(root=session.root), encoding="utf-8")
    (agent / "tools.py").write_text(TOOLS, encoding="utf-8")
    (agent / "results.json").write_text(json.dumps(results), encoding="utf-8")
    return agent.parent


def results_of(session: Session) -> dict[str, tuple[str, bool]]:
    """What each call was answered, and whether it failed."""
    found = [message for message in session.messages if isinstance(message, ToolMessage)]
    return {one.tool_call_id: ("".join(texts_of(one)), one.error is not None) for one in found}


def played_sessions() -> list[Known]:
    """One that is made, and the recorded one where it is there. The others differ in how they are written down."""
    return [known for known in sessions() if known.name in ("pi", "recorded")]


@pytest.mark.parametrize("known", played_sessions(), ids=lambda known: known.name)
def test_R1_to_R10_hold_of_every_page_of_a_session_that_is_played_through_a_server(known: Known, tmp_path: Path):
    session = read_session(known.data, source=known.name)
    results = results_of(session)
    played = Played(data=tmp_path / "data", settings=replace(SETTINGS, root=session.root))
    with ModelServer(played.answer, keep=False) as model:
        environment = {
            "RECTO_MODEL": "compatible:scripted",
            "RECTO_MODEL_URL": model.url,
            "RECTO_AGENTS": str(agents(tmp_path, session, results)),
            "RECTO_AGENT": "coder",
        }
        with ServerProcess.serve(played.data, environment) as server:
            for turn in turns_of(session, results):
                played.say(server.url, turn)
    last = played.pages[-1].decode()
    assert last.count(READ) == known.folds["R2"]
    assert last.count(COMMAND) > known.folds["R8"]
    log = played.log()
    lost = [call for entry in log if isinstance(entry, AssistantMessage) for call in entry.tool_calls]
    assert sum(call.name == UNANSWERED for call in lost) == known.unanswered
    assert UNANSWERED not in str(json.loads(last)["messages"])
    # What is stored is what was recorded.
    stored = [entry for entry in log if isinstance(entry, ToolMessage)]
    assert len(stored) == len(results)
    for entry in stored:
        assert "".join(texts_of(entry)).startswith(results[entry.tool_call_id][0])
