"""Bytes of a scripted answer: its events on the OpenAI and on the Anthropic wire, its head, its framing."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache

from recto.conversation.json import Json, dump, load_object
from recto.models.ports import Usage
from recto.page.wire.base import WireName
from recto.testing.model_answers import Answer, Call, Framing

OK = 200
# Where each wire is spoken.
PATHS: Mapping[str, WireName] = {"/v1/chat/completions": "openai", "/v1/messages": "anthropic"}
PIECES = re.compile(r"\s*\S+\s*|\s+")
ARGUMENT_PIECE = 8
DONE = b"data: [DONE]\n\n"
# What the provider calls the endings that a script names in the words of OpenAI, and its errors by their status.
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
Fields = Mapping[str, object]


def events(answer: Answer, wire: WireName = "openai") -> tuple[bytes, ...]:
    """The body of an answer, one server-sent event each."""
    return _anthropic_events(answer) if wire == "anthropic" else _openai_events(answer)


def render(answer: Answer, wire: WireName = "openai") -> bytes:
    """The exact body of an answer, before its framing."""
    return b"".join(events(answer, wire))


@lru_cache(maxsize=64)
def whole(answer: Answer, wire: WireName) -> bytes:
    """All that goes out, in one."""
    return b"".join(writes(answer, wire))


def writes(answer: Answer, wire: WireName) -> Iterator[bytes]:
    """What goes out, one write each: the head with the first piece of the body, its pieces, its end."""
    before = _head(answer, wire)
    chunked = answer.framing == "chunked"
    # An empty chunk would be the end.
    for piece in filter(None, _pieces(answer, wire)):
        yield before + (b"%x\r\n%s\r\n" % (len(piece), piece) if chunked else piece)
        before = b""
    end = b"0\r\n\r\n" if chunked and answer.cut_at is None else b""
    yield before + end


def _pieces(answer: Answer, wire: WireName) -> Sequence[bytes]:
    if answer.fragment is None and answer.cut_at is None:
        return events(answer, wire)
    body = render(answer, wire)[: answer.cut_at]
    size = answer.fragment or len(body) or 1
    return [body[start : start + size] for start in range(0, len(body), size)]


def _head(answer: Answer, wire: WireName) -> bytes:
    given = dict(answer.headers)
    kind = {} if "Content-Type" in given else {"Content-Type": "text/event-stream"}
    framing: dict[Framing, dict[str, str]] = {
        "chunked": {"Transfer-Encoding": "chunked"},
        "length": {"Content-Length": str(len(render(answer, wire)))},
        "close": {"Connection": "close"},
    }
    lines = [f"{name}: {value}\r\n" for name, value in (kind | given | framing[answer.framing]).items()]
    return f"HTTP/1.1 {answer.status} {'OK' if answer.status == OK else 'Refused'}\r\n{''.join(lines)}\r\n".encode()


@lru_cache(maxsize=64)
def _openai_events(answer: Answer) -> tuple[bytes, ...]:
    """As OpenAI chat completions stream it."""
    if answer.body is not None:
        return (answer.body,)
    finish = answer.finish or ("tool_calls" if answer.calls else "stop")
    deltas: list[dict[str, object]] = [{"role": "assistant", "content": ""}]
    deltas += [{"reasoning_content": piece} for piece in PIECES.findall(answer.reasoning)]
    deltas += [{"content": piece} for piece in PIECES.findall(answer.text)]
    for index, call in enumerate(answer.calls):
        deltas += _call_deltas(index, call)
    chunks = [_chunk([{"index": 0, "delta": delta, "finish_reason": None}]) for delta in deltas]
    if answer.fault:
        kind, message = answer.fault
        return (*chunks, b"data: " + dump({"error": {"type": kind, "message": message}}) + b"\n\n")
    chunks.append(_chunk([{"index": 0, "delta": {}, "finish_reason": finish}]))
    if answer.usage:
        chunks.append(_chunk([], usage=_usage(answer.usage)))
    return (*chunks, *((DONE,) if answer.done else ()))


def _call_deltas(index: int, call: Call) -> list[dict[str, object]]:
    function: dict[str, object] = {"name": call.name, "arguments": ""}
    begun = {"index": index, "id": call.id, "type": "function", "function": function}
    rest = [{"index": index, "function": {"arguments": piece}} for piece in _argument_pieces(call)]
    return [{"tool_calls": [fragment]} for fragment in (begun, *rest)]


def _usage(usage: Usage) -> dict[str, object]:
    return {
        "prompt_tokens": usage.input,
        "completion_tokens": usage.output,
        "total_tokens": usage.input + usage.output,
        "prompt_tokens_details": {"cached_tokens": usage.cached, "cache_write_tokens": usage.cache_written},
        "completion_tokens_details": {"reasoning_tokens": usage.reasoning},
    }


def _chunk(choices: list[dict[str, object]], **rest: object) -> bytes:
    chunk = {
        "id": "chatcmpl-1",
        "object": "chat.completion.chunk",
        "created": 0,
        "model": "scripted",
        "choices": choices,
        **rest,
    }
    return b"data: " + dump(chunk) + b"\n\n"


@lru_cache(maxsize=64)
def _anthropic_events(answer: Answer) -> tuple[bytes, ...]:
    """As Anthropic messages stream it, each event with its name."""
    if answer.body is not None:
        return (_failure(answer.status, answer.body),)
    usage = answer.usage or Usage()
    begun = (_event("message_start", message=_message(usage)), _event("ping"))
    blocks = tuple(event for index, block in enumerate(_blocks(answer)) for event in _block_events(index, *block))
    if answer.fault:
        kind, message = answer.fault
        return (*begun, *blocks, _event("error", error={"type": kind, "message": message}))
    finish = answer.finish or ("tool_calls" if answer.calls else "stop")
    delta = {"stop_reason": FINISHES.get(finish, finish), "stop_sequence": None}
    details = {"thinking_tokens": usage.reasoning}
    written = {"output_tokens": usage.output, "output_tokens_details": details}
    ended = (_event("message_delta", delta=delta, usage=written),)
    return (*begun, *blocks, *ended, *((_event("message_stop"),) if answer.done else ()))


def _blocks(answer: Answer) -> Iterator[tuple[Fields, list[Fields]]]:
    """Each block as it begins, and what is added to it."""
    if answer.reasoning:
        thoughts: list[Fields] = [
            {"type": "thinking_delta", "thinking": piece} for piece in PIECES.findall(answer.reasoning)
        ]
        signed: Fields = {"type": "signature_delta", "signature": answer.signature}
        yield {"type": "thinking", "thinking": "", "signature": ""}, [*thoughts, signed]
    if answer.redacted:
        yield {"type": "redacted_thinking", "data": answer.redacted}, []
    if answer.text:
        pieces = PIECES.findall(answer.text)
        yield {"type": "text", "text": ""}, [{"type": "text_delta", "text": piece} for piece in pieces]
    for call in answer.calls:
        yield {"type": "tool_use", "id": call.id, "name": call.name, "input": {}}, _inputs(call)


def _inputs(call: Call) -> list[Fields]:
    # A call without arguments streams nothing: its input stays the empty object it began with.
    pieces = [] if call.arguments == "{}" else _argument_pieces(call)
    return [{"type": "input_json_delta", "partial_json": piece} for piece in ("", *pieces)]


def _block_events(index: int, start: Fields, deltas: list[Fields]) -> Iterator[bytes]:
    yield _event("content_block_start", index=index, content_block=start)
    yield from (_event("content_block_delta", index=index, delta=delta) for delta in deltas)
    yield _event("content_block_stop", index=index)


def _message(usage: Usage) -> Fields:
    counts = {
        "input_tokens": usage.input - usage.cached - usage.cache_written,
        "cache_creation_input_tokens": usage.cache_written,
        "cache_read_input_tokens": usage.cached,
        "output_tokens": min(usage.output, 1),
    }
    empty: Fields = {"content": (), "stop_reason": None, "stop_sequence": None, "usage": counts}
    return {"id": "msg_1", "type": "message", "role": "assistant", "model": "scripted", **empty}


def _failure(status: int, body: bytes) -> bytes:
    """A refusal in the provider's form, where a script has it in OpenAI's; anything else as it is."""
    error = (load_object(body) or {}).get("error")
    if not isinstance(error, Mapping) or "code" not in error:
        return body
    said: Json = {"type": ERRORS.get(status, OTHER_ERROR), "message": error.get("message")}
    return dump({"type": "error", "error": said, "request_id": "req_1"})


def _event(kind: str, **fields: object) -> bytes:
    return b"event: " + kind.encode() + b"\ndata: " + dump({"type": kind, **fields}) + b"\n\n"


def _argument_pieces(call: Call) -> list[str]:
    starts = range(0, len(call.arguments), ARGUMENT_PIECE)
    return [call.arguments[start : start + ARGUMENT_PIECE] for start in starts]
