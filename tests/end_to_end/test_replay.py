"""R1-R10: a whole coding session is played through a server, and each page is held to what was said before it.

The model gives the replies of the session, and the agent's tools its results. A call that never got one is a client's,
which the user speaks past.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from recto.cli.sessions.reader import read_session
from recto.cli.sessions.session import Session
from recto.conversation.log import Entry
from recto.conversation.messages import AssistantMessage, ToolCall, ToolMessage, UserMessage, texts_of, words_of
from recto.ids import new_id
from recto.testing.model_server import Answer, Call
from tests.flow.in_process import InProcess, in_process
from tests.long_session import sessions
from tests.naive_pages import COMMAND, READ, PageSettings, ToolRule, check_page, rows_of

pytestmark = pytest.mark.full

AGENT = """window: 100000000
limits: {{steps: 1000, tool_characters: 1000000}}
fold:
  root: {root}
  reads: {{tools: [read], path_args: [path]}}
  terminal: {{tools: [bash], minutes: 0}}"""
TOOLS = '''
from recto import ToolContext, tool
from recto.errors import ToolError

RESULTS = {results!r}


def _recorded(context: ToolContext) -> str:
    text, has_failed = RESULTS[context.call]
    if has_failed:
        raise ToolError(text)
    return text


@tool
def read(path: str, context: ToolContext) -> str:
    """Read a file."""
    return _recorded(context)


@tool
def edit(path: str, oldText: str, newText: str, context: ToolContext) -> str:
    """Change a file."""
    return _recorded(context)


@tool
def bash(command: str, context: ToolContext) -> str:
    """Run a command."""
    return _recorded(context)
'''
UNANSWERED = "ask_person"
CLIENT_TOOL = {"name": UNANSWERED, "description": "Ask a person.", "parameters": {"type": "object"}}
# Ages are taken at a time that only the server knows, so a command is old at once.
LATER = float("inf")


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
                yield turn
                turn = Turn(words="")
            turn.words += f"{words_of(message)}\n"
        elif isinstance(message, AssistantMessage) and (words_of(message).strip() or message.tool_calls):
            if turn.is_over:
                yield turn
                turn = Turn(words="Go on.")
            calls = tuple([played(call, results) for call in message.tool_calls])
            turn.replies.append(Answer(text=words_of(message), calls=calls))
            turn.is_over = not calls or any(call.name == UNANSWERED for call in calls)
    yield turn


def played(call: ToolCall, results: Mapping[str, object]) -> Call:
    if call.id in results:
        return Call(name=call.name, arguments=call.arguments, id=call.id)
    return Call(name=UNANSWERED, id=call.id)


async def play(server: InProcess, thread: str, turn: Turn, settings: PageSettings) -> None:
    """Play a turn, and check each of its pages, and that the log has all it had."""
    before, count_before = await server.log(thread), len(server.model.requests)
    await server.run(turn.words.strip(), *turn.replies, thread=thread, tools=[CLIENT_TOOL])
    pages, after = server.model.requests[count_before:], await server.log(thread)
    assert len(pages) == len(turn.replies)
    assert list(after[: len(before)]) == list(before)
    rows = rows_of(after)
    replies = [place for place, row in enumerate(rows) if row["role"] == "assistant"]
    for place, page in zip(replies[-len(pages) :], pages, strict=True):
        check_page(page.body, rows[:place], settings, LATER)


async def test_R1_to_R10_hold_of_every_page_of_a_session_that_is_played_through_a_server(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    traced = next(one for one in sessions() if one.name == "pi")
    session, thread = read_session(traced.data, source=traced.name), new_id()
    tool_messages = [message for message in session.messages if isinstance(message, ToolMessage)]
    results = {one.tool_call_id: ("".join(texts_of(one)), one.error is not None) for one in tool_messages}
    settings = PageSettings(
        reads=ToolRule(tools=("read",), placeholder=READ),
        commands=ToolRule(tools=("bash",), placeholder=COMMAND, minutes=0),
        searches=None,
        path_args=("path",),
        root=session.root,
    )
    agent, tools = AGENT.format(root=session.root), TOOLS.replace("{results!r}", repr(results))
    async with in_process(tmp_path, monkeypatch, settings=agent, tools=tools, built_in="") as server:
        for turn in turns_of(session, results):
            await play(server, thread, turn, settings)
        last, log = server.model.requests[-1].body.decode(), await server.log(thread)
    assert last.count(READ) == traced.folds["R2"]
    assert last.count(COMMAND) > traced.folds["R8"]
    assert unanswered_in(log) == traced.unanswered
    # Its name stands once: where the tool is offered.
    assert last.count(UNANSWERED) == 1
    assert_recorded(log, results)


def unanswered_in(log: Sequence[Entry]) -> int:
    calls = [call for entry in log if isinstance(entry, AssistantMessage) for call in entry.tool_calls]
    return sum(call.name == UNANSWERED for call in calls)


def assert_recorded(log: Sequence[Entry], results: Mapping[str, tuple[str, bool]]) -> None:
    """Assert that every recorded result is stored."""
    texts_by_id = {entry.tool_call_id: "".join(texts_of(entry)) for entry in log if isinstance(entry, ToolMessage)}
    assert texts_by_id.keys() == results.keys()
    assert all(texts_by_id[id].startswith(text) for id, (text, _) in results.items())
