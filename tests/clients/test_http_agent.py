"""HttpAgent of @ag-ui/client, newest and older: turns with whole lists, tools, approvals, edits, stops."""

import threading

import pytest

from recto.conversation.json import Json, dump
from recto.ids import new_id
from recto.testing.model_server import Answer
from tests.api.scripted_server import PLAIN, Scripted, page_messages
from tests.clients.agents import Client, ClientMaker, ClientState, function_of, result, tool, user
from tests.clients.scripts import LOST_ANSWER, call, model_page, script

ASK = tool("ask", question={"type": "string"})
PICK = tool("pick", colour={"type": "string"})


def check_events(state: ClientState) -> ClientState:
    """Check that the client accepted the run without a warning."""
    assert (state.failed, list(state.warned)) == (None, [])
    return state


def test_P15_turn_after_turn_is_answered(make: ClientMaker, server: Scripted):
    client = make()
    script(server, *[Answer(text=f"answer {number}") for number in (1, 2, 3)])
    for words in ("first", "second"):
        check_events(client.say(words))
    state = check_events(client.say("third"))
    texts = ["user: first", "assistant: answer 1", "user: second", "assistant: answer 2", "user: third"]
    assert state.read_texts == [*texts, "assistant: answer 3"]
    assert model_page(server) == texts


@pytest.mark.full
def test_P15_a_system_message_first_is_read_in_a_thread_of_any_name(make: ClientMaker, server: Scripted):
    name = f"room #7 / Bücher / {new_id()}"
    client = make(threadId=name, messages=[{"id": "s", "role": "system", "content": "Answer in verse."}])
    client.say("one")
    state = check_events(client.say("two"))
    assert [row["role"] for row in state.messages] == ["system", "user", "assistant", "user", "assistant"]
    assert {str(event["threadId"]) for event in state.events if "threadId" in event} == {name}
    assert "Answer in verse." in str(page_messages(server.model.requests[-1]))
    assert model_page(server) == ["user: one", f"assistant: {PLAIN.text}", "user: two"]


def test_P15_tools_of_both_sides_called_at_once_are_all_answered(make: ClientMaker, server: Scripted):
    calls = (
        call("ask", '{"question": "Which?"}', "call_0"),
        call("weather", '{"city": "Bonn"}', "call_1"),
        call("pick", '{"colour": "red"}', "call_2"),
    )
    script(server, Answer(calls=calls), Answer(text="All done."))
    client = make()
    first = check_events(client.say("do all", tools=[ASK, PICK]))
    assert [function_of(one)[0] for one in first.unanswered] == ["ask", "pick"]
    results = [result(one, f"{function_of(one)[0]} is answered") for one in first.unanswered]
    state = check_events(client.run(add=results, tools=[ASK, PICK]))
    assert state.read_texts[-1] == "assistant: All done."
    got = [line for line in model_page(server) if line.startswith("tool: ")]
    assert sorted(got) == ["tool: Sunny in Bonn.", "tool: ask is answered", "tool: pick is answered"]


def test_P15_thoughts_are_shown_and_sent_back_without_harm(make: ClientMaker, server: Scripted):
    server.answers.append(Answer(reasoning="Hm, a greeting.", text="Hello!"))
    client = make()
    state = check_events(client.say("hi"))
    assert state.read_texts == ["user: hi", "reasoning: Hm, a greeting.", "assistant: Hello!"]
    assert check_events(client.say("again")).read_texts[-2:] == ["user: again", f"assistant: {PLAIN.text}"]


def test_P15_an_answer_is_given_again_where_the_list_was_cut_before_it(make: ClientMaker, server: Scripted):
    script(server, Answer(text="not this one"), Answer(text="this one"))
    client = make()
    first = client.say("hello")
    state = check_events(client.run(messages=first.messages[:1]))
    assert state.read_texts == ["user: hello", "assistant: this one"]
    assert model_page(server) == ["user: hello"]
    check_events(client.say("on"))
    assert model_page(server) == ["user: hello", "assistant: this one", "user: on"]


@pytest.mark.parametrize("id", ["m1", "m1-edited"], ids=["under its id", "under a new id"])
def test_P15_a_message_that_was_edited_takes_the_place_of_what_followed(make: ClientMaker, server: Scripted, id: str):
    script(server, Answer(text="a"), Answer(text="b"), Answer(text="c"))
    client = make()
    client.say("zero", "m0")
    before = client.say("one", "m1")
    state = check_events(client.run(messages=[*before.messages[:2], user("another", id)]))
    assert state.read_texts == ["user: zero", "assistant: a", "user: another", "assistant: c"]
    assert model_page(server) == ["user: zero", "assistant: a", "user: another"]


def test_P15_a_message_that_was_refused_stays_in_the_list_and_harms_nothing(make: ClientMaker, server: Scripted):
    client = make()
    client.say("one")
    rejection = client.say("x" * 10_001)
    assert rejection.failed
    assert "exceeds limit" in str(rejection.failed["message"])
    state = check_events(client.say("two"))
    assert [len(str(row["content"])) for row in state.messages if row["role"] == "user"] == [3, 10_001, 3]
    assert model_page(server) == ["user: one", f"assistant: {PLAIN.text}", "user: two"]


def test_P15_a_stopped_run_gives_way_to_what_is_said_next(make: ClientMaker, server: Scripted):
    client = make()
    run = client.begin(add=[user("hold this")])
    client.saw("TEXT_MESSAGE_CONTENT")
    client.stop()
    stopped = client.wait(run)
    assert stopped.read_texts[-1].startswith("assistant: one")
    state = check_events(client.say("never mind"))
    assert state.read_texts[-2:] == ["user: never mind", f"assistant: {PLAIN.text}"]
    assert server.model.requests[-2].wait_disconnected()


def test_P15_a_reply_that_was_lost_is_neither_shown_nor_carried_out(make: ClientMaker, server: Scripted):
    script(server, LOST_ANSWER, Answer(text="Whole."))
    state = check_events(make().say("go", tools=[tool("paint", colour={"type": "string"})]))
    assert state.read_texts == ["user: go", "assistant: Whole."]
    assert (state.unanswered, state.pending or []) == ([], [])


def test_P15_a_state_is_shared_by_the_client_and_the_tools_of_the_server(make: ClientMaker, server: Scripted):
    client = make(state={"stops": ["Rome"], "by": "train"})
    script(server, Answer(calls=(call("plan", '{"stop": "Oslo"}'),)), Answer(text="Two stops."))
    first = check_events(client.say("to Oslo, too"))
    assert first.state == {"stops": ["Rome", "Oslo"], "by": "train"}
    assert {"STATE_SNAPSHOT", "STATE_DELTA"} <= set(first.types)
    script(server, Answer(calls=(call("plan", '{"stop": "Bonn"}'),)), Answer(text="Two again."))
    second = check_events(client.say("not Rome", state={"stops": ["Oslo"], "by": "train"}))
    assert second.state == {"stops": ["Oslo", "Bonn"], "by": "train"}
    assert check_events(make(threadId=client.thread).run()).state == second.state


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
