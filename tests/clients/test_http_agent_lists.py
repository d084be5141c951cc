"""HttpAgent with unanswered and stopped calls in its list of messages."""

import threading

from recto.testing.model_server import Answer
from tests.api.scripted_server import PLAIN, Scripted
from tests.clients.agents import ClientMaker, function_of, result, tool, user
from tests.clients.scripts import call, model_page, script

ASK = tool("ask", question={"type": "string"})
ASK_CALL = call("ask", '{"question": "Which one?"}')


def test_P15_words_in_place_of_a_result_go_on_and_a_late_result_harms_nothing(make: ClientMaker, server: Scripted):
    script(server, Answer(calls=(ASK_CALL,)), Answer(text="Then not."), Answer(text="Good night."))
    client = make()
    first = client.say("buy it", tools=[ASK])
    state = client.say("never mind", tools=[ASK])
    assert (state.failed, state.read_texts[-1]) == (None, "assistant: Then not.")
    late = [*state.messages[:2], result(first.unanswered[0], "the red one"), *state.messages[2:]]
    state = client.run(messages=[*late, user("good night")], tools=[ASK])
    assert (state.failed, state.read_texts[-1]) == (None, "assistant: Good night.")
    assert model_page(server)[-3:] == ["user: never mind", "assistant: Then not.", "user: good night"]


def test_P15_a_stop_in_the_middle_of_a_call_leaves_nothing_to_carry_out(make: ClientMaker, server: Scripted):
    go = threading.Event()
    script(server, Answer(text="Let me ask.", calls=(ASK_CALL,), hold=go, hold_after=7))
    client = make()
    run = client.begin(add=[user("buy it")], tools=[ASK])
    client.saw("TOOL_CALL_ARGS")
    client.stop()
    client.wait(run)
    state = client.say("never mind", tools=[ASK])
    go.set()
    assert (state.failed, state.read_texts[-1]) == (None, f"assistant: {PLAIN.text}")
    assert model_page(server)[-1] == "user: never mind"
    again = make(threadId=client.thread).run()
    assert [function_of(one) for one in again.unanswered] == []
