"""Inputs that break the rules of P2, one at a time or several together; and how they are sent, and refused."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from http import HTTPStatus
from http.client import HTTPConnection
from typing import TypeAlias, cast
from urllib.parse import urlsplit

from recto.conversation.json import Json, dump
from recto.ids import new_id
from tests.support.client import RUNS, TOKEN, HttpReply, bearer, request

Body: TypeAlias = dict[str, Json]
LIMIT = 262_144
FOREIGN = "https://storage.example.com/agent-inputs/user-123/image.png?signature=xxx"
MEMBERS = {"type", "title", "status", "detail", "message", "code", "errors"}
SPEAKER: Body = {"id": "said", "role": "assistant", "content": "Hi."}


@dataclass(frozen=True, kw_only=True)
class Rule:
    """A rule of P2: how it is broken, and what is said then. Broken together, all of them are."""

    name: str
    detail: str
    break_it: Callable[[Body], Body]
    status: int = 422
    size: int | None = None


def good() -> Body:
    """An input that keeps every rule."""
    user: Body = {"id": new_id(), "role": "user", "content": [{"type": "text", "text": "Hi."}]}
    return {"threadId": new_id(), "runId": new_id(), "messages": [user]}


def messages_of(body: Body) -> list[Body]:
    return list(cast("list[Body]", body["messages"]))


def with_block(body: Body, block: Body) -> Body:
    """The input with one more block in its first user message."""
    messages = messages_of(body)
    place = next(place for place, message in enumerate(messages) if message["role"] == "user")
    content = cast("list[Json]", messages[place]["content"])
    messages[place] = {**messages[place], "content": [*content, block]}
    return {**body, "messages": cast("list[Json]", messages)}


def binary(**fields: str) -> Body:
    return {"type": "binary", **fields}


def with_messages(body: Body, *, before: list[Body] | None = None, after: list[Body] | None = None) -> Body:
    return {**body, "messages": cast("list[Json]", [*(before or []), *messages_of(body), *(after or [])])}


# In the order in which they are asked.
RULES: tuple[Rule, ...] = (
    Rule(
        name="size",
        status=413,
        detail="RunAgentInput payload exceeds size limit",
        break_it=lambda body: body,
        size=LIMIT + 1,
    ),
    Rule(name="form", detail="context: must be an array, is a number", break_it=lambda body: {**body, "context": 7}),
    Rule(name="thread", detail="threadId must be a valid UUID", break_it=lambda body: {**body, "threadId": "no-uuid"}),
    Rule(name="run", detail="runId exceeds length limit", break_it=lambda body: {**body, "runId": "r" * 129}),
    Rule(
        name="messages",
        detail="RunAgentInput.messages exceeds limit",
        break_it=lambda body: with_messages(body, after=[SPEAKER] * 200),
    ),
    Rule(
        name="words",
        detail="RunAgentInput user message text exceeds limit",
        break_it=lambda body: with_block(body, {"type": "text", "text": "x" * 10_001}),
    ),
    Rule(
        name="one user",
        detail="RunAgentInput.messages must contain exactly one user message",
        break_it=lambda body: with_messages(body, after=[{"id": "more", "role": "user", "content": "Hi."}]),
    ),
    Rule(
        name="user first",
        detail="RunAgentInput.messages[0].role must be user",
        break_it=lambda body: with_messages(body, before=[SPEAKER]),
    ),
    Rule(
        name="image",
        detail="binary content requires image mimeType",
        break_it=lambda body: with_block(body, binary(mimeType="application/pdf", url=FOREIGN)),
    ),
    Rule(
        name="url",
        detail="binary content requires url",
        break_it=lambda body: with_block(body, binary(mimeType="image/png")),
    ),
    Rule(
        name="data",
        detail="binary content data is not allowed",
        break_it=lambda body: with_block(body, binary(mimeType="image/png", url=FOREIGN, data="aGk=")),
    ),
    Rule(
        name="signed",
        detail="binary content url is not a valid signed URL",
        break_it=lambda body: with_block(body, binary(mimeType="image/png", url=FOREIGN)),
    ),
    # Beyond the table: what tools may be (P11).
    Rule(
        name="tool",
        detail="tools[0].name: 'a b' is no name of a tool; write 1 to 64 letters, digits, `_` and `-`",
        break_it=lambda body: {**body, "tools": [{"name": "a b"}]},
    ),
)


def broken(*rules: Rule) -> bytes:
    """An input that breaks these rules, the last of them in the first place of it."""
    body = good()
    for rule in reversed(rules):
        body = rule.break_it(body)
    return dump(body).ljust(max(rule.size or 0 for rule in rules))


def assert_refused(reply: HttpReply, status: int, detail: str, code: str = "invalid_input") -> None:
    """It is a problem in the one form there is, with just these words."""
    assert (reply.status, reply.json.get("detail")) == (status, detail)
    assert_problem(reply)
    assert reply.json["code"] == code


def assert_problem(reply: HttpReply) -> None:
    """It is a refusal of what was sent, in the one form there is."""
    assert 400 <= reply.status < 500, reply.body
    assert reply.headers["content-type"] in {"application/problem+json", "application/json"}
    reason = reply.json
    assert reason.keys() == MEMBERS
    assert (reason["type"], reason["title"], reason["status"]) == (
        "about:blank",
        HTTPStatus(reply.status).phrase,
        reply.status,
    )
    assert reason["detail"]
    assert reason["message"] == reason["detail"]
    assert reason["code"]
    for error in cast("list[Mapping[str, Json]]", reason["errors"]):
        assert error.keys() == {"field", "problem"}


def assert_alive(url: str) -> None:
    """The server answers, and takes a good run."""
    assert request(url, "GET", "/readyz").status == 200
    assert request(url, "POST", RUNS, good()).status == 202


def send_chunked(url: str, body: bytes) -> HttpReply:
    """Send an input that does not say how long it is."""
    pieces = (body[at : at + 8_192] for at in range(0, len(body), 8_192))
    connection = connect(url)
    headers = {"transfer-encoding": "chunked", "content-type": "application/json"} | bearer(TOKEN)
    connection.request("POST", RUNS, pieces, headers, encode_chunked=True)
    return answer_of(connection)


def send_part(url: str, part: bytes, length: int) -> HttpReply:
    """Send the beginning of an input that is said to be longer, and no more."""
    connection = connect(url)
    connection.putrequest("POST", RUNS)
    headers = {"content-length": str(length), "content-type": "application/json"} | bearer(TOKEN)
    for name, value in headers.items():
        connection.putheader(name, value)
    connection.endheaders(part)
    return answer_of(connection)


def connect(url: str) -> HTTPConnection:
    address = urlsplit(url)
    return HTTPConnection(address.hostname or "", address.port, timeout=30)


def answer_of(connection: HTTPConnection) -> HttpReply:
    answer = connection.getresponse()
    headers = {name.lower(): value for name, value in answer.getheaders()}
    reply = HttpReply(status=answer.status, headers=headers, body=answer.read())
    connection.close()
    return reply
