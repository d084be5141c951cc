"""Answers of a scripted model server: a reply or a fault."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal, Protocol, TypeAlias

from recto.conversation.json import dump
from recto.models.ports import Usage

PIECES = re.compile(r"\s*\S+\s*|\s+")
ARGUMENT_PIECE = 8

Fields: TypeAlias = Mapping[str, object]
Framing: TypeAlias = Literal["chunked", "length", "close"]


class Flag(Protocol):
    """A condition that an answer waits for, such as a threading.Event."""

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

    - `signature`, `redacted`: the signature of the reasoning, and reasoning that only the provider can read
    - `fault`: type and message of an error that ends the stream
    - `body`: raw bytes in place of the rendered body
    - `cut_at`: close the connection after this many bytes of the body
    - `fragment`: write this many bytes at a time; `delay`: pause between writes, in seconds
    - `hold`: wait for this flag before write number `hold_after` (0 is before the first byte)
    - `hang`: never answer
    - `framing`: "close" ends the body by closing the connection
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
    """Return an error answer in OpenAI's format."""
    body = dump({"error": {"message": message, "type": "error", "code": code}})
    headers = (("Content-Type", "application/json"), *((("Retry-After", retry_after),) if retry_after else ()))
    return Answer(status=status, headers=headers, body=body)


def argument_pieces(call: Call) -> list[str]:
    """Split the arguments of a call into stream pieces."""
    starts = range(0, len(call.arguments), ARGUMENT_PIECE)
    return [call.arguments[start : start + ARGUMENT_PIECE] for start in starts]
