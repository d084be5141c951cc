"""Fields of settings dataclasses: default, description and allowed range.

Settings dataclasses form one tree. The name of a setting in the environment, in `recto.toml` and on the command line is
the field's, unless the field gives another; names are unique in the tree. A field without `setting` is internal.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, fields, is_dataclass
from types import NoneType
from typing import Literal, TypeAlias, TypeVar, cast, get_args, get_type_hints

# The hidden part of a secret: all of it, the part after the colon of each pair, or the password of a url.
Secrecy: TypeAlias = Literal["whole", "pairs", "url"]
TreeT = TypeVar("TreeT")
ValueT = TypeVar("ValueT")
_KEY = "setting"


@dataclass(frozen=True, kw_only=True)
class Range:
    """Allowed values: a number from `least`, or above `above`, to `most`; or text of at least `characters` characters.

    `check` returns its text, or raises ValueError with the allowed values.
    """

    least: int | None = None
    above: int | None = None
    most: int | None = None
    characters: int | None = None
    check: Callable[[str], str] | None = None

    def __str__(self) -> str:
        if self.characters:
            return f"{self.characters} characters or more" if self.characters > 1 else ""
        low = f"above {self.above:,}" if self.above is not None else f"{self.least or 0:,}"
        if self.most is not None:
            return f"{low}{',' if self.above is not None else ''} to {self.most:,}"
        return "" if self.check else low if self.above is not None else f"{low} or more"


COUNT = Range(least=1)
COUNT_OR_ZERO = Range(least=0)
# A year. Larger values are mistakes, and overflow the calendar.
SECONDS = Range(above=0, most=31_536_000)
SECONDS_OR_ZERO = Range(least=0)
# A century, for the same reason.
DAYS = Range(least=0, most=36_500)
NAME = Range(characters=1)
SECRET = Range(characters=16)


@dataclass(frozen=True, kw_only=True)
class Setting:
    """One setting of a tree. `kind` is its type without None."""

    name: str
    kind: object
    default: object
    doc: str
    range: Range | None
    secrecy: Secrecy | None

    @property
    def is_number(self) -> bool:
        """True if the setting needs bounds."""
        return self.kind is int or self.kind is float


def setting(
    default: ValueT, doc: str, range: Range | None = None, *, name: str = "", secrecy: Secrecy | None = None
) -> ValueT:
    """Return a dataclass field that is a setting. Secrets are excluded from the repr."""
    about = (name, doc, range, secrecy)
    return field(default=default, metadata={_KEY: about}, repr=secrecy is None)


def settings_of(tree: type) -> Iterator[Setting]:
    """Yield every setting of a tree in order, including those of its branches."""
    hints = get_type_hints(tree)
    for one in fields(tree):
        kind = hints[one.name]
        if is_dataclass(kind):
            yield from settings_of(cast("type", kind))
        elif _KEY in one.metadata:
            name, doc, range, secrecy = one.metadata[_KEY]
            yield Setting(
                name=name or one.name,
                kind=_without_none(kind),
                default=one.default,
                doc=doc,
                range=range,
                secrecy=secrecy,
            )


def _without_none(kind: object) -> object:
    parts = [part for part in get_args(kind) if part is not NoneType]
    return parts[0] if NoneType in get_args(kind) else kind


def values_of(tree: object) -> dict[str, object]:
    """Return the value of each setting in a tree by name."""
    values: dict[str, object] = {}
    for one in fields(cast("type", tree)):
        value: object = getattr(tree, one.name)
        if is_dataclass(value):
            values |= values_of(value)
        elif _KEY in one.metadata:
            values[one.metadata[_KEY][0] or one.name] = value
    return values


def make_tree(tree: type[TreeT], values: Mapping[str, object], **others: object) -> TreeT:
    """Return a tree of the given values and defaults; `others` sets fields that are no settings."""
    hints = get_type_hints(tree)
    arguments: dict[str, object] = dict(others)
    for one in fields(cast("type", tree)):
        kind = hints[one.name]
        if is_dataclass(kind):
            arguments[one.name] = make_tree(cast("type[object]", kind), values)
        elif _KEY in one.metadata and (name := one.metadata[_KEY][0] or one.name) in values:
            arguments[one.name] = values[name]
    return tree(**arguments)
