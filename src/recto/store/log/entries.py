"""Entries of the log as bytes and back. Every field that is not its default is written under its own name.

A row written by an older version lacks newer fields and takes their defaults; a name this version does not know is
refused, because dropping it would change a page.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import MISSING, Field, fields
from datetime import datetime
from functools import cache
from typing import cast

from recto.conversation import log as page_log
from recto.conversation.json import Json, dump, load_object
from recto.conversation.log import (
    Compacted,
    FoldStep,
    Interrupted,
    ReplyEnded,
    RolledBack,
    SkillChanged,
    StateChanged,
    ToolStarted,
    Undone,
)
from recto.conversation.messages import (
    ActivityMessage,
    AssistantMessage,
    Data,
    DeveloperMessage,
    File,
    Key,
    Logged,
    Opaque,
    ProviderFile,
    ReasoningMessage,
    SystemMessage,
    Text,
    ToolCall,
    ToolMessage,
    Url,
    UserMessage,
)
from recto.errors import WireError

# Names stand in stored rows for good: a class may be renamed, its name here may not.
ENTRIES: Mapping[str, type[Logged]] = {
    "user": UserMessage,
    "assistant": AssistantMessage,
    "tool": ToolMessage,
    "system": SystemMessage,
    "developer": DeveloperMessage,
    "reasoning": ReasoningMessage,
    "activity": ActivityMessage,
    "skill_changed": SkillChanged,
    "tool_started": ToolStarted,
    "fold_step": FoldStep,
    "interrupted": Interrupted,
    "reply_ended": ReplyEnded,
    "rolled_back": RolledBack,
    "undone": Undone,
    "compacted": Compacted,
    "state_changed": StateChanged,
}
MESSAGE_KINDS = tuple(name for name, kind in ENTRIES.items() if issubclass(kind, page_log.MESSAGES))
VALUES: Mapping[str, type[object]] = {
    "text": Text,
    "file": File,
    "call": ToolCall,
    "opaque": Opaque,
    "url": Url,
    "data": Data,
    "key": Key,
    "provider_file": ProviderFile,
}
KINDS: Mapping[type[object], str] = {kind: name for name, kind in ENTRIES.items()}
VALUE_NAMES: Mapping[type[object], str] = {kind: name for name, kind in VALUES.items()}
# Columns of their own, or told by the kind.
COLUMNS = frozenset({"id", "seq", "time", "role", "memo"})
TAG = "is"


def kind_of_entry(entry: page_log.Entry) -> str:
    """The name a kind of entry has in the log."""
    return KINDS[type(entry)]


def encode_entry(entry: page_log.Entry) -> bytes:
    """What an entry holds beside its id, number and time."""
    return dump(_encode_fields(entry))


def _encode_fields(value: object) -> dict[str, object]:
    return {
        field.name: _encode(found)
        for field in _stored_fields(type(value))
        if (found := getattr(value, field.name)) != _default(field)
    }


def _encode(value: object) -> object:
    if isinstance(value, tuple):
        return [_encode(one) for one in cast("tuple[object, ...]", value)]
    name = VALUE_NAMES.get(type(value))
    return {TAG: name} | _encode_fields(value) if name else value


def decode_entry(kind: str, body: bytes, *, id: str, seq: int, time: datetime) -> page_log.Entry:
    """An entry from its row. A row no version of this code wrote raises WireError."""
    found, stored = ENTRIES.get(kind), load_object(body)
    if found is None or stored is None:
        raise WireError(where=f"log[{seq}]", problem=f"is no entry this version knows ({kind!r}). Update Recto.")
    values = _decode_fields(found, stored, f"log[{seq}]")
    return cast("page_log.Entry", found(id=id, seq=seq, time=time, **cast("dict[str, str]", values)))


def _decode_fields(kind: type[object], stored: Mapping[str, Json], where: str) -> dict[str, object]:
    known = {field.name: field for field in _stored_fields(kind)}
    for name in sorted(stored.keys() - known.keys()):
        raise WireError(where=f"{where}.{name}", problem="is a field this version does not know. Update Recto.")
    for name in (name for name, field in known.items() if name not in stored and field.default is MISSING):
        raise WireError(where=f"{where}.{name}", problem="is missing. The row was not written by Recto.")
    return {name: _decode(value, f"{where}.{name}") for name, value in stored.items()}


def _decode(value: Json, where: str) -> object:
    match value:
        case {"is": str(name)}:
            kind = VALUES.get(name)
            if kind is None:
                raise WireError(where=where, problem=f"is no value this version knows ({name!r}). Update Recto.")
            return kind(**_decode_fields(kind, {name: one for name, one in value.items() if name != TAG}, where))
        case Mapping():
            raise WireError(where=where, problem="is a value without a name. The row was not written by Recto.")
        case str() | None:
            return value
        case Sequence():
            return tuple([_decode(one, where) for one in value])
        case _:
            return value


@cache
def _stored_fields(kind: type[object]) -> tuple[Field[object], ...]:
    return tuple(field for field in fields(cast("type[Logged]", kind)) if field.name not in _unstored(kind))


def _unstored(kind: type[object]) -> frozenset[str]:
    return COLUMNS if issubclass(kind, Logged) else frozenset({"memo"})


def _default(field: Field[object]) -> object:
    # A value without a default is always written: nothing equals MISSING.
    return field.default if field.default is not MISSING else MISSING
