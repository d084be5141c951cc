"""P13: what large messages that wait in a thread cost everybody else while they are looked at. On PostgreSQL."""

import threading
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import cast

import pytest

from recto.conversation.json import Json
from recto.testing.model_server import Answer
from tests.costs import MEBIBYTE, costs_of, standstill_limit
from tests.end_to_end.harness import Harness
from tests.support.client import RUNS, ask, request, start
from tests.support.postgres import postgres_server

pytestmark = pytest.mark.full

WAITING, READERS = 20, 4
# Nearly all that a request may have, in the parts that are the slowest to read.
PARTS: Sequence[Json] = [{"type": "text", "text": ""}] * 9_000 + [{"type": "text", "text": "x"}]


def test_P13_looking_at_large_messages_that_wait_stops_nobody(tmp_path: Path):
    answer = Answer(text="one two three four five six", hold=threading.Event(), hold_after=4)
    with postgres_server() as postgres, Harness(tmp_path, lambda _: answer) as harness:
        harness.database = postgres.url(postgres.create_database())
        with harness.serve(storage_url=f"file://{tmp_path / 'files'}", queued_bytes=WAITING * MEBIBYTE) as server:
            first = ask("hold")
            start(harness.url, first)
            thread = str(first["threadId"])
            waiting = [f"m{number}" for number in range(WAITING)]
            for id in waiting:
                message: Json = {"id": id, "role": "user", "content": PARTS}
                reply = request(harness.url, "POST", RUNS, {**ask("", thread=thread), "messages": [message]})
                assert reply.status == 202

            def look(path: str) -> Sequence[Json]:
                response = request(harness.url, "GET", f"/api/v1/agent/{path}").json
                rows = cast("Sequence[dict[str, Json]]", response.get("queued") or response.get("messages"))
                return [row["id"] for row in rows if row.get("status") == "queued"]

            paths = [f"threads/{thread}", f"history?threadId={thread}"] * READERS

            def attack() -> None:
                with ThreadPoolExecutor(READERS) as readers:
                    assert list(readers.map(look, paths)) == [waiting] * len(paths)

            costs = costs_of(server, attack)
            assert costs.standstill < standstill_limit()
            assert costs.memory < 64 * MEBIBYTE
            # Newest first: none of them begins.
            path = f"/api/v1/agent/threads/{thread}/runs?limit={WAITING + 1}"
            for run in cast("Sequence[dict[str, Json]]", request(harness.url, "GET", path).json["runs"]):
                request(harness.url, "POST", f"{RUNS}/{run['taskId']}/cancel")
