"""The `@tool` mark. A marked function can still be called as usual."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Literal, ParamSpec, Protocol, TypeAlias, TypeVar, cast, overload

from recto.conversation.json import Json

MARK = "__recto_tool__"
P = ParamSpec("P")
MarkParameters = ParamSpec("MarkParameters")
R = TypeVar("R")
# Function that receives the new values of changed profile fields, and the time. It raises ToolError to reject them.
ProfileCheck: TypeAlias = Callable[[Mapping[str, Json], datetime], None]
# Workspace changes that a tool may make: to files that it names, or to anything, as a command may.
Changes: TypeAlias = Literal["files", "anything"]


@dataclass(frozen=True, kw_only=True)
class Mark:
    """Settings of a tool beyond its signature. Without `name` the tool is named after the function.

    - `safe_to_repeat`: running the tool twice does no harm, so an interrupted call runs again.
    - `confirm`: a person must approve each call.
    - `external`: the tool runs outside this server, where file ids mean nothing, so it receives URLs instead (F8).
    - `by_client`: a client's tool of the same name, such as a form, answers first; this tool then receives the answer
      as its arguments.
    - `in_order`: calls to such tools in one reply run one after the other, because one may change data that the next
      uses.
    - `profile_check`: validates the values that clients write into the profile fields that the tool uses.
    - `changes`: the workspace changes that the tool may make. Modes use it to decide which calls need approval. Such
      calls of one reply run in order.
    - `reads`: the tool reads the workspace, so it waits for earlier calls of the reply that may change the workspace,
      and later such calls wait for it.
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
        """Return True if a call of this tool must end before a `later` call in the same reply starts."""
        by_files = (self.changes and (later.changes or later.reads)) or (self.reads and later.changes)
        return bool(by_files) or (self.in_order and later.in_order)


class ToolDecorator(Protocol[MarkParameters]):
    """The decorator `@tool` and `@tool(...)`; the latter takes the fields of `Mark`."""

    @overload
    def __call__(self, function: Callable[P, R], /) -> Callable[P, R]: ...
    @overload
    def __call__(
        self, *args: MarkParameters.args, **marks: MarkParameters.kwargs
    ) -> Callable[[Callable[P, R]], Callable[P, R]]: ...


def _with_parameters(
    _: Callable[MarkParameters, Mark],
) -> Callable[[Callable[..., object]], ToolDecorator[MarkParameters]]:
    """Give a decorator the parameters of Mark, so that they are declared only once."""
    return lambda decorator: cast("ToolDecorator[MarkParameters]", decorator)


@_with_parameters(Mark)
def tool(function: Callable[P, R] | None = None, /, *args: object, **marks: object) -> object:
    """Mark a typed function as a tool: `@tool`, or `@tool(safe_to_repeat=True, confirm=True, name="search")`.

    The keyword arguments are the fields of `Mark`.
    """
    mark = cast("Callable[..., Mark]", Mark)(*args, **marks)

    def set_mark(function: Callable[P, R]) -> Callable[P, R]:
        setattr(function, MARK, mark)
        return function

    return set_mark if function is None else set_mark(function)


def get_mark(function: object) -> Mark | None:
    """Return the mark of a function, or None."""
    mark = getattr(function, MARK, None)
    return mark if isinstance(mark, Mark) else None
