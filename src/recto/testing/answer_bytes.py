"""Bytes of a scripted answer: its events in each wire format, its head, its framing."""

from __future__ import annotations

import base64
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import lru_cache
from typing import NamedTuple

from recto.conversation.json import Json, dump, load_object, verbatim
from recto.models.ports import Usage
from recto.page.wire.anthropic import ANTHROPIC
from recto.page.wire.base import WireName
from recto.page.wire.gemini import GEMINI
from recto.page.wire.openai import OPENAI
from recto.page.wire.openai_responses import OPENAI_RESPONSES
from recto.testing.model_answers import PIECES, Answer, Fields, Framing, argument_pieces

# Gemini's finish reasons by OpenAI's, and its error statuses by HTTP status.
GEMINI_FINISHES = {"stop": "STOP", "length": "MAX_TOKENS", "tool_calls": "STOP", "content_filter": "SAFETY"}
GEMINI_STATUSES = {
    400: "INVALID_ARGUMENT",
    401: "UNAUTHENTICATED",
    403: "PERMISSION_DENIED",
    404: "NOT_FOUND",
    429: "RESOURCE_EXHAUSTED",
    500: "INTERNAL",
    503: "UNAVAILABLE",
}
GEMINI_OTHER_STATUS = "UNKNOWN"


@lru_cache(maxsize=64)
def content_events(answer: Answer) -> tuple[bytes, ...]:
    """Return the body of an answer as server-sent events. The format has no end marker."""
    if answer.body is not None:
        error = (load_object(answer.body) or {}).get("error")
        if not isinstance(error, Mapping) or "type" not in error:
            return (answer.body,)
        # Convert the error, which the script has in OpenAI's format.
        status = GEMINI_STATUSES.get(answer.status, GEMINI_OTHER_STATUS)
        return (dump({"error": {"code": answer.status, "message": error.get("message"), "status": status}}),)
    usage = answer.usage or Usage()
    start_usage = {"promptTokenCount": usage.input, "totalTokenCount": usage.input} if answer.usage else {}
    chunks = [
        _content_chunk({"content": {"role": "model", "parts": [part]}, "index": 0}, start_usage)
        for part in _parts(answer)
    ]
    if answer.fault:
        kind, message = answer.fault
        return (*chunks, b"data: " + dump({"error": {"code": 503, "message": message, "status": kind}}) + b"\n\n")
    if not answer.done:
        return tuple(chunks)
    finish = answer.finish or "stop"
    # If there are no calls, the last part contains the signature.
    is_signed = answer.reasoning and not answer.calls
    last: Fields = {
        "content": {
            "role": "model",
            "parts": [{"text": ""} | ({"thoughtSignature": signature(answer)} if is_signed else {})],
        },
        "index": 0,
    }
    last_chunk = _content_chunk(
        last | {"finishReason": GEMINI_FINISHES.get(finish, finish)},
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


def _content_chunk(candidate: Fields, usage: Fields) -> bytes:
    metadata = {"usageMetadata": usage} if usage else {}
    return b"data: " + dump({"candidates": [candidate], **metadata, "modelVersion": "scripted"}) + b"\n\n"


# Reasons of an incomplete response, by the finish reasons of chat completions.
INCOMPLETE = {"length": "max_output_tokens", "content_filter": "content_filter"}


@lru_cache(maxsize=64)
def response_events(answer: Answer) -> tuple[bytes, ...]:
    """Return the body of an answer as named, numbered server-sent events."""
    if answer.body is not None:
        return (answer.body,)
    return tuple(
        b"event: " + str(event["type"]).encode() + b"\ndata: " + dump({**event, "sequence_number": number}) + b"\n\n"
        for number, event in enumerate(_events(answer))
    )


def _events(answer: Answer) -> Iterator[Fields]:
    response = _response("in_progress", ())
    yield {"type": "response.created", "response": response}
    yield {"type": "response.in_progress", "response": response}
    items = list(_items(answer))
    for place, (start, inner, whole) in enumerate(items):
        yield {"type": "response.output_item.added", "output_index": place, "item": start}
        yield from ({**event, "item_id": whole["id"], "output_index": place} for event in inner)
        yield {"type": "response.output_item.done", "output_index": place, "item": whole}
    if answer.fault:
        code, message = answer.fault
        yield {"type": "error", "code": code, "message": message, "param": None}
    elif answer.done:
        reason = INCOMPLETE.get(answer.finish or "")
        status, details = ("incomplete", {"reason": reason}) if reason else ("completed", None)
        end = _response(status, [whole for _, _, whole in items])
        usage = answer.usage and {
            "input_tokens": answer.usage.input,
            "input_tokens_details": {
                "cached_tokens": answer.usage.cached,
                "cache_write_tokens": answer.usage.cache_written,
            },
            "output_tokens": answer.usage.output,
            "output_tokens_details": {"reasoning_tokens": answer.usage.reasoning},
            "total_tokens": answer.usage.input + answer.usage.output,
        }
        yield {"type": f"response.{status}", "response": {**end, "incomplete_details": details, "usage": usage}}


def _items(answer: Answer) -> Iterator[tuple[Fields, Sequence[Fields], Fields]]:
    """Yield each item: its start, its events, the whole item. Redacted reasoning has no events."""
    thoughts = [(answer.reasoning, answer.signature)] if answer.reasoning else []
    thoughts += [("", answer.redacted)] if answer.redacted else []
    for number, (words, encrypted) in enumerate(thoughts):
        start: Fields = {"type": "reasoning", "id": f"rs_{number}", "summary": []}
        summary = {"type": "summary_text", "text": words}
        inner: list[Fields] = [
            {"type": "response.reasoning_summary_part.added", "part": {**summary, "text": ""}},
            *({"type": "response.reasoning_summary_text.delta", "delta": piece} for piece in PIECES.findall(words)),
            {"type": "response.reasoning_summary_text.done", "text": words},
            {"type": "response.reasoning_summary_part.done", "part": summary},
        ]
        summaries = [{**event, "summary_index": 0} for event in inner] if words else []
        yield start, summaries, {**start, "summary": [summary] if words else [], "encrypted_content": encrypted}
    if answer.text:
        start = {"type": "message", "id": "msg_0", "role": "assistant", "status": "in_progress", "content": []}
        part: Fields = {"type": "output_text", "text": answer.text, "annotations": [], "logprobs": []}
        delta: Fields = {"type": "response.output_text.delta", "logprobs": []}
        inner = [
            {"type": "response.content_part.added", "part": {**part, "text": ""}},
            *({**delta, "delta": piece} for piece in PIECES.findall(answer.text)),
            {"type": "response.output_text.done", "text": answer.text, "logprobs": []},
            {"type": "response.content_part.done", "part": part},
        ]
        contents = [{**event, "content_index": 0} for event in inner]
        yield start, contents, {**start, "status": "completed", "content": [part]}
    for call in answer.calls:
        start = {"type": "function_call", "id": f"fc_{call.id}", "call_id": call.id, "name": call.name}
        start = {**start, "arguments": "", "status": "in_progress"}
        inner = [{"type": "response.function_call_arguments.delta", "delta": piece} for piece in argument_pieces(call)]
        done = {"type": "response.function_call_arguments.done", "name": call.name, "arguments": call.arguments}
        yield start, [*inner, done], {**start, "arguments": call.arguments, "status": "completed"}


def _response(status: str, output: Sequence[Fields]) -> Fields:
    return {
        "id": "resp_1",
        "object": "response",
        "created_at": 0,
        "status": status,
        "error": None,
        "incomplete_details": None,
        "model": "scripted",
        "output": output,
        "parallel_tool_calls": True,
        "tool_choice": "auto",
        "tools": [],
        "usage": None,
    }


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
        error = (load_object(answer.body) or {}).get("error")
        if not isinstance(error, Mapping) or "code" not in error:
            return (answer.body,)
        # Convert the error, which the script has in OpenAI's format.
        details: Json = {"type": ERRORS.get(answer.status, OTHER_ERROR), "message": error.get("message")}
        return (dump({"type": "error", "error": details, "request_id": "req_1"}),)
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
    blocks = list[bytes]()
    for index, (block, deltas) in enumerate(_blocks(answer)):
        blocks.append(_event("content_block_start", index=index, content_block=block))
        blocks += [_event("content_block_delta", index=index, delta=delta) for delta in deltas]
        blocks.append(_event("content_block_stop", index=index))
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


def _event(kind: str, **fields: object) -> bytes:
    return b"event: " + kind.encode() + b"\ndata: " + dump({"type": kind, **fields}) + b"\n\n"


DONE = b"data: [DONE]\n\n"


@lru_cache(maxsize=64)
def chat_events(answer: Answer) -> tuple[bytes, ...]:
    """Return the body of an answer as server-sent events."""
    if answer.body is not None:
        return (answer.body,)
    finish = answer.finish or ("tool_calls" if answer.calls else "stop")
    deltas: list[dict[str, object]] = [{"role": "assistant", "content": ""}]
    deltas += [{"reasoning_content": piece} for piece in PIECES.findall(answer.reasoning)]
    deltas += [{"content": piece} for piece in PIECES.findall(answer.text)]
    for index, call in enumerate(answer.calls):
        function: dict[str, object] = {"name": call.name, "arguments": ""}
        deltas.append({"tool_calls": [{"index": index, "id": call.id, "type": "function", "function": function}]})
        for piece in argument_pieces(call):
            deltas.append({"tool_calls": [{"index": index, "function": {"arguments": piece}}]})
    chunks = [_chunk([{"index": 0, "delta": delta, "finish_reason": None}]) for delta in deltas]
    if answer.fault:
        kind, message = answer.fault
        return (*chunks, b"data: " + dump({"error": {"type": kind, "message": message}}) + b"\n\n")
    chunks.append(_chunk([{"index": 0, "delta": {}, "finish_reason": finish}]))
    if answer.usage:
        usage = answer.usage
        chunks.append(
            _chunk(
                [],
                usage={
                    "prompt_tokens": usage.input,
                    "completion_tokens": usage.output,
                    "total_tokens": usage.input + usage.output,
                    "prompt_tokens_details": {"cached_tokens": usage.cached, "cache_write_tokens": usage.cache_written},
                    "completion_tokens_details": {"reasoning_tokens": usage.reasoning},
                },
            )
        )
    return (*chunks, *((DONE,) if answer.done else ()))


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


OK = 200


class FakeWire(NamedTuple):
    """The path of a wire format, and the renderer of an answer as server-sent events."""

    path: str
    events: Callable[[Answer], tuple[bytes, ...]]


# In a path, {model} matches any name.
FAKES: Mapping[WireName, FakeWire] = {
    OPENAI.name: FakeWire("/v1/chat/completions", chat_events),
    OPENAI_RESPONSES.name: FakeWire("/v1/responses", response_events),
    ANTHROPIC.name: FakeWire("/v1/messages", message_events),
    GEMINI.name: FakeWire("/v1beta/models/{model}:streamGenerateContent?alt=sse", content_events),
}
PATTERNS = {name: re.compile(re.escape(fake.path).replace(r"\{model\}", "[^/]+")) for name, fake in FAKES.items()}
DEFAULT = OPENAI.name


def wire_at(path: str) -> WireName | None:
    """Return the wire format served at a path, ignoring other query parameters."""
    plain = path.partition("?")[0]
    return next(
        (name for name, pattern in PATTERNS.items() if pattern.fullmatch(path) or pattern.fullmatch(plain)), None
    )


def events(answer: Answer, wire: WireName = DEFAULT) -> tuple[bytes, ...]:
    """Return the body of an answer as server-sent events."""
    return FAKES[wire].events(answer)


def render(answer: Answer, wire: WireName = DEFAULT) -> bytes:
    """Return the exact body of an answer, without framing."""
    return b"".join(events(answer, wire))


@lru_cache(maxsize=64)
def whole(answer: Answer, wire: WireName) -> bytes:
    """Return the complete response in one piece."""
    return b"".join(writes(answer, wire))


def writes(answer: Answer, wire: WireName) -> Iterator[bytes]:
    """Yield each write: the head with the first piece of the body, further pieces, the end."""
    headers = dict(answer.headers)
    kind = {} if "Content-Type" in headers else {"Content-Type": "text/event-stream"}
    framing: dict[Framing, dict[str, str]] = {
        "chunked": {"Transfer-Encoding": "chunked"},
        "length": {"Content-Length": str(len(render(answer, wire)))},
        "close": {"Connection": "close"},
    }
    lines = [f"{name}: {value}\r\n" for name, value in (kind | headers | framing[answer.framing]).items()]
    status = f"{answer.status} {'OK' if answer.status == OK else 'Refused'}"
    before = f"HTTP/1.1 {status}\r\n{''.join(lines)}\r\n".encode()
    pieces: Sequence[bytes] = events(answer, wire)
    if answer.fragment is not None or answer.cut_at is not None:
        body = render(answer, wire)[: answer.cut_at]
        size = answer.fragment or len(body) or 1
        pieces = [body[start : start + size] for start in range(0, len(body), size)]
    chunked = answer.framing == "chunked"
    # An empty chunk would end the body.
    for piece in filter(None, pieces):
        yield before + (b"%x\r\n%s\r\n" % (len(piece), piece) if chunked else piece)
        before = b""
    end = b"0\r\n\r\n" if chunked and answer.cut_at is None else b""
    yield before + end
