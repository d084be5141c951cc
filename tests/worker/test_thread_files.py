"""F4-F8, D2: the files of a run's thread: their urls, what tools have of them, what is left of pictures after it."""

import base64
import gc
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import BuiltinFunctionType, FunctionType, ModuleType
from typing import overload

import pytest

from recto.agents.agent import CHAT, Agent
from recto.agents.file_input import FileInput
from recto.config.file_settings import FileSettings, PictureSettings
from recto.conversation.json import Json
from recto.conversation.log import Entry
from recto.conversation.message_files import SCHEME, Attachment, FileRef, ref_to
from recto.conversation.messages import AssistantMessage, File, Key, Text, UserMessage
from recto.engine.ports import Signal
from recto.files.attachments import Attachments
from recto.files.ports import Upload
from recto.files.signing import Signer, SigningKey
from recto.files.storage.local_storage import LocalStorage
from recto.ids import new_id
from recto.models.demo.demo_model import DemoModel
from recto.models.ports import Delta, ReplyEnd, TextDelta
from recto.page.wire.base import Target
from recto.store.store import open_store
from recto.worker.context.pictures import Pictures
from recto.worker.context.thread_files import (
    MIN_VALIDITY,
    NO_FILES,
    FileServices,
    ThreadFiles,
    load_thread_files,
    open_tool_files,
)
from recto.worker.log_cache import LogCache
from recto.worker.loop import work
from recto.worker.runtime import Runtime
from tests.files.rows import MemoryRows
from tests.stored_runs import OWNER, WHO, now
from tests.support.client import ask
from tests.worker.plays import admission_of, make_runtime

SIGNER = Signer([SigningKey(id="k", secret=b"s" * 32)], lambda: "https://recto.test")
# In the last hour of its day, so that urls of the next day are others.
START_TIME = datetime(2026, 5, 14, 23, 30, tzinfo=UTC)
PNG = b"\x89PNG\r\n\x1a\n" + bytes(range(256)) * 40
AS_BASE64 = base64.b64encode(PNG).decode()


class Seeing(DemoModel):
    """A model that records its pages."""

    def __init__(self, *, sees: bool = True) -> None:
        super().__init__()
        self.target = Target(model=self.name, sees_images=sees)
        self.pages: list[str] = []

    async def stream(self, body: bytes) -> AsyncGenerator[Delta, None]:
        self.pages.append(body.decode())
        yield TextDelta(text="Well.")
        yield ReplyEnd(finish="stop")


@dataclass(frozen=True, kw_only=True)
class FilesAtWork:
    runtime: Runtime
    model: Seeing
    attachments: Attachments

    async def add(self, name: str, body: bytes) -> Attachment:
        async def pieces() -> AsyncGenerator[bytes]:
            yield body

        return await self.attachments.receive(Upload(owner=OWNER, name=name, allowed=FileInput(is_on=True)), pieces())

    async def say(self, words: str, *files: Attachment, thread: str = "") -> str:
        """Run a turn. Return its thread."""
        body, response_id = ask(words, thread=thread), new_id()
        parts: list[Json] = [{"type": "text", "text": words}, *[_part(one) for one in files]]
        refs = [ref_to(one, f"{response_id}-{place}") for place, one in enumerate(files)]
        message: Json = {"id": new_id(), "role": "user", "content": parts}
        admission = admission_of({**body, "messages": [message]}, "chat", refs)
        assert await work(self.runtime, (await self.runtime.store.runs.admit(admission, WHO)).run, Signal())
        return admission.thread


def _part(one: Attachment) -> Json:
    source = {"type": "url", "value": f"{SCHEME}{one.id}", "mimeType": one.mime_type}
    return {"type": one.kind, "source": source, "metadata": {"filename": one.name}}


@asynccontextmanager
async def files_at_work(
    folder: Path, *, agent: Agent = CHAT, vision: bool | None = None, sees: bool = True
) -> AsyncGenerator[FilesAtWork]:
    store = await open_store(f"sqlite:///{folder / 'recto.db'}")
    attachments = Attachments(LocalStorage(folder), store.files, FileSettings(), clock=now, new_id=new_id)
    model = Seeing(sees=sees)
    agents = {agent.name: replace(agent, file_input=FileInput(is_on=True))}
    files = FileServices(attachments=attachments, signer=SIGNER, pictures=Pictures())
    runtime = replace(make_runtime(store, model=model, agents=agents, vision=vision), files=files)
    try:
        yield FilesAtWork(runtime=runtime, model=model, attachments=attachments)
    finally:
        await store.close()


def a_ref(key: str, *, id: str = "", is_there: bool = True, kind: str = "document") -> FileRef:
    mime_type = "image/png" if kind == "image" else "text/plain"
    return FileRef(
        id=id or f"r-{key}",
        attachment=key,
        name=f"{key}.txt",
        kind="image" if kind == "image" else "document",
        mime_type=mime_type,
        size=3,
        is_there=is_there,
    )


def says(id: str, *keys: str, at: datetime | None = START_TIME) -> UserMessage:
    files = [File(kind="document", source=Key(key=key), mime_type="text/plain", name=f"{key}.txt") for key in keys]
    return UserMessage(id=id, time=at, response_id=f"r{id}", parts=(Text(text=id), *files))


def services_in(folder: Path, pictures: Pictures | None = None) -> FileServices:
    rows = Attachments(LocalStorage(folder), MemoryRows(), FileSettings(), clock=now, new_id=new_id)
    return FileServices(attachments=rows, signer=SIGNER, pictures=pictures)


async def url_in_pages(folder: Path, log: Sequence[Entry], at: datetime) -> str:
    return (await load_thread_files(services_in(folder), [a_ref("a")], log, at)).urls["a"]


async def test_P10_all_pages_of_a_turn_show_the_urls_of_the_day_it_was_admitted(tmp_path: Path):
    log = (says("0", "a", at=START_TIME - timedelta(days=3)), says("1"), AssistantMessage(id="x", time=START_TIME))
    of_the_turn = SIGNER.page_url("a", "a.txt", START_TIME)
    for hours in (0, 1, 22, 23):
        assert await url_in_pages(tmp_path, log, START_TIME + timedelta(hours=hours)) == of_the_turn
    assert of_the_turn != SIGNER.page_url("a", "a.txt", START_TIME + timedelta(hours=1))


async def test_P10_a_turn_that_goes_on_for_a_day_gets_new_urls_while_the_old_ones_still_hold(tmp_path: Path):
    late = START_TIME + timedelta(days=1) - MIN_VALIDITY + timedelta(seconds=1)
    fresh = SIGNER.page_url("a", "a.txt", late)
    assert await url_in_pages(tmp_path, (says("1", "a"),), late) == fresh
    assert SIGNER.read_url(SIGNER.page_url("a", "a.txt", START_TIME), late + MIN_VALIDITY) == "a"
    # Nobody knows when an imported turn was admitted.
    assert await url_in_pages(tmp_path, (says("1", "a", at=None),), late) == fresh
    assert await url_in_pages(tmp_path, (), late) == fresh


async def test_F8_fresh_urls_are_of_now_and_a_deleted_file_has_none(tmp_path: Path):
    refs = [a_ref("a"), a_ref("b", is_there=False), a_ref("a", id="s-0")]
    files = await load_thread_files(services_in(tmp_path), refs, (says("1", "a", "b"),), START_TIME)
    later = START_TIME + timedelta(days=5)
    fresh = SIGNER.page_url("a", "a.txt", later)
    assert files.fresh_urls(later) == {"r-a": fresh, "s-0": fresh}
    assert list(files.urls) == ["a"]
    assert NO_FILES.fresh_urls(later) == {}


@pytest.mark.parametrize("count", [0, 1, 2])
async def test_D2_by_url_a_page_shows_so_many_pictures(tmp_path: Path, count: int):
    images = [File(kind="image", source=Key(key=key), mime_type="image/png") for key in "ab"]
    log = [UserMessage(id=one.kind + str(place), parts=(one,), time=START_TIME) for place, one in enumerate(images)]
    pictures = Pictures(PictureSettings(count=count, by_url=True))
    refs = [a_ref(key, kind="image") for key in "ab"]
    files = await load_thread_files(services_in(tmp_path, pictures), refs, log, START_TIME)
    assert list(files.pictures or {}) == ["b", "a"][:count]
    assert not files.has_bytes
    without_files = await load_thread_files(services_in(tmp_path), refs, log, START_TIME)
    assert without_files.pictures is None


class Untouched(Sequence[Entry]):
    """A log that fails when it is read."""

    @overload
    def __getitem__(self, index: int) -> Entry: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[Entry]: ...
    def __getitem__(self, index: int | slice) -> Entry | Sequence[Entry]:
        raise AssertionError(f"somebody looked at {index}")

    def __len__(self) -> int:
        raise AssertionError("somebody counted it")


def test_F7_files_are_looked_up_when_a_tool_asks_and_once(tmp_path: Path):
    files = ThreadFiles(
        services=services_in(tmp_path), refs={"old-0": a_ref("z", id="old-0")}, urls={"a": "https://a.test"}
    )
    assert open_tool_files(files, Untouched(), 10) is not None
    assert open_tool_files(NO_FILES, Untouched(), 10) is None
    result = open_tool_files(files, (says("1", "a"), says("2"), says("3", "b", "c")), 1)
    assert result
    assert [[one.id for one in turn] for turn in result.turns] == [["r1-0"], [], ["r3-0"]]
    # The old id too, though nothing in the log has it, and nothing beyond the agent's limit.
    assert list(result.maps.files) == ["old-0", "r1-0", "r3-0"]
    assert result.maps.urls == {"r1-0": "https://a.test"}
    assert result.maps is result.maps
    assert result.turns is result.turns


def reachable(root: object) -> list[str | bytes]:
    """Return every text and every bytes object that is reachable from an object."""
    code = (type, ModuleType, FunctionType, BuiltinFunctionType)
    files_by_id: dict[int, object] = {}
    unvisited: list[object] = [root]
    while unvisited:
        one = unvisited.pop()
        if id(one) not in files_by_id and not isinstance(one, code):
            files_by_id[id(one)] = one
            unvisited.extend(gc.get_referents(one))
    return [one for one in files_by_id.values() if isinstance(one, (str, bytes))]


def has_bytes_of_the_picture(log_cache: LogCache) -> bool:
    middle = AS_BASE64[1_000:1_100]
    return any(middle in one if isinstance(one, str) else middle.encode() in one for one in reachable(log_cache))


async def test_D2_nothing_in_the_log_cache_has_the_bytes_of_pictures_and_the_next_run_shows_them_again(tmp_path: Path):
    async with files_at_work(tmp_path) as chat:
        thread = await chat.say("a word that stays")
        assert any("a word that stays" in one for one in reachable(chat.runtime.log_cache) if isinstance(one, str))
        await chat.say("look", await chat.add("a.png", PNG), thread=thread)
        await chat.say("and again", thread=thread)
        assert [AS_BASE64 in page for page in chat.model.pages] == [False, True, True]
        assert not has_bytes_of_the_picture(chat.runtime.log_cache)
        assert ["and again" in page and "a word that stays" in page for page in chat.model.pages][-1]


@pytest.mark.parametrize(
    ("agent", "server", "is_known", "sees"),
    [
        (None, None, True, True),
        (None, None, False, False),
        (None, False, True, False),
        (None, True, False, True),
        (True, False, False, True),
        (False, True, True, False),
    ],
)
async def test_D2_whether_a_model_sees_is_said_by_the_agent_else_the_server_else_known(
    tmp_path: Path, agent: bool | None, server: bool | None, is_known: bool, sees: bool
):
    async with files_at_work(tmp_path, agent=replace(CHAT, vision=agent), vision=server, sees=is_known) as chat:
        await chat.say("look", await chat.add("a.png", PNG))
        (page,) = chat.model.pages
        assert (AS_BASE64 in page) is sees
        assert ("This model cannot see images" in page) is not sees


def test_D2_the_demo_model_sees_nothing_and_says_so():
    assert not DemoModel().target.sees_images
