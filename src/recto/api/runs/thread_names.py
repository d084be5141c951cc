"""Thread names of clients: a UUID is the thread's id; any other name maps to a thread of the user (P15)."""

from __future__ import annotations

import uuid
from typing import Annotated

from starlette.requests import Request

from recto.api.backend import backend_of, user_of
from recto.api.parameters import in_path
from recto.conversation.input.input_rules import UUID
from recto.errors import NotFound, WireError

THREADS = "/api/v1/agent/threads"
THREAD_PATH = f"{THREADS}/{{id}}"
ThreadId = Annotated[str, in_path("The thread's id, or an AG-UI client's name of it.")]
# Never changes: a name must always map to the same thread.
NAMES = uuid.UUID("5a0f6c1e-6b1d-4c53-9d1f-3f2f7f6a8e01")
MAX_NAME = 512


def thread_of(owner: str, name: str) -> str:
    """Return the thread id of a user's thread name. Users with equal names have separate threads."""
    if UUID.fullmatch(name):
        return name.lower()
    # User names contain no line break.
    return str(uuid.uuid5(NAMES, f"{owner}\n{name}"))


def check_name(name: str) -> None:
    """Reject an invalid thread name."""
    if not 0 < len(name) <= MAX_NAME:
        raise WireError(where="threadId", problem=f"must have 1 to {MAX_NAME} characters, has {len(name):,}")


async def own_thread(request: Request, name: str) -> str:
    """Return the id of the caller's thread. Raises NotFound with the requested name."""
    owner = user_of(request).name
    thread = thread_of(owner, name)
    if thread != name.lower() and not await backend_of(request).store.threads.get_for_admission(owner, thread):
        raise NotFound(what="thread", id=name)
    return thread
