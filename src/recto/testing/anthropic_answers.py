"""Scripted answers as Anthropic message streams."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import lru_cache

from recto.conversation.json import Json, dump, load_object
from recto.models.ports import Usage
from recto.testing.model_answers import PIECES, Answer, Fields, argument_pieces

# Anthropic's stop reasons by OpenAI's, and its error types by status.
FINISHES = {"stop": "end_turn", "length": "max_tokens", "tool_calls": "tool_use", "content_filter": "refusal"}
ERRORS = {
    400: "invalid_request_error",
    401: "authentication_error",
    403: "permission_error",
    404: "not_found_error",
    413: "request_too_large",
    429: "rate_limit_error",
    529: "overloaded_error",
}
OTHER_ERROR = "api_error"


@lru_cache(maxsize=64)
def message_events(answer: Answer) -> tuple[bytes, ...]:
    """Return the body of an answer as named server-sent events."""
    if answer.body is not None:
        return (_failure(answer.status, answer.body),)
    usage = answer.usage or Usage()
    counts = {
        "input_tokens": usage.input - usage.cached - usage.cache_written,
        "cache_creation_input_tokens": usage.cache_written,
        "cache_read_input_tokens": usage.cached,
        "output_tokens": min(usage.output, 1),
    }
    empty: Fields = {"content": (), "stop_reason": None, "stop_sequence": None, "usage": counts}
    start = (
        _event(
            "message_start",
            message={"id": "msg_1", "type": "message", "role": "assistant", "model": "scripted", **empty},
        ),
        _event("ping"),
    )
    blocks = tuple(event for index, block in enumerate(_blocks(answer)) for event in _block_events(index, *block))
    if answer.fault:
        kind, message = answer.fault
        return (*start, *blocks, _event("error", error={"type": kind, "message": message}))
    finish = answer.finish or ("tool_calls" if answer.calls else "stop")
    delta = {"stop_reason": FINISHES.get(finish, finish), "stop_sequence": None}
    details = {"thinking_tokens": usage.reasoning}
    output_usage = {"output_tokens": usage.output, "output_tokens_details": details}
    end = (_event("message_delta", delta=delta, usage=output_usage),)
    return (*start, *blocks, *end, *((_event("message_stop"),) if answer.done else ()))


def _blocks(answer: Answer) -> Iterator[tuple[Fields, list[Fields]]]:
    """Yield each content block with its deltas."""
    if answer.reasoning:
        thoughts: list[Fields] = [
            {"type": "thinking_delta", "thinking": piece} for piece in PIECES.findall(answer.reasoning)
        ]
        signature: Fields = {"type": "signature_delta", "signature": answer.signature}
        yield {"type": "thinking", "thinking": "", "signature": ""}, [*thoughts, signature]
    if answer.redacted:
        yield {"type": "redacted_thinking", "data": answer.redacted}, []
    if answer.text:
        pieces = PIECES.findall(answer.text)
        yield {"type": "text", "text": ""}, [{"type": "text_delta", "text": piece} for piece in pieces]
    for call in answer.calls:
        # A call without arguments streams nothing: its input stays the empty object of the block start.
        yield (
            {"type": "tool_use", "id": call.id, "name": call.name, "input": {}},
            [
                {"type": "input_json_delta", "partial_json": piece}
                for piece in ("", *([] if call.arguments == "{}" else argument_pieces(call)))
            ],
        )


def _block_events(index: int, start: Fields, deltas: list[Fields]) -> Iterator[bytes]:
    yield _event("content_block_start", index=index, content_block=start)
    yield from (_event("content_block_delta", index=index, delta=delta) for delta in deltas)
    yield _event("content_block_stop", index=index)


def _failure(status: int, body: bytes) -> bytes:
    """Return the error in Anthropic's format if the script has OpenAI's, else unchanged."""
    error = (load_object(body) or {}).get("error")
    if not isinstance(error, Mapping) or "code" not in error:
        return body
    details: Json = {"type": ERRORS.get(status, OTHER_ERROR), "message": error.get("message")}
    return dump({"type": "error", "error": details, "request_id": "req_1"})


def _event(kind: str, **fields: object) -> bytes:
    return b"event: " + kind.encode() + b"\ndata: " + dump({"type": kind, **fields}) + b"\n\n"
