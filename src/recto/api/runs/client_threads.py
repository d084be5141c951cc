"""What clients call threads: a UUID is the thread's own id, any other name stands for one of its user's (P15)."""

from __future__ import annotations

import uuid

from starlette.requests import Request

from recto.api.backend import backend_of, user_of
from recto.conversation.input.input_rules import UUID
from recto.errors import NotFound, WireError

# Fixed for good: a name has to lead to the same thread always.
NAMES = uuid.UUID("5a0f6c1e-6b1d-4c53-9d1f-3f2f7f6a8e01")
MAX_NAME = 512


def thread_of(owner: str, sent: str) -> str:
    """The id of the thread that a user's client calls so. Two users who use one name have a thread each."""
    if UUID.fullmatch(sent):
        return sent.lower()
    # No user has a line break in their name.
    return str(uuid.uuid5(NAMES, f"{owner}\n{sent}"))


def check_name(sent: str) -> None:
    """Refuse what can be no name of a thread."""
    if not 0 < len(sent) <= MAX_NAME:
        raise WireError(where="threadId", problem=f"must have 1 to {MAX_NAME} characters, has {len(sent):,}")


async def own_thread(request: Request, name: str) -> str:
    """The id of the thread that whoever asks calls so. A name of nothing is not there, in the words it was asked in."""
    owner = user_of(request).name
    thread = thread_of(owner, name)
    if thread != name.lower() and not await backend_of(request).store.thread_for_admission(owner, thread):
        raise NotFound(what="thread", id=name)
    return thread
