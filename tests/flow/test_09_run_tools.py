"""Step 9: tools act, each start stored before; what they answer is in the next page."""

from recto.conversation.log import ToolStarted
from recto.ids import new_id
from recto.testing.model_server import Answer, Call
from tests.flow.in_process import InProcess, messages_of

BOTH = Answer(
    calls=(
        Call(name="note", arguments='{"text": "milk"}', id="c1"),
        Call(name="note", arguments='{"text": "tea"}', id="c2"),
    )
)


async def test_P11_results_stand_behind_their_calls_in_the_order_of_these(server: InProcess):
    thread = new_id()
    await server.run("note both", BOTH, Answer(text="Done."), thread=thread)
    *_, call, first, second = messages_of(server.pages[1])
    assert call["role"] == "assistant"
    assert [first["content"], second["content"]] == ["noted milk", "noted tea"]
    started = [entry for entry in await server.log(thread) if isinstance(entry, ToolStarted)]
    assert len(started) == 2
