"""What all storages share: names that are ours alone, and a try whether one can be used. Refuses any other name."""

from __future__ import annotations

import re
import uuid
from collections.abc import AsyncGenerator
from contextlib import aclosing

from recto.errors import NotFound, StorageDown
from recto.files.ports import Storage

NAME = re.compile(r"[0-9a-z-]{1,100}")
PROBE = b"recto"


def checked(name: str) -> str:
    """The name, if it is one of ours, and so no path to anywhere else."""
    if not NAME.fullmatch(name):
        raise NotFound(what="file", id=name)
    return name


async def try_out(storage: Storage) -> None:
    """Write, read and delete something small. Raises StorageDown."""
    name = f"probe-{uuid.uuid4()}"
    await storage.write(name, _few_bytes())
    try:
        async with aclosing(storage.read(name)) as pieces:
            found = b"".join([piece async for piece in pieces])
    except NotFound:
        found = b""
    finally:
        await storage.delete([name])
    if found != PROBE:
        raise StorageDown(problem="what was written to it could not be read back")


async def _few_bytes() -> AsyncGenerator[bytes]:
    yield PROBE
