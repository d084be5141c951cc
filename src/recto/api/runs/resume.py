"""The route that answers interrupts of a run, for clients that do not send a RunAgentInput for it."""

from __future__ import annotations

from collections.abc import Mapping
from uuid import UUID, uuid5

from pydantic import BaseModel, Field
from starlette.requests import Request
from starlette.responses import Response

from recto.api.backend import backend_of
from recto.api.bodies import check_run, digest_of, read_object
from recto.api.route import Route
from recto.api.runs.admit import ACCEPTED, TaskAccepted, admit_run
from recto.api.runs.routes import RUNS, ResumeShape, RunId, find_run
from recto.api.runs.streams import wants_stream
from recto.conversation.input.run_input import NOTES, TRACEPARENT, noted, stored_dialect
from recto.conversation.json import Json, as_list, dump, load_object
from recto.errors import WireError
from recto.store.ports import StoredRun

# Fields that apply to the previous run only, and those of its `forwardedProps`.
OF_RUN = ("state", TRACEPARENT, NOTES)
ONCE = ("skill", "scenario", "multitask")
EXAMPLE: Json = {
    "resume": [
        {
            "interruptId": "01990b1e-7a00-7c5e-8a57-1f0c2b9d4e11",
            "status": "resolved",
            "payload": {"approved": False, "message": "Not before Friday."},
        }
    ]
}


class ResumeBody(BaseModel):
    """Answers to some or all of the waiting interrupts."""

    resume: list[ResumeShape] = Field(min_length=1)


async def resume_run(request: Request, id: RunId) -> Response:
    """Answer interrupts of a run. Responds with the continuation run, as `POST /api/v1/agent/runs` does.

    Repeated answers return the same run. It inherits the tools, context and options of the previous run.
    """
    run, body = await find_run(request, id), await read_object(request)
    if not as_list(body.get("resume"), "resume"):
        raise WireError(where="resume", problem="is empty; answer at least one interrupt")
    value = _going_on(run, body.get("resume"))
    streams = wants_stream(request.headers.get("accept", ""))
    sent = check_run(value, dump(value), noted_digest=digest_of(value))
    return await admit_run(request, sent, streams=streams, fallback=backend_of(request).agent)


def _going_on(run: StoredRun, resume: Json) -> Mapping[str, Json]:
    """Return the request of the continuation run. Its id derives from the answers, so repeats are equal."""
    before = load_object(run.input) or {}
    props = before.get("forwardedProps", before.get("forwarded_props"))
    kept = {name: value for name, value in props.items() if name not in ONCE} if isinstance(props, dict) else {}
    value: dict[str, Json] = {
        **{name: field for name, field in before.items() if name not in OF_RUN},
        "threadId": run.thread,
        "runId": str(uuid5(UUID(run.id), dump(resume).decode())),
        "parentRunId": run.name,
        "messages": [],
        "forwardedProps": kept,
        "resume": resume,
    }
    return noted(value, None, thread=stored_dialect(run.input)[1])


ROUTES = (
    Route(
        method="POST",
        path=f"{RUNS}/{{id}}/resume",
        handler=resume_run,
        tag="runs",
        status=202,
        body=ResumeBody,
        answer=TaskAccepted,
        streams=True,
        refusals=(404, 409, 413, 422),
        examples={"body": EXAMPLE, "answer": ACCEPTED},
    ),
)
