"""What was worked out of a value is kept on it: nothing is counted or parsed twice.

A conversation grows at its end, so what was worked out of its beginning is carried on (`grow`). What many have in
common is kept for all of them (`keep_recent`), until somebody is deleted.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Generic, NamedTuple, ParamSpec, Protocol, TypeAlias, TypeVar, TypeVarTuple, cast

Memo: TypeAlias = dict[Hashable, object]
Args = TypeVarTuple("Args")
Known = TypeVar("Known")
State = TypeVar("State")
Given = ParamSpec("Given")
UNKNOWN = object()
# A conversation of so few messages is sooner worked out again than looked up.
FEW = 2
_recent: list[Callable[[], None]] = []


@dataclass(frozen=True, kw_only=True)
class MemoHolder:
    """A value that remembers what pure functions said of it."""

    memo: Memo = field(default_factory=dict[Hashable, object], init=False, repr=False, compare=False)


Value = TypeVar("Value", bound=MemoHolder)


def memoise(value: Value, function: Callable[[Value, *Args], Known], *args: *Args) -> Known:
    """What `function(value, ...)` returns, worked out once in the life of the value. Arguments must be hashable."""
    key = (function, *args)
    known = value.memo.get(key, UNKNOWN)
    if known is UNKNOWN:
        known = value.memo[key] = function(value, *args)
    return known  # pyright: ignore[reportReturnType] - the key holds the function, so this is what it returned


def memoise_last(value: Value, function: Callable[[Value, *Args], Known], *args: *Args) -> Known:
    """As `remember`, for arguments that change as a conversation grows: only the newest answer is kept."""
    known = value.memo.get(function)
    last = cast("tuple[tuple[*Args], Known]", known) if known else None
    if last is None or last[0] != args:
        last = value.memo[function] = (args, function(value, *args))
    return last[1]


class MemoMessage(Protocol):
    """A message, as far as growing needs to know it: who said it, and its memo."""

    @property
    def role(self) -> str: ...

    @property
    def memo(self) -> Memo: ...


Said = TypeVar("Said", bound=MemoMessage)


class _Known(NamedTuple, Generic[Said, State]):
    """A conversation, without the message it is kept on, and what was worked out of it."""

    before: tuple[Said, ...]
    after: tuple[Said, ...]
    state: State


def memoise_prefix(
    messages: Sequence[Said], extend: Callable[[State | None, Sequence[Said], *Args], State], *args: *Args
) -> State:
    """What `extend` makes of a conversation, carried on from the longest one known that this one continues.

    `extend(state, more, ...)` returns a new state and leaves the old as it is; None stands for the empty
    conversation. One step over all messages and many steps over their pieces must come to the same.
    """
    if len(messages) <= FEW:
        return extend(None, messages, *args)
    # Kept without the message it is kept on, so that the two do not keep each other alive.
    anchor = memo_place(messages)
    # A log, and a page of it with something before it, are two conversations that grow side by side.
    memo, key = messages[anchor].memo, (extend, args, anchor)
    before, after = tuple(messages[:anchor]), tuple(messages[anchor + 1 :])
    known = cast("tuple[_Known[Said, State], ...]", memo.get(key, ()))
    begun = next((one for one in known if one.before == before and one.after == after[: len(one.after)]), None)
    if begun is not None and len(begun.after) == len(after):
        return begun.state
    state, done = (begun.state, len(begun.after)) if begun else (extend(None, messages[: anchor + 1], *args), 0)
    # A new turn, and a retry, change what follows the last user message; what precedes it is kept for them.
    turn = next((place for place in range(len(after) - 1, done, -1) if after[place].role == "user"), 0)
    base = known[-1:]
    if turn > done:
        state = extend(state, after[done:turn], *args)
        base, done = (_Known(before, after[:turn], state),), turn
    if done < len(after):
        state = extend(state, after[done:], *args)
    memo[key] = (_Known(before, after, state), *base)
    return state


def memo_place(messages: Sequence[MemoMessage]) -> int:
    """The place of the message that keeps what is known of a conversation: a user's, which no other thread has."""
    return next((place for place, message in enumerate(messages) if message.role == "user"), 0)


def cache_results(count: int) -> Callable[[Callable[Given, Known]], Callable[Given, Known]]:
    """Keep the newest answers of a pure function, for whoever asks. For all that is worked out of people's words."""

    def kept(function: Callable[Given, Known]) -> Callable[Given, Known]:
        cached = lru_cache(maxsize=count)(function)
        _recent.append(cached.cache_clear)
        return cast("Callable[Given, Known]", cached)

    return kept


def cache_by_identity(count: int) -> Callable[[Callable[[Known], State]], Callable[[Known], State]]:
    """Keep what a pure function said of the values it was asked about last. They are told apart by identity.

    For values that are asked about again and again and long to compare, and that nobody can change.
    """

    def kept(function: Callable[[Known], State]) -> Callable[[Known], State]:
        answers = dict[int, tuple[Known, State]]()
        _recent.append(answers.clear)

        def answer(value: Known) -> State:
            found = answers.get(id(value))
            # It is kept alive here, so that nobody else has its identity.
            if found is not None and found[0] is value:
                return found[1]
            made = function(value)
            answers[id(value)] = (value, made)
            for old in list(answers)[:-count]:
                answers.pop(old, None)
            return made

        return answer

    return kept


def clear_caches() -> None:
    """Have nothing left of anybody's words that `keep_recent` kept. It is worked out again where it is needed."""
    for clear in _recent:
        clear()
