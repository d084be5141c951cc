"""The preview route (X1, P17): the page of a run's input. Nothing is sent or stored."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Annotated

from pydantic import Field, RootModel
from starlette.requests import Request
from starlette.responses import Response
from typing_extensions import TypedDict

from recto.api.backend import backend_of, user_of
from recto.api.bodies import RunRequest, check_run, read_body
from recto.api.parameters import in_query
from recto.api.route import JSON_MEDIA, Route
from recto.api.runs.admit import check_admission, choose_localized_agent, make_admission
from recto.api.runs.admit_files import store_files
from recto.api.runs.routes import MessageShape, RunBody
from recto.api.runs.thread_names import THREAD_PATH, ThreadId
from recto.api.threads.calls import PageShape, RoomShape, parsed_page, room_row
from recto.conversation.json import Json, dump, load_object
from recto.conversation.message_files import files_in
from recto.engine.ports import NextStep, Preview
from recto.errors import Conflict, InvalidRequest, WireError
from recto.page.manifest_rows import shown_rows
from recto.store.ports import StoredRun

NOT_STORED = "a preview stores nothing. Upload this file first, and name the URL of its upload"
OTHER_THREAD = "differs from the thread in the path. Omit it, or name the same thread"
NO_AGENT = "The agent {name!r} of this thread no longer exists. Name another in forwardedProps.agent."
ACTIVE_RUN = "A run of this thread is active. This page lacks its further output."
# Defaults of a request. Nothing is stored under the id.
NAME, EMPTY_MESSAGE = "preview", [{"id": "nothing", "role": "user", "content": ""}]


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


ROUTES = (
    Route(
        "POST",
        f"{THREAD_PATH}/preview",
        preview_thread,
        "threads",
        body=PreviewBody,
        errors=(404, 409, 413, 422),
        json=PreviewAnswer,
    ),
)
