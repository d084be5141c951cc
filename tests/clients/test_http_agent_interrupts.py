"""HttpAgent and calls that a person agrees to: the newest knows interrupts, the older one answers a call."""

import pytest

from recto.conversation.json import Json, dump
from recto.testing.model_server import Answer
from tests.api.scripted_server import Scripted, page_messages
from tests.clients.agents import Client, ClientMaker, ClientState, function_of
from tests.clients.scripts import call, model_page, script

SEND_CALL = call("send", '{"text": "We meet at nine."}')


def ask_client(client: Client, server: Scripted, *rest: Answer) -> ClientState:
    """Run until a call waits for approval."""
    script(server, Answer(text="I send it.", calls=(SEND_CALL,)), *rest)
    state = client.say("tell all: we meet at nine")
    assert (state.failed, list(state.warned)) == (None, [])
    assert [function_of(one) for one in state.unanswered] == [("send", SEND_CALL.arguments)]
    return state


def decide(client: Client, state: ClientState, payload: Json) -> ClientState:
    """Send a decision the way the client does."""
    if state.interrupts is None:
        return client.answer(state.unanswered[0], dump(payload).decode())
    (waiting,) = state.interrupts
    assert waiting["toolCallId"] == state.unanswered[0]["id"]
    return client.run(resume=[{"interruptId": waiting["id"], "status": "resolved", "payload": payload}])


@pytest.mark.parametrize(
    ("payload", "expected"),
    [
        pytest.param({"approved": True}, "Sent: We meet at nine.", id="approved"),
        pytest.param({"approved": True, "arguments": {"text": "At ten."}}, "Sent: At ten.", id="changed"),
        pytest.param({"approved": False, "message": "Not yet."}, "Not yet.", id="denied"),
    ],
)
def test_P15_a_person_decides_on_a_call(make: ClientMaker, server: Scripted, payload: Json, expected: str):
    client = make()
    state = decide(client, ask_client(client, server, Answer(text="Very well.")), payload)
    assert (state.failed, list(state.warned)) == (None, [])
    assert state.read_texts[-1] == "assistant: Very well."
    assert state.unanswered == []
    assert expected in str(page_messages(server.model.requests[-1])[-1]["content"])


def test_P15_a_call_that_waits_is_there_for_who_comes_later(make: ClientMaker, server: Scripted):
    client = make()
    ask_client(client, server, Answer(text="Very well."))
    later = make(threadId=client.thread)
    state = later.run()
    assert [function_of(one) for one in state.unanswered] == [("send", SEND_CALL.arguments)]
    (waiting,) = server.rows(f"/threads/{client.thread}", "interrupts")
    resume: Json = [{"interruptId": waiting["id"], "status": "resolved", "payload": {"approved": True}}]
    assert later.run(resume=resume).read_texts[-1] == "assistant: Very well."
    assert "Sent: We meet at nine." in model_page(server)[-1]
