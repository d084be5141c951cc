"""Request bodies: read within size and time limits, validated and parsed."""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from http import HTTPStatus
from typing import TypeAlias

import orjson
from starlette.exceptions import HTTPException
from starlette.requests import Request

from recto.api.backend import backend_of
from recto.api.codings import BodyDecoder, coding_of
from recto.conversation.input.input_rules import check_input
from recto.conversation.input.run_input import NOTES, RunInput
from recto.conversation.json import Json, dump, load, load_object, parts_of
from recto.conversation.message_files import drop_copies
from recto.errors import TooLarge, WireError

MAX_BYTES = 262_144
# Bodies up to this size need no turn, because parsing them takes negligible time.
SMALL = 16_384
# Pause between two larger bodies, in which other requests run.
PAUSE_SECONDS = 0.02
TOO_SLOW = "The body took longer than {seconds:g} s to arrive. Retry on a faster connection."
MANY_PARTS = "Request body has more than {most:,} objects and arrays. Send fewer of the earlier messages."
# Maximum nesting depth. Deeper values cannot be encoded again, which comparing repeated requests (P4) needs.
MAX_DEPTH = 128
# The character that PostgreSQL text cannot contain, and its escaped form, the only one in JSON.
NUL, NUL_ESCAPE = "\0", b"\\u0000"
NUL_PROBLEM = "contains the character U+0000, which cannot be stored. Remove it"
# A path into JSON as a linked list: the path before the last step, and the last step.
_Trail: TypeAlias = "tuple[_Trail, str | int] | None"


async def read_body(request: Request, limit: int = MAX_BYTES, name: str = "RunAgentInput payload") -> bytes:
    """Return the body. Rejects a body that is too large or arrives too slowly."""
    backend = backend_of(request)
    seconds = backend.bodies.seconds
    decoder, pieces, packed_size, size = BodyDecoder(coding_of(request.headers)), list[bytes](), 0, 0
    try:
        async with asyncio.timeout(seconds):
            async for packed_piece in request.stream():
                packed_size += len(packed_piece)
                # The limit applies to the packed and to the unpacked size.
                piece = decoder.feed(packed_piece, limit + 1 - size) if packed_size <= limit else b""
                size += len(piece)
                if max(packed_size, size) > limit:
                    raise TooLarge(f"{name} exceeds size limit")
                pieces.append(piece)
    except TimeoutError as error:
        raise HTTPException(HTTPStatus.REQUEST_TIMEOUT, TOO_SLOW.format(seconds=seconds)) from error
    decoder.end()
    if size > SMALL:
        is_one_of_many = backend.body_turns.locked()
        async with backend.body_turns:
            await asyncio.sleep(PAUSE_SECONDS if is_one_of_many else 0)
    return b"".join(pieces)


def parse_json(body: bytes, most_parts: int | None = None) -> Json:
    """Parse a body of up to `most_parts` objects and arrays."""
    if most_parts is not None and body.count(b"{") + body.count(b"[") > most_parts:
        raise TooLarge(MANY_PARTS.format(most=most_parts))
    try:
        return load(body)
    except ValueError as error:
        raise WireError(where="body", problem=f"is not JSON: {error}") from error


async def read_object(request: Request, empty: bytes = b"") -> Mapping[str, Json]:
    """Parse the body as an object; `empty` replaces an empty body."""
    value = load_object(await read_body(request, name="Request body") or empty)
    if value is None:
        raise WireError(where="body", problem="must be a JSON object")
    return value


@dataclass(frozen=True, kw_only=True)
class RunRequest:
    """A parsed request to start a run. `digest` is equal for equal JSON in any key order.

    `json` is the form to store, without the client's copies of assistant messages. `body` is `json` encoded.
    """

    input: RunInput
    digest: bytes
    json: Json
    body: bytes


def parse_run(body: bytes) -> RunRequest:
    """Parse and validate a run request (P2)."""
    value = parse_json(body)
    if isinstance(value, dict) and NOTES in value:
        # Drop notes of the client, because only the server writes notes.
        value = {name: field for name, field in value.items() if name != NOTES}
        body = dump(value)
    return check_run(value, body)


def check_run(value: Json, body: bytes, *, digest: bytes | None = None) -> RunRequest:
    """Validate the run request `value`, encoded as `body`. Pass `digest` if `value` contains server notes."""
    if body.count(b"[") + body.count(b"{") > MAX_DEPTH:
        # Not recursive, because this check protects recursive functions from deep values.
        level: list[Json] = [value]
        for _ in range(MAX_DEPTH):
            level = [part for item in level for part in parts_of(item)]
        if any(isinstance(item, (dict, list)) for item in level):
            raise WireError(where="body", problem=f"is nested more than {MAX_DEPTH} levels deep")
    if NUL_ESCAPE in body and (field := _field_with_nul(value)) is not None:
        raise WireError(where=field, problem=NUL_PROBLEM)
    run_input, json = check_input(value, has_notes=digest is not None), drop_copies(value)
    return RunRequest(
        input=run_input, digest=digest or digest_of(value), json=json, body=body if json is value else dump(json)
    )


def digest_of(value: object) -> bytes:
    """Return a digest that is equal for equal JSON in any key order."""
    return hashlib.sha256(orjson.dumps(value, option=orjson.OPT_SORT_KEYS)).digest()


def _field_with_nul(value: Json) -> str | None:
    """Return the first field with a NUL in its text or name. Not recursive: JSON may be nested too deep."""
    pending: list[tuple[_Trail, Json]] = [(None, value)]
    while pending:
        trail, item = pending.pop()
        match item:
            case str() if NUL in item:
                return _place_text(trail)
            case dict() if any(NUL in name for name in item):
                return _place_text(trail) or "RunAgentInput"
            case dict():
                pending += reversed([((trail, name), part) for name, part in item.items() if part])
            case list():
                pending += reversed([((trail, place), part) for place, part in enumerate(item) if part])
            case _:
                pass
    return None


def _place_text(trail: _Trail) -> str:
    steps = list[str]()
    while trail is not None:
        before, step = trail
        steps.append(f"[{step}]" if isinstance(step, int) else f".{step}")
        trail = before
    return "".join(reversed(steps)).removeprefix(".")
