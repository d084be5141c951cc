"""The mark that makes a function a tool. It changes nothing of the function, which can still be called as before."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import ParamSpec, TypeAlias, TypedDict, TypeVar, Unpack, overload

from recto.conversation.json import Json

MARK = "__recto_tool__"
P = ParamSpec("P")
R = TypeVar("R")
# Is given the fields of a profile that change, as they would be, and the time; raises ToolError for what cannot be.
ProfileCheck: TypeAlias = Callable[[Mapping[str, Json], datetime], None]


@dataclass(frozen=True, kw_only=True)
class Mark:
    """What a developer says of a tool beyond its signature. Without a name it goes by the function's."""

    name: str | None = None
    safe_to_repeat: bool = False
    confirm: bool = False
    external: bool = False
    by_client: bool = False
    in_order: bool = False
    profile_check: ProfileCheck | None = None


class Marks(TypedDict, total=False):
    """What `@tool` may be given."""

    name: str
    safe_to_repeat: bool
    confirm: bool
    external: bool
    by_client: bool
    in_order: bool
    profile_check: ProfileCheck


@overload
def tool(function: Callable[P, R], /) -> Callable[P, R]: ...
@overload
def tool(**marks: Unpack[Marks]) -> Callable[[Callable[P, R]], Callable[P, R]]: ...
def tool(
    function: Callable[P, R] | None = None, /, **marks: Unpack[Marks]
) -> Callable[P, R] | Callable[[Callable[P, R]], Callable[P, R]]:
    """Mark a typed function as a tool: `@tool`, or `@tool(safe_to_repeat=True, confirm=True, name="search")`.

    `safe_to_repeat`: acting twice does no harm. `confirm`: a person has to agree before it acts. `external`: it acts
    elsewhere, where nobody knows our file ids, so it gets urls in their place. `by_client`: a client that has a tool of
    this name, such as a form, answers in its place, and the function is called with that answer. `in_order`: calls of
    one reply that are to such tools act one after the other, because one may change what the next works on.
    `profile_check`: what clients write into a profile is held to the rules that it has for what it keeps there.
    """
    mark = Mark(**marks)

    def marked(function: Callable[P, R]) -> Callable[P, R]:
        setattr(function, MARK, mark)
        return function

    return marked if function is None else marked(function)


def mark_of(function: object) -> Mark | None:
    """The mark of a function, or None when it has none."""
    mark = getattr(function, MARK, None)
    return mark if isinstance(mark, Mark) else None
