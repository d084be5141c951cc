"""Request bodies: read within their limit, checked, made into values. Rows of runs made into answers."""

from __future__ import annotations

import asyncio
import hashlib
import re
from collections.abc import Collection, Mapping
from datetime import tzinfo
from http import HTTPStatus
from typing import TypeAlias

import orjson
from starlette.exceptions import HTTPException
from starlette.requests import Request

from recto.api.backend import backend_of
from recto.api.codings import Unpacked, coding_of
from recto.config.zones import find_zone
from recto.conversation.attachment import without_copies
from recto.conversation.history import time_text
from recto.conversation.input.input_rules import check_input
from recto.conversation.input.run_input import RunInput, decode_input
from recto.conversation.json import Json, dump, load, load_object, parts_of
from recto.errors import TooLarge, WireError
from recto.store.ports import StoredRun

MAX_BYTES = 262_144
# Bodies of no more take no time worth mentioning.
SMALL = 16_384
# Between two larger ones there is time for what else waits.
PAUSE_SECONDS = 0.02
TOO_SLOW = "The body took longer than {seconds:g} seconds. Send it again, faster."
# May be one of the roles that are not kept; whether it is one is looked at then.
COPY = re.compile(rb'"(?:assistant|reasoning|activity)"|\\u')
# What is nested deeper cannot be written again, so the same input could not be told from another (P4).
MAX_DEPTH = 128
# Python refuses to read a number of thousands of digits; no event has one of more than a few.
MAX_DIGITS = 18
# PostgreSQL has no text with this character; JSON can only write it escaped.
NUL, NUL_ESCAPE = "\0", b"\\u0000"
# A way down into JSON, from its end: the last step and the way before it.
_Trail: TypeAlias = "tuple[_Trail, str | int] | None"
# How a run that has ended is told to clients, by its outcome.
STATUSES = {
    "done": "finished",
    "length": "finished",
    "refused": "finished",
    "waiting": "waiting",
    "cancelled": "cancelled",
}


async def read_body(request: Request, most: int = MAX_BYTES, what: str = "RunAgentInput payload") -> bytes:
    """The whole body. One byte too many ends it, whatever its headers said; so does a sender that is too slow."""
    limits = backend_of(request).bodies
    try:
        async with asyncio.timeout(limits.seconds):
            body = await _within(request, most, what)
    except TimeoutError as error:
        raise HTTPException(HTTPStatus.REQUEST_TIMEOUT, TOO_SLOW.format(seconds=limits.seconds)) from error
    if len(body) > SMALL:
        is_one_of_many = limits.turns.locked()
        async with limits.turns:
            await asyncio.sleep(PAUSE_SECONDS if is_one_of_many else 0)
    return body


async def _within(request: Request, most: int, what: str) -> bytes:
    unpacked, pieces, sent, size = Unpacked(coding_of(request.headers)), list[bytes](), 0, 0
    async for piece in request.stream():
        sent += len(piece)
        # As it was sent, and unpacked: neither may have more.
        found = unpacked.feed(piece, most + 1 - size) if sent <= most else b""
        size += len(found)
        if max(sent, size) > most:
            raise TooLarge(f"{what} exceeds size limit")
        pieces.append(found)
    unpacked.end()
    return b"".join(pieces)


def parse_input(body: bytes) -> RunInput:
    """The input of a run that keeps the rules (P2). Anything else is refused in words that say what and where."""
    return check_input(_parsed(body))


def digest_of(body: bytes) -> bytes:
    """What tells one request from another: the same for equal JSON, whatever the order of its names (P4)."""
    return hashlib.sha256(orjson.dumps(load(body), option=orjson.OPT_SORT_KEYS)).digest()


def kept_of(body: bytes) -> bytes:
    """What is stored of a request: all but the client's copies of what others said."""
    if not COPY.search(body):
        return body
    value = load(body)
    kept = without_copies(value)
    return body if kept is value else dump(kept)


def _parsed(body: bytes) -> Json:
    try:
        value = load(body)
    except ValueError as error:
        raise WireError(where="body", problem=f"is no JSON: {error}") from error
    if body.count(b"[") + body.count(b"{") > MAX_DEPTH and _is_deep(value):
        raise WireError(where="body", problem=f"is nested more than {MAX_DEPTH} deep; make it flatter")
    if NUL_ESCAPE in body and (field := _field_with_nul(value)) is not None:
        raise WireError(where=field, problem="holds the character U+0000, which cannot be stored; take it out")
    return value


def _is_deep(value: Json) -> bool:
    """Whether there is anything nested deeper than may be. Without recursion, as that is what it guards."""
    level: list[Json] = [value]
    for _ in range(MAX_DEPTH):
        level = [part for item in level for part in parts_of(item)]
    return any(isinstance(item, (dict, list)) for item in level)


def _field_with_nul(value: Json) -> str | None:
    """The first field with a NUL in its text or its name. Without recursion: JSON may be deeper than the stack."""
    waiting: list[tuple[_Trail, Json]] = [(None, value)]
    while waiting:
        trail, item = waiting.pop()
        match item:
            case str() if NUL in item:
                return _place_text(trail)
            case dict() if any(NUL in name for name in item):
                return _place_text(trail) or "RunAgentInput"
            case dict():
                waiting += reversed([((trail, name), part) for name, part in item.items() if part])
            case list():
                waiting += reversed([((trail, place), part) for place, part in enumerate(item) if part])
            case _:
                pass
    return None


def _place_text(trail: _Trail) -> str:
    """A place in a body, in words: only the one that is asked for is written out."""
    steps = list[str]()
    while trail is not None:
        before, step = trail
        steps.append(f"[{step}]" if isinstance(step, int) else f".{step}")
        trail = before
    return "".join(reversed(steps)).removeprefix(".")


def check_tools(found: RunInput, own: Collection[str]) -> None:
    """Refuse two tools of one name, be it the agent's own: a call of it would mean either."""
    known: set[str] = set()
    for place, tool in enumerate(found.tools):
        where = f"tools[{place}].name"
        if tool.name in own:
            problem = f"{tool.name!r} is a tool of the agent itself; give yours another name"
            raise WireError(where=where, problem=problem)
        if tool.name in known:
            raise WireError(where=where, problem=f"{tool.name!r} is there twice; give each its own name")
        known.add(tool.name)


def zone_of(name: str, where: str) -> tzinfo:
    """A time zone by its name."""
    try:
        return find_zone(name)
    except ValueError as error:
        raise WireError(where=where, problem=str(error)) from error


def parse_after(text: str) -> int:
    """The number of the last event a reader has."""
    if not text.isascii() or not text.isdigit() or len(text) > MAX_DIGITS:
        raise WireError(where="Last-Event-ID", problem=f"must be the number of an event, is {text[:64]!r}")
    return min(int(text), 2**31 - 1)


def check_after(after: int, run: StoredRun) -> None:
    """Refuse a number that a run still under way has not come to: whoever waited for it would miss what comes now."""
    if run.status != "ended" and after > run.last_event:
        problem = f"is {after}, but the newest event of this run is number {run.last_event}"
        raise WireError(where="Last-Event-ID", problem=problem)


def protocol_of(run: StoredRun) -> str | None:
    """The version of the protocol that a run was asked for in."""
    return decode_input(load(run.input)).protocol


def admitted_row(run: StoredRun) -> Mapping[str, Json]:
    """The answer to an admitted run (P1)."""
    return {"taskId": run.id, "threadId": run.thread, "runId": run.name, "created": time_text(run.created)}


def run_row(run: StoredRun) -> Mapping[str, Json]:
    """A run as clients see it (P8)."""
    ended = STATUSES.get(run.outcome or "", "failed")
    return {
        **admitted_row(run),
        "agent": run.agent,
        "status": ended if run.status == "ended" else run.status,
        "started": time_text(run.started) if run.started else None,
        "ended": time_text(run.ended) if run.ended else None,
        "outcome": run.outcome,
        "error": run.error,
        "usage": load_object(run.usage) if run.usage else None,
        "calls": run.calls,
        "lastEventId": run.last_event,
    }
