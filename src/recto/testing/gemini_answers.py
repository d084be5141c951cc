"""Scripted answers as Gemini generateContent streams."""

from __future__ import annotations

import base64
from collections.abc import Iterator, Mapping
from functools import lru_cache

from recto.conversation.json import Json, dump, load_object, verbatim
from recto.models.ports import Usage
from recto.testing.model_answers import PIECES, Answer, Fields

# Gemini's finish reasons by OpenAI's, and its error statuses by HTTP status.
FINISHES = {"stop": "STOP", "length": "MAX_TOKENS", "tool_calls": "STOP", "content_filter": "SAFETY"}
STATUSES = {
    400: "INVALID_ARGUMENT",
    401: "UNAUTHENTICATED",
    403: "PERMISSION_DENIED",
    404: "NOT_FOUND",
    429: "RESOURCE_EXHAUSTED",
    500: "INTERNAL",
    503: "UNAVAILABLE",
}
OTHER_STATUS = "UNKNOWN"


@lru_cache(maxsize=64)
def content_events(answer: Answer) -> tuple[bytes, ...]:
    """Return the body of an answer as server-sent events. The format has no end marker."""
    if answer.body is not None:
        return (_failure(answer.status, answer.body),)
    usage = answer.usage or Usage()
    start_usage = {"promptTokenCount": usage.input, "totalTokenCount": usage.input} if answer.usage else {}
    chunks = [
        _chunk({"content": {"role": "model", "parts": [part]}, "index": 0}, start_usage) for part in _parts(answer)
    ]
    if answer.fault:
        kind, message = answer.fault
        return (*chunks, b"data: " + dump({"error": {"code": 503, "message": message, "status": kind}}) + b"\n\n")
    if not answer.done:
        return tuple(chunks)
    finish = answer.finish or "stop"
    # A reply without calls has its signature here, without text.
    is_signed = answer.reasoning and not answer.calls
    last: Fields = {
        "content": {
            "role": "model",
            "parts": [{"text": ""} | ({"thoughtSignature": signature(answer)} if is_signed else {})],
        },
        "index": 0,
    }
    last_chunk = _chunk(
        last | {"finishReason": FINISHES.get(finish, finish)},
        {
            "promptTokenCount": usage.input,
            "candidatesTokenCount": usage.output - usage.reasoning,
            "thoughtsTokenCount": usage.reasoning,
            "cachedContentTokenCount": usage.cached,
            "totalTokenCount": usage.input + usage.output,
        }
        if answer.usage
        else {},
    )
    return (*chunks, last_chunk)


def signature(answer: Answer) -> str:
    """Return the signature of an answer as base64."""
    return base64.b64encode(answer.signature.encode()).decode()


def _parts(answer: Answer) -> Iterator[Fields]:
    yield from ({"text": piece, "thought": True} for piece in PIECES.findall(answer.reasoning))
    yield from ({"text": piece} for piece in PIECES.findall(answer.text))
    for number, call in enumerate(answer.calls):
        # Gemini signs only the first of several calls.
        signature_field = {"thoughtSignature": signature(answer)} if answer.reasoning and number == 0 else {}
        yield {"functionCall": {"id": call.id, "name": call.name, "args": verbatim(call.arguments)}} | signature_field


def _chunk(candidate: Fields, usage: Fields) -> bytes:
    metadata = {"usageMetadata": usage} if usage else {}
    return b"data: " + dump({"candidates": [candidate], **metadata, "modelVersion": "scripted"}) + b"\n\n"


def _failure(status: int, body: bytes) -> bytes:
    """Return the error in Gemini's format if the script has OpenAI's, else unchanged."""
    error = (load_object(body) or {}).get("error")
    if not isinstance(error, Mapping) or "type" not in error:
        return body
    details: Json = {"code": status, "message": error.get("message"), "status": STATUSES.get(status, OTHER_STATUS)}
    return dump({"error": details})
