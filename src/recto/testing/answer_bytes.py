"""A scripted answer as bytes on the socket: its head, the pieces of its body on one of the wires, its framing."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache

from recto.page.wire.base import WireName
from recto.testing import anthropic_answers, model_answers
from recto.testing.model_answers import Answer, Framing

OK = 200
# Where each wire is spoken.
PATHS: Mapping[str, WireName] = {"/v1/chat/completions": "openai", "/v1/messages": "anthropic"}


def events(answer: Answer, wire: WireName = "openai") -> tuple[bytes, ...]:
    """The body of an answer, one server-sent event each."""
    return anthropic_answers.events(answer) if wire == "anthropic" else model_answers.events(answer)


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
