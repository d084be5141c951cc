"""Scripted answers as OpenAI Responses streams."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache

from recto.conversation.json import dump
from recto.models.ports import Usage
from recto.testing.model_answers import PIECES, Answer, Call, argument_pieces

# Reasons of an incomplete response, by the finish reasons of chat completions.
INCOMPLETE = {"length": "max_output_tokens", "content_filter": "content_filter"}
_Fields = Mapping[str, object]


@lru_cache(maxsize=64)
def response_events(answer: Answer) -> tuple[bytes, ...]:
    """Return the body of an answer as named, numbered server-sent events."""
    if answer.body is not None:
        return (answer.body,)
    return tuple(
        b"event: " + str(event["type"]).encode() + b"\ndata: " + dump({**event, "sequence_number": number}) + b"\n\n"
        for number, event in enumerate(_events(answer))
    )


def _events(answer: Answer) -> Iterator[_Fields]:
    response = _response("in_progress", ())
    yield {"type": "response.created", "response": response}
    yield {"type": "response.in_progress", "response": response}
    items = [*_thoughts(answer), *_messages(answer), *map(_call, answer.calls)]
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
        usage = _usage(answer.usage) if answer.usage else None
        yield {"type": f"response.{status}", "response": {**end, "incomplete_details": details, "usage": usage}}


def _thoughts(answer: Answer) -> Iterator[tuple[_Fields, Sequence[_Fields], _Fields]]:
    """Yield each reasoning item: its start, its events, the whole item. Redacted reasoning has no events."""
    thoughts = [(answer.reasoning, answer.signature)] if answer.reasoning else []
    thoughts += [("", answer.redacted)] if answer.redacted else []
    for number, (words, encrypted) in enumerate(thoughts):
        start: _Fields = {"type": "reasoning", "id": f"rs_{number}", "summary": []}
        summary = {"type": "summary_text", "text": words}
        inner: list[_Fields] = [
            {"type": "response.reasoning_summary_part.added", "part": {**summary, "text": ""}},
            *({"type": "response.reasoning_summary_text.delta", "delta": piece} for piece in PIECES.findall(words)),
            {"type": "response.reasoning_summary_text.done", "text": words},
            {"type": "response.reasoning_summary_part.done", "part": summary},
        ]
        summaries = [{**event, "summary_index": 0} for event in inner] if words else []
        yield start, summaries, {**start, "summary": [summary] if words else [], "encrypted_content": encrypted}


def _messages(answer: Answer) -> Iterator[tuple[_Fields, Sequence[_Fields], _Fields]]:
    if not answer.text:
        return
    start: _Fields = {"type": "message", "id": "msg_0", "role": "assistant", "status": "in_progress", "content": []}
    words: _Fields = {"type": "output_text", "text": answer.text, "annotations": [], "logprobs": []}
    delta: _Fields = {"type": "response.output_text.delta", "logprobs": []}
    inner: list[_Fields] = [
        {"type": "response.content_part.added", "part": {**words, "text": ""}},
        *({**delta, "delta": piece} for piece in PIECES.findall(answer.text)),
        {"type": "response.output_text.done", "text": answer.text, "logprobs": []},
        {"type": "response.content_part.done", "part": words},
    ]
    contents = [{**event, "content_index": 0} for event in inner]
    yield start, contents, {**start, "status": "completed", "content": [words]}


def _call(call: Call) -> tuple[_Fields, Sequence[_Fields], _Fields]:
    start: _Fields = {
        "type": "function_call",
        "id": f"fc_{call.id}",
        "call_id": call.id,
        "name": call.name,
        "arguments": "",
        "status": "in_progress",
    }
    pieces = argument_pieces(call)
    inner = [{"type": "response.function_call_arguments.delta", "delta": piece} for piece in pieces]
    done = {"type": "response.function_call_arguments.done", "name": call.name, "arguments": call.arguments}
    return start, [*inner, done], {**start, "arguments": call.arguments, "status": "completed"}


def _response(status: str, output: Sequence[_Fields]) -> _Fields:
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


def _usage(usage: Usage) -> _Fields:
    return {
        "input_tokens": usage.input,
        "input_tokens_details": {"cached_tokens": usage.cached, "cache_write_tokens": usage.cache_written},
        "output_tokens": usage.output,
        "output_tokens_details": {"reasoning_tokens": usage.reasoning},
        "total_tokens": usage.input + usage.output,
    }
