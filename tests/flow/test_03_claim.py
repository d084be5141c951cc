"""Step 3: a run nobody works on is taken up, one of a thread at a time."""

from pathlib import Path
from threading import Event

import pytest

from recto.testing.model_server import Answer
from tests.flow.in_process import InProcess, in_process
from tests.support.client import RUNS, ask
from tests.waiting import wait_until


async def test_P6_the_second_run_of_a_thread_waits_for_the_first(server: InProcess):
    go, body = Event(), ask("first")
    server.answers.append(Answer(text="one two", hold=go))
    await server.send("POST", RUNS, body)
    second = (await server.send("POST", RUNS, ask("second", thread=str(body["threadId"])))).json["taskId"]
    assert (await server.send("GET", f"{RUNS}/{second}")).json["status"] == "queued"
    go.set()
    await server.send("GET", f"{RUNS}/{second}/events")
    assert (await server.send("GET", f"{RUNS}/{second}")).json["status"] == "finished"
    assert server.checkpoints.count("claimed") == 2


async def test_P6_a_user_whose_runs_wait_holds_up_nobody_else(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    go, bob = Event(), "bob-" + "b" * 32
    async with in_process(tmp_path, monkeypatch, runs=4, api_keys=f"bob:{bob}") as server:
        server.answers.append(Answer(text="held", hold=go))
        await server.send("POST", RUNS, ask("hold"))
        await wait_until(lambda: server.model.requests)
        # Of four at work, one may be this user's.
        waiting = [str((await server.send("POST", RUNS, ask("wait"))).json["taskId"]) for _ in range(5)]
        run = str((await server.send("POST", RUNS, ask("I am bob"), token=bob)).json["taskId"])
        await server.send("GET", f"{RUNS}/{run}/events", token=bob)
        assert (await server.send("GET", f"{RUNS}/{run}", token=bob)).json["status"] == "finished"
        run_rows = [(await server.send("GET", f"{RUNS}/{one}")).json["status"] for one in waiting]
        go.set()
    assert run_rows == ["queued"] * 5
