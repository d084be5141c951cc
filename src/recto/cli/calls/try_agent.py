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
from recto.cli.log_output import Secrets, set_up_logs
from recto.cli.serve import secrets_of
from recto.cli.server_settings import load_settings
from recto.cli.translation import _, code_name
from recto.config.access_settings import AuthSettings
from recto.config.settings import ServerSettings
from recto.conversation.json import Json
from recto.errors import ClientError, RectoError, SettingsError
from recto.ids import new_id

if TYPE_CHECKING:
    from recto.cli.calls.explain_run import CallExplanation
    from recto.cli.server_entry import ServerEntry
    from recto.client import CallToApprove

COMMAND = "agents try"
RESULT = "TOOL_CALL_RESULT"


@dataclass(frozen=True, kw_only=True)
class TurnResult:
    """Result of the turn: run ids, tool events per reply, answer, outcome and problem."""

    runs: Sequence[str] = ()
    replies: Sequence[Sequence[Mapping[str, Json]]] = ()
    answer: str = ""
    outcome: str = ""
    problem: Exception | None = None


@dataclass(frozen=True, kw_only=True)
class AgentTrial:
    """The message to send, and the result once the turn has ended."""

    text: str
    skill: str | None
    is_approved: bool
    results: list[TurnResult] = field(default_factory=list[TurnResult])

    def send(self, url: str, token: str | None) -> None:
        """Send the message to the server, then stop the server."""
        from recto.client import Client

        def approve(_call: CallToApprove) -> bool:
            return True

        client = Client(url=url, token=token, approve=approve if self.is_approved else None)
        turn = client.chat(self.text, skill=self.skill)
        events, problem = list[Mapping[str, Json]](), None
        try:
            for event in turn.events():
                events.append(event)
        except RectoError as error:
            problem = error
        finally:
            runs = tuple([str(event["runId"]) for event in events if event["type"] == "RUN_STARTED"])
            # Group the tool events by reply.
            replies: list[list[Mapping[str, Json]]] = [[]]
            for event in events:
                if str(event["type"]).startswith(("TOOL_CALL", "TEXT_MESSAGE_START")):
                    if replies[-1] and replies[-1][-1]["type"] == RESULT != event["type"]:
                        replies.append([])
                    replies[-1].append(event)
            self.results.append(
                TurnResult(runs=runs, replies=replies, answer=turn.text, outcome=turn.outcome, problem=problem)
            )
            signal.raise_signal(signal.SIGINT)


def try_agent(
    context: typer.Context,
    folder: options.AgentToTry,
    text: options.MessageText,
    *,
    model: options.TryModel = None,
    skill: options.SkillName = None,
    agree: options.ApproveAll = False,
) -> None:
    """Send a message to an agent. Print the page, reasons, tool calls and results of each model call, and the answer.

    Starts a server with the settings of this environment and recto.toml, and a temporary data folder. Exit codes: 0
    success, 1 the agent or the turn failed, 2 usage error.
    """
    entry: ServerEntry = context.obj
    trial = AgentTrial(text=text, skill=skill, is_approved=agree)
    with tempfile.TemporaryDirectory(prefix="recto-try-") as temporary:
        with exit_codes(COMMAND):
            settings = _settings(folder, Path(temporary), model)
        try:
            entry.serve(settings, trial.send, None)
            stopped = TurnResult(problem=ClientError("the server stopped before the turn ended."))
            turn = trial.results[0] if trial.results else stopped
            _print(turn, asyncio.run(_load_calls(settings, turn)))
        except (RectoError, OSError) as error:
            raise stop(COMMAND, error, FAILED) from error
    if turn.problem:
        raise stop(COMMAND, turn.problem, FAILED)


def _settings(folder: Path, temporary: Path, model: str | None) -> ServerSettings:
    """Return the user's settings with temporary storage and access."""
    if not any((folder / name).exists() for name in ("AGENT.md", "tools.py", "skills")):
        allowed = "it contains no AGENT.md, tools.py or skills. Name the folder of an agent"
        raise SettingsError(name="FOLDER", value=str(folder), allowed=allowed)
    name, agents = folder.resolve().name, temporary / "agents"
    agents.mkdir()
    (agents / name).symlink_to(folder.resolve(), target_is_directory=True)
    flags = {
        "host": "127.0.0.1",
        "port": 0,
        "data": temporary / "data",
        "agents": agents,
        "agent": name,
        "model": model,
    }
    settings = load_settings(flags, os.environ, None)
    set_up_logs("error", "text", Secrets(secrets_of(settings, os.environ)))
    overrides = {"database_url": None, "storage_url": None, "auth": AuthSettings(token=new_id())}
    return replace(settings, has_one_model=model is not None, **overrides)


async def _load_calls(settings: ServerSettings, turn: TurnResult) -> list[CallExplanation]:
    """Return the model calls of the turn from the temporary database."""
    from recto.cli.calls.explain_run import REPLY, explain_call

    runs = [(run, await explain_call(settings, run, None, None)) for run in dict.fromkeys(turn.runs)]
    numbers = [(run, call.number) for run, explanation in runs for call in explanation.calls if call.purpose == REPLY]
    return [await explain_call(settings, run, number, None) for run, number in numbers]


def _print(turn: TurnResult, calls: Sequence[CallExplanation]) -> None:
    from rich.console import Console
    from rich.text import Text

    from recto.cli.calls.call_report import left_out, part_lines, parts_table, read_page_report
    from recto.cli.calls.explain_run import call_row

    console = Console(highlight=False, markup=False, emoji=False)
    for number, (call, events) in enumerate(zip_longest(calls, turn.replies, fillvalue=None), 1):
        if call:
            page = read_page_report(call_row(call))
            text, model = _("Page {number}: {tokens:,} tokens for {model}"), call.stored_call.summary.model
            console.print(text.format(number=number, tokens=page.manifest.tokens.tokens, model=model))
            console.print(parts_table(list(part_lines(page, every=True))))
            console.print(left_out(page.manifest))
        for line in _lines(events or ()):
            console.print(Text(line), soft_wrap=True)
        console.print()
    if turn.outcome == "interrupt":
        console.print(_("A tool call needs approval. Run with --agree to approve all calls."))
    elif not turn.problem:
        console.print(_("Answer ({outcome})").format(outcome=code_name(turn.outcome)))
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
                yield _("calls") + f" {names.get(id)} {arguments.get(id, '{}')}"
            case {"type": "TOOL_CALL_RESULT", "content": str(content)}:
                yield _("result") + f" {content}"
            case _:
                pass
