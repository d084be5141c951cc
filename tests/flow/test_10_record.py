"""Step 10: events are numbered, committed, then published; who comes late hears the same bytes."""

from recto.testing.model_server import Answer
from tests.flow.in_process import InProcess, events_of
from tests.support.client import RUNS


async def test_P7_a_reader_that_comes_late_hears_the_same(server: InProcess):
    live = await server.run("hello", Answer(text="One two."))
    run = live[0].event["runId"]
    path = f"{RUNS}/{run}/events"
    assert events_of(await server.send("GET", path)) == live
    by_query = await server.send("GET", f"{path}?after=2")
    by_header = await server.send("GET", path, headers={"last-event-id": "2"})
    assert events_of(by_query) == events_of(by_header) == live[2:]
    assert [received.number for received in live] == list(range(1, len(live) + 1))
