"""Routes that look at model calls (X1): what was sent, why, what it cost, and that it still is what it was."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Annotated

from fastapi import Path, Query
from starlette.requests import Request
from starlette.responses import Response

from recto.api.backend import backend_of, json_answer, user_of
from recto.api.route import Route
from recto.api.runs.routes import RUNS, RunId, find_run
from recto.api.threads.thread_shapes import CALL_EXAMPLE, CALLS_EXAMPLE, CallAnswer, CallsShape
from recto.conversation.history import time_text
from recto.conversation.json import Json, load, load_object
from recto.errors import Conflict
from recto.store.runs.calls import CallSeen, CallSummary

CALLS = f"{RUNS}/{{id}}/calls"
FAILED = "The call gave no whole reply. Operators of this server see why."
CallNumber = Annotated[int, Path(ge=1, le=2**31 - 1, description="The number of the call in its run, from 1.")]


async def list_calls(request: Request, id: RunId) -> Response:
    """The model calls of a run, in order, without their pages."""
    run = await find_run(request, id)
    found = await backend_of(request).store.call_summaries(run.id)
    rows = list[Json]()
    for call in found:
        rows.append(call_row(call, full=_is_operator(request)))
        # Manifests are large where pages are: others come in between.
        await asyncio.sleep(0)
    return json_answer({"calls": rows})


async def get_call(
    request: Request,
    id: RunId,
    n: CallNumber,
    raw: Annotated[bool, Query(description="The body alone, byte for byte as it was sent.")] = False,
) -> Response:
    """A model call: the page as it was sent, its manifest, and whether both are still what was written."""
    run = await find_run(request, id)
    seen = await backend_of(request).store.look_at_call(run.id, n)
    if not raw:
        return json_answer(_seen_row(seen, full=_is_operator(request)))
    if seen.body is None:
        problem = f"The page of call {n} cannot be put together: {', '.join(seen.damaged)} is damaged or gone."
        raise Conflict(f"{problem} What is left of it is told without raw=1.")
    return Response(seen.body, media_type="application/json")


def _is_operator(request: Request) -> bool:
    return user_of(request).name in backend_of(request).operators


def call_row(call: CallSummary, *, full: bool) -> Mapping[str, Json]:
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
        "tokens": manifest.get("tokens") if manifest else None,
        "digest": call.digest,
        "error": call.error if full or not call.error else FAILED,
    }


def _seen_row(seen: CallSeen, *, full: bool) -> Mapping[str, Json]:
    return {
        **call_row(seen.summary, full=full),
        "bytes": len(seen.body) if seen.body is not None else None,
        "verified": not seen.damaged,
        "damaged": seen.damaged,
        "page": _parsed(seen.body),
        "manifest": _parsed(seen.summary.manifest),
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
