"""The `/context` and `/explain N` reports of the terminal."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace
from typing import TypeAlias
from urllib.parse import quote

from rich.console import RenderableType
from rich.text import Text

from recto.cli.calls.call_words import WORDS, Language
from recto.cli.calls.page_views import call_view, calls_table, context_view, with_manifest
from recto.conversation.json import Object, objects
from recto.errors import RequestRefused

# Sends an API request: path and optional body. Raises RequestRefused.
Ask: TypeAlias = Callable[[str, Object | None], Awaitable[Object]]
NOT_FOUND = 404
# Largest page size of the API, and number of calls to list.
MOST_CALLS, LISTED = 500, 10


async def look_at_context(ask: Ask, thread: str, agent: str | None, language: Language) -> RenderableType:
    """Report on the next page of a thread; a new thread has the page of its agent."""
    props = {"forwardedProps": {"agent": agent}} if agent else {}
    return context_view(with_manifest(await ask(f"/threads/{thread}/preview", props)), WORDS[language])


async def look_at_call(ask: Ask, thread: str, number: int, language: Language) -> RenderableType:
    """Report on a call, counted from the newest (1), and its difference from the previous one."""
    words = WORDS[language]
    calls = await _calls(ask, thread)
    if not calls:
        return Text(words.no_calls)
    if not 1 <= number <= len(calls):
        return Text(words.no_such_call.format(n=number, calls=len(calls)))
    row = await _explained(ask, calls, number - 1)
    first = max(0, min(number - LISTED // 2, len(calls) - LISTED))
    listed = [(place + 1, calls[place]) for place in range(first, min(first + LISTED, len(calls)))]
    table = calls_table(listed, number, words) if len(calls) > 1 else None
    return call_view(row, replace(words, call=words.call_from_newest), table)


async def _calls(ask: Ask, thread: str) -> Sequence[Object]:
    """Return the calls of a thread, newest first; empty for an unknown thread."""
    try:
        found = await ask(f"/threads/{thread}/calls?limit={MOST_CALLS}", None)
    except RequestRefused as error:
        if error.status != NOT_FOUND:
            raise
        return ()
    return [row for _, row in objects(found.get("calls"), "calls")]


async def _explained(ask: Ask, calls: Sequence[Object], place: int) -> Object:
    """Return a call as in `recto explain --json`, with call numbers counted from the newest."""
    run, n, purpose = (calls[place][name] for name in ("run", "n", "purpose"))
    seen, of_run = await ask(f"/runs/{run}/calls/{n}", None), await ask(f"/runs/{run}", None)
    row = {**with_manifest(seen), "run": run, "agent": of_run["agent"], "n": place + 1, "calls": len(calls)}
    before = next((at for at in range(place + 1, len(calls)) if calls[at]["purpose"] == purpose), None)
    if before is None:
        return row
    path = f"/runs/{calls[before]['run']}/calls/{calls[before]['n']}/diff/{n}?run={quote(str(run))}"
    return {**row, "before": {"run": run, "n": before + 1}, "difference": await ask(path, None)}
