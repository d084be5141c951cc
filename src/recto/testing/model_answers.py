"""What a scripted model server answers: a reply on the OpenAI streaming wire, or a fault. Values and their bytes."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal, Protocol, TypeAlias

from recto.models.ports import Usage
from recto.page.canonical import dump

PIECES = re.compile(r"\s*\S+\s*|\s+")
ARGUMENT_PIECE = 8
DONE = b"data: [DONE]\n\n"
Framing: TypeAlias = Literal["chunked", "length", "close"]


class Gate(Protocol):
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

    `body` stands in place of the rendered one (an error, or no JSON). `cut_at` ends the connection after so many
    bytes of the body, `fragment` writes so many at a time, `delay` waits between writes. `hold` is waited for before
    write `hold_after` (0 is before the first byte). `hang` never answers. `framing` "close" has no end but the
    connection's.
    """

    text: str = ""
    reasoning: str = ""
    calls: tuple[Call, ...] = ()
    finish: str | None = None
    usage: Usage | None = Usage(input=10, output=5)
    done: bool = True
    status: int = 200
    headers: tuple[tuple[str, str], ...] = ()
    body: bytes | None = None
    framing: Framing = "chunked"
    cut_at: int | None = None
    fragment: int | None = None
    delay: float = 0.0
    hold: Gate | None = None
    hold_after: int = 0
    hang: bool = False


def failure(status: int, message: str = "no", *, code: str | None = None, retry_after: str | None = None) -> Answer:
    """An answer that refuses, as providers write it."""
    body = dump({"error": {"message": message, "type": "error", "code": code}})
    headers = (("Content-Type", "application/json"), *((("Retry-After", retry_after),) if retry_after else ()))
    return Answer(status=status, headers=headers, body=body)


def render(answer: Answer) -> bytes:
    """The exact body of an answer, before its framing."""
    return b"".join(events(answer))


@lru_cache(maxsize=64)
def events(answer: Answer) -> tuple[bytes, ...]:
    """The body of an answer, one server-sent event each."""
    if answer.body is not None:
        return (answer.body,)
    finish = answer.finish or ("tool_calls" if answer.calls else "stop")
    deltas: list[dict[str, object]] = [{"role": "assistant", "content": ""}]
    deltas += [{"reasoning_content": piece} for piece in PIECES.findall(answer.reasoning)]
    deltas += [{"content": piece} for piece in PIECES.findall(answer.text)]
    for index, call in enumerate(answer.calls):
        deltas += _call_deltas(index, call)
    chunks = [_chunk([{"index": 0, "delta": delta, "finish_reason": None}]) for delta in deltas]
    chunks.append(_chunk([{"index": 0, "delta": {}, "finish_reason": finish}]))
    if answer.usage:
        chunks.append(_chunk([], usage=_usage(answer.usage)))
    return (*chunks, *((DONE,) if answer.done else ()))


def _call_deltas(index: int, call: Call) -> list[dict[str, object]]:
    function: dict[str, object] = {"name": call.name, "arguments": ""}
    begun = {"index": index, "id": call.id, "type": "function", "function": function}
    starts = range(0, len(call.arguments), ARGUMENT_PIECE)
    pieces = [call.arguments[start : start + ARGUMENT_PIECE] for start in starts]
    rest = [{"index": index, "function": {"arguments": piece}} for piece in pieces]
    return [{"tool_calls": [fragment]} for fragment in (begun, *rest)]


def _usage(usage: Usage) -> dict[str, object]:
    return {
        "prompt_tokens": usage.input,
        "completion_tokens": usage.output,
        "total_tokens": usage.input + usage.output,
        "prompt_tokens_details": {"cached_tokens": usage.cached},
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
