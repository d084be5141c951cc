"""Which pictures a page shows, by url or as bytes. What does not fit is never read; bytes are kept up to a limit."""

from __future__ import annotations

import asyncio
import base64
import logging
from collections import Counter, OrderedDict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from recto.config.file_settings import PictureSettings
from recto.conversation.attachment import FileRef
from recto.conversation.input_files import clean_files
from recto.conversation.log import View
from recto.conversation.messages import Data, File, Key, Message, ToolMessage, Url, UserMessage
from recto.errors import NotFound, StorageDown
from recto.files.attachments import Attachments
from recto.page.steps.compact import compact
from recto.page.steps.remind import SEEN_TYPES

LOGGER = logging.getLogger("recto.worker")


@dataclass(frozen=True, kw_only=True)
class WantedPicture:
    """A picture that pages would show, and how often: it costs its length each time."""

    key: str
    size: int
    times: int = 1

    @property
    def length(self) -> int:
        """Of its base64."""
        return (self.size + 2) // 3 * 4


def wanted_pictures(seen: View, refs: Sequence[FileRef]) -> tuple[WantedPicture, ...]:
    """The pictures in view, the weightiest first: those the user sent in this turn, then those said last.

    What a rollback hides is not in view, nor is what a summary stands for; what was deleted is never shown.
    """
    sizes = {ref.attachment: ref.size for ref in refs if ref.is_there and ref.mime_type in SEEN_TYPES}
    current = seen.messages[seen.turn_start : seen.turn_start + 1]
    messages = compact(seen).messages
    times = Counter([key for message in messages for key in _keys_in(message)])
    by_weight = dict.fromkeys([key for message in (*current, *reversed(messages)) for key in _keys_in(message)])
    return tuple([WantedPicture(key=key, size=sizes[key], times=times[key]) for key in by_weight if key in sizes])


def _keys_in(message: Message) -> Iterator[str]:
    """The storage keys of a message's images, as often as they are shown in it."""
    shown = clean_files(message) if isinstance(message, UserMessage) else ()
    brought = message.parts if isinstance(message, ToolMessage) else ()
    for part in (*shown, *brought):
        if isinstance(part, File) and part.kind == "image" and isinstance(part.source, Key):
            yield part.source.key


class Pictures:
    """Chooses pictures for pages, and has their bytes."""

    def __init__(self, settings: PictureSettings | None = None) -> None:
        self._settings = settings or PictureSettings()
        self._kept: OrderedDict[str, str] = OrderedDict()
        self._size = 0

    async def choose(
        self, wanted: Sequence[WantedPicture], urls: Mapping[str, str], attachments: Attachments
    ) -> Mapping[str, Url | Data]:
        """As many as a page holds, of pictures given in the order of their weight; the rest are left out."""
        shown: dict[str, Url | Data] = {}
        count, room = self._settings.count, self._settings.page
        for one in wanted:
            if one.times > count or not self._fits(one, room):
                continue
            source = self._link(one, urls) if self._settings.by_url else await self._data(one, attachments)
            if source is not None:
                shown[one.key] = source
                count, room = count - one.times, room - one.length * one.times
        return shown

    def _fits(self, one: WantedPicture, room: int) -> bool:
        return self._settings.by_url or (one.length <= self._settings.each and one.length * one.times <= room)

    def _link(self, one: WantedPicture, urls: Mapping[str, str]) -> Url | None:
        return Url(url=urls[one.key]) if one.key in urls else None

    async def _data(self, one: WantedPicture, attachments: Attachments) -> Data | None:
        data = self._kept.get(one.key) or await self._read(one.key, attachments)
        if data is None:
            return None
        self._keep(one.key, data)
        return Data(base64=data)

    async def _read(self, key: str, attachments: Attachments) -> str | None:
        """Its base64, or None for one that is gone."""
        try:
            pieces = [piece async for piece in attachments.read(await attachments.open(key))]
        except NotFound:
            return None
        except StorageDown as error:
            # The run goes on without: the model is told that it does not see this one.
            LOGGER.warning("picture %s cannot be read: %s", key, error)
            return None
        return await asyncio.to_thread(lambda: base64.b64encode(b"".join(pieces)).decode())

    def forget(self) -> None:
        """Have no bytes left. Those that are wanted are read again."""
        self._kept.clear()
        self._size = 0

    def _keep(self, key: str, data: str) -> None:
        self._size += len(data) if key not in self._kept else 0
        self._kept[key] = data
        self._kept.move_to_end(key)
        while self._size > self._settings.kept and self._kept:
            _, oldest = self._kept.popitem(last=False)
            self._size -= len(oldest)
