"""What a scripted model server answers: a reply or a fault, as values; and its bytes on the OpenAI wire."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal, Protocol, TypeAlias

from recto.conversation.json import dump
from recto.models.ports import Usage

PIECES = re.compile(r"\s*\S+\s*|\s+")
ARGUMENT_PIECE = 8
DONE = b"data: [DONE]\n\n"
Framing: TypeAlias = Literal["chunked", "length", "close"]


class Flag(Protocol):
    """What an answer can wait for: a threading.Event does."""

    def is_set(self) -> bool: ...


@dataclass(frozen=True, kw_only=True)
class Call:
    """A tool call in an answer."""

    name: str
    arguments: str = "{}"
    id: str = "call_a"


@dataclass(frozen=True, kw_only=True)
class Answer:
    """One answer, with its faults.

    `signature` signs the reasoning and `redacted` is reasoning nobody can read, where the wire has such. `fault` is a
    type and a message: an error in the stream where its end would be. `body` stands in place of the rendered one (an
    error, or no JSON). `cut_at` ends the connection after so many
    bytes of the body, `fragment` writes so many at a time, `delay` waits between writes. `hold` is waited for before
    write `hold_after` (0 is before the first byte). `hang` never answers. `framing` "close" has no end but the
    connection's.
    """

    text: str = ""
    reasoning: str = ""
    signature: str = "signed"
    redacted: str = ""
    calls: tuple[Call, ...] = ()
    finish: str | None = None
    usage: Usage | None = Usage(input=10, output=5)
    done: bool = True
    fault: tuple[str, str] | None = None
    status: int = 200
    headers: tuple[tuple[str, str], ...] = ()
    body: bytes | None = None
    framing: Framing = "chunked"
    cut_at: int | None = None
    fragment: int | None = None
    delay: float = 0.0
    hold: Flag | None = None
    hold_after: int = 0
    hang: bool = False


def failure(status: int, message: str = "no", *, code: str | None = None, retry_after: str | None = None) -> Answer:
    """An answer that refuses, as providers write it."""
    body = dump({"error": {"message": message, "type": "error", "code": code}})
    headers = (("Content-Type", "application/json"), *((("Retry-After", retry_after),) if retry_after else ()))
    return Answer(status=status, headers=headers, body=body)


@lru_cache(maxsize=64)
def events(answer: Answer) -> tuple[bytes, ...]:
    """The body of an answer as OpenAI chat completions stream it, one server-sent event each."""
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


def argument_pieces(call: Call) -> list[str]:
    """A call's arguments in the pieces they stream in."""
    starts = range(0, len(call.arguments), ARGUMENT_PIECE)
    return [call.arguments[start : start + ARGUMENT_PIECE] for start in starts]


def _call_deltas(index: int, call: Call) -> list[dict[str, object]]:
    function: dict[str, object] = {"name": call.name, "arguments": ""}
    begun = {"index": index, "id": call.id, "type": "function", "function": function}
    rest = [{"index": index, "function": {"arguments": piece}} for piece in argument_pieces(call)]
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
