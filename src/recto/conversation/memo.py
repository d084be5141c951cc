"""Conversations grow at the end: what was worked out of the beginning is carried on, not worked out again."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Generic, NamedTuple, TypeVar, TypeVarTuple, cast

from recto.conversation.messages import Message

Args = TypeVarTuple("Args")
State = TypeVar("State")


class _Known(NamedTuple, Generic[State]):
    """A conversation, without the message it is kept on, and what was worked out of it."""

    before: tuple[Message, ...]
    after: tuple[Message, ...]
    state: State


def grow(
    messages: Sequence[Message], extend: Callable[[State | None, Sequence[Message], *Args], State], *args: *Args
) -> State:
    """What `extend` makes of a conversation, carried on from the longest one known that this one continues.

    `extend(state, more, ...)` returns a new state and leaves the old as it is; None stands for the empty
    conversation. One step over all messages and many steps over their pieces must come to the same.
    """
    if not messages:
        return extend(None, messages, *args)
    # Kept on the first user message, which no other thread has, and without that message itself, so that the two do
    # not keep each other alive.
    anchor = next((place for place, message in enumerate(messages) if message.role == "user"), 0)
    memo, key = messages[anchor].memo, (extend, args)
    before, after = tuple(messages[:anchor]), tuple(messages[anchor + 1 :])
    known = cast("tuple[_Known[State], ...]", memo.get(key, ()))
    begun = next((one for one in known if one.before == before and one.after == after[: len(one.after)]), None)
    if begun is not None and len(begun.after) == len(after):
        return begun.state
    state, done = (begun.state, len(begun.after)) if begun else (extend(None, messages[: anchor + 1], *args), 0)
    # A new turn, and a retry, change what follows the last user message; what precedes it is kept for them.
    turn = next((place for place in range(len(after) - 1, -1, -1) if after[place].role == "user"), 0)
    if turn > done:
        state = extend(state, after[done:turn], *args)
        begun, done = _Known(before, after[:turn], state), turn
    if done < len(after):
        state = extend(state, after[done:], *args)
    memo[key] = (_Known(before, after, state), *([begun] if begun else []), *known[-1:])[:3]
    return state
