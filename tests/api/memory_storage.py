"""A storage in memory, that can be told to fail and to have urls of its own."""

from collections.abc import AsyncGenerator, AsyncIterable, Sequence
from datetime import UTC, datetime

from recto.errors import NotFound, StorageDown
from recto.files.ports import ServedAs, StoredBlob

SMALL = 1_000


class MemoryStorage:
    """Bytes by name. `blobs` is what there is, `received` all that ever came; where `is_down`, nothing can be done."""

    def __init__(self) -> None:
        self.blobs: dict[str, bytes] = {}
        self.received = 0
        self.is_down = False
        self.links = False
        self.reading = 0
        self.opened = list[AsyncGenerator[bytes]]()

    async def write(self, name: str, pieces: AsyncIterable[bytes]) -> None:
        self._check()
        data = bytearray()
        async for piece in pieces:
            self.received += len(piece)
            data += piece
        self._check()
        self.blobs[name] = bytes(data)

    def read(self, name: str, start: int = 0, end: int | None = None) -> AsyncGenerator[bytes]:
        # Kept, so that only who reads to the end or closes it has ended the reading.
        self.opened.append(self._read(name, start, end))
        return self.opened[-1]

    async def _read(self, name: str, start: int, end: int | None) -> AsyncGenerator[bytes]:
        self._check()
        if name not in self.blobs:
            raise NotFound(what="file", id=name)
        part = self.blobs[name][start:end]
        self.reading += 1
        try:
            for at in range(0, len(part), SMALL):
                yield part[at : at + SMALL]
        finally:
            self.reading -= 1

    async def delete(self, names: Sequence[str]) -> None:
        self._check()
        for name in names:
            self.blobs.pop(name, None)

    async def list_all(self) -> AsyncGenerator[Sequence[StoredBlob]]:
        yield [StoredBlob(name=name, size=len(body), modified=datetime.now(UTC)) for name, body in self.blobs.items()]

    async def link(self, name: str, seconds: float, served: ServedAs | None = None) -> str | None:
        return f"https://storage.example/{name}?seconds={seconds:g}" if self.links else None

    async def probe(self) -> None:
        self._check()

    def _check(self) -> None:
        if self.is_down:
            raise StorageDown(problem="it was told to fail")
