"""Routes of model calls (X1): page, manifest, cost and verification."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import suppress
from importlib.metadata import version
from typing import Annotated, Literal, cast

from pydantic import BaseModel, ConfigDict, RootModel
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse
from typing_extensions import TypedDict

from recto.api.backend import Backend, backend_of, is_operator, json_answer, user_of
from recto.api.parameters import in_path, in_query
from recto.api.route import TASK, TIME, Route
from recto.api.runs.client_threads import own_thread
from recto.api.runs.routes import RUNS, RunId, find_run
from recto.api.threads.routes import ONE, ThreadId
from recto.config.run_settings import WorkSettings
from recto.conversation.history import time_text
from recto.conversation.json import Json, dump, load, load_object
from recto.errors import NotFound
from recto.models.choose import request_head
from recto.models.prices import prices_row
from recto.page.difference import difference
from recto.page.exports import HAR_END, MadeCall, as_curl, har_beginning, har_entry
from recto.page.shown_parts import shown_rows
from recto.page.steps.compact import CompactSettings
from recto.store.ports import StoredRun
from recto.store.runs.calls import CallSeen, CallSummary, ThreadCall, page_of, sent_page

CALLS = f"{RUNS}/{{id}}/calls"
MOST_CALLS, USUAL_CALLS = 500, 200
FAILED = "The call gave no whole reply. Operators of this server see why."
SHELL, JSON = "text/plain; charset=utf-8", "application/json"
CallNumber = Annotated[int, in_path("The number of the call in its run, from 1.", ge=1, le=2**31 - 1)]
OtherNumber = Annotated[int, in_path("The number of the later call, in its run.", ge=1, le=2**31 - 1)]
OtherRun = Annotated[str | None, in_query("The run of the later call, where it is another: its id, as in the path.")]
CallForm = Annotated[
    Literal["curl", "har"] | None,
    in_query("`curl`: a command that makes the call again; `har`: a HAR file. Neither holds a key.", alias="as"),
]
CallsForm = Annotated[Literal["har"] | None, in_query("`har`: all of them with their pages, a HAR file.", alias="as")]


class CallRow(TypedDict):
    """A model call. `price` is in billionths of the currency."""

    n: int
    purpose: str
    model: str
    started: str
    firstToken: str | None
    ended: str | None
    finish: str | None
    usage: Mapping[str, object] | None
    price: int | None
    tokens: int | None
    digest: str
    error: str | None


class CallsShape(TypedDict):
    """The model calls of a run, in order."""

    calls: Sequence[CallRow]


class ThreadCallRow(CallRow):
    """A model call of a thread. `run` is the task id of its run, `saved` the tokens left out of its page."""

    run: str
    saved: int | None


class ThreadCallsShape(TypedDict):
    """The newest model calls of all runs of a thread, newest first."""

    calls: Sequence[ThreadCallRow]


class PricesShape(TypedDict):
    """Prices of a million prompt tokens, uncached and cached."""

    currency: str
    input: float
    cached: float


class RoomShape(TypedDict):
    """Limits of a page under the current settings: the model's window, the tokens at which compaction starts, and
    prices (null if unknown).
    """

    window: int
    compactAt: int
    prices: PricesShape | None


class CallShape(CallRow, RoomShape):
    """A model call with its page as sent. `damaged` lists parts that no longer match their digest."""

    bytes: int | None
    verified: bool
    damaged: Sequence[str]
    page: object
    manifest: Mapping[str, object] | None


class PageShape(BaseModel):
    """The body of a model call as sent. Other fields are the provider's."""

    model_config = ConfigDict(extra="allow")

    model: str
    messages: list[object]


class HarLog(TypedDict):
    """The content of a HAR file."""

    version: str
    creator: Mapping[str, object]
    entries: Sequence[Mapping[str, object]]


class HarShape(TypedDict):
    """Model calls as a HAR file (1.2)."""

    log: HarLog


class CallsAnswer(RootModel[CallsShape | HarShape]):
    """The model calls of a run."""


class CallAnswer(RootModel[CallShape | HarShape | PageShape]):
    """A model call; with `raw` the page only."""


class ComparedCall(TypedDict):
    """A compared call."""

    run: str
    n: int
    model: str
    purpose: str
    tokens: int
    bytes: int
    digest: str


class DifferenceShape(TypedDict):
    """The differences of two calls. `prefixBreak` is null if the later page begins with the whole earlier one.

    `parts` follows the order of the later page: `same` parts are counted, others have their old and new form.
    """

    before: ComparedCall
    after: ComparedCall
    identical: bool
    firstDifference: Mapping[str, object] | None
    prefixBreak: Mapping[str, object] | None
    parts: Sequence[Mapping[str, object]]


CALL_ROW: CallRow = {
    "n": 1,
    "purpose": "reply",
    "model": "demo",
    "started": TIME,
    "firstToken": TIME,
    "ended": TIME,
    "finish": "stop",
    "usage": {"inputTokens": 321, "outputTokens": 12, "totalTokens": 333},
    "price": None,
    "tokens": 321,
    "digest": "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08",
    "error": None,
}
PART_EXAMPLE: Mapping[str, Json] = {
    "kind": "message",
    "source": "01a1ea35-5ebb-75ac-b471-c91b4bbef9a3",
    "role": "user",
    "decision": "injected",
    "rule": "F1",
    "ruleName": "reminder",
    "ruleLink": "docs/rules.md#f1",
    "reason": "what the user has at hand in this turn",
    "tokens": {"before": 10, "after": 38},
    "span": [1020, 1230],
    "words": "What is 12*7?",
}
ROOM_EXAMPLE: RoomShape = {
    "window": 128_000,
    "compactAt": 102_400,
    "prices": {"currency": "USD", "input": 1.25, "cached": 0.125},
}
CALLS_EXAMPLE: CallsShape = {"calls": [CALL_ROW]}
THREAD_CALLS_EXAMPLE: ThreadCallsShape = {"calls": [{**CALL_ROW, "run": TASK, "saved": 120}]}
CALL_EXAMPLE: CallShape = {
    **CALL_ROW,
    **ROOM_EXAMPLE,
    "bytes": 1234,
    "verified": True,
    "damaged": [],
    "page": {"model": "demo", "messages": []},
    "manifest": {"parts": [PART_EXAMPLE], "tokens": 321, "skill": None},
}
COMPARED: ComparedCall = {
    "run": TASK,
    "n": 1,
    "model": "demo",
    "purpose": "reply",
    "tokens": 321,
    "bytes": 1234,
    "digest": CALL_ROW["digest"],
}
DIFFERENCE_EXAMPLE: DifferenceShape = {
    "before": COMPARED,
    "after": {**COMPARED, "n": 2, "tokens": 345},
    "identical": False,
    "firstDifference": {"offset": 1200, "before": {"kind": "envelope"}, "after": {"kind": "message"}},
    "prefixBreak": None,
    "parts": [{"change": "same", "places": {"before": [0, 4], "after": [0, 4]}, "count": 4, "tokens": 318}],
}


async def list_calls(request: Request, id: RunId, form: CallsForm = None) -> Response:
    """List the model calls of a run in order, without pages, or all of them as a HAR file."""
    run = await find_run(request, id)
    if form == "har":
        return StreamingResponse(_har(request, run), media_type=JSON)
    found = await backend_of(request).store.call_summaries(run.id)
    rows = list[CallRow]()
    for call in found:
        rows.append(call_row(call, full=is_operator(request)))
        # Manifests may be large: yield to other requests.
        await asyncio.sleep(0)
    answer: CallsShape = {"calls": rows}
    return json_answer(answer)


async def list_thread_calls(
    request: Request,
    id: ThreadId,
    limit: Annotated[int, in_query("How many calls at most.", ge=1, le=MOST_CALLS)] = USUAL_CALLS,
) -> Response:
    """List the model calls of all runs of a thread, newest first, with the tokens saved in each."""
    store, thread = backend_of(request).store, await own_thread(request, id)
    found = await store.calls_of_thread(user_of(request).name, thread, limit)
    answer: ThreadCallsShape = {"calls": [_thread_call_row(call, full=is_operator(request)) for call in found]}
    return json_answer(answer)


async def get_call(
    request: Request,
    id: RunId,
    n: CallNumber,
    raw: Annotated[bool, in_query("The body alone, byte for byte as it was sent.")] = False,
    form: CallForm = None,
) -> Response:
    """Return a model call: its page as sent, its manifest, and whether both match their digests.

    `as` selects an export format. Only operators see the model's address in it.
    """
    run = await find_run(request, id)
    if form == "har":
        entry = har_entry(_made(request, run, await backend_of(request).store.look_at_call(run.id, n)))
        return Response(har_beginning(version("recto")) + dump(entry) + HAR_END, media_type=JSON)
    seen = await backend_of(request).store.look_at_call(run.id, n)
    if form == "curl":
        return Response(as_curl(_made(request, run, seen).head, page_of(seen)), media_type=SHELL)
    if raw:
        return Response(page_of(seen), media_type=JSON)
    row = call_row(seen.summary, full=is_operator(request))
    room = room_row(backend_of(request), run.agent, row["model"], row["tokens"] or 0)
    # Pages may be large; other requests run meanwhile.
    return json_answer({**row, **room, **await asyncio.to_thread(_page_row, seen)})


async def compare_calls(
    request: Request, id: RunId, n: CallNumber, other: OtherNumber, run: OtherRun = None
) -> Response:
    """Compare two calls: by part, the first different byte, the cause, and the effect on the prompt cache.

    Both calls must be yours; the later one may be of another run.
    """
    first = await find_run(request, id)
    second = await find_run(request, run) if run is not None else first
    store = backend_of(request).store
    seen = await store.look_at_call(first.id, n), await store.look_at_call(second.id, other)
    # Pages may be large; other requests run meanwhile.
    found = await asyncio.to_thread(_compared, *seen)
    rows = _compared_row(first, seen[0]), _compared_row(second, seen[1])
    return json_answer({"before": rows[0], "after": rows[1], **found})


def _compared(before: CallSeen, after: CallSeen) -> Mapping[str, Json]:
    return difference(sent_page(before), sent_page(after)).row()


def _compared_row(run: StoredRun, seen: CallSeen) -> ComparedCall:
    call = seen.summary
    return {
        "run": run.id,
        "n": call.number,
        "model": call.model,
        "purpose": call.purpose,
        "tokens": cast("int", (load_object(call.manifest or b"") or {}).get("tokens", 0)),
        "bytes": len(seen.body or b""),
        "digest": call.digest,
    }


async def _har(request: Request, run: StoredRun) -> AsyncGenerator[bytes]:
    """Yield the calls of a run one by one, because together they may exceed memory."""
    store = backend_of(request).store
    yield har_beginning(version("recto"))
    comma = b""
    for call in await store.call_summaries(run.id):
        # Deleted in the meantime.
        with suppress(NotFound):
            yield comma + dump(har_entry(_made(request, run, await store.look_at_call(run.id, call.number))))
            comma = b","
    yield HAR_END


def _made(request: Request, run: StoredRun, seen: CallSeen) -> MadeCall:
    call = seen.summary
    url = backend_of(request).model_urls.get(call.model) if is_operator(request) else None
    row = call_row(call, full=is_operator(request))
    told = {name: cast("Json", row[name]) for name in ("n", "purpose", "model", "usage", "price", "digest", "error")}
    return MadeCall(
        head=request_head(call.model, url),
        body=seen.body,
        started=call.started,
        first_token=call.first_token,
        ended=call.ended,
        is_answered=call.finish is not None,
        more={"run": run.id, **told, "verified": not seen.damaged, "damaged": list(seen.damaged)},
    )


def call_row(call: CallSummary, *, full: bool) -> CallRow:
    """Return a call as clients see it. Provider errors may name addresses and settings; only `full` contains them."""
    manifest = load_object(call.manifest) if call.manifest else None
    return {
        "n": call.number,
        "purpose": call.purpose,
        "model": call.model,
        "started": time_text(call.started),
        "firstToken": time_text(call.first_token) if call.first_token else None,
        "ended": time_text(call.ended) if call.ended else None,
        "finish": call.finish,
        "usage": load_object(call.usage) if call.usage else None,
        "price": call.price,
        "tokens": cast("int | None", manifest.get("tokens")) if manifest else None,
        "digest": call.digest,
        "error": call.error if full or not call.error else FAILED,
    }


def _thread_call_row(call: ThreadCall, *, full: bool) -> ThreadCallRow:
    return {**call_row(call.summary, full=full), "tokens": call.tokens, "run": call.run, "saved": call.saved}


def room_row(backend: Backend, agent: str, model: str, tokens: int) -> Mapping[str, Json]:
    """Return the limits of a page with `tokens` tokens. The agent may be deleted by now."""
    known = backend.agents.get(agent)
    window = backend.windows.get(model, WorkSettings.window)
    compact = known.compacting(window) if known else CompactSettings(window=window)
    return {**compact.row(), "prices": prices_row(model, tokens, backend.prices)}


def _page_row(seen: CallSeen) -> Mapping[str, Json]:
    return {
        "bytes": len(seen.body) if seen.body is not None else None,
        "verified": not seen.damaged,
        "damaged": seen.damaged,
        "page": parsed_page(seen.body),
        "manifest": _shown_manifest(seen),
    }


def _shown_manifest(seen: CallSeen) -> Mapping[str, Json] | None:
    """Return a manifest with the first words of each part, if its page exists."""
    found = load_object(seen.summary.manifest) if seen.summary.manifest is not None else None
    if found is None:
        return None
    parts = cast("Sequence[Mapping[str, Json]]", found.get("parts", ()))
    return {**found, "parts": shown_rows(parts, seen.body)}


def parsed_page(body: bytes | None) -> Json:
    """Parse a page as JSON; None if it is invalid."""
    try:
        return load(body) if body is not None else None
    except ValueError:
        return None


ROUTES = (
    Route(
        method="GET",
        path=CALLS,
        handler=list_calls,
        tag="calls",
        answer=CallsAnswer,
        refusals=(404, 422),
        examples={"answer": CALLS_EXAMPLE},
    ),
    Route(
        method="GET",
        path=f"{CALLS}/{{n}}",
        handler=get_call,
        tag="calls",
        answer=CallAnswer,
        text=SHELL,
        refusals=(404, 409, 422),
        examples={"answer": CALL_EXAMPLE},
    ),
    Route(
        method="GET",
        path=f"{CALLS}/{{n}}/diff/{{other}}",
        handler=compare_calls,
        tag="calls",
        answer=DifferenceShape,
        refusals=(404, 409, 422),
        examples={"answer": DIFFERENCE_EXAMPLE},
    ),
    Route(
        method="GET",
        path=f"{ONE}/calls",
        handler=list_thread_calls,
        tag="calls",
        answer=ThreadCallsShape,
        refusals=(404, 422),
        examples={"answer": THREAD_CALLS_EXAMPLE},
    ),
)
