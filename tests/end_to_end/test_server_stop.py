"""A server that stops with a run at work: it hands the run back, and any other server may take it at once."""

import asyncio
from pathlib import Path

import pytest

from recto.store.store import open_store
from recto.testing.model_server import Answer
from tests.flow.in_process import in_process
from tests.store.suite.samples import OTHER_NODE, claim_names
from tests.support.client import RUNS, ask


async def test_X4_a_server_that_stops_hands_back_what_is_at_work(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    async with in_process(tmp_path, monkeypatch, grace_seconds=0.01) as server:
        server.answers.append(Answer(hang=True))
        assert (await server.send("POST", RUNS, ask("hi", run="r1"))).status == 202
        await asyncio.to_thread(server.model.wait_requests, 1)
        clock = server.backend.clock
    store = await open_store(f"sqlite:///{tmp_path / 'data' / 'recto.db'}")
    # Long before its lease would have run out.
    assert await claim_names(store, OTHER_NODE, clock()) == ["r1"]
    await store.close()
