"""Streams by themselves: what is told again after retention, and that nobody is left listening (P7)."""

import asyncio
import gc
import re
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import ExitStack, asynccontextmanager, nullcontext, suppress
from dataclasses import replace
from pathlib import Path

import pytest
from starlette.requests import ClientDisconnect
from starlette.types import Message

from recto.api.runs.streams import EventRenderer, EventStream, stream_again
from recto.conversation.events import ViewSnapshot
from recto.engine.hub import Hub
from recto.store.ports import StoredRun
from recto.store.store import Store, open_store
from tests.store.suite.samples import admit
from tests.waiting import settle

# From this version of ASGI on, who has gone is found out by sending.
WITHOUT_LISTENING = "2.4"
BODIES = (b'{"type":"RUN_STARTED"}', b'{"type":"MESSAGES_SNAPSHOT"}', b'{"type":"RUN_FINISHED"}')


async def no_view(_run: StoredRun, _snapshot: ViewSnapshot) -> bytes:
    raise AssertionError("No event here stands for a view.")


AS_STORED = EventRenderer(render=bytes, view=no_view)


@pytest.fixture
async def store(tmp_path: Path) -> AsyncIterator[Store]:
    store = await open_store(f"sqlite:///{tmp_path / 'recto.db'}")
    yield store
    await store.close()


def channels() -> int:
    gc.collect()
    return sum(type(one).__name__ == "_Channel" for one in gc.get_objects())


async def told_again(run: StoredRun, after: int) -> list[int]:
    """The numbers a reader is told who has everything up to `after`."""
    pieces = list[bytes]()

    async def receive() -> Message:
        return await asyncio.get_running_loop().create_future()

    async def send(message: Message) -> None:
        pieces.append(message.get("body", b""))

    await stream_again(run, BODIES, after, AS_STORED, ExitStack())({"type": "http"}, receive, send)
    return [int(number) for number in re.findall(rb"^id: (\d+)$", b"".join(pieces), re.MULTILINE)]


@pytest.mark.parametrize(("after", "numbers"), [(0, [8, 9, 10]), (7, [8, 9, 10]), (8, [9, 10]), (9, [10]), (10, [])])
async def test_P7_what_is_told_again_after_retention_repeats_no_number(store: Store, after: int, numbers: list[int]):
    run = replace(await admit(store, "r1"), status="ended", last_event=10)
    assert await told_again(run, after) == numbers


class Reader:
    """A client that goes away, if at all, once `left` is set."""

    def __init__(self, spec: str = "2.3", *, is_gone: bool = False) -> None:
        self.scope = {"type": "http", "asgi": {"spec_version": spec}, "method": "POST"}
        self.left, self.begun, self._is_gone = asyncio.Event(), asyncio.Event(), is_gone
        if is_gone:
            self.left.set()

    async def receive(self) -> Message:
        await self.left.wait()
        return {"type": "http.disconnect"}

    async def send(self, _message: Message) -> None:
        self.begun.set()
        await settle(1)
        if self._is_gone and self.scope["asgi"] == {"spec_version": WITHOUT_LISTENING}:
            raise OSError("gone")


@asynccontextmanager
async def streaming(store: Store) -> AsyncGenerator[EventStream]:
    """The stream of a new run. In the end nobody listens any more."""
    hub, hearing, before = Hub(store.events), ExitStack(), channels()
    run = await admit(store, "r1")
    listener = hearing.enter_context(hub.open_listener(run.id))
    yield EventStream(hub.follow_listener(listener, 0, is_new=True), AS_STORED, run, hearing)
    assert channels() == before


@pytest.mark.full
@pytest.mark.parametrize("spec", ["2.3", WITHOUT_LISTENING])
async def test_P7_a_client_that_is_gone_before_its_stream_began_leaves_nobody_listening(store: Store, spec: str):
    before, left_reader = channels(), Reader(spec, is_gone=True)
    async with streaming(store) as response:
        assert channels() == before + 1
        with suppress(ClientDisconnect):
            await response(left_reader.scope, left_reader.receive, left_reader.send)


@pytest.mark.parametrize("is_cancelled", [False, True])
async def test_P7_a_stream_ends_when_its_client_leaves_and_stays_cancelled_where_it_was(
    store: Store, is_cancelled: bool
):
    reader = Reader()
    async with streaming(store) as response:
        sending = asyncio.create_task(response(reader.scope, reader.receive, reader.send))
        await reader.begun.wait()
        sending.cancel() if is_cancelled else reader.left.set()
        with pytest.raises(asyncio.CancelledError) if is_cancelled else nullcontext():
            await sending
