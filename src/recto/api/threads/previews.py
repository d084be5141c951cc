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

from recto.api.backend import Backend, backend_of, json_answer, user_of
from recto.api.bodies import SentRun, check_run, read_body
from recto.api.parameters import in_query
from recto.api.route import THREAD, Route
from recto.api.runs.admit import admission_of, check_admission, in_language
from recto.api.runs.admit_files import attach
from recto.api.runs.routes import RUN_BODY, MessageShape, RunBody
from recto.api.threads.calls import PART_EXAMPLE, ROOM_EXAMPLE, PageShape, RoomShape, parsed_page, room_row
from recto.api.threads.routes import ONE, ThreadId
from recto.conversation.attachment import files_in
from recto.conversation.json import Json, dump, load_object
from recto.engine.ports import NextStep, Preview
from recto.errors import Conflict, Refused, WireError
from recto.page.shown_parts import shown_rows
from recto.store.ports import StoredRun

NOT_STORED = "a preview stores nothing, so it takes files by the url of their upload only; upload this one first"
OTHER_THREAD = "is not the thread in the path; leave it out, or name the same"
NO_AGENT = "The agent {name!r} of this thread is not there any more. Name another in forwardedProps.agent."
AT_WORK = "A run is at work on this thread: what it says before the next one begins is not in this page."
# Defaults of a request: nothing is stored under the id, and the message may be empty.
NAME, SAYS_NOTHING = "preview", [{"id": "nothing", "role": "user", "content": ""}]


class PreviewBody(RunBody):
    """The input of a run. Without messages, the page of the thread as it is."""

    thread_id: str = Field(default="", alias="threadId", description="As in the path, if it is named at all.")
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


EXAMPLE: PreviewShape = {
    "threadId": THREAD,
    "agent": "chat",
    "model": "demo",
    "next": "call_model",
    "notes": [],
    "tokens": 321,
    "bytes": 1234,
    "digest": "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08",
    "page": {"model": "demo", "messages": []},
    "manifest": {"parts": [PART_EXAMPLE], "tokens": 321, "skill": None},
    **ROOM_EXAMPLE,
}


async def preview_thread(
    request: Request, id: ThreadId, raw: Annotated[bool, in_query("The body alone, byte for byte.")] = False
) -> Response:
    """Return the page that this input would send next, with its manifest. Nothing is sent or stored.

    An unknown thread counts as a new one. Files must be uploaded first.
    """
    backend, owner = backend_of(request), user_of(request).name
    sent = _sent(await read_body(request), id)
    fallback = in_language(request, sent.input, backend.agent)
    agent, signed = await check_admission(backend, owner, sent.input, fallback)
    for where, file in files_in(sent.input.messages):
        if file.source not in signed:
            raise Refused(NOT_STORED, where=where)
    attached = await attach(backend, owner, sent, agent.file_input, signed=signed)
    admission = replace(admission_of(backend, owner, attached), fallback=fallback)
    row = await backend.store.as_admitted(admission)
    if row.agent not in backend.agents:
        raise Conflict(NO_AGENT.format(name=row.agent))
    found = await backend.preview(row, attached.input, admission.files)
    if raw:
        return Response(found.page.body, media_type="application/json")
    room = room_row(backend, row.agent, found.model, found.manifest.tokens.tokens)
    return json_answer({**await asyncio.to_thread(_row, row, found, await _notes(backend, row)), **room})


def _sent(body: bytes, thread: str) -> SentRun:
    """Validate the input as a run's (P2). An input without messages is exempt from the rules about messages."""
    given = load_object(body)
    if given is None:
        raise WireError(where="body", problem="must be a JSON object")
    named = next((name for name in ("threadId", "thread_id") if name in given), None)
    if named and str(given[named]).lower() != thread.lower():
        raise WireError(where=named, problem=OTHER_THREAD)
    value: dict[str, Json] = {"runId": NAME, **given, "threadId": thread}
    if value.get("messages"):
        return check_run(value, dump(value))
    found = check_run({**value, "messages": SAYS_NOTHING}, body)
    return replace(found, input=replace(found.input, messages=()))


async def _notes(backend: Backend, row: StoredRun) -> Sequence[str]:
    if row.last_seq == 0:
        return ()
    thread = await backend.store.get_thread(row.owner, row.thread)
    return (AT_WORK,) if thread.active else ()


def _row(row: StoredRun, found: Preview, notes: Sequence[str]) -> Mapping[str, Json]:
    manifest, body = found.manifest, found.page.body
    tokens = manifest.tokens.tokens
    return {
        "threadId": row.thread,
        "agent": row.agent,
        "model": found.model,
        "next": found.next,
        "notes": [*notes, *found.notes],
        "tokens": tokens,
        "bytes": len(body),
        "digest": found.page.digest,
        "page": parsed_page(body),
        "manifest": {**manifest.stored(), "parts": shown_rows(manifest.rows(), body)},
    }


ROUTES = (
    Route(
        method="POST",
        path=f"{ONE}/preview",
        handler=preview_thread,
        tag="threads",
        body=PreviewBody,
        answer=PreviewAnswer,
        refusals=(404, 409, 413, 422),
        examples={"body": RUN_BODY, "answer": EXAMPLE},
    ),
)
