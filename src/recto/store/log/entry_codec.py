"""Encoding of log entries. Each field that differs from its default is stored under its own name.

Rows of older versions lack newer fields, which get their defaults. A field name that this version does not know is an
error, because dropping it would change a page.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import MISSING, Field, fields
from datetime import datetime
from functools import cache
from typing import cast

from recto.conversation import log, messages
from recto.conversation.json import Json, dump, load_object
from recto.errors import WireError

# Names of classes in stored rows. A class may be renamed, but its name here must not change.
ENTRIES: Mapping[str, type[messages.Logged]] = {
    "user": messages.UserMessage,
    "assistant": messages.AssistantMessage,
    "tool": messages.ToolMessage,
    "system": messages.SystemMessage,
    "developer": messages.DeveloperMessage,
    "reasoning": messages.ReasoningMessage,
    "activity": messages.ActivityMessage,
    "skill_changed": log.SkillChanged,
    "tool_started": log.ToolStarted,
    "confirm_asked": log.ConfirmAsked,
    "confirm_decided": log.ConfirmDecided,
    "fold_step": log.FoldStep,
    "interrupted": log.Interrupted,
    "reply_ended": log.ReplyEnded,
    "rolled_back": log.RolledBack,
    "undone": log.Undone,
    "compacted": log.Compacted,
    "state_changed": log.StateChanged,
}
MESSAGE_KINDS = tuple(name for name, kind in ENTRIES.items() if issubclass(kind, log.MESSAGES))
VALUES: Mapping[str, type[object]] = {
    "text": messages.Text,
    "file": messages.File,
    "call": messages.ToolCall,
    "opaque": messages.Opaque,
    "url": messages.Url,
    "data": messages.Data,
    "key": messages.Key,
    "provider_file": messages.ProviderFile,
}
KINDS: Mapping[type[object], str] = {kind: name for name, kind in ENTRIES.items()}
VALUE_NAMES: Mapping[type[object], str] = {kind: name for name, kind in VALUES.items()}
# Fields that are not part of the body, because they have a column or follow from the kind.
COLUMNS = frozenset({"id", "seq", "time", "role", "memo"})
TAG = "is"


def entry_kind(entry: log.Entry) -> str:
    """Return the stored name of an entry's kind."""
    return KINDS[type(entry)]


def encode_entry(entry: log.Entry) -> bytes:
    """Encode the fields of an entry other than its id, number and time."""
    return dump(_encode_fields(entry))


def _encode_fields(value: object) -> dict[str, object]:
    # A field without a default is always stored, because MISSING equals no value.
    return {
        field.name: _encode(field_value)
        for field in _stored_fields(type(value))
        if (field_value := getattr(value, field.name)) != field.default
    }


def _encode(value: object) -> object:
    if isinstance(value, tuple):
        return [_encode(item) for item in cast("tuple[object, ...]", value)]
    name = VALUE_NAMES.get(type(value))
    return {TAG: name} | _encode_fields(value) if name else value


def decode_entry(kind: str, body: bytes, *, id: str, seq: int, time: datetime) -> log.Entry:
    """Decode an entry from its row. Raise WireError for a row that this version cannot have written."""
    entry_class, row = ENTRIES.get(kind), load_object(body)
    if entry_class is None or row is None:
        raise WireError(where=f"log[{seq}]", problem=f"is an unknown kind of entry ({kind!r}). Update Recto.")
    values = _decode_fields(entry_class, row, f"log[{seq}]")
    return cast("log.Entry", entry_class(id=id, seq=seq, time=time, **cast("dict[str, str]", values)))


def _decode_fields(kind: type[object], row: Mapping[str, Json], where: str) -> dict[str, object]:
    class_fields = {field.name: field for field in _stored_fields(kind)}
    for name in sorted(row.keys() - class_fields.keys()):
        raise WireError(where=f"{where}.{name}", problem="is an unknown field. Update Recto.")
    for name in (name for name, field in class_fields.items() if name not in row and field.default is MISSING):
        raise WireError(where=f"{where}.{name}", problem="is missing. The row was not written by Recto.")
    return {name: _decode(value, f"{where}.{name}") for name, value in row.items()}


def _decode(value: Json, where: str) -> object:
    match value:
        case {"is": str(name)}:
            kind = VALUES.get(name)
            if kind is None:
                raise WireError(where=where, problem=f"is an unknown kind of value ({name!r}). Update Recto.")
            return kind(**_decode_fields(kind, {name: item for name, item in value.items() if name != TAG}, where))
        case Mapping():
            raise WireError(where=where, problem="has no type. The row was not written by Recto.")
        case str() | None:
            return value
        case Sequence():
            return tuple([_decode(item, where) for item in value])
        case _:
            return value


@cache
def _stored_fields(kind: type[object]) -> tuple[Field[object], ...]:
    names = COLUMNS if issubclass(kind, messages.Logged) else frozenset({"memo"})
    return tuple(field for field in fields(cast("type[messages.Logged]", kind)) if field.name not in names)
