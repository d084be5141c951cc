"""Pictures of pages, as urls or as bytes.

Bytes are cached up to a limit. A picture that does not fit into the page is not read.
"""

from __future__ import annotations

import asyncio
import base64
import logging
from collections import Counter, OrderedDict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from recto.config.file_settings import PictureSettings
from recto.conversation.log import View
from recto.conversation.message_files import FileRef, clean_files
from recto.conversation.messages import Data, File, Key, Message, ToolMessage, Url, UserMessage
from recto.errors import NotFound, StorageDown
from recto.files.attachments import Attachments
from recto.page.steps.compact import compact
from recto.page.steps.remind import SEEN_TYPES

LOGGER = logging.getLogger("recto.worker")


@dataclass(frozen=True, kw_only=True)
class WantedPicture:
    """A picture that a page would show `times` times. Each time counts towards the limits of the page."""

    key: str
    size: int
    times: int = 1

    @property
    def length(self) -> int:
        """The length of the picture's base64 text."""
        return (self.size + 2) // 3 * 4


def wanted_pictures(log_view: View, refs: Sequence[FileRef]) -> tuple[WantedPicture, ...]:
    """Return the visible pictures by priority: first those of the turn's user message, then the newest.

    Exclude rolled back, summarised and deleted pictures.
    """
    sizes = {ref.attachment: ref.size for ref in refs if ref.is_there and ref.mime_type in SEEN_TYPES}
    current = log_view.messages[log_view.turn_start : log_view.turn_start + 1]
    messages = compact(log_view).messages
    times = Counter([key for message in messages for key in _keys_in(message)])
    by_weight = dict.fromkeys([key for message in (*current, *reversed(messages)) for key in _keys_in(message)])
    return tuple([WantedPicture(key=key, size=sizes[key], times=times[key]) for key in by_weight if key in sizes])


def _keys_in(message: Message) -> Iterator[str]:
    """Yield the storage key of each image that a message shows."""
    files = clean_files(message) if isinstance(message, UserMessage) else ()
    parts = message.parts if isinstance(message, ToolMessage) else ()
    for part in (*files, *parts):
        if isinstance(part, File) and part.kind == "image" and isinstance(part.source, Key):
            yield part.source.key


class Pictures:
    """Chooses the pictures of pages and caches their bytes."""

    def __init__(self, settings: PictureSettings | None = None) -> None:
        self._settings = settings or PictureSettings()
        self._cache: OrderedDict[str, str] = OrderedDict()
        self._size = 0

    async def choose(
        self, pictures: Sequence[WantedPicture], urls: Mapping[str, str], attachments: Attachments
    ) -> Mapping[str, Url | Data]:
        """Return the pictures that fit into a page, by storage key. `pictures` is in order of priority."""
        sources: dict[str, Url | Data] = {}
        settings, count, room = self._settings, self._settings.count, self._settings.page
        for one in pictures:
            total = one.length * one.times
            has_room = settings.by_url or (one.length <= settings.each and total <= room)
            if one.times > count or not has_room:
                continue
            if settings.by_url:
                source = Url(url=urls[one.key]) if one.key in urls else None
            else:
                source = await self._data(one.key, attachments)
            if source is not None:
                sources[one.key] = source
                count, room = count - one.times, room - total
        return sources

    async def _data(self, key: str, attachments: Attachments) -> Data | None:
        data = self._cache.get(key) or await self._read(key, attachments)
        if data is None:
            return None
        self._size += len(data) if key not in self._cache else 0
        self._cache[key] = data
        self._cache.move_to_end(key)
        while self._size > self._settings.cache_bytes and self._cache:
            _, oldest = self._cache.popitem(last=False)
            self._size -= len(oldest)
        return Data(base64=data)

    async def _read(self, key: str, attachments: Attachments) -> str | None:
        """Return the base64 text of a picture, or None if it was deleted or cannot be read."""
        try:
            pieces = [piece async for piece in attachments.read(await attachments.get(key))]
        except NotFound:
            return None
        except StorageDown as error:
            # Continue the run: the page tells the model that this picture is missing.
            LOGGER.warning("picture %s cannot be read: %s", key, error)
            return None
        return await asyncio.to_thread(lambda: base64.b64encode(b"".join(pieces)).decode())

    def forget(self) -> None:
        """Clear the cache."""
        self._cache.clear()
        self._size = 0
