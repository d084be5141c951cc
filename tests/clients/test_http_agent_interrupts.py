"""HttpAgent and calls that a person agrees to: the newest knows interrupts, the older one answers a call."""

import pytest

from recto.conversation.json import Json, dump
from recto.testing.model_server import Answer
from tests.api.scripted_server import Scripted, page_messages
from tests.clients.agents import Client, ClientMaker, Seen, function_of
from tests.clients.scripts import call, model_page, script

ASKED = call("send", '{"text": "We meet at nine."}')


def asked(client: Client, server: Scripted, *rest: Answer) -> Seen:
    """A run that ends with a call that waits for a person, and something to say behind it."""
    script(server, Answer(text="I send it.", calls=(ASKED,)), *rest)
    seen = client.say("tell all: we meet at nine")
    assert (seen.failed, list(seen.warned)) == (None, [])
    assert [function_of(one) for one in seen.unanswered] == [("send", ASKED.arguments)]
    return seen


def decide(client: Client, seen: Seen, payload: Json) -> Seen:
    """What a person decided, as the client tells it."""
    if seen.interrupts is None:
        return client.answer(seen.unanswered[0], dump(payload).decode())
    (waiting,) = seen.interrupts
    assert waiting["toolCallId"] == seen.unanswered[0]["id"]
    return client.run(resume=[{"interruptId": waiting["id"], "status": "resolved", "payload": payload}])


@pytest.mark.parametrize(
    ("payload", "told"),
    [
        pytest.param({"approved": True}, "Sent: We meet at nine.", id="approved"),
        pytest.param({"approved": True, "arguments": {"text": "At ten."}}, "Sent: At ten.", id="changed"),
        pytest.param({"approved": False, "message": "Not yet."}, "Not yet.", id="denied"),
    ],
)
def test_P15_a_person_decides_on_a_call(make: ClientMaker, server: Scripted, payload: Json, told: str):
    client = make()
    seen = decide(client, asked(client, server, Answer(text="Very well.")), payload)
    assert (seen.failed, list(seen.warned)) == (None, [])
    assert seen.said[-1] == "assistant: Very well."
    assert seen.unanswered == []
    assert told in str(page_messages(server.model.requests[-1])[-1]["content"])


def test_P15_a_call_that_waits_is_there_for_who_comes_later(make: ClientMaker, server: Scripted):
    client = make()
    asked(client, server, Answer(text="Very well."))
    later = make(threadId=client.thread)
    seen = later.run()
    assert [function_of(one) for one in seen.unanswered] == [("send", ASKED.arguments)]
    (waiting,) = server.rows(f"/threads/{client.thread}", "interrupts")
    resume: Json = [{"interruptId": waiting["id"], "status": "resolved", "payload": {"approved": True}}]
    assert later.run(resume=resume).said[-1] == "assistant: Very well."
    assert "Sent: We meet at nine." in model_page(server)[-1]
