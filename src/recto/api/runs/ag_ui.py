"""Routes for standard AG-UI clients (P15): the client's whole message list in, the events of a run out.

New messages start a run. A list without new messages returns a snapshot of the thread.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Sequence
from typing import Annotated, NamedTuple

from pydantic import BaseModel, ConfigDict, Field
from starlette.requests import Request
from starlette.responses import Response

from recto.api.backend import backend_of, user_of
from recto.api.bodies import MAX_BYTES, RunRequest, check_run, digest_of, parse_json, read_body
from recto.api.route import THREAD, Route, in_path
from recto.api.runs.admit import MAX_NAME, check_name, stream_run, thread_of
from recto.api.runs.routes import ContextShape, MessageShape, ResumeShape, ToolShape
from recto.api.runs.stream_join import snapshot_stream
from recto.conversation.input import agui
from recto.conversation.input.client_list import NewInList, new_in_list, read_list, without_part
from recto.conversation.input.run_input import RunInput, add_notes
from recto.conversation.json import Json, Object, as_list, as_object, dump, optional_text, text_field
from recto.conversation.log import View, view
from recto.conversation.messages import Message, ToolMessage, UserMessage
from recto.errors import InvalidRequest, NotFound, TooLarge, WireError

AG_UI = "/api/v1/agent/ag-ui"
# Maximum objects and arrays of a body. The whole list is parsed, although only new messages are used.
MOST_PARTS = 1_000_000
# Larger bodies are parsed in a thread, because hashing their files takes time.
LARGE = 2**20
# Maximum number of unusable parts to omit. With more, the server rejects the request.
MOST_LEFT_OUT = 10
LEFT_OUT = "An attachment of the user's could not be used. Tell them so"
LONG_TEXT = "RunAgentInput payload exceeds size limit"
INTERRUPT = "interrupt"
IN_MESSAGE = re.compile(r"messages\[(\d+)\]")
AnsweringAgent = Annotated[str, in_path("The agent that answers.")]


class ListBody(BaseModel):
    """AG-UI's RunAgentInput as clients send it, with the whole message list."""

    model_config = ConfigDict(
        json_schema_extra={
            "example": {
                "threadId": THREAD,
                "runId": "run-002",
                "messages": [
                    {"id": "m1", "role": "user", "content": "What is 6 * 7?"},
                    {"id": "m2", "role": "assistant", "content": "42."},
                    {"id": "m3", "role": "user", "content": "And half of it?"},
                ],
            }
        }
    )

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
    backend_of(request).agents.require(agent, "agent")
    return await admit_client_list(request, await read_list_body(request), agent)


async def read_list_body(request: Request) -> bytes:
    """Read the body of a request with a message list."""
    return await read_body(request, backend_of(request).bodies.agui_bytes)


async def admit_client_list(request: Request, body: bytes, agent: str | None) -> Response:
    """Admit the new messages of a list and stream the events of the run."""
    owner, is_large = user_of(request).name, len(body) > LARGE
    client_list = await asyncio.to_thread(_parse, owner, body, agent) if is_large else _parse(owner, body, agent)
    new = client_list.new
    if not new.ends_with_user and not await _has_new(request, client_list):
        return await _stream_snapshot(request, client_list)
    value, problems = client_list.value, list[str]()

    def check() -> RunRequest:
        """Validate the request. Notes in its context tell the model about unusable parts."""
        notes: list[Json] = [{"description": LEFT_OUT, "value": problem} for problem in problems]
        context, noted = value.get("context"), value
        if notes and isinstance(context, list | None):
            noted = {**value, "context": [*(context or ()), *notes]}
        whole = add_notes(noted, new.listed_ids, thread=client_list.thread_name, left_out=problems)
        return check_run(whole, dump(whole), digest=client_list.digest)

    while True:
        try:
            run_request = await asyncio.to_thread(check) if is_large else check()
            return await stream_run(request, run_request, fallback=backend_of(request).agents.default)
        except (WireError, InvalidRequest) as error:
            text, keep = (error.problem, None) if isinstance(error, WireError) else (str(error), error.keep)
            shorter = without_part(value, error.where, text, keep) if len(problems) < MOST_LEFT_OUT else None
            if shorter is None:
                raise _with_list_position(error, new.places) from error
            value, text = shorter
            problems.append(text)


class _ClientList(NamedTuple):
    """A request reduced to its new messages. `thread_name` is the client's thread name, if it differs from the id."""

    value: Object
    new: NewInList
    digest: bytes
    thread_name: str | None


def _parse(owner: str, body: bytes, agent: str | None) -> _ClientList:
    value = as_object(parse_json(body, MOST_PARTS), "RunAgentInput")
    name = text_field(value, agui.field_name(value, "threadId"), "RunAgentInput")
    check_name(name)
    thread = thread_of(owner, name)
    new = new_in_list(as_list(value.get("messages"), "messages"))
    own = ("thread_id", "threadId", "messages", "forwardedProps", "forwarded_props")
    rest = {field: part for field, part in value.items() if field not in own}
    props = value.get(agui.field_name(value, "forwardedProps"))
    if props is None or isinstance(props, dict):
        # `interrupt` is the default: the client no longer reads the previous run.
        props = {"multitask": INTERRUPT, **(props or {}), **({"agent": agent} if agent else {})}
    request = {"threadId": thread, **rest, "messages": list(new.messages), "forwardedProps": props}
    if len(body) > MAX_BYTES:
        # Subtract inline files, which have their own limit.
        contents = [content for message in new.messages if isinstance(content := message.get("content"), list)]
        sizes = [len(data) for content in contents for part in content if (data := _inline_data(part))]
        if len(dump(request)) - sum(sizes) > MAX_BYTES:
            raise TooLarge(LONG_TEXT)
    digest = digest_of([request, new.listed_ids])
    return _ClientList(value=request, new=new, digest=digest, thread_name=None if name == thread else name)


def _inline_data(part: Json) -> str:
    match part:
        case {"source": {"type": "data", "value": str(data)}}:
            return data
        case _:
            return ""


async def _has_new(request: Request, client_list: _ClientList) -> bool:
    """Return True if a list that does not end with a user message has anything to answer."""
    if client_list.value.get("resume"):
        return True
    backend, thread = backend_of(request), str(client_list.value["threadId"])
    # Outlines of the messages are enough to tell which are new. Only those are validated later.
    messages = list[Message]()
    for message in client_list.new.messages:
        id, call = str(message.get("id")), str(message.get(agui.field_name(message, "toolCallId")))
        if message.get("role") == "user":
            messages.append(UserMessage(id=id, parts=()))
        elif message.get("role") == "tool":
            messages.append(ToolMessage(id=id, tool_call_id=call, parts=()))
    outline = RunInput(thread="", run="", messages=tuple(messages), listed_ids=client_list.new.listed_ids)
    if not outline.messages:
        return False
    row = await backend.store.threads.get_for_admission(user_of(request).name, thread)
    if row is None:
        return any(isinstance(message, UserMessage) for message in outline.messages)
    if not row.is_own:
        raise NotFound(what="thread", id=thread)
    turn = View(entries=tuple(await backend.store.log.read_turn(thread)))
    if any(isinstance(message, ToolMessage) for message in read_list(turn, outline).messages):
        return True
    return bool(read_list(view(await backend.store.log.read_after(thread)), outline).messages)


async def _stream_snapshot(request: Request, client_list: _ClientList) -> Response:
    """Return a snapshot of the thread. The request is not stored."""
    value, run = client_list.value, agui.field_name(client_list.value, "runId")
    try:
        return await snapshot_stream(
            request,
            str(value["threadId"]),
            text_field(value, run, "RunAgentInput"),
            thread_name=client_list.thread_name,
            protocol=optional_text(value, agui.field_name(value, "protocolVersion"), "RunAgentInput"),
        )
    except NotFound as error:
        raise NotFound(what=error.what, id=client_list.thread_name or error.id) from error


def _with_list_position(error: WireError | InvalidRequest, places: Sequence[int]) -> WireError | InvalidRequest:
    """Return the error with the position of its message in the client's list, not in the list of new messages."""
    match = IN_MESSAGE.match(error.where)
    if match is None or int(match[1]) >= len(places):
        return error
    where = f"messages[{places[int(match[1])]}]{error.where[match.end() :]}"
    if isinstance(error, WireError):
        return WireError(where=where, problem=error.problem)
    return InvalidRequest(str(error), where=where)


ROUTES = (
    Route("POST", AG_UI, answer, "runs", body=ListBody, streams=True, errors=(404, 409, 413, 422)),
    Route("POST", f"{AG_UI}/{{agent}}", answer_by, "runs", body=ListBody, streams=True, errors=(404, 409, 413, 422)),
)
