"""The chat route (P16): one message in, the events of its run out. It ignores the client's history."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from pydantic import BaseModel, ConfigDict, Field
from starlette.requests import Request
from starlette.responses import Response

from recto.api.backend import backend_of
from recto.api.bodies import MAX_BYTES, check_run, parse_json, read_body
from recto.api.route import CHAT, THREAD, Route
from recto.api.runs.admit import stream_run
from recto.conversation.input.input_rules import UUID
from recto.conversation.json import Json, Object, as_list, as_object, dump, kind_of, objects
from recto.errors import InvalidRequest, TooLarge, WireError

# Maximum objects and arrays of a body. All messages are parsed, although only the last user message is used.
MOST_PARTS = 65_536
# Request fields that become options of the run.
OPTIONS = ("skill", "voice_mode", "timezone")
NO_MESSAGE = "is missing. Send the text as `message`, or as the last user message of `messages`"
LONG_MESSAGE = f"The parts of the message exceed {MAX_BYTES:,} bytes. Upload files, and send their URLs."
TOO_DEEP = "is nested too deep to be stored"
# Prefixes of run fields that correspond to fields of the request.
CONTENT, PROPS = "messages[0].content", "forwardedProps."
MESSAGES = (
    "Messages with `role` and `content`. Without `message`, the server reads the last one with the role `user`: its "
    "text, or its AG-UI parts (texts and files, as in `POST /api/v1/agent/runs`)."
)


class ChatMessage(NamedTuple):
    """The user's message as text or AG-UI parts, and its field in the request."""

    content: str | Sequence[Object]
    where: str


class ChatBody(BaseModel):
    """The user's message and its conversation. Unknown fields are ignored."""

    model_config = ConfigDict(
        json_schema_extra={"example": {"message": "Plan my week, please.", "conversation_id": THREAD}}
    )

    message: str | None = Field(default=None, description="The user's text.")
    messages: object = Field(default=None, description=MESSAGES)
    conversation_id: str | None = Field(
        default=None,
        description="The thread; by default a new one, named in the first event.",
        json_schema_extra={"format": "uuid"},
    )
    skill: str | None = Field(default=None, description="The skill to use; `core` for none.")
    voice_mode: str | None = Field(default=None, description="The tone of the answer.")
    timezone: str | None = Field(default=None, description="The user's time zone, such as `Asia/Shanghai`.")


async def chat(request: Request) -> Response:
    """Send a message to a conversation, or start one. Streams the events of the run.

    The server ignores the history in `messages`; it reads only the last user message. Each request is a new run, so do
    not repeat one blindly after a lost response: `POST /api/v1/agent/runs` has ids for that.
    """
    backend = backend_of(request)
    # Allow a large body, because clients send the whole history. The new message has the usual limits.
    body = await read_body(request, backend.bodies.chat_bytes, "Request body")
    value = as_object(parse_json(body, MOST_PARTS), "body")
    message = ChatMessage(content=_text(value, "message"), where="message")
    if _is_empty(message.content) and (messages := value.get("messages")) is not None:
        message = _last_user_message(as_list(messages, "messages")) or message
    if _is_empty(message.content):
        raise WireError(where="message", problem=NO_MESSAGE)
    id = _text(value, "conversation_id") if value.get("conversation_id") is not None else None
    if id is not None and not UUID.fullmatch(id):
        problem = f"must be a UUID, is {id[:64]!r}. Omit it to start a new conversation"
        raise WireError(where="conversation_id", problem=problem)
    run: dict[str, Json] = {
        "threadId": id or backend.new_id(),
        "runId": backend.new_id(),
        "messages": [{"id": backend.new_id(), "role": "user", "content": message.content}],
        "forwardedProps": {name: text for name in OPTIONS if (text := _text(value, name).strip())},
    }
    try:
        return await stream_run(request, check_run(run, dump(run)), fallback=backend.agents.chat)
    except WireError as error:
        raise WireError(where=_request_field(error.where, message), problem=error.problem) from error
    except InvalidRequest as error:
        raise InvalidRequest(str(error), where=_request_field(error.where, message)) from error


def _last_user_message(messages: Sequence[Json]) -> ChatMessage | None:
    """Return the last user message. Earlier messages are not validated. `check_run` validates the parts."""
    for place in range(len(messages) - 1, -1, -1):
        message = messages[place]
        if not isinstance(message, dict):
            raise WireError(where=f"messages[{place}]", problem=f"must be an object, is {kind_of(message)}")
        if message.get("role") != "user":
            continue
        where, content = f"messages[{place}].content", message.get("content")
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
    return None


def _is_empty(content: str | Sequence[Object]) -> bool:
    if isinstance(content, str):
        return not content.strip()
    return all(part.get("type") == "text" and not str(part.get("text") or "").strip() for part in content)


def _request_field(where: str, message: ChatMessage) -> str:
    """Return the request field from which a field of the run was made."""
    if where == "messages":
        return message.where
    return message.where + where.removeprefix(CONTENT) if where.startswith(CONTENT) else where.removeprefix(PROPS)


def _text(value: Object, name: str) -> str:
    """Return a string field; empty if it is missing or null."""
    text = value.get(name)
    if text is None or isinstance(text, str):
        return text or ""
    raise WireError(where=name, problem=f"must be a string, is {kind_of(text)}")


ROUTES = (Route("POST", CHAT, chat, "runs", body=ChatBody, streams=True, errors=(404, 409, 413, 422)),)
