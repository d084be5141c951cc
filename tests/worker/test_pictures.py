"""D2: which pictures a page shows: those in view, the weightiest first, as many as it holds; nothing else is read."""

import base64
from collections.abc import AsyncGenerator, Sequence
from datetime import UTC, datetime
from pathlib import Path

import pytest

from recto.agents.file_input import FileInput
from recto.config.file_settings import FileSettings, PictureSettings
from recto.conversation.log import Compacted, Entry, RolledBack, Undone, view
from recto.conversation.message_files import Attachment, FileRef
from recto.conversation.messages import AssistantMessage, Data, File, Key, Text, ToolCall, ToolMessage, Url, UserMessage
from recto.errors import StorageDown
from recto.files.attachments import Attachments
from recto.files.ports import Upload
from recto.files.storage.local_storage import LocalStorage
from recto.ids import new_id
from recto.worker.context.pictures import Pictures, WantedPicture, wanted_pictures
from tests.files.rows import MemoryRows

PNG = b"\x89PNG\r\n\x1a\n" + b"\0" * 92
ALL = FileInput(is_on=True)


class CountingStorage(LocalStorage):
    """A storage that counts reads and can be down."""

    reads, is_down = 0, False

    async def read(self, name: str, start: int = 0, end: int | None = None) -> AsyncGenerator[bytes]:
        self.reads += 1
        if self.is_down:
            raise StorageDown(problem="it is pulled out")
        async for piece in super().read(name, start, end):
            yield piece


class Album:
    def __init__(self, folder: Path) -> None:
        self.storage = CountingStorage(folder)
        self.files = Attachments(
            self.storage, MemoryRows(), FileSettings(), clock=lambda: datetime(2026, 5, 14, tzinfo=UTC), new_id=new_id
        )

    async def add(self, name: str, body: bytes) -> Attachment:
        async def pieces() -> AsyncGenerator[bytes]:
            yield body

        return await self.files.receive(Upload(owner="ann", name=name, allowed=ALL), pieces())


def a_png(mark: int) -> bytes:
    return PNG + bytes([mark])


def want_pictures(*pictures: Attachment, times: int = 1) -> list[WantedPicture]:
    return [WantedPicture(key=one.id, size=one.size, times=times) for one in pictures]


LENGTH = WantedPicture(key="", size=len(a_png(0))).length


async def test_D2_pictures_come_as_base64_and_the_second_time_from_memory(tmp_path: Path):
    album, pictures = Album(tmp_path), Pictures()
    one = await album.add("a.png", a_png(1))
    data = base64.b64encode(a_png(1)).decode()
    assert await pictures.choose(want_pictures(one), {}, album.files) == {one.id: Data(base64=data)}
    assert list(await pictures.choose(want_pictures(one), {}, album.files)) == [one.id]
    assert album.storage.reads == 1


@pytest.mark.parametrize("size", range(7))
def test_D2_the_length_of_a_picture_is_that_of_its_base64(size: int):
    assert WantedPicture(key="k", size=size).length == len(base64.b64encode(bytes(size)))


async def test_D2_a_page_holds_so_many_characters_of_base64_and_nothing_else_is_read(tmp_path: Path):
    album = Album(tmp_path)
    added = [await album.add(f"{number}.png", a_png(number)) for number in range(4)]
    pictures = Pictures(PictureSettings(page=3 * LENGTH - 1))
    assert list(await pictures.choose(want_pictures(*added), {}, album.files)) == [one.id for one in added[:2]]
    assert album.storage.reads == 2
    exact = Pictures(PictureSettings(page=3 * LENGTH))
    assert len(await exact.choose(want_pictures(*added), {}, album.files)) == 3


async def test_D2_a_picture_costs_as_often_as_it_is_shown(tmp_path: Path):
    album = Album(tmp_path)
    often, once = await album.add("often.png", a_png(1)), await album.add("once.png", a_png(2))
    pictures = [*want_pictures(often, times=3), *want_pictures(once)]
    for settings in (PictureSettings(page=3 * LENGTH - 1), PictureSettings(count=2)):
        assert list(await Pictures(settings).choose(pictures, {}, album.files)) == [once.id]
    for settings in (PictureSettings(page=3 * LENGTH), PictureSettings(count=3)):
        assert list(await Pictures(settings).choose(pictures, {}, album.files)) == [often.id]


async def test_D2_what_is_too_long_gone_or_unreadable_is_left_out_and_takes_no_room(tmp_path: Path):
    album = Album(tmp_path)
    large, good = await album.add("large.png", PNG * 3), await album.add("good.png", a_png(1))
    missing_picture = WantedPicture(key="never there", size=len(PNG))
    pictures = Pictures(PictureSettings(each=LENGTH, page=LENGTH, count=1))
    assert list(
        await pictures.choose([*want_pictures(large), missing_picture, *want_pictures(good)], {}, album.files)
    ) == [good.id]
    assert album.storage.reads == 1
    shorter = Pictures(PictureSettings(each=LENGTH - 1))
    assert await shorter.choose(want_pictures(good), {}, album.files) == {}
    album.storage.is_down = True
    assert await Pictures().choose(want_pictures(good), {}, album.files) == {}


async def test_D2_by_url_only_the_number_counts_and_nothing_is_read(tmp_path: Path):
    album = Album(tmp_path)
    large_pictures = [WantedPicture(key=f"k{number}", size=10**9) for number in range(4)]
    urls = {f"k{number}": f"https://recto.test/{number}" for number in (0, 2, 3)}
    pictures = Pictures(PictureSettings(count=2, each=1, page=1, by_url=True))
    # The second has no url, and takes nobody's place.
    assert await pictures.choose(large_pictures, urls, album.files) == {
        "k0": Url(url=urls["k0"]),
        "k2": Url(url=urls["k2"]),
    }
    assert album.storage.reads == 0


async def test_D2_no_more_is_kept_in_memory_than_may_be(tmp_path: Path):
    album = Album(tmp_path)
    added = [await album.add(f"{number}.png", a_png(number)) for number in range(3)]
    pictures = Pictures(PictureSettings(cache_bytes=LENGTH))
    for one in (*added, added[-1]):
        await pictures.choose(want_pictures(one), {}, album.files)
    assert album.storage.reads == 3
    await pictures.choose(want_pictures(added[0]), {}, album.files)
    assert album.storage.reads == 4


async def test_D2_what_was_forgotten_is_read_again(tmp_path: Path):
    album, pictures = Album(tmp_path), Pictures()
    one = await album.add("a.png", a_png(1))
    await pictures.choose(want_pictures(one), {}, album.files)
    pictures.forget()
    await pictures.choose(want_pictures(one), {}, album.files)
    assert album.storage.reads == 2


def image(key: str, mime_type: str = "image/png") -> File:
    return File(kind="image", source=Key(key=key), mime_type=mime_type)


def says(id: str, *keys: str) -> UserMessage:
    return UserMessage(id=id, parts=(Text(text=id), *map(image, keys)))


def ref(key: str, *, mime_type: str = "image/png", is_there: bool = True) -> FileRef:
    return FileRef(
        id=f"id-{key}", attachment=key, name="a.png", kind="image", mime_type=mime_type, size=7, is_there=is_there
    )


REFS = [ref(key) for key in ("a", "b", "c", "d")]


def order(log: Sequence[Entry], refs: Sequence[FileRef] = REFS) -> list[tuple[str, int]]:
    return [(one.key, one.times) for one in wanted_pictures(view(log), refs)]


def test_D2_the_users_pictures_of_this_turn_come_first_then_the_newest():
    call = AssistantMessage(id="c", parts=(ToolCall(id="t", name="look", arguments="{}"),))
    result = ToolMessage(id="r", tool_call_id="t", parts=(image("c"), image("a"), image("c")))
    log = (says("u1", "a", "b"), says("u2", "d", "d"), call, result)
    # A user's message shows the same file once, a tool's result as often as it has it.
    assert order(log) == [("d", 1), ("c", 2), ("a", 2), ("b", 1)]
    assert order(()) == []
    assert [one.size for one in wanted_pictures(view(log), REFS)] == [7] * 4


def test_D2_what_was_rolled_back_or_summarised_is_not_in_view():
    log = (says("u1", "a"), says("u2", "b", "a"), RolledBack(id="x", to="u2"))
    assert order(log) == [("a", 1)]
    assert order((*log, Undone(id="y"))) == [("b", 1), ("a", 2)]
    answer = AssistantMessage(id="s", parts=(Text(text="ok"),))
    assert order((says("u1", "a"), answer, Compacted(id="k", upto="s", summary="so"), says("u2", "b"))) == [("b", 1)]


def test_D2_a_picture_that_was_deleted_or_that_no_model_takes_is_never_shown():
    log = (says("u1", "a", "b", "c", "unknown"),)
    refs = [ref("a", is_there=False), ref("b", mime_type="image/svg+xml"), ref("c")]
    assert order(log, refs) == [("c", 1)]
    document = UserMessage(id="u", parts=(File(kind="document", source=Key(key="a")), *image_elsewhere()))
    assert order((document,)) == []


def image_elsewhere() -> tuple[File, ...]:
    return (File(kind="image", source=Url(url="https://recto.test/x.png")),)
