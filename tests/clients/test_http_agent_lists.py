"""HttpAgent with lists that people's ways through a conversation leave behind: calls left alone, stops, long lists."""

import threading

import pytest

from recto.testing.model_server import Answer
from tests.api.scripted_server import PLAIN, Scripted
from tests.clients.agents import ClientMaker, Row, function_of, result, tool, user
from tests.clients.scripts import call, model_page, script

ASK = tool("ask", question={"type": "string"})
ASKED = call("ask", '{"question": "Which one?"}')


def test_P15_words_in_place_of_a_result_go_on_and_a_late_result_harms_nothing(make: ClientMaker, server: Scripted):
    script(server, Answer(calls=(ASKED,)), Answer(text="Then not."), Answer(text="Good night."))
    client = make()
    first = client.say("buy it", tools=[ASK])
    seen = client.say("never mind", tools=[ASK])
    assert (seen.failed, seen.said[-1]) == (None, "assistant: Then not.")
    late = [*seen.messages[:2], result(first.unanswered[0], "the red one"), *seen.messages[2:]]
    seen = client.run(messages=[*late, user("good night")], tools=[ASK])
    assert (seen.failed, seen.said[-1]) == (None, "assistant: Good night.")
    assert model_page(server)[-3:] == ["user: never mind", "assistant: Then not.", "user: good night"]


def test_P15_a_stop_in_the_middle_of_a_call_leaves_nothing_to_carry_out(make: ClientMaker, server: Scripted):
    go = threading.Event()
    script(server, Answer(text="Let me ask.", calls=(ASKED,), hold=go, hold_after=7))
    client = make()
    run = client.begin(add=[user("buy it")], tools=[ASK])
    client.saw("TOOL_CALL_ARGS")
    client.stop()
    client.wait(run)
    seen = client.say("never mind", tools=[ASK])
    go.set()
    assert (seen.failed, seen.said[-1]) == (None, f"assistant: {PLAIN.text}")
    assert model_page(server)[-1] == "user: never mind"
    again = make(threadId=client.thread).run()
    assert [function_of(one) for one in again.unanswered] == []


@pytest.mark.full
def test_P15_a_list_of_hundreds_of_messages_is_taken(make: ClientMaker, server: Scripted):
    past: list[Row] = []
    for number in range(200):
        past += [user(f"question {number}"), {"id": f"a{number}", "role": "assistant", "content": "yes"}]
    seen = make(messages=past).say("and now?")
    assert (seen.failed, seen.said[-1]) == (None, f"assistant: {PLAIN.text}")
    assert model_page(server) == ["user: and now?"]


def test_P15_two_windows_of_one_thread_follow_each_other(make: ClientMaker, server: Scripted):
    script(server, Answer(text="to one"), Answer(text="to two"), Answer(text="to three"))
    first = make()
    first.say("one")
    other = make(threadId=first.thread)
    other.run()
    other.say("two")
    first.run(messages=[])
    assert first.say("three").said[-1] == "assistant: to three"
    assert model_page(server) == ["user: one", "assistant: to one", "user: two", "assistant: to two", "user: three"]
