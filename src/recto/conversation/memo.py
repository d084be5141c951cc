"""Memoisation: results of pure functions are stored with their arguments, so nothing is computed twice.

`memoise_prefix` continues from the longest prefix of a conversation that was processed before. `cache_results` shares
results between threads until `clear_caches`, which runs when a user is deleted.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Generic, NamedTuple, ParamSpec, Protocol, TypeAlias, TypeVar, TypeVarTuple, cast

Memo: TypeAlias = dict[Hashable, object]
Args = TypeVarTuple("Args")
Result = TypeVar("Result")
State = TypeVar("State")
Argument = TypeVar("Argument")
Parameters = ParamSpec("Parameters")
MISSING = object()
# Up to this number of messages, processing them again is faster than a lookup.
FEW = 2
_clear_functions: list[Callable[[], None]] = []


@dataclass(frozen=True, kw_only=True)
class MemoHolder:
    """A value that stores the results of pure functions called with it."""

    memo: Memo = field(default_factory=dict[Hashable, object], init=False, repr=False, compare=False)


Value = TypeVar("Value", bound=MemoHolder)


def memoise(value: Value, function: Callable[[Value, *Args], Result], *args: *Args) -> Result:
    """Return `function(value, ...)`, computed once in the life of the value. Arguments must be hashable."""
    key = (function, *args)
    result = value.memo.get(key, MISSING)
    if result is MISSING:
        result = value.memo[key] = function(value, *args)
    return result  # pyright: ignore[reportReturnType] - the key holds the function, so it returned this result


def memoise_last(value: Value, function: Callable[[Value, *Args], Result], *args: *Args) -> Result:
    """Return `function(value, ...)`.

    Store only the last result, because the arguments change as a conversation grows.
    """
    entry = value.memo.get(function)
    last = cast("tuple[tuple[*Args], Result]", entry) if entry else None
    if last is None or last[0] != args:
        last = value.memo[function] = (args, function(value, *args))
    return last[1]


class MemoMessage(Protocol):
    """The fields of a message that memoisation of a conversation uses."""

    @property
    def role(self) -> str: ...

    @property
    def memo(self) -> Memo: ...


MessageT = TypeVar("MessageT", bound=MemoMessage)


class _Prefix(NamedTuple, Generic[MessageT, State]):
    """A processed conversation, split at the message that stores it, and the result."""

    before: tuple[MessageT, ...]
    after: tuple[MessageT, ...]
    state: State


def memoise_prefix(
    messages: Sequence[MessageT], extend: Callable[[State | None, Sequence[MessageT], *Args], State], *args: *Args
) -> State:
    """Return what `extend` computes for a conversation, continuing from its longest stored prefix.

    `extend(state, more, ...)` returns a new state and does not change the old one; None is the state of an empty
    conversation. One call for all messages must give the same state as several calls for their pieces.
    """
    if len(messages) <= FEW:
        return extend(None, messages, *args)
    place = memo_place(messages)
    # The key contains the place, because a log and a page that begins with other messages grow side by side.
    memo, key = messages[place].memo, (extend, args, place)
    # Exclude the message that stores the prefix, because they would keep each other alive.
    before, after = tuple(messages[:place]), tuple(messages[place + 1 :])
    prefixes = cast("tuple[_Prefix[MessageT, State], ...]", memo.get(key, ()))
    longest = next((one for one in prefixes if one.before == before and one.after == after[: len(one.after)]), None)
    if longest is not None and len(longest.after) == len(after):
        return longest.state
    state, done = (longest.state, len(longest.after)) if longest else (extend(None, messages[: place + 1], *args), 0)
    # A new turn or a retry changes what follows the last user message, so the state before it is stored too.
    turn = next((at for at in range(len(after) - 1, done, -1) if after[at].role == "user"), 0)
    base = prefixes[-1:]
    if turn > done:
        state = extend(state, after[done:turn], *args)
        base, done = (_Prefix(before, after[:turn], state),), turn
    if done < len(after):
        state = extend(state, after[done:], *args)
    memo[key] = (_Prefix(before, after, state), *base)
    return state


def memo_place(messages: Sequence[MemoMessage]) -> int:
    """Return the place of the message that stores results of a conversation: the first user message.

    No other thread contains that message.
    """
    return next((place for place, message in enumerate(messages) if message.role == "user"), 0)


def cache_results(count: int) -> Callable[[Callable[Parameters, Result]], Callable[Parameters, Result]]:
    """Cache the last `count` results of a pure function for all callers.

    Use it instead of `lru_cache` for anything computed from user text, because `clear_caches` clears it.
    """

    def decorate(function: Callable[Parameters, Result]) -> Callable[Parameters, Result]:
        cached = lru_cache(maxsize=count)(function)
        _clear_functions.append(cached.cache_clear)
        return cast("Callable[Parameters, Result]", cached)

    return decorate


def cache_by_identity(count: int) -> Callable[[Callable[[Argument], State]], Callable[[Argument], State]]:
    """Cache the last `count` results of a pure function by the identity of its argument.

    Use it for immutable arguments that are slow to compare.
    """

    def decorate(function: Callable[[Argument], State]) -> Callable[[Argument], State]:
        results = dict[int, tuple[Argument, State]]()
        _clear_functions.append(results.clear)

        def lookup(value: Argument) -> State:
            entry = results.get(id(value))
            # The entry keeps the value alive, so no other value gets its id.
            if entry is not None and entry[0] is value:
                return entry[1]
            result = function(value)
            results[id(value)] = (value, result)
            for old in list(results)[:-count]:
                results.pop(old, None)
            return result

        return lookup

    return decorate


def clear_caches() -> None:
    """Clear all shared caches, so that no text of a deleted user remains. Results are computed again on demand."""
    for clear in _clear_functions:
        clear()
