"""Conversations grow at the end: what was worked out of the beginning is carried on, not worked out again."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Generic, NamedTuple, TypeVar, TypeVarTuple, cast

from recto.page.messages import Message

Args = TypeVarTuple("Args")
State = TypeVar("State")


class _Known(NamedTuple, Generic[State]):
    rest: tuple[Message, ...]
    state: State


def grow(
    messages: Sequence[Message], extend: Callable[[State | None, Sequence[Message], *Args], State], *args: *Args
) -> State:
    """What `extend` makes of a conversation, carried on from the last one that this one continues.

    `extend(state, more, ...)` returns a new state and leaves the old as it is; None stands for the empty
    conversation. One step over all messages and many steps over their pieces must come to the same.
    """
    if not messages:
        return extend(None, messages, *args)
    key = (extend, args)
    # Kept on the first message without that message itself, so that the two do not keep each other alive.
    first, rest = messages[0], tuple(messages[1:])
    known = cast("tuple[_Known[State], ...]", first.memo.get(key, ()))
    for begun in known:
        if begun.rest == rest:
            return begun.state
        if begun.rest == rest[: len(begun.rest)]:
            state = extend(begun.state, rest[len(begun.rest) :], *args)
            # The beginning is kept too: a retry replaces the end of a conversation.
            first.memo[key] = (_Known(rest, state), begun)
            return state
    state = extend(None, messages, *args)
    first.memo[key] = (_Known(rest, state), *known[:1])
    return state
