"""What CopilotKit's client sends, as its tests send it, and the events that come back."""

import json
from collections.abc import Mapping
from io import BytesIO

from recto.conversation.json import Json
from recto.ids import new_id
from recto.testing.model_server import Answer, Call
from tests.api.scripted_server import Scripted
from tests.support.client import HttpReply, parse_events, request

BASE = "/api/v1/copilotkit"
SUGGEST = "copilotkitSuggest"
SUGGESTED = json.dumps({"suggestions": [{"title": "More", "message": "Tell me more."}]})
SUGGESTS = Answer(text="Well, ", calls=(Call(name=SUGGEST, arguments=SUGGESTED),))
TOOL: Json = {
    "name": SUGGEST,
    "description": "Suggest what the user could say next",
    "parameters": {"type": "object", "properties": {"suggestions": {"type": "array"}}, "required": ["suggestions"]},
}
FORCED: Json = {"toolChoice": {"type": "function", "function": {"name": SUGGEST}}}
HISTORY: tuple[Json, ...] = (
    {"id": "m1", "role": "user", "content": "What is an okapi?"},
    {"id": "m2", "role": "assistant", "content": "A relative of the giraffe."},
)


def send(
    server: Scripted, method: str, path: str, body: object = None, token: str | None = "", *, accept: str = "*/*"
) -> HttpReply:
    """A request to a route of CopilotKit's, by default of the server's user."""
    key = server.token if token == "" else token
    return request(server.url, method, f"{BASE}{path}", body, token=key, accept=accept)


def wish(**rest: Json) -> dict[str, Json]:
    """The body of a wish for suggestions."""
    id = new_id()
    asking: Json = {"id": id, "role": "user", "content": "Suggest what the user could say next."}
    messages: list[Json] = [*HISTORY, asking]
    body: dict[str, Json] = {"threadId": id, "runId": new_id(), "tools": [TOOL], "context": [], "state": {}}
    return {**body, "forwardedProps": FORCED, "messages": messages, **rest}


def events_of(reply: HttpReply) -> list[Mapping[str, Json]]:
    """The events of a stream that has ended."""
    assert (reply.status, reply.headers.get("content-type")) == (200, "text/event-stream"), reply.body
    return [received.event for received in parse_events(BytesIO(reply.body))]


def types_of(reply: HttpReply) -> list[str]:
    """Their types, deltas of one thing once."""
    types = [str(event["type"]) for event in events_of(reply)]
    return [one for place, one in enumerate(types) if place == 0 or types[place - 1] != one]
