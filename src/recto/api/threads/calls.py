"""Routes of model calls (X1): page, manifest, cost, verification, and the preview of a thread's next call."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from importlib.metadata import version
from typing import Annotated, Literal, cast

from pydantic import BaseModel, ConfigDict, Field, RootModel
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse
from typing_extensions import TypedDict

from recto.api.backend import Backend, backend_of, is_operator, user_of
from recto.api.bodies import RunRequest, check_run, read_body
from recto.api.route import JSON_MEDIA, Route, in_path, in_query
from recto.api.runs.admit import (
    THREAD_PATH,
    ThreadId,
    check_admission,
    choose_localized_agent,
    make_admission,
    own_thread,
)
from recto.api.runs.admit_files import store_files
from recto.api.runs.routes import RUNS, MessageShape, RunBody, RunId, find_run
from recto.config.run_settings import WorkSettings
from recto.conversation.history import time_text
from recto.conversation.json import Json, dump, load, load_object
from recto.conversation.message_files import files_in
from recto.engine.ports import NextStep, Preview
from recto.errors import Conflict, InvalidRequest, NotFound, WireError
from recto.models.choose import request_head
from recto.models.prices import prices_row
from recto.page.difference import difference
from recto.page.exports import HAR_END, ExportedCall, as_curl, har_beginning, har_entry
from recto.page.manifest_rows import shown_rows
from recto.page.steps.compact import CompactSettings
from recto.store.ports import StoredRun
from recto.store.runs.calls import CallSummary, CheckedCall, page_of, sent_page

CALLS, PREVIEW = f"{RUNS}/{{id}}/calls", f"{THREAD_PATH}/preview"
MOST_CALLS, USUAL_CALLS = 500, 200
SHELL = "text/plain; charset=utf-8"
FAILED = "The model call failed before its reply was complete. Operators of this server can see the reason."
NOT_STORED = "a preview stores nothing. Upload this file first, and name the URL of its upload"
OTHER_THREAD = "differs from the thread in the path. Omit it, or name the same thread"
NO_AGENT = "The agent {name!r} of this thread no longer exists. Name another in forwardedProps.agent."
ACTIVE_RUN = "A run of this thread is active. This page lacks its further output."
# Run id and message of a preview request without them. Nothing is stored under the id.
NAME, EMPTY_MESSAGE = "preview", [{"id": "nothing", "role": "user", "content": ""}]
CallNumber = Annotated[int, in_path("The number of the call in its run, from 1.", ge=1, le=2**31 - 1)]
OtherNumber = Annotated[int, in_path("The number of the later call, in its run.", ge=1, le=2**31 - 1)]
OtherRun = Annotated[str | None, in_query("The run of the later call, if it differs: its id, as in the path.")]
CallFormat = Annotated[
    Literal["curl", "har"] | None,
    in_query("`curl`: a command that repeats the call; `har`: a HAR file. Neither contains a key.", alias="as"),
]
CallsFormat = Annotated[
    Literal["har"] | None, in_query("`har`: all calls with their pages, as a HAR file.", alias="as")
]


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


class PreviewBody(RunBody):
    """The input of a run. Without messages, the page of the thread as it is."""

    thread_id: str = Field(default="", alias="threadId", description="As in the path; may be omitted.")
    run_id: str = Field(default=NAME, alias="runId", min_length=1, max_length=128)
    messages: list[MessageShape] = Field(default=[], max_length=200)


class PreviewShape(RoomShape, TypedDict):
    """The next page. `next` is the first step of the run; `notes` list what may differ then."""

    threadId: str
    agent: str
    model: str
    next: NextStep
    notes: Sequence[str]
    tokens: int
    bytes: int
    digest: str
    page: object
    manifest: Mapping[str, object]


class PreviewAnswer(RootModel[PreviewShape | PageShape]):
    """A preview; with `raw` the page only."""


async def list_calls(request: Request, id: RunId, form: CallsFormat = None) -> CallsShape | Response:
    """List the model calls of a run in order, without pages, or all of them as a HAR file."""
    run = await find_run(request, id)
    if form == "har":
        return StreamingResponse(_har(request, run), media_type=JSON_MEDIA)
    rows = list[CallRow]()
    for call in await backend_of(request).store.calls.list_summaries(run.id):
        rows.append(call_row(call, full=is_operator(request)))
        # Manifests may be large: yield to other requests.
        await asyncio.sleep(0)
    return {"calls": rows}


async def list_thread_calls(
    request: Request,
    id: ThreadId,
    limit: Annotated[int, in_query("Maximum number of calls.", ge=1, le=MOST_CALLS)] = USUAL_CALLS,
) -> ThreadCallsShape:
    """List the model calls of all runs of a thread, newest first, with the tokens saved in each."""
    store, thread = backend_of(request).store, await own_thread(request, id)
    calls, full = await store.calls.list_newest(user_of(request).name, thread, limit), is_operator(request)
    return {
        "calls": [
            {**call_row(call.summary, full=full), "tokens": call.tokens, "run": call.run, "saved": call.saved}
            for call in calls
        ]
    }


async def get_call(
    request: Request,
    id: RunId,
    n: CallNumber,
    raw: Annotated[bool, in_query("Return only the body, byte for byte as sent.")] = False,
    form: CallFormat = None,
) -> Mapping[str, object] | Response:
    """Return a model call: its page as sent, its manifest, and whether both match their digests.

    `as` selects an export format. Only operators see the model's address in it.
    """
    backend, run = backend_of(request), await find_run(request, id)
    call = await backend.store.calls.read(run.id, n)
    if form == "har":
        entry = har_entry(_exported_call(request, run, call))
        return Response(har_beginning(version("recto")) + dump(entry) + HAR_END, media_type=JSON_MEDIA)
    if form == "curl":
        return Response(as_curl(_exported_call(request, run, call).head, page_of(call)), media_type=SHELL)
    if raw:
        return Response(page_of(call), media_type=JSON_MEDIA)
    row = call_row(call.summary, full=is_operator(request))
    limits = room_row(backend, run.agent, row["model"], row["tokens"] or 0)
    # Parse a large page in a thread, so that other requests run meanwhile.
    return {**row, **limits, **await asyncio.to_thread(_page_row, call)}


async def compare_calls(
    request: Request, id: RunId, n: CallNumber, other: OtherNumber, run: OtherRun = None
) -> Mapping[str, object]:
    """Compare two calls: by part, the first different byte, the cause, and the effect on the prompt cache.

    Both calls must be yours; the later one may be of another run.
    """
    first = await find_run(request, id)
    second = await find_run(request, run) if run is not None else first
    store = backend_of(request).store
    before, after = await store.calls.read(first.id, n), await store.calls.read(second.id, other)
    # Compare large pages in a thread, so that other requests run meanwhile.
    result = await asyncio.to_thread(lambda: difference(sent_page(before), sent_page(after)).row())
    return {"before": _comparison_row(first, before), "after": _comparison_row(second, after), **result}


async def preview_thread(
    request: Request, id: ThreadId, raw: Annotated[bool, in_query("Return only the body, byte for byte.")] = False
) -> Mapping[str, object] | Response:
    """Return the page that this input would send next, with its manifest. Nothing is sent or stored.

    An unknown thread counts as a new one. Files must be uploaded first.
    """
    backend, owner = backend_of(request), user_of(request).name
    run_request = _parse_request(await read_body(request), id)
    messages = run_request.input.messages
    fallback = choose_localized_agent(request, run_request.input, backend.agents.default)
    agent, signed_files = await check_admission(backend, owner, run_request.input, fallback)
    for where, file in files_in(messages):
        if file.source not in signed_files:
            raise InvalidRequest(NOT_STORED, where=where)
    document = await store_files(backend, owner, run_request, agent.file_input, signed_files=signed_files)
    admission = replace(make_admission(backend, owner, document), fallback=fallback)
    run = await backend.store.runs.preview_admission(admission)
    if run.agent not in backend.agents.by_name:
        raise Conflict(NO_AGENT.format(name=run.agent))
    preview = await backend.runs.preview(run, document.input, admission.files)
    if raw:
        return Response(preview.page.body, media_type=JSON_MEDIA)
    limits = room_row(backend, run.agent, preview.model, preview.manifest.tokens.tokens)
    thread = await backend.store.threads.get(run.owner, run.thread) if run.last_seq else None
    notes = (ACTIVE_RUN,) if thread and thread.active else ()
    return {**await asyncio.to_thread(_row, run, preview, notes), **limits}


def _parse_request(body: bytes, thread: str) -> RunRequest:
    """Validate the input as a run's (P2). An input without messages is exempt from the rules about messages."""
    fields = load_object(body)
    if fields is None:
        raise WireError(where="body", problem="must be a JSON object")
    name = next((name for name in ("threadId", "thread_id") if name in fields), None)
    if name and str(fields[name]).lower() != thread.lower():
        raise WireError(where=name, problem=OTHER_THREAD)
    value: dict[str, Json] = {"runId": NAME, **fields, "threadId": thread}
    if value.get("messages"):
        return check_run(value, dump(value))
    run_request = check_run({**value, "messages": EMPTY_MESSAGE}, body)
    return replace(run_request, input=replace(run_request.input, messages=()))


def _row(run: StoredRun, preview: Preview, notes: Sequence[str]) -> Mapping[str, Json]:
    manifest, body = preview.manifest, preview.page.body
    return {
        "threadId": run.thread,
        "agent": run.agent,
        "model": preview.model,
        "next": preview.next,
        "notes": [*notes, *preview.notes],
        "tokens": manifest.tokens.tokens,
        "bytes": len(body),
        "digest": preview.page.digest,
        "page": parsed_page(body),
        "manifest": {**manifest.to_stored(), "parts": shown_rows(manifest.rows(), body)},
    }


def _page_row(call: CheckedCall) -> Mapping[str, Json]:
    # Add the first words of each part to the manifest, if the page exists.
    manifest = load_object(call.summary.manifest) if call.summary.manifest is not None else None
    if manifest is not None:
        parts = cast("Sequence[Mapping[str, Json]]", manifest.get("parts", ()))
        manifest = {**manifest, "parts": shown_rows(parts, call.body)}
    return {
        "bytes": len(call.body) if call.body is not None else None,
        "verified": not call.damaged,
        "damaged": call.damaged,
        "page": parsed_page(call.body),
        "manifest": manifest,
    }


def parsed_page(body: bytes | None) -> Json:
    """Parse a page as JSON; None if it is invalid."""
    try:
        return load(body) if body is not None else None
    except ValueError:
        return None


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


def room_row(backend: Backend, agent: str, model: str, tokens: int) -> Mapping[str, Json]:
    """Return the limits of a page with `tokens` tokens. A deleted agent has the default limits."""
    known_agent = backend.agents.by_name.get(agent)
    window = backend.models.windows.get(model, WorkSettings.window)
    compact = known_agent.compacting(window) if known_agent else CompactSettings(window=window)
    return {**compact.row(), "prices": prices_row(model, tokens, backend.models.prices)}


def _comparison_row(run: StoredRun, full_call: CheckedCall) -> ComparedCall:
    call = full_call.summary
    return {
        "run": run.id,
        "n": call.number,
        "model": call.model,
        "purpose": call.purpose,
        "tokens": cast("int", (load_object(call.manifest or b"") or {}).get("tokens", 0)),
        "bytes": len(full_call.body or b""),
        "digest": call.digest,
    }


async def _har(request: Request, run: StoredRun) -> AsyncGenerator[bytes]:
    """Yield the calls of a run one by one, because together they may exceed memory."""
    store = backend_of(request).store
    yield har_beginning(version("recto"))
    comma = b""
    for call in await store.calls.list_summaries(run.id):
        # Skip a call that was deleted in the meantime.
        with suppress(NotFound):
            yield comma + dump(har_entry(_exported_call(request, run, await store.calls.read(run.id, call.number))))
            comma = b","
    yield HAR_END


def _exported_call(request: Request, run: StoredRun, full_call: CheckedCall) -> ExportedCall:
    call = full_call.summary
    url = backend_of(request).models.urls.get(call.model) if is_operator(request) else None
    row = call_row(call, full=is_operator(request))
    fields = {name: cast("Json", row[name]) for name in ("n", "purpose", "model", "usage", "price", "digest", "error")}
    return ExportedCall(
        head=request_head(call.model, url),
        body=full_call.body,
        started=call.started,
        first_token=call.first_token,
        ended_at=call.ended,
        is_answered=call.finish is not None,
        more={"run": run.id, **fields, "verified": not full_call.damaged, "damaged": list(full_call.damaged)},
    )


ROUTES = (
    Route("GET", CALLS, list_calls, "calls", errors=(404, 422), json=CallsAnswer),
    Route("GET", f"{CALLS}/{{n}}", get_call, "calls", text=SHELL, errors=(404, 409, 422), json=CallAnswer),
    Route("GET", f"{CALLS}/{{n}}/diff/{{other}}", compare_calls, "calls", errors=(404, 409, 422), json=DifferenceShape),
    Route("GET", f"{THREAD_PATH}/calls", list_thread_calls, "calls", errors=(404, 422)),
    Route(
        "POST", PREVIEW, preview_thread, "threads", body=PreviewBody, errors=(404, 409, 413, 422), json=PreviewAnswer
    ),
)
