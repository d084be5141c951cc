"""Step 12: a run ends with one terminal event, and its row with it."""

from recto.testing.client import RUNS
from recto.testing.model_server import failure
from tests.flow.in_process import InProcess, types_of


async def test_P7_a_run_that_went_well_ends_with_run_finished(server: InProcess):
    events = await server.run("hello")
    assert (types_of(events).count("RUN_FINISHED"), types_of(events)[-1]) == (1, "RUN_FINISHED")
    row = (await server.send("GET", f"{RUNS}/{events[0].event['runId']}")).json
    assert (row["status"], row["outcome"]) == ("finished", "done")


async def test_P8_a_run_whose_model_refuses_ends_with_run_error_that_says_why(server: InProcess):
    events = await server.run("hello", failure(401, "invalid_api_key"))
    assert types_of(events)[-1] == "RUN_ERROR"
    assert events[-1].event["message"]
