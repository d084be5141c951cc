"""Model calls as the server keeps them: how long one takes to be put together again, and two to be compared."""

from __future__ import annotations

import asyncio
import gc
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from long_logs import admit_run

from recto.conversation.json import dump
from recto.conversation.log import Entry
from recto.ids import new_id
from recto.page.assemble import assemble
from recto.page.body import Page
from recto.page.difference import difference
from recto.page.facts import Facts
from recto.page.manifest import Manifest
from recto.page.wire.base import Target
from recto.store.ports import CallStart, RunChange, StoredRun
from recto.store.runs.calls import CheckedCall, sent_page
from recto.store.store import Store, open_store


@dataclass(frozen=True, kw_only=True)
class KeptCalls:
    """Seconds of each time a call was put together and two were compared; the bytes and parts of the larger page."""

    rebuilt: Sequence[float]
    compared: Sequence[float]
    bytes: int
    parts: int


@dataclass(frozen=True, kw_only=True)
class Moment:
    """When something began, by the clock and by the work of this process."""

    clock: float
    work: float

    @classmethod
    def now(cls) -> Moment:
        """This moment."""
        return cls(clock=time.perf_counter(), work=time.process_time())

    def seconds_since(self) -> float:
        """By the clock, or less where the process did not even work as long: others keep the machine busy too."""
        return min(time.perf_counter() - self.clock, time.process_time() - self.work)


def kept_calls(before: Sequence[Entry], after: Sequence[Entry], target: Target, count: int) -> KeptCalls:
    """Two calls of a thread, each looked at as if nobody had asked for it yet."""
    return asyncio.run(_kept_calls(before, after, target, count))


async def _kept_calls(before: Sequence[Entry], after: Sequence[Entry], target: Target, count: int) -> KeptCalls:
    pages = [assemble(Facts(log=log, target=target)) for log in (before, after)]
    with tempfile.TemporaryDirectory() as folder:
        store = await open_store(f"sqlite:///{Path(folder) / 'recto.db'}")
        run = await admit_run(store, new_id(), "hello")
        for number, (page, manifest) in enumerate(pages, start=1):
            await _keep(store, run, number, page, manifest)
        rebuilt, compared = list[float](), list[float]()
        for _ in range(count):
            gc.collect()
            begin = Moment.now()
            call = await store.calls.read(run.id, 2)
            rebuilt.append(begin.seconds_since())
            compared.append(_compare(await store.calls.read(run.id, 1), call))
        await store.close()
    return KeptCalls(rebuilt=rebuilt, compared=compared, bytes=len(pages[1][0].body), parts=len(pages[1][1].parts))


async def _keep(store: Store, run: StoredRun, number: int, page: Page, manifest: Manifest) -> None:
    call = CallStart(
        number=number,
        purpose="reply",
        model="bench",
        digest=page.digest,
        shared=0,
        hashes=b"".join([segment.sha256 for segment in page.segments]),
        segments=page.segments,
        manifest=dump({"parts": manifest.rows(), "tokens": manifest.tokens.tokens, "skill": None}),
        started=datetime.now(UTC),
    )
    await store.runs.record(run.lease, RunChange(call_start=call), datetime.now(UTC))


def _compare(before: CheckedCall, after: CheckedCall) -> float:
    """As it is answered: from the bytes that are kept to those that are sent."""
    gc.collect()
    begin = Moment.now()
    dump(difference(sent_page(before), sent_page(after)).row())
    return begin.seconds_since()
