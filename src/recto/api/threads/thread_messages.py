"""The route of a thread's messages in AG-UI form (P17), for clients that keep their own list."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Annotated

from starlette.requests import Request
from starlette.responses import Response
from typing_extensions import TypedDict

from recto.api.backend import backend_of, json_answer, user_of
from recto.api.bodies import NUL
from recto.api.parameters import in_query
from recto.api.route import TASK, THREAD, Route
from recto.api.runs.client_threads import own_thread
from recto.api.signed import render_context
from recto.api.threads.routes import ONE, ThreadId
from recto.conversation.log import View
from recto.conversation.snapshots.agui_messages import detailed_rows, message_rows
from recto.errors import WireError
from recto.store.threads.message_pages import NOT_SEEN, MessagesQuery

MOST = 1_000


class MessagesShape(TypedDict):
    """Messages of a thread in AG-UI form, oldest first. An incomplete reply also has a `status`.

    With `details`, rows have `timestamp` and the task id of their `run`, user messages have `files` by model-facing id,
    and some have a `uiSchema`. `next` is the `since` of the next page; `activeRun` is the task id of the active run.
    """

    threadId: str
    messages: Sequence[Mapping[str, object]]
    next: str | None
    activeRun: str | None


CALL = {"id": "c1", "type": "function", "function": {"name": "calculator", "arguments": '{"expression":"12*7"}'}}
MESSAGES_EXAMPLE: MessagesShape = {
    "threadId": THREAD,
    "messages": [
        {"id": "msg-001", "role": "user", "content": "What is 12*7?"},
        {"id": "a1", "role": "assistant", "toolCalls": [CALL]},
        {"id": "t1", "role": "tool", "content": "84", "toolCallId": "c1"},
        {"id": "a2", "role": "assistant", "content": "84."},
    ],
    "next": None,
    "activeRun": TASK,
}


async def get_messages(
    request: Request,
    id: ThreadId,
    since: Annotated[str | None, in_query("Only what follows the message of this id.")] = None,
    limit: Annotated[int, in_query("How many messages at most.", ge=1, le=MOST)] = MOST,
    details: Annotated[bool, in_query("With what AG-UI has no place for: times, runs, cards, ids of files.")] = False,
) -> Response:
    """Return the visible messages of a thread, or those after an id. Output of an active run is in its events."""
    if since is not None and NUL in since:
        raise WireError(where="since", problem=NOT_SEEN.format(id=since[:64]))
    backend, known = backend_of(request), await own_thread(request, id)
    query = MessagesQuery(thread=known, since=since, limit=limit, most_bytes=backend.bodies.snapshot_bytes)
    page = await backend.store.messages_page(user_of(request).name, replace(query, with_runs=details))
    context = await render_context(backend, known, page.thread.agent)
    # The page is bounded already; cutting it again would lose messages.
    seen, whole = View(entries=page.entries), replace(context, most_bytes=None)
    telling = partial(detailed_rows, runs=page.runs) if details else message_rows
    rows = await asyncio.to_thread(telling, seen, whole)
    answer: MessagesShape = {
        "threadId": known,
        "messages": rows,
        "next": page.next,
        "activeRun": page.thread.active,
    }
    return json_answer(answer)


ROUTES = (
    Route(
        method="GET",
        path=f"{ONE}/messages",
        handler=get_messages,
        tag="threads",
        answer=MessagesShape,
        refusals=(404, 422),
        examples={"answer": MESSAGES_EXAMPLE},
    ),
)
