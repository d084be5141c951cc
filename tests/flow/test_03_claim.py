"""Step 3: a run nobody works on is taken up, one of a thread at a time."""

from threading import Event

from recto.testing.client import RUNS, ask
from recto.testing.model_server import Answer
from tests.flow.in_process import InProcess


async def test_P6_the_second_run_of_a_thread_waits_for_the_first(server: InProcess):
    go, body = Event(), ask("first")
    server.answers.append(Answer(text="one two", hold=go))
    await server.send("POST", RUNS, body)
    second = (await server.send("POST", RUNS, ask("second", thread=str(body["threadId"])))).json["taskId"]
    assert (await server.send("GET", f"{RUNS}/{second}")).json["status"] == "queued"
    go.set()
    await server.send("GET", f"{RUNS}/{second}/events")
    assert (await server.send("GET", f"{RUNS}/{second}")).json["status"] == "finished"
    assert server.reached.count("claimed") == 2
