"""Pictures as bytes, for providers that cannot reach our urls. Kept in memory up to a limit; the oldest go first."""

from __future__ import annotations

import asyncio
import base64
import logging
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from recto.errors import NotFound, StorageDown
from recto.files.attachments import Attachments
from recto.page.remind import SEEN_TYPES

LOGGER = logging.getLogger("recto.worker")


@dataclass(frozen=True, kw_only=True)
class PictureSettings:
    """Bytes of one picture, of all in a page, and of all kept in memory between runs."""

    each: int = 5_000_000
    page: int = 20_000_000
    kept: int = 64_000_000


class Pictures:
    """Loads pictures for pages."""

    def __init__(self, settings: PictureSettings | None = None) -> None:
        self._settings = settings or PictureSettings()
        self._kept: OrderedDict[str, str] = OrderedDict()
        self._size = 0

    async def load(self, keys: Sequence[str], attachments: Attachments) -> Mapping[str, str]:
        """The base64 of as many as a page holds, of keys given in the order of their weight; the rest are left out."""
        found: dict[str, str] = {}
        room = self._settings.page
        for key in keys:
            data = self._kept.get(key) or await self._read(key, attachments)
            size = len(data) * 3 // 4 if data else 0
            if data and size <= room:
                found[key], room = data, room - size
                self._keep(key, data)
        return found

    async def _read(self, key: str, attachments: Attachments) -> str | None:
        """Its bytes, or None for one that is gone, too large, or nothing a model sees."""
        try:
            attachment = await attachments.open(key)
            if attachment.size > self._settings.each or attachment.mime_type not in SEEN_TYPES:
                return None
            pieces = [piece async for piece in attachments.read(attachment)]
        except NotFound:
            return None
        except StorageDown as error:
            # The run goes on without: the model is told that it does not see this one.
            LOGGER.warning("picture %s cannot be read: %s", key, error)
            return None
        return await asyncio.to_thread(lambda: base64.b64encode(b"".join(pieces)).decode())

    def _keep(self, key: str, data: str) -> None:
        self._size += len(data) if key not in self._kept else 0
        self._kept[key] = data
        self._kept.move_to_end(key)
        while self._size > self._settings.kept and self._kept:
            _, oldest = self._kept.popitem(last=False)
            self._size -= len(oldest)
