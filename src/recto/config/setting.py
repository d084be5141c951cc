"""Fields of settings dataclasses: default, description and allowed range.

Settings dataclasses form one tree. A setting has the same name in the environment, in `recto.toml` and on the command
line: the name of its field, unless the field sets another. Names are unique in the tree. A field without `setting` is
internal.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, fields, is_dataclass, replace
from functools import reduce
from types import NoneType
from typing import Literal, TypeAlias, TypeVar, cast, get_args, get_type_hints

# Hidden part of a secret: the whole value, the part after the colon of each pair, or the password of a url.
Secrecy: TypeAlias = Literal["whole", "pairs", "url"]
TreeT = TypeVar("TreeT")
ValueT = TypeVar("ValueT")
_KEY = "setting"


@dataclass(frozen=True, kw_only=True)
class Range:
    """Allowed values: a number from `least`, or above `above`, to `most`; or text of at least `characters` characters.

    `check` returns the text, or raises ValueError with the allowed values.
    """

    least: int | None = None
    above: int | None = None
    most: int | None = None
    characters: int | None = None
    check: Callable[[str], str] | None = None


COUNT = Range(least=1)
COUNT_OR_ZERO = Range(least=0)
# Maximum is a year. Larger values are mistakes and would overflow the calendar.
SECONDS = Range(above=0, most=31_536_000)
SECONDS_OR_ZERO = Range(least=0)
# Maximum is a century, because larger values are mistakes and would overflow the calendar.
DAYS = Range(least=0, most=36_500)
NAME = Range(characters=1)
SECRET = Range(characters=16)


@dataclass(frozen=True, kw_only=True)
class Setting:
    """One setting of a tree. `path` leads to its field; `kind` is the type of the field without None."""

    name: str
    path: tuple[str, ...] = ()
    kind: object = None
    default: object
    doc: str
    range: Range | None
    secrecy: Secrecy | None


def setting(
    default: ValueT, doc: str, range: Range | None = None, *, name: str = "", secrecy: Secrecy | None = None
) -> ValueT:
    """Return a dataclass field that is a setting. Secrets are excluded from the repr."""
    one = Setting(name=name, default=default, doc=doc, range=range, secrecy=secrecy)
    return field(default=default, metadata={_KEY: one}, repr=secrecy is None)


def settings_of(tree: type, path: tuple[str, ...] = ()) -> Iterator[Setting]:
    """Yield every setting of a tree in order, including those of its branches."""
    hints = get_type_hints(tree)
    for one in fields(tree):
        kind, inner = hints[one.name], (*path, one.name)
        if is_dataclass(kind):
            yield from settings_of(cast("type", kind), inner)
        elif entry := cast("Setting | None", one.metadata.get(_KEY)):
            kind = get_args(kind)[0] if NoneType in get_args(kind) else kind
            yield replace(entry, name=entry.name or one.name, path=inner, kind=kind)


def values_of(tree: object) -> dict[str, object]:
    """Return the values of all settings in a tree, by name."""
    return {one.name: reduce(getattr, one.path, tree) for one in settings_of(type(tree))}


def make_tree(tree: type[TreeT], values: Mapping[str, object], **others: object) -> TreeT:
    """Return a tree with the given values; missing settings get defaults.

    `others` sets fields that are not settings.
    """
    hints = get_type_hints(tree)
    arguments: dict[str, object] = dict(others)
    for one in fields(cast("type", tree)):
        kind = hints[one.name]
        if is_dataclass(kind):
            arguments[one.name] = make_tree(cast("type[object]", kind), values)
        elif _KEY in one.metadata and (name := one.metadata[_KEY].name or one.name) in values:
            arguments[one.name] = values[name]
    return tree(**arguments)
