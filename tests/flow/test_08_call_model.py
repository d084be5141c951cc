"""Step 8: what a page is made of is stored before it is sent; the reply becomes events and entries."""

from recto.conversation.messages import AssistantMessage, texts_of
from recto.ids import new_id
from recto.testing.model_server import Answer
from tests.flow.in_process import InProcess
from tests.support.client import RUNS


async def test_X1_the_stored_body_is_what_the_model_received(server: InProcess):
    events = await server.run("hello")
    call_rows = await server.send("GET", f"{RUNS}/{events[0].event['runId']}/calls/1?raw=1")
    assert call_rows.body == server.model.requests[0].body


async def test_P7_what_is_streamed_is_what_is_stored(server: InProcess):
    thread = new_id()
    events = await server.run("hello", Answer(text="One two three."), thread=thread)
    streamed = "".join(
        str(received.event["delta"]) for received in events if received.event["type"] == "TEXT_MESSAGE_CONTENT"
    )
    *_, answer = await server.log(thread)
    assert isinstance(answer, AssistantMessage)
    assert streamed == "".join(texts_of(answer)) == "One two three."
