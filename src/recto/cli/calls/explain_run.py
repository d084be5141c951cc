"""`recto explain`: the request of a model call and the reason for each part. Reads the database of a server."""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.metadata import version
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console

from recto.cli import options
from recto.cli.calls.call_report import composition
from recto.cli.calls.call_words import WORDS
from recto.cli.calls.page_views import call_view, calls_table
from recto.cli.command import exit_codes
from recto.cli.data import opened_store, settings_of_server
from recto.cli.hello import language_of_terminal
from recto.config.settings import ServerSettings
from recto.conversation.history import time_text
from recto.conversation.json import Json, Object, dump, load_object
from recto.errors import NotFound, SettingsError
from recto.page.difference import Difference, difference
from recto.page.exports import HAR_END, MadeCall, as_curl, har_beginning, har_entry
from recto.page.shown_parts import shown_rows
from recto.page.steps.compact import CompactSettings

if TYPE_CHECKING:
    from recto.page.prefix import SentPage
    from recto.store.ports import StoredRun
    from recto.store.runs.calls import CallSeen, CallSummary
    from recto.store.store import Store

REPLY = "reply"
SEVERAL = "several users have a run of that name: {names}. Name one with --user"
RunArgument = Annotated[str, typer.Argument(metavar="RUN", help="The run: its taskId, or the runId it was sent with.")]
CallArgument = Annotated[
    int | None, typer.Argument(metavar="CALL", min=1, help="Number of the call, from 1.  [default: its last reply]")
]
EveryPart = Annotated[bool, typer.Option("--every", help="A line for each part, also for those that were kept.")]
CallAsJson = Annotated[bool, typer.Option("--json", help="Print the call, its parts and what changed as JSON.")]
AsCurl = Annotated[bool, typer.Option("--curl", help="Print a command that makes the call again; it holds no key.")]
AsHar = Annotated[bool, typer.Option("--har", help="Print the call as a HAR file; it holds no key.")]


@dataclass(frozen=True, kw_only=True)
class ExplainedCall:
    """A call, its page, the available room, and the difference from the previous call, if any."""

    run: StoredRun
    calls: Sequence[CallSummary]
    seen: CallSeen
    page: SentPage
    room: Object
    before: tuple[str, int] | None = None
    difference: Difference | None = None


def explain(
    run: RunArgument,
    call: CallArgument = None,
    *,
    every: EveryPart = False,
    as_json: CallAsJson = False,
    curl: AsCurl = False,
    har: AsHar = False,
    user: options.ForUser = None,
    data: options.DataDir = None,
    config: options.ServerConfig = None,
) -> None:
    """Show the request of a model call: each part with its tokens and rule, and the changes since the previous call.

    Reads the database of a server, which may be running, and changes nothing. Exit codes: 0 success, 1 failure, 2 usage
    error.
    """
    with exit_codes("explain"):
        if as_json + curl + har > 1:
            raise SettingsError(name="--json", value=True, allowed="choose one of --json, --curl and --har")
        found = asyncio.run(explain_call(settings_of_server(data, config), run, call, user))
    if as_json:
        _write(dump(call_row(found)) + b"\n")
    elif curl:
        _write(as_curl(_made(found).head, found.page.body))
    elif har:
        _write(har_beginning(version("recto")) + dump(har_entry(_made(found))) + HAR_END + b"\n")
    else:
        words = WORDS[language_of_terminal(os.environ)]
        calls = calls_table(_calls(found), found.seen.summary.number, words) if len(found.calls) > 1 else None
        Console(highlight=False).print(call_view(call_row(found), words, calls, every=every))


def _write(data: bytes) -> None:
    sys.stdout.buffer.write(data)
    sys.stdout.buffer.flush()


async def explain_call(settings: ServerSettings, id: str, number: int | None, user: str | None) -> ExplainedCall:
    """Load a call of a run, by default its last reply."""
    from recto.store.runs.calls import sent_page  # here: no other command waits for the database's library

    async with opened_store(settings, is_reader=True) as store:
        run = await _find(store, id, user)
        calls = await store.call_summaries(run.id)
        chosen = number or _last_reply(calls)
        if chosen is None:
            raise NotFound(what=f"call of run {run.id}", id="1")
        seen = await store.look_at_call(run.id, chosen)
        page, before = sent_page(seen), await store.call_before(run.id, chosen)
        earlier = sent_page(await store.look_at_call(*before)) if before else None
    found = difference(earlier, page) if earlier else None
    room = _room(settings, run.agent, seen.summary.model, page.manifest.tokens.tokens)
    return ExplainedCall(run=run, calls=calls, seen=seen, page=page, room=room, before=before, difference=found)


def _room(settings: ServerSettings, name: str, model: str, tokens: int) -> Object:
    """Return window and prices under the current settings: those of the agent, or of the server if it is gone."""
    from recto.agents.folders import load_agents
    from recto.models.prices import load_prices, prices_row

    agent = load_agents(settings.agents, settings.limits, only=name).agents.get(name)
    window = settings.work.window
    compact = agent.compacting(window) if agent else CompactSettings(window=window)
    return {**compact.row(), "prices": prices_row(model, tokens, load_prices(settings.prices))}


async def _find(store: Store, id: str, user: str | None) -> StoredRun:
    if user is not None:
        return await store.find_run(user, id)
    found = await store.find_runs_of_anyone(id)
    if not found:
        raise NotFound(what="run", id=id)
    if len(found) > 1:
        names = ", ".join(sorted(run.owner for run in found))
        raise SettingsError(name="RUN", value=id, allowed=SEVERAL.format(names=names))
    return found[0]


def _last_reply(calls: Sequence[CallSummary]) -> int | None:
    replies = [call.number for call in calls if call.purpose == REPLY]
    return max(replies or [call.number for call in calls], default=None)


def call_row(found: ExplainedCall) -> dict[str, Json]:
    """Return the call as JSON."""
    call, manifest = found.seen.summary, found.page.manifest
    before = {"run": found.before[0], "n": found.before[1]} if found.before else None
    return {
        "run": found.run.id,
        "runId": found.run.name,
        "threadId": found.run.thread,
        "agent": found.run.agent,
        "n": call.number,
        "calls": len(found.calls),
        "purpose": call.purpose,
        "model": call.model,
        "started": time_text(call.started),
        "finish": call.finish,
        "usage": load_object(call.usage) if call.usage else None,
        "price": call.price,
        "error": call.error,
        "digest": call.digest,
        "verified": not found.seen.damaged,
        "bytes": len(found.page.body),
        "tokens": manifest.tokens.tokens,
        "skill": manifest.skill,
        **found.room,
        "composition": dict(composition(manifest)),
        "parts": shown_rows(manifest.rows(), found.page.body),
        "before": before,
        "difference": found.difference.row() if found.difference else None,
    }


def _made(found: ExplainedCall) -> MadeCall:
    from recto.models.choose import request_head

    call = found.seen.summary
    return MadeCall(
        head=request_head(call.model),
        body=found.page.body,
        started=call.started,
        first_token=call.first_token,
        ended=call.ended,
        is_answered=call.finish is not None,
        more={"run": found.run.id, "n": call.number, "purpose": call.purpose, "model": call.model},
    )


def _calls(found: ExplainedCall) -> Sequence[tuple[int, Object]]:
    return [
        (call.number, {**vars(call), "tokens": (load_object(call.manifest or b"") or {}).get("tokens")})
        for call in found.calls
    ]
