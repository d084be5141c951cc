"""Step 1: who comes in. Headers decide, before anything reads a body."""

from tests.flow.in_process import InProcess
from tests.support.client import RUNS, ask

THREADS = "/api/v1/agent/threads"


async def test_C3_without_a_credential_nothing_is_stored(server: InProcess):
    rejection = await server.send("POST", RUNS, ask("hello"), token=None)
    assert (rejection.status, rejection.json["code"]) == (401, "unauthorized")
    assert (await server.send("GET", THREADS)).json["threads"] == []


async def test_C3_a_host_that_is_not_ours_is_refused(server: InProcess):
    assert (await server.send("GET", THREADS, headers={"host": "evil.example"})).status == 421


async def test_C3_whether_it_is_well_anybody_may_ask(server: InProcess):
    assert (await server.send("GET", "/healthz", token=None)).status == 200
