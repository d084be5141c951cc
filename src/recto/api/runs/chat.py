"""The chat route (P16): one message in, the events of its run out. It ignores the client's history."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from pydantic import BaseModel, Field
from starlette.requests import Request
from starlette.responses import Response

from recto.api.backend import backend_of
from recto.api.bodies import MAX_BYTES, check_run, read_body
from recto.api.route import CHAT, THREAD, Route
from recto.api.runs.admit import admit_run
from recto.conversation.input.input_rules import UUID
from recto.conversation.json import Json, Object, as_list, as_object, dump, kind_of, load, objects
from recto.errors import Refused, TooLarge, WireError

# Limit of objects and arrays of a body: all are parsed, although only the last user message is used.
MOST_PARTS = 65_536
MANY_PARTS = f"Request body has more than {MOST_PARTS:,} objects and arrays. Send fewer of the messages before."
# Request fields that become options of the run.
OPTIONS = ("skill", "voice_mode", "timezone")
NO_WORDS = "there is none; send the user's words as `message`, or as the last user message of `messages`"
LONG_MESSAGE = f"The parts of the message exceed {MAX_BYTES:,} bytes. Upload files, and name the urls they get."
TOO_DEEP = "is nested too deep to be stored; make it flatter"
# Field names of the run that correspond to those of the request.
CONTENT, PROPS = "messages[0].content", "forwardedProps."
MESSAGES = (
    "A list of what was said, each with `role` and `content`. It is looked at only where there is no `message`, for "
    "the last of the role `user`: words, or parts of AG-UI, texts and files as `POST /api/v1/agent/runs` takes them."
)
EXAMPLE: Json = {"message": "Read my bazi: I was born on 1990-05-15 at 14:30 in Beijing.", "conversation_id": THREAD}


@dataclass(frozen=True, kw_only=True)
class ChatMessage:
    """The user's message as text or AG-UI parts, and its field in the request."""

    content: str | Sequence[Object]
    where: str


class ChatBody(BaseModel):
    """The user's message and its conversation. Unknown fields are ignored."""

    message: str | None = Field(default=None, description="The user's words.")
    messages: object = Field(default=None, description=MESSAGES)
    conversation_id: str | None = Field(
        default=None,
        description="The thread; without one a new one begins, named in the first event.",
        json_schema_extra={"format": "uuid"},
    )
    skill: str | None = Field(default=None, description="The skill to go on in; `core` for none.")
    voice_mode: str | None = Field(default=None, description="The tone of the answer.")
    timezone: str | None = Field(default=None, description="Where the user is, such as `Asia/Shanghai`.")


async def chat(request: Request) -> Response:
    """Send a message to a conversation, or start one. Streams the events of the run.

    The server ignores the history in `messages`; it reads only the last user message. Each request is a new run, so do
    not repeat one blindly after a lost response: `POST /api/v1/agent/runs` has ids for that.
    """
    backend = backend_of(request)
    # Clients send the whole history; the run's own part stays within the usual limits.
    body = await read_body(request, backend.bodies.chat_bytes, "Request body")
    if body.count(b"{") + body.count(b"[") > MOST_PARTS:
        raise TooLarge(MANY_PARTS)
    new_id = backend.new_id
    try:
        asked = as_object(load(body), "body")
    except ValueError as error:
        raise WireError(where="body", problem=f"is no JSON: {error}") from error
    said = _said(asked)
    run: dict[str, Json] = {
        "threadId": _thread(asked) or new_id(),
        "runId": new_id(),
        "messages": [{"id": new_id(), "role": "user", "content": said.content}],
        "forwardedProps": {name: value for name in OPTIONS if (value := _text(asked, name, name).strip())},
    }
    try:
        return await admit_run(request, check_run(run, dump(run)), streams=True, fallback=backend.chat_agent)
    except WireError as error:
        raise WireError(where=_as_sent(error.where, said), problem=error.problem) from error
    except Refused as error:
        raise Refused(str(error), where=_as_sent(error.where, said)) from error


def _said(asked: Object) -> ChatMessage:
    """Return the user's message."""
    said = ChatMessage(content=_text(asked, "message", "message"), where="message")
    if _is_empty(said.content) and (listed := asked.get("messages")) is not None:
        said = _last_of_user(as_list(listed, "messages")) or said
    if _is_empty(said.content):
        raise WireError(where="message", problem=NO_WORDS)
    return said


def _last_of_user(messages: Sequence[Json]) -> ChatMessage | None:
    """Return the last user message. Earlier ones are not validated."""
    for place in range(len(messages) - 1, -1, -1):
        message = messages[place]
        if not isinstance(message, dict):
            raise WireError(where=f"messages[{place}]", problem=f"must be an object, is {kind_of(message)}")
        if message.get("role") == "user":
            return _content(message, f"messages[{place}].content")
    return None


def _content(message: Object, where: str) -> ChatMessage:
    """Return the content of a message. Its parts are validated with the run."""
    content = message.get("content")
    if content is None or isinstance(content, str):
        return ChatMessage(content=content or "", where=where)
    parts = [part for _, part in objects(content, where)]
    try:
        size = len(dump(parts))
    except WireError as error:
        raise WireError(where=where, problem=TOO_DEEP) from error
    if size > MAX_BYTES:
        raise TooLarge(LONG_MESSAGE)
    return ChatMessage(content=parts, where=where)


def _is_empty(content: str | Sequence[Object]) -> bool:
    if isinstance(content, str):
        return not content.strip()
    return all(part.get("type") == "text" and not str(part.get("text") or "").strip() for part in content)


def _as_sent(where: str, said: ChatMessage) -> str:
    """Return the request field of a field of the run."""
    if where == "messages":
        return said.where
    return said.where + where.removeprefix(CONTENT) if where.startswith(CONTENT) else where.removeprefix(PROPS)


def _thread(asked: Object) -> str | None:
    id = _text(asked, "conversation_id", "conversation_id") if asked.get("conversation_id") is not None else None
    if id is not None and not UUID.fullmatch(id):
        problem = f"must be a UUID, is {id[:64]!r}; leave it out to begin a conversation"
        raise WireError(where="conversation_id", problem=problem)
    return id


def _text(item: Mapping[str, Json], name: str, where: str) -> str:
    """Return a string; empty if it is missing or null."""
    found = item.get(name)
    if found is None or isinstance(found, str):
        return found or ""
    raise WireError(where=where, problem=f"must be a string, is {kind_of(found)}")


ROUTES = (
    Route(
        method="POST",
        path=CHAT,
        handler=chat,
        tag="runs",
        body=ChatBody,
        streams=True,
        refusals=(404, 409, 413, 422),
        examples={"body": EXAMPLE},
    ),
)
