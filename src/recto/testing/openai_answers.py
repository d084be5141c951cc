"""Scripted answers as OpenAI chat completion streams."""

from __future__ import annotations

from functools import lru_cache

from recto.conversation.json import dump
from recto.testing.model_answers import PIECES, Answer, argument_pieces

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
