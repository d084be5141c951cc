"""Step 12: a run ends with one terminal event, and its row with it."""

import pytest

from recto.ids import new_id
from recto.testing.model_server import failure
from tests.flow.in_process import InProcess, types_of
from tests.support.client import RUNS


async def test_P7_a_run_that_went_well_ends_with_run_finished(server: InProcess):
    events = await server.run("hello")
    assert (types_of(events).count("RUN_FINISHED"), types_of(events)[-1]) == (1, "RUN_FINISHED")
    row = (await server.send("GET", f"{RUNS}/{events[0].event['runId']}")).json
    assert (row["status"], row["outcome"]) == ("finished", "done")


async def test_P8_a_run_whose_model_refuses_ends_with_run_error_that_says_why_and_one_line_in_the_log(
    server: InProcess, caplog: pytest.LogCaptureFixture
):
    thread = new_id()
    events = await server.run("my secret plan", failure(401, "invalid_api_key"), thread=thread)
    assert types_of(events)[-1] == "RUN_ERROR"
    why = events[-1].event["message"]
    row = (await server.send("GET", f"{RUNS}/{events[0].event['runId']}")).json
    (line,) = [record.getMessage() for record in caplog.records if " failed: " in record.getMessage()]
    assert line == f"run {row['taskId']} of thread {thread} by agent helper failed: model_failed: {why}"
    assert "secret plan" not in caplog.text
