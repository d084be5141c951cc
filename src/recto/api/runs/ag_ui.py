"""Routes for standard AG-UI clients (P15): the client's whole message list in, the events of a run out.

New messages start a run. A list without any returns a snapshot of the thread.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Sequence
from typing import Annotated, NamedTuple

from pydantic import BaseModel, Field
from starlette.requests import Request
from starlette.responses import Response

from recto.api.backend import agent_named, backend_of, user_of
from recto.api.bodies import MAX_BYTES, SentRun, check_run, digest_of, read_body
from recto.api.parameters import in_path
from recto.api.route import THREAD, Route
from recto.api.runs.admit import admit_run
from recto.api.runs.client_threads import MAX_NAME, check_name, thread_of
from recto.api.runs.joining import snapshot_stream
from recto.api.runs.routes import ContextShape, MessageShape, ResumeShape, ToolShape
from recto.conversation.input import agui
from recto.conversation.input.client_list import NewInList, new_in_list, read_list, without_part
from recto.conversation.input.run_input import RunInput, noted
from recto.conversation.json import Json, Object, as_list, as_object, dump, load, optional_text, text_field
from recto.conversation.log import View, view
from recto.conversation.messages import Message, ToolMessage, UserMessage
from recto.errors import NotFound, Refused, TooLarge, WireError

AG_UI = "/api/v1/agent/ag-ui"
# Limit of objects and arrays of a body: all are parsed, although only new messages are used.
MOST_PARTS = 1_000_000
MANY_PARTS = f"Request body has more than {MOST_PARTS:,} objects and arrays. Send fewer of the messages before."
# Larger bodies are parsed in a thread, because hashing their files takes time.
LARGE = 2**20
# Unusable parts that are left out per message before the request is rejected.
MOST_LEFT_OUT = 10
LEFT_OUT = "An attachment of the user's could not be used. Tell them so"
LONG_TEXT = "RunAgentInput payload exceeds size limit"
INTERRUPT = "interrupt"
IN_MESSAGE = re.compile(r"messages\[(\d+)\]")
AnsweringAgent = Annotated[str, in_path("The agent that answers.")]
EXAMPLE: Json = {
    "threadId": THREAD,
    "runId": "run-002",
    "messages": [
        {"id": "m1", "role": "user", "content": "What is 6 * 7?"},
        {"id": "m2", "role": "assistant", "content": "42."},
        {"id": "m3", "role": "user", "content": "And half of it?"},
    ],
}


class ListBody(BaseModel):
    """AG-UI's RunAgentInput as clients send it, with the whole message list."""

    thread_id: str = Field(
        alias="threadId", min_length=1, max_length=MAX_NAME, description="Any name; events name the thread by it."
    )
    run_id: str = Field(alias="runId", min_length=1, max_length=128)
    parent_run_id: str | None = Field(default=None, alias="parentRunId")
    state: object = None
    # Only new messages are validated.
    messages: list[MessageShape | object]
    tools: list[ToolShape] | None = []
    context: list[ContextShape] | None = []
    forwarded_props: dict[str, object] | None = Field(default=None, alias="forwardedProps")
    resume: list[ResumeShape] | None = None
    protocol_version: str | None = Field(default=None, alias="protocolVersion", description="`1.0`, or an older one.")


async def answer(request: Request) -> Response:
    """Answer the new messages of a client's list. Streams the events of the run.

    Messages are compared with the thread by id. Messages of the thread after the latest known one are rolled back, so
    that an edited or regenerated message is answered again. A list without new messages returns a snapshot. An active
    run of the thread is cancelled, unless `multitask` says otherwise.
    """
    return await admit_client_list(request, await read_list_body(request), None)


async def answer_by(request: Request, agent: AnsweringAgent) -> Response:
    """Answer the new messages of a client's list with this agent."""
    agent_named(backend_of(request), agent, "agent")
    return await admit_client_list(request, await read_list_body(request), agent)


async def read_list_body(request: Request) -> bytes:
    """Read the body of a request with a message list."""
    return await read_body(request, backend_of(request).bodies.agui_bytes)


async def admit_client_list(request: Request, body: bytes, agent: str | None) -> Response:
    """Admit the new messages of a list and stream the events of the run."""
    owner, is_large = user_of(request).name, len(body) > LARGE
    asked = await asyncio.to_thread(_asked, owner, body, agent) if is_large else _asked(owner, body, agent)
    if not asked.new.ends_with_user and not await _has_new(request, asked):
        return await _snapshot(request, asked)
    value, left_out = asked.value, list[str]()
    while True:
        whole = noted(_with_notes(value, left_out), asked.new.listed, thread=asked.sent_thread, left_out=left_out)
        try:
            sent = await asyncio.to_thread(_checked, whole, asked) if is_large else _checked(whole, asked)
            return await admit_run(request, sent, streams=True, fallback=backend_of(request).agent)
        except (WireError, Refused) as error:
            without = _without_part(value, error) if len(left_out) < MOST_LEFT_OUT else None
            if without is None:
                raise _as_sent(error, asked.new.places) from error
            value, text = without
            left_out.append(text)


def _without_part(value: Object, error: WireError | Refused) -> tuple[Object, str] | None:
    if isinstance(error, WireError):
        return without_part(value, error.where, error.problem)
    return without_part(value, error.where, str(error), error.keep)


def _with_notes(value: Object, left_out: Sequence[str]) -> Object:
    """Return the request with notes in its context that tell the model about unusable parts."""
    context = value.get("context")
    if not left_out or not isinstance(context, list | None):
        return value
    notes: list[Json] = [{"description": LEFT_OUT, "value": reason} for reason in left_out]
    return {**value, "context": [*(context or ()), *notes]}


def _checked(whole: Object, asked: _Asked) -> SentRun:
    return check_run(whole, dump(whole), noted_digest=asked.digest)


class _Asked(NamedTuple):
    """A request reduced to its new messages. `sent_thread` is the client's thread name, if it differs from the id."""

    value: Object
    new: NewInList
    digest: bytes
    sent_thread: str | None


def _asked(owner: str, body: bytes, agent: str | None) -> _Asked:
    if body.count(b"{") + body.count(b"[") > MOST_PARTS:
        raise TooLarge(MANY_PARTS)
    try:
        value = as_object(load(body), "RunAgentInput")
    except ValueError as error:
        raise WireError(where="body", problem=f"is no JSON: {error}") from error
    name = text_field(value, agui.spelled(value, "threadId"), "RunAgentInput")
    check_name(name)
    thread = thread_of(owner, name)
    new = new_in_list(as_list(value.get("messages"), "messages"))
    own = ("thread_id", "threadId", "messages", "forwardedProps", "forwarded_props")
    rest = {field: found for field, found in value.items() if field not in own}
    props = _props(value.get(agui.spelled(value, "forwardedProps")), agent)
    taken = {"threadId": thread, **rest, "messages": list(new.messages), "forwardedProps": props}
    if len(body) > MAX_BYTES and len(dump(taken)) - _inline_bytes(new) > MAX_BYTES:
        raise TooLarge(LONG_TEXT)
    return _Asked(
        value=taken, new=new, digest=digest_of([taken, new.listed]), sent_thread=None if name == thread else name
    )


def _props(props: Json, agent: str | None) -> Json:
    """Return the options of the run. `interrupt` is the default: the client no longer reads the previous run."""
    if props is not None and not isinstance(props, dict):
        return props
    return {"multitask": INTERRUPT, **(props or {}), **({"agent": agent} if agent else {})}


def _inline_bytes(new: NewInList) -> int:
    contents = [content for message in new.messages if isinstance(content := message.get("content"), list)]
    return sum(len(data) for content in contents for part in content if (data := _data_of(part)))


def _data_of(part: Json) -> str:
    match part:
        case {"source": {"type": "data", "value": str(data)}}:
            return data
        case _:
            return ""


async def _has_new(request: Request, asked: _Asked) -> bool:
    """Return True if a list that does not end with a user message has anything to answer."""
    if asked.value.get("resume"):
        return True
    backend, thread = backend_of(request), str(asked.value["threadId"])
    found = _outline(asked)
    if not found.messages:
        return False
    known = await backend.store.thread_for_admission(user_of(request).name, thread)
    if known is None:
        return any(isinstance(message, UserMessage) for message in found.messages)
    if not known.is_own:
        raise NotFound(what="thread", id=thread)
    turn = View(entries=tuple(await backend.store.turn(thread)))
    if any(isinstance(message, ToolMessage) for message in read_list(turn, found).taken):
        return True
    return bool(read_list(view(await backend.store.log_after(thread)), found).taken)


def _outline(asked: _Asked) -> RunInput:
    """Return the new messages by id only. They are validated once they are known to be used."""
    messages = list[Message]()
    for message in asked.new.messages:
        id, call = str(message.get("id")), str(message.get(agui.spelled(message, "toolCallId")))
        if message.get("role") == "user":
            messages.append(UserMessage(id=id, parts=()))
        elif message.get("role") == "tool":
            messages.append(ToolMessage(id=id, tool_call_id=call, parts=()))
    return RunInput(thread="", run="", messages=tuple(messages), listed=asked.new.listed)


async def _snapshot(request: Request, asked: _Asked) -> Response:
    """Return a snapshot of the thread. The request is not stored."""
    value, run = asked.value, agui.spelled(asked.value, "runId")
    try:
        return await snapshot_stream(
            request,
            str(value["threadId"]),
            text_field(value, run, "RunAgentInput"),
            thread_name=asked.sent_thread,
            protocol=optional_text(value, agui.spelled(value, "protocolVersion"), "RunAgentInput"),
        )
    except NotFound as error:
        raise NotFound(what=error.what, id=asked.sent_thread or error.id) from error


def _as_sent(error: WireError | Refused, places: Sequence[int]) -> WireError | Refused:
    """Return a problem with the position of its message in the sent list."""
    found = IN_MESSAGE.match(error.where)
    if found is None or int(found[1]) >= len(places):
        return error
    where = f"messages[{places[int(found[1])]}]{error.where[found.end() :]}"
    return (
        WireError(where=where, problem=error.problem)
        if isinstance(error, WireError)
        else Refused(str(error), where=where)
    )


ROUTES = (
    Route(
        method="POST",
        path=AG_UI,
        handler=answer,
        tag="runs",
        body=ListBody,
        streams=True,
        refusals=(404, 409, 413, 422),
        examples={"body": EXAMPLE},
    ),
    Route(
        method="POST",
        path=f"{AG_UI}/{{agent}}",
        handler=answer_by,
        tag="runs",
        body=ListBody,
        streams=True,
        refusals=(404, 409, 413, 422),
        examples={"body": EXAMPLE},
    ),
)
