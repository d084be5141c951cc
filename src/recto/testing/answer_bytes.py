"""Bytes of a scripted answer: its events in each wire format, its head, its framing."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import lru_cache
from typing import NamedTuple

from recto.page.wire.anthropic import ANTHROPIC
from recto.page.wire.base import WireName
from recto.page.wire.gemini import GEMINI
from recto.page.wire.openai import OPENAI
from recto.page.wire.openai_responses import OPENAI_RESPONSES
from recto.testing.anthropic_answers import message_events
from recto.testing.gemini_answers import content_events
from recto.testing.model_answers import Answer, Framing
from recto.testing.openai_answers import chat_events
from recto.testing.responses_answers import response_events

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
    before = _head(answer, wire)
    chunked = answer.framing == "chunked"
    # An empty chunk would end the body.
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
    headers = dict(answer.headers)
    kind = {} if "Content-Type" in headers else {"Content-Type": "text/event-stream"}
    framing: dict[Framing, dict[str, str]] = {
        "chunked": {"Transfer-Encoding": "chunked"},
        "length": {"Content-Length": str(len(render(answer, wire)))},
        "close": {"Connection": "close"},
    }
    lines = [f"{name}: {value}\r\n" for name, value in (kind | headers | framing[answer.framing]).items()]
    return f"HTTP/1.1 {answer.status} {'OK' if answer.status == OK else 'Refused'}\r\n{''.join(lines)}\r\n".encode()
