"""Step 5: what is next is derived from the log and the run alone, call by call."""

from recto.testing.model_server import Answer, Call
from tests.flow.in_process import InProcess
from tests.waiting import wait_until

NOTE = Answer(calls=(Call(name="note", arguments='{"text": "milk"}', id="c1"),))


async def test_X4_a_run_calls_the_model_runs_its_tools_and_calls_it_again_until_it_only_speaks(server: InProcess):
    await server.run("note milk", NOTE, Answer(text="Done."))
    # A reader has the last event as soon as it is committed; whoever worked on the run is a moment behind.
    await wait_until(lambda: server.checkpoints[-1] == "replied", "the worker to be done")
    assert [point for point in server.checkpoints if point != "delta"] == [
        "claimed",
        "entered",
        *("call_begun", "replied"),
        *("tools_started", "tool_acted", "tool_ended"),
        *("call_begun", "ending", "replied"),
    ]
