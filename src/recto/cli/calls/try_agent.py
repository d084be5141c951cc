"""`recto agents try`: one turn with an agent, on a temporary server."""

from __future__ import annotations

import asyncio
import os
import signal
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import zip_longest
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from recto.cli import options
from recto.cli.command import FAILED, exit_codes, stop
from recto.cli.logs import Secrets, set_up_logs
from recto.cli.serve import secrets_of
from recto.cli.server_settings import load_settings
from recto.config.access_settings import AuthSettings
from recto.config.settings import ServerSettings
from recto.conversation.json import Json
from recto.errors import ClientError, RectoError, SettingsError
from recto.ids import new_id

if TYPE_CHECKING:
    from recto.cli.calls.explain_run import ExplainedCall
    from recto.cli.server_entry import ServerEntry
    from recto.client import CallToApprove

COMMAND = "agents try"
NO_AGENT = "there is neither AGENT.md nor tools.py nor skills in it. Name the folder of one agent"
RESULT = "TOOL_CALL_RESULT"
WAITS = "It waits for a person to agree to a call. With --agree the call is made."


@dataclass(frozen=True, kw_only=True)
class TriedTurn:
    """Result of the turn: run ids, events per reply, answer and problem."""

    runs: Sequence[str] = ()
    heard: Sequence[Sequence[Mapping[str, Json]]] = ()
    answer: str = ""
    outcome: str = ""
    problem: Exception | None = None


@dataclass(frozen=True, kw_only=True)
class Trial:
    """The message to send, and the result once the turn has ended."""

    words: str
    skill: str | None
    agree: bool
    ended: list[TriedTurn] = field(default_factory=list[TriedTurn])

    def say(self, url: str, token: str | None) -> None:
        """Send the message to the server, then stop the server."""
        from recto.client import Client

        turn = Client(url=url, token=token, approve=_agree if self.agree else None).chat(self.words, skill=self.skill)
        events, problem = list[Mapping[str, Json]](), None
        try:
            for event in turn.events():
                events.append(event)
        except RectoError as error:
            problem = error
        finally:
            runs = tuple([str(event["runId"]) for event in events if event["type"] == "RUN_STARTED"])
            told = TriedTurn(runs=runs, heard=tuple(_by_reply(events)), answer=turn.text, outcome=turn.outcome)
            self.ended.append(replace(told, problem=problem))
            signal.raise_signal(signal.SIGINT)


def try_agent(
    context: typer.Context,
    folder: options.AgentToTry,
    words: options.WordsToSay,
    *,
    model: options.TriedModel = None,
    skill: options.SkillName = None,
    agree: options.AgreeToAll = False,
) -> None:
    """Send a message to an agent. Print the page, reasons, tool calls and results of each model call, and the answer.

    Starts a server with the settings of this environment and recto.toml, and a temporary data folder. Exit codes: 0
    success, 1 the agent or the turn failed, 2 usage error.
    """
    entry: ServerEntry = context.obj
    trial = Trial(words=words, skill=skill, agree=agree)
    with tempfile.TemporaryDirectory(prefix="recto-try-") as made:
        with exit_codes(COMMAND):
            settings = _settings(folder, Path(made), model)
        try:
            entry.serve(settings, trial.say, None)
            turn = trial.ended[0] if trial.ended else TriedTurn(problem=ClientError("it was stopped before its end."))
            _print(turn, asyncio.run(_pages(settings, turn)))
        except (RectoError, OSError) as error:
            raise stop(COMMAND, error, FAILED) from error
    if turn.problem:
        raise stop(COMMAND, turn.problem, FAILED)


def _settings(folder: Path, made: Path, model: str | None) -> ServerSettings:
    """Return the user's settings with temporary storage and access."""
    if not any((folder / name).exists() for name in ("AGENT.md", "tools.py", "skills")):
        raise SettingsError(name="FOLDER", value=str(folder), allowed=NO_AGENT)
    name, agents = folder.resolve().name, made / "agents"
    agents.mkdir()
    (agents / name).symlink_to(folder.resolve(), target_is_directory=True)
    flags = {"host": "127.0.0.1", "port": 0, "data": made / "data", "agents": agents, "agent": name, "model": model}
    settings = load_settings(flags, os.environ, None)
    set_up_logs("error", "text", Secrets(secrets_of(settings, os.environ)))
    kept = {"database_url": None, "storage_url": None, "auth": AuthSettings(token=new_id())}
    return replace(settings, has_one_model=model is not None, **kept)


def _agree(_: CallToApprove) -> bool:
    return True


def _by_reply(events: Sequence[Mapping[str, Json]]) -> Iterator[Sequence[Mapping[str, Json]]]:
    """Yield the tool events of each reply."""
    told = [event for event in events if str(event["type"]).startswith(("TOOL_CALL", "TEXT_MESSAGE_START"))]
    reply = list[Mapping[str, Json]]()
    for event in told:
        if reply and reply[-1]["type"] == RESULT != event["type"]:
            yield reply
            reply = []
        reply.append(event)
    yield reply


async def _pages(settings: ServerSettings, turn: TriedTurn) -> list[ExplainedCall]:
    """Return the model calls of the turn from the temporary database."""
    from recto.cli.calls.explain_run import REPLY, explain_call

    found: list[ExplainedCall] = []
    for run in dict.fromkeys(turn.runs):
        calls = (await explain_call(settings, run, None, None)).calls
        found += [await explain_call(settings, run, one.number, None) for one in calls if one.purpose == REPLY]
    return found


def _print(turn: TriedTurn, pages: Sequence[ExplainedCall]) -> None:
    from rich.console import Console
    from rich.text import Text

    from recto.cli.calls.call_report import left_out, part_lines, parts_table, shown_page
    from recto.cli.calls.call_words import ENGLISH
    from recto.cli.calls.explain_run import call_row

    console = Console(highlight=False, markup=False, emoji=False)
    for number, (call, events) in enumerate(zip_longest(pages, turn.heard, fillvalue=None), 1):
        if call:
            page = shown_page(call_row(call))
            console.print(f"Page {number}: {page.manifest.tokens.tokens:,} tokens for {call.seen.summary.model}")
            console.print(parts_table(list(part_lines(page, ENGLISH, every=True)), ENGLISH))
            console.print(left_out(page.manifest, ENGLISH))
        for line in _lines(events or ()):
            console.print(Text(line), soft_wrap=True)
        console.print()
    if turn.outcome == "interrupt":
        console.print(WAITS)
    elif not turn.problem:
        console.print(f"Answer ({turn.outcome})")
        console.print(Text(turn.answer), soft_wrap=True)


def _lines(events: Sequence[Mapping[str, Json]]) -> Iterator[str]:
    """Describe tool calls and results."""
    names, arguments = dict[str, str](), dict[str, str]()
    for event in events:
        id = str(event.get("toolCallId"))
        match event:
            case {"type": "TOOL_CALL_START", "toolCallName": str(name)}:
                names[id] = name
            case {"type": "TOOL_CALL_ARGS", "delta": str(delta)}:
                arguments[id] = arguments.get(id, "") + delta
            case {"type": "TOOL_CALL_END"}:
                yield f"calls {names.get(id)} {arguments.get(id, '{}')}"
            case {"type": "TOOL_CALL_RESULT", "content": str(content)}:
                yield f"gets {content}"
            case _:
                pass
