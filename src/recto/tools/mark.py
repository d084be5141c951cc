"""The mark that makes a function a tool. It changes nothing of the function, which can still be called as before."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Literal, ParamSpec, Protocol, TypeAlias, TypeVar, cast, overload

from recto.conversation.json import Json

MARK = "__recto_tool__"
P = ParamSpec("P")
Marks = ParamSpec("Marks")
R = TypeVar("R")
# Is given the fields of a profile that change, as they would be, and the time; raises ToolError for what cannot be.
ProfileCheck: TypeAlias = Callable[[Mapping[str, Json], datetime], None]
# What a tool may change of the folder a thread works in: files that it names; or anything, as a command may.
Changes: TypeAlias = Literal["files", "anything"]


@dataclass(frozen=True, kw_only=True)
class Mark:
    """What a developer says of a tool beyond its signature. Without a name it goes by the function's.

    `safe_to_repeat`: acting twice does no harm, so a start that was lost is started again. `confirm`: a person has to
    agree before it acts. `external`: it acts elsewhere, where nobody knows our file ids, so it gets urls in their place
    (F8). `by_client`: a client that has a tool of this name, such as a form, answers in its place, and the tool then
    acts on that answer as its arguments. `in_order`: calls of one reply that are to such tools act one after the other,
    because one may change what the next works on. `profile_check`: what clients write into a profile is held to the
    rules that it has for what it keeps there. `changes`: what it may change of the workspace, so that modes know which
    calls a person has to agree to; calls of one reply to such tools act in its order. `reads`: it reads the workspace,
    so it waits for those of the reply before it that may change that, and they wait for it.
    """

    name: str | None = None
    safe_to_repeat: bool = False
    confirm: bool = False
    external: bool = False
    by_client: bool = False
    in_order: bool = False
    profile_check: ProfileCheck | None = None
    changes: Changes | None = None
    reads: bool = False

    def precedes(self, later: Mark) -> bool:
        """Whether a call of this tool has ended before a later one in the same reply acts."""
        by_files = (self.changes and (later.changes or later.reads)) or (self.reads and later.changes)
        return bool(by_files) or (self.in_order and later.in_order)


class Marking(Protocol[Marks]):
    """`@tool`, and `@tool(...)` with what a mark is made of."""

    @overload
    def __call__(self, function: Callable[P, R], /) -> Callable[P, R]: ...
    @overload
    def __call__(self, *args: Marks.args, **marks: Marks.kwargs) -> Callable[[Callable[P, R]], Callable[P, R]]: ...


def _taking(_: Callable[Marks, Mark]) -> Callable[[Callable[..., object]], Marking[Marks]]:
    """What a mark is made of is what its decorator takes: nothing of it is spelled a second time."""
    return lambda decorator: cast("Marking[Marks]", decorator)


@_taking(Mark)
def tool(function: Callable[P, R] | None = None, /, *args: object, **marks: object) -> object:
    """Mark a typed function as a tool: `@tool`, or `@tool(safe_to_repeat=True, confirm=True, name="search")`.

    It takes what a `Mark` has.
    """
    mark = cast("Callable[..., Mark]", Mark)(*args, **marks)

    def marked(function: Callable[P, R]) -> Callable[P, R]:
        setattr(function, MARK, mark)
        return function

    return marked if function is None else marked(function)


def mark_of(function: object) -> Mark | None:
    """The mark of a function, or None when it has none."""
    mark = getattr(function, MARK, None)
    return mark if isinstance(mark, Mark) else None
