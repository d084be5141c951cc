"""Routes that look at model calls (X1): what was sent, why, what it cost, and that it still is what it was."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from typing import Annotated, cast

from pydantic import BaseModel, ConfigDict, RootModel
from starlette.requests import Request
from starlette.responses import Response
from typing_extensions import TypedDict

from recto.api.backend import backend_of, is_operator, json_answer
from recto.api.parameters import in_path, in_query
from recto.api.route import TIME, Route
from recto.api.runs.routes import RUNS, RunId, find_run
from recto.conversation.history import time_text
from recto.conversation.json import Json, load, load_object
from recto.errors import Conflict
from recto.store.runs.calls import CallSeen, CallSummary

CALLS = f"{RUNS}/{{id}}/calls"
FAILED = "The call gave no whole reply. Operators of this server see why."
CallNumber = Annotated[int, in_path("The number of the call in its run, from 1.", ge=1, le=2**31 - 1)]


class CallRow(TypedDict):
    """A model call. `price` is in thousand-millionths of a unit of currency."""

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


class CallShape(CallRow):
    """A model call with its page as it was sent. `damaged` names what is no longer what was written."""

    bytes: int | None
    verified: bool
    damaged: Sequence[str]
    page: object
    manifest: Mapping[str, object] | None


class PageShape(BaseModel):
    """The body of a model call as it was sent. Its other fields are the provider's."""

    model_config = ConfigDict(extra="allow")

    model: str
    messages: list[object]


class CallAnswer(RootModel[CallShape | PageShape]):
    """A model call; with `raw` the page alone."""


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
CALLS_EXAMPLE: CallsShape = {"calls": [CALL_ROW]}
CALL_EXAMPLE: CallShape = {
    **CALL_ROW,
    "bytes": 1234,
    "verified": True,
    "damaged": [],
    "page": {"model": "demo", "messages": []},
    "manifest": {"parts": [], "tokens": 321, "skill": None},
}


async def list_calls(request: Request, id: RunId) -> Response:
    """The model calls of a run, in order, without their pages."""
    run = await find_run(request, id)
    found = await backend_of(request).store.call_summaries(run.id)
    rows = list[CallRow]()
    for call in found:
        rows.append(call_row(call, full=is_operator(request)))
        # Manifests are large where pages are: others come in between.
        await asyncio.sleep(0)
    answer: CallsShape = {"calls": rows}
    return json_answer(answer)


async def get_call(
    request: Request,
    id: RunId,
    n: CallNumber,
    raw: Annotated[bool, in_query("The body alone, byte for byte as it was sent.")] = False,
) -> Response:
    """A model call: the page as it was sent, its manifest, and whether both are still what was written."""
    run = await find_run(request, id)
    seen = await backend_of(request).store.look_at_call(run.id, n)
    if not raw:
        return json_answer(_seen_row(seen, full=is_operator(request)))
    if seen.body is None:
        problem = f"The page of call {n} cannot be put together: {', '.join(seen.damaged)} is damaged or gone."
        raise Conflict(f"{problem} What is left of it is told without raw=1.")
    return Response(seen.body, media_type="application/json")


def call_row(call: CallSummary, *, full: bool) -> CallRow:
    """A call as clients see it. What a provider said of a fault may name addresses and settings: `full` has it."""
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


def _seen_row(seen: CallSeen, *, full: bool) -> CallShape:
    return {
        **call_row(seen.summary, full=full),
        "bytes": len(seen.body) if seen.body is not None else None,
        "verified": not seen.damaged,
        "damaged": seen.damaged,
        "page": _parsed(seen.body),
        "manifest": load_object(seen.summary.manifest) if seen.summary.manifest is not None else None,
    }


def _parsed(body: bytes | None) -> Json:
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
        answer=CallsShape,
        refusals=(404,),
        examples={"answer": CALLS_EXAMPLE},
    ),
    Route(
        method="GET",
        path=f"{CALLS}/{{n}}",
        handler=get_call,
        tag="calls",
        answer=CallAnswer,
        refusals=(404, 409, 422),
        examples={"answer": CALL_EXAMPLE},
    ),
)
