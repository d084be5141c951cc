"""Event streams that tests read, kept in a folder, one of each shape: stock clients read them again at the end.

Only whole ones, from a start to an end: what was read in the middle is no stream that a client would be given.
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

# The variable that names the folder. Without it nothing is kept.
STREAMS_FOLDER = "STREAMS_FOLDER"
NEWEST, OLDER = "1.0.0", "0.0.59"
STARTS = b'{"type":"RUN_STARTED"'
# Whatever is in these, clients treat it alike.
ANY_VALUE = frozenset({"arguments", "content", "delta", "input", "message", "result", "snapshot", "usage", "value"})
# These words decide what clients do.
WORDS = frozenset({"name", "role", "type"})
StreamShape: TypeAlias = str | int | bool | list["StreamShape"] | dict[str, "StreamShape"] | None


def keep(bodies: Sequence[bytes], folder: Path) -> None:
    """Keep a stream, if it is whole and the first of its shape: as it was sent, and as older clients get it."""
    if not bodies or not bodies[0].startswith(STARTS) or not ends_run(bodies[-1]):
        return
    name = hashlib.sha256(dump(shape(bodies))).hexdigest()[:24]
    _write(folder / NEWEST / name, bodies)
    _write(folder / OLDER / name, [for_older_client(body) for body in bodies])


def kept_folder() -> Path | None:
    """Where streams are kept, if they are."""
    found = os.environ.get(STREAMS_FOLDER)
    return Path(found) if found else None


def shape(bodies: Iterable[bytes]) -> list[StreamShape]:
    """A stream without its words: types, fields, and which ids are the same. What is said in pieces is said once."""
    ids: dict[str, int] = {}
    found: list[StreamShape] = []
    for body in bodies:
        one = _shape_of(load_object(body) or {}, ids)
        found += [one] if found[-1:] != [one] else []
    return found


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
    """Whole or not at all: others may write the same."""
    if path.exists():
        return
    path.parent.mkdir(parents=True, exist_ok=True)
    unfinished = path.with_suffix(f".{new_id()}")
    reader = os.environ.get("PYTEST_CURRENT_TEST", "no test").encode()
    unfinished.write_bytes(b": read by " + reader + b"\n\n" + b"".join(b"data: " + body + b"\n\n" for body in bodies))
    unfinished.replace(path)
