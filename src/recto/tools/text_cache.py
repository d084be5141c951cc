"""Texts of files, kept in memory by what a file holds (D3). Refuses to know how one is made, and who may read it."""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

MOST_CHARACTERS = 16_000_000
# What a text counts at least: of short ones there would else be no end.
LEAST_COUNTED = 256


@dataclass(frozen=True, kw_only=True)
class TextKey:
    """What a text was made of: the SHA-256 of the bytes, and the version of what reads them."""

    sha256: str
    parser: int


class TextCache:
    """The texts used last, as many as fit. One that is larger than all of the room is not kept."""

    def __init__(self, *, most_characters: int = MOST_CHARACTERS) -> None:
        self._most = most_characters
        self._size = 0
        self._kept: OrderedDict[TextKey, str] = OrderedDict()
        self._coming: dict[TextKey, asyncio.Future[str | None]] = {}

    @property
    def size(self) -> int:
        """How many characters are kept, each short text counted as a longer one."""
        return self._size

    async def text(self, key: TextKey, make: Callable[[], Awaitable[str]]) -> str:
        """The text that is kept, or that somebody is making now, or that is made here.

        Where that fails or is cancelled, the next who waits makes it: a file may be gone for one of them only.
        """
        while (coming := self._coming.get(key)) is not None:
            # Behind a shield: who stops waiting does not end it for the others.
            if (made := await asyncio.shield(coming)) is not None:
                return made
        if key in self._kept:
            self._kept.move_to_end(key)
            return self._kept[key]
        return await self._made(key, make)

    async def _made(self, key: TextKey, make: Callable[[], Awaitable[str]]) -> str:
        coming = self._coming[key] = asyncio.get_running_loop().create_future()
        made = None
        try:
            made = await make()
            self._keep(key, made)
            return made
        finally:
            del self._coming[key]
            coming.set_result(made)

    def _keep(self, key: TextKey, text: str) -> None:
        if _counted(text) > self._most:
            return
        self._kept[key] = text
        self._size += _counted(text)
        while self._size > self._most:
            _, oldest = self._kept.popitem(last=False)
            self._size -= _counted(oldest)


def _counted(text: str) -> int:
    return max(len(text), LEAST_COUNTED)
