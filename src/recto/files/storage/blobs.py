"""Names of blobs, and a test of a storage."""

from __future__ import annotations

import re
from collections.abc import AsyncGenerator
from contextlib import aclosing

from recto.errors import NotFound, StorageDown
from recto.files.ports import Storage
from recto.ids import new_id

PROBE = "probe-"
# Names from `new_id`. Files with other names are never listed or deleted.
NAME = re.compile(rf"(?:{PROBE})?[0-9a-f]{{8}}-[0-9a-f]{{4}}-7[0-9a-f]{{3}}-[89ab][0-9a-f]{{3}}-[0-9a-f]{{12}}")
# The name of the label. It is not a blob name, so it is never listed, swept or copied.
LABEL = "recto-storage.json"
FEW_BYTES = b"recto"


def is_ours(name: str) -> bool:
    """Return True if a name has the form of our blob names."""
    return NAME.fullmatch(name) is not None


def check_name(name: str) -> str:
    """Return a blob name, which is never a path. Raise NotFound for any other name."""
    if not is_ours(name):
        raise NotFound(what="file", id=name)
    return name


async def try_out(storage: Storage) -> None:
    """Write, read and delete a few bytes. Raise StorageDown."""
    name = f"{PROBE}{new_id()}"

    async def pieces() -> AsyncGenerator[bytes]:
        yield FEW_BYTES

    await storage.write(name, pieces())
    try:
        async with aclosing(storage.read(name)) as body:
            data = b"".join([piece async for piece in body])
    except NotFound:
        data = b""
    finally:
        await storage.delete([name])
    if data != FEW_BYTES:
        raise StorageDown(problem="what was written to it could not be read back")
