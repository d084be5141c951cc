"""Recorder of event streams that tests read, one of each shape. At the end, stock clients read them again.

It records complete streams only, from RUN_STARTED to the end.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TypeAlias

from recto.conversation.events import ends_run, for_older_client
from recto.conversation.json import Json, dump, load_object
from recto.ids import new_id

# The environment variable with the folder. Without it nothing is recorded.
STREAMS_FOLDER = "STREAMS_FOLDER"
NEWEST, OLDER = "1.0.0", "0.0.59"
STARTS = b'{"type":"RUN_STARTED"'
# Clients treat all values of these fields alike.
ANY_VALUE = frozenset({"arguments", "content", "delta", "input", "message", "result", "snapshot", "usage", "value"})
# Clients branch on the values of these fields.
WORDS = frozenset({"name", "role", "type"})
StreamShape: TypeAlias = str | int | bool | list["StreamShape"] | dict[str, "StreamShape"] | None


def keep(bodies: Sequence[bytes], folder: Path) -> None:
    """Record a stream if it is complete and the first of its shape: as sent, and as older clients receive it."""
    if not bodies or not bodies[0].startswith(STARTS) or not ends_run(bodies[-1]):
        return
    name = hashlib.sha256(dump(shape(bodies))).hexdigest()[:24]
    _write(folder / NEWEST / name, bodies)
    _write(folder / OLDER / name, [for_older_client(body) for body in bodies])


def kept_folder() -> Path | None:
    """Return the folder of recorded streams, or None if recording is off."""
    folder = os.environ.get(STREAMS_FOLDER)
    return Path(folder) if folder else None


def shape(bodies: Iterable[bytes]) -> list[StreamShape]:
    """Return a stream without its texts: types, fields, equality of ids. Consecutive events of one shape count once."""
    ids: dict[str, int] = {}
    shapes: list[StreamShape] = []
    for body in bodies:
        one = _shape_of(load_object(body) or {}, ids)
        shapes += [one] if shapes[-1:] != [one] else []
    return shapes


def _shape_of(value: Mapping[str, Json], ids: dict[str, int]) -> StreamShape:
    return {key: _shape_of_field(key, value[key], ids) for key in sorted(value)}


def _shape_of_field(key: str, value: Json, ids: dict[str, int]) -> StreamShape:
    if key in ANY_VALUE:
        return type(value).__name__
    match value:
        case str() if key in WORDS:
            return value
        case str() if key == "id" or key.endswith("Id"):
            return ids.setdefault(value, len(ids))
        case dict():
            return _shape_of(value, ids)
        case list():
            return [_shape_of_field(key, one, ids) for one in value]
        case _:
            return type(value).__name__


def _write(path: Path, bodies: Iterable[bytes]) -> None:
    """Write atomically, because other processes may write the same file."""
    if path.exists():
        return
    path.parent.mkdir(parents=True, exist_ok=True)
    unfinished = path.with_suffix(f".{new_id()}")
    reader = os.environ.get("PYTEST_CURRENT_TEST", "no test").encode()
    unfinished.write_bytes(b": read by " + reader + b"\n\n" + b"".join(b"data: " + body + b"\n\n" for body in bodies))
    unfinished.replace(path)
