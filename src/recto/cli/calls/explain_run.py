"""`recto explain`: the request of a model call and the reason for each part."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.metadata import version
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console

from recto.cli import options
from recto.cli.calls.call_report import composition
from recto.cli.calls.page_views import call_view, calls_table
from recto.cli.command import exit_codes
from recto.cli.data import load_server_settings, open_existing_store
from recto.cli.translation import _
from recto.config.settings import ServerSettings
from recto.conversation.history import time_text
from recto.conversation.json import Json, Object, dump, load_object
from recto.errors import NotFound, SettingsError
from recto.page.difference import Difference, difference
from recto.page.exports import HAR_END, ExportedCall, as_curl, har_beginning, har_entry
from recto.page.manifest_rows import shown_rows
from recto.page.steps.compact import CompactSettings

if TYPE_CHECKING:
    from recto.page.prefix import SentPage
    from recto.store.ports import StoredRun
    from recto.store.runs.calls import CallSummary, CheckedCall
    from recto.store.store import Store

REPLY = "reply"
RunArgument = Annotated[str, typer.Argument(metavar="RUN", help="Task id or run id.")]
CallArgument = Annotated[
    int | None, typer.Argument(metavar="CALL", min=1, help="Number of the call, from 1.  [default: last reply]")
]
EveryPart = Annotated[bool, typer.Option("--every", help="List each part, also unchanged ones.")]
CallAsJson = Annotated[bool, typer.Option("--json", help="Print the call, its parts and changes as JSON.")]
AsCurl = Annotated[bool, typer.Option("--curl", help="Print a curl command for the call, without the key.")]
AsHar = Annotated[bool, typer.Option("--har", help="Print the call as a HAR file, without the key.")]


@dataclass(frozen=True, kw_only=True)
class CallExplanation:
    """A call with its page, its context window and prices, and the difference from the previous call, if any."""

    run: StoredRun
    calls: Sequence[CallSummary]
    stored_call: CheckedCall
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
    """Show the request of a model call and the reason for each part.

    Lists the parts with their tokens and rules, and the changes since the previous call. Reads the database of a
    server, which may be running. Exit codes: 0 success, 1 failure, 2 usage error.
    """
    with exit_codes("explain"):
        if as_json + curl + har > 1:
            raise SettingsError(name="--json", value=True, allowed="choose one of --json, --curl and --har")
        explanation = asyncio.run(explain_call(load_server_settings(data, config), run, call, user))
    if as_json:
        _write(dump(call_row(explanation)) + b"\n")
    elif curl:
        _write(as_curl(_export(explanation).head, explanation.page.body))
    elif har:
        _write(har_beginning(version("recto")) + dump(har_entry(_export(explanation))) + HAR_END + b"\n")
    else:
        current = explanation.stored_call.summary.number
        calls = (
            calls_table(
                [
                    (call.number, {**vars(call), "tokens": (load_object(call.manifest or b"") or {}).get("tokens")})
                    for call in explanation.calls
                ],
                current,
            )
            if len(explanation.calls) > 1
            else None
        )
        title = _("Call {n} of {calls} of run {run}")
        Console(highlight=False).print(call_view(call_row(explanation), title, calls, every=every))


def _write(data: bytes) -> None:
    sys.stdout.buffer.write(data)
    sys.stdout.buffer.flush()


async def explain_call(settings: ServerSettings, id: str, number: int | None, user: str | None) -> CallExplanation:
    """Load a call of a run, by default its last reply."""
    from recto.store.runs.calls import sent_page  # slow to import

    async with open_existing_store(settings, is_reader=True) as store:
        run = await _find_run(store, id, user)
        calls = await store.calls.list_summaries(run.id)
        call_number = number or max(
            [call.number for call in calls if call.purpose == REPLY] or [call.number for call in calls], default=None
        )
        if call_number is None:
            raise NotFound(what=f"call of run {run.id}", id="1")
        stored_call = await store.calls.read(run.id, call_number)
        page, before = sent_page(stored_call), await store.calls.find_previous(run.id, call_number)
        earlier = sent_page(await store.calls.read(*before)) if before else None
    changes = difference(earlier, page) if earlier else None
    from recto.agents.folders import load_agents
    from recto.models.prices import load_prices, prices_row

    agent = load_agents(settings.agents, settings.limits, only=run.agent).agents.get(run.agent)
    window = settings.work.window
    compact = agent.compacting(window) if agent else CompactSettings(window=window)
    room = {
        **compact.row(),
        "prices": prices_row(stored_call.summary.model, page.manifest.tokens.tokens, load_prices(settings.prices)),
    }
    return CallExplanation(
        run=run, calls=calls, stored_call=stored_call, page=page, room=room, before=before, difference=changes
    )


async def _find_run(store: Store, id: str, user: str | None) -> StoredRun:
    if user is not None:
        return await store.runs.find(user, id)
    runs = await store.runs.find_of_any_user(id)
    if not runs:
        raise NotFound(what="run", id=id)
    if len(runs) > 1:
        names = ", ".join(sorted(run.owner for run in runs))
        allowed = f"several users have a run with this name: {names}. Choose one with --user"
        raise SettingsError(name="RUN", value=id, allowed=allowed)
    return next(iter(runs))


def call_row(explanation: CallExplanation) -> dict[str, Json]:
    """Return the call as JSON."""
    call, manifest = explanation.stored_call.summary, explanation.page.manifest
    before = {"run": explanation.before[0], "n": explanation.before[1]} if explanation.before else None
    return {
        "run": explanation.run.id,
        "runId": explanation.run.name,
        "threadId": explanation.run.thread,
        "agent": explanation.run.agent,
        "n": call.number,
        "calls": len(explanation.calls),
        "purpose": call.purpose,
        "model": call.model,
        "started": time_text(call.started),
        "finish": call.finish,
        "usage": load_object(call.usage) if call.usage else None,
        "price": call.price,
        "error": call.error,
        "digest": call.digest,
        "verified": not explanation.stored_call.damaged,
        "bytes": len(explanation.page.body),
        "tokens": manifest.tokens.tokens,
        "skill": manifest.skill,
        **explanation.room,
        "composition": dict(composition(manifest)),
        "parts": shown_rows(manifest.rows(), explanation.page.body),
        "before": before,
        "difference": explanation.difference.row() if explanation.difference else None,
    }


def _export(explanation: CallExplanation) -> ExportedCall:
    from recto.models.choose import request_head

    call = explanation.stored_call.summary
    return ExportedCall(
        head=request_head(call.model),
        body=explanation.page.body,
        started=call.started,
        first_token=call.first_token,
        ended_at=call.ended,
        is_answered=call.finish is not None,
        more={"run": explanation.run.id, "n": call.number, "purpose": call.purpose, "model": call.model},
    )
