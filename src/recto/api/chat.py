"""The route of chat (P16): one message in, the events of its run out. Refuses to read the history a client has."""

from __future__ import annotations

from collections.abc import Mapping

from pydantic import BaseModel, ConfigDict, Field
from starlette.requests import Request
from starlette.responses import Response

from recto.api.backend import backend_of
from recto.api.bodies import read_body
from recto.api.route import Route
from recto.api.runs import admit_run
from recto.api.shapes import THREAD
from recto.errors import WireError
from recto.page.canonical import Json, dump, load
from recto.page.refuse import UUID
from recto.page.wire.fields import Object, as_object, kind_of, objects

CHAT = "/api/v1/chat"
# Those of a request that a run is asked for by name.
WISHES = ("skill", "voice_mode")
NO_WORDS = "there is none; send the user's words as `message`, or as the last user message of `messages`"
EXAMPLE: Json = {"message": "What is 12*7?", "conversation_id": THREAD}


class ChatMessage(BaseModel):
    """A message as the client has it. Only the last of a user is read, and only where there is no `message`."""

    model_config = ConfigDict(extra="allow")

    role: str
    content: str | list[dict[str, object]] | None = Field(default=None, description="Words, or parts of AG-UI.")


class ChatBody(BaseModel):
    """What the user says, and in which conversation. Unknown fields are ignored."""

    message: str | None = Field(default=None, description="The user's words.")
    messages: list[ChatMessage] | None = Field(default=None, description="Read where there is no `message`.")
    conversation_id: str | None = Field(
        default=None,
        description="The thread; without one a new one begins, named in the first event.",
        json_schema_extra={"format": "uuid"},
    )
    skill: str | None = Field(default=None, description="The skill to go on in; `core` for none.")
    voice_mode: str | None = Field(default=None, description="The tone of the answer.")


async def chat(request: Request) -> Response:
    """Say something in a conversation, or begin one: the answer is the events of the run.

    The past is in the server's log; `messages` is only looked at for the user's last words. Each request is a run of
    its own, so one whose answer was lost is not to be sent again blindly: `POST /api/v1/agent/runs` has ids for that.
    """
    body = await read_body(request)
    new_id = backend_of(request).new_id
    try:
        asked = as_object(load(body), "body")
    except ValueError as error:
        raise WireError(where="body", problem=f"is no JSON: {error}") from error
    words = _words(asked)
    run: dict[str, Json] = {
        "threadId": _thread(asked) or new_id(),
        "runId": new_id(),
        "messages": [{"id": new_id(), "role": "user", "content": words}],
        "forwardedProps": {name: wish for name in WISHES if (wish := _text(asked, name, name).strip())},
    }
    return await admit_run(request, dump(run), streams=True)


def _words(asked: Object) -> str:
    """What the user says now."""
    words = _text(asked, "message", "message")
    if not words.strip() and (listed := asked.get("messages")) is not None:
        users = [(where, item) for where, item in objects(listed, "messages") if item.get("role") == "user"]
        words = _content(users[-1][1], f"{users[-1][0]}.content") if users else ""
    if not words.strip():
        raise WireError(where="message", problem=NO_WORDS)
    return words


def _content(message: Object, where: str) -> str:
    """The words of a message: a string, or the texts of its parts."""
    content = message.get("content")
    if content is None or isinstance(content, str):
        return content or ""
    texts = [(place, part) for place, part in objects(content, where) if part.get("type") == "text"]
    return "\n".join([_text(part, "text", f"{place}.text") for place, part in texts])


def _thread(asked: Object) -> str | None:
    id = _text(asked, "conversation_id", "conversation_id") if asked.get("conversation_id") is not None else None
    if id is not None and not UUID.fullmatch(id):
        problem = f"must be a UUID, is {id[:64]!r}; leave it out to begin a conversation"
        raise WireError(where="conversation_id", problem=problem)
    return id


def _text(item: Mapping[str, Json], name: str, where: str) -> str:
    """A string; what is absent or null is empty."""
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
        refusals=(404, 409, 413, 415, 422),
        examples={"body": EXAMPLE},
    ),
)
