"""Streams by themselves: what is told again after retention, and that nobody is left listening (P7)."""

import asyncio
import gc
import re
from collections.abc import AsyncIterator
from contextlib import ExitStack, suppress
from dataclasses import replace
from pathlib import Path

import pytest
from starlette.requests import ClientDisconnect
from starlette.types import Message

from recto.api.runs.streams import EventRenderer, EventStream, stream_again, stream_new
from recto.conversation.events import ViewSnapshot
from recto.engine.hub import Hub
from recto.store.ports import StoredRun
from recto.store.store import Store, open_store
from tests.store.suite.samples import admit

# From this version of ASGI on, who has gone is found out by sending.
WITHOUT_LISTENING = "2.4"
BODIES = (b'{"type":"RUN_STARTED"}', b'{"type":"MESSAGES_SNAPSHOT"}', b'{"type":"RUN_FINISHED"}')


async def no_view(_run: StoredRun, _snapshot: ViewSnapshot) -> bytes:
    raise AssertionError("No event here stands for a view.")


AS_STORED = EventRenderer(render=bytes, view=no_view)


@pytest.fixture
async def store(tmp_path: Path) -> AsyncIterator[Store]:
    opened = await open_store(f"sqlite:///{tmp_path / 'recto.db'}")
    yield opened
    await opened.close()


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


async def send_to_nobody(response: EventStream, spec: str) -> None:
    """A client that is gone before anything was sent."""

    async def receive() -> Message:
        return {"type": "http.disconnect"}

    async def send(_message: Message) -> None:
        await asyncio.sleep(0)
        if spec == WITHOUT_LISTENING:
            raise OSError("gone")

    scope = {"type": "http", "asgi": {"spec_version": spec}, "method": "POST"}
    await response(scope, receive, send)


@pytest.mark.full
@pytest.mark.parametrize("spec", ["2.3", WITHOUT_LISTENING])
async def test_P7_a_client_that_is_gone_before_its_stream_began_leaves_nobody_listening(store: Store, spec: str):
    hub, before = Hub(store), channels()
    run = await admit(store, "r1")
    hearing = ExitStack()
    response = stream_new(hub, hearing, hearing.enter_context(hub.listening(run.id)), run, AS_STORED)
    assert channels() == before + 1
    with suppress(ClientDisconnect):
        await send_to_nobody(response, spec)
    assert channels() == before


async def test_P7_a_client_that_leaves_in_the_middle_ends_its_stream_at_once(store: Store):
    hub, before, left, begun = Hub(store), channels(), asyncio.Event(), asyncio.Event()
    run, hearing = await admit(store, "r1"), ExitStack()
    response = stream_new(hub, hearing, hearing.enter_context(hub.listening(run.id)), run, AS_STORED)

    async def receive() -> Message:
        await left.wait()
        return {"type": "http.disconnect"}

    async def send(_message: Message) -> None:
        begun.set()

    sending = asyncio.create_task(response({"type": "http"}, receive, send))
    await begun.wait()
    left.set()
    async with asyncio.timeout(5):
        await sending
    assert channels() == before


async def test_P7_a_stream_that_is_cancelled_from_outside_stays_cancelled(store: Store):
    hub, begun = Hub(store), asyncio.Event()
    run, hearing = await admit(store, "r1"), ExitStack()
    response = stream_new(hub, hearing, hearing.enter_context(hub.listening(run.id)), run, AS_STORED)

    async def receive() -> Message:
        return await asyncio.get_running_loop().create_future()

    async def send(_message: Message) -> None:
        begun.set()

    sending = asyncio.create_task(response({"type": "http"}, receive, send))
    await begun.wait()
    sending.cancel()
    with pytest.raises(asyncio.CancelledError):
        await sending
