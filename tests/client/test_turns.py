"""Turns of both clients against a server with a scripted model."""

import asyncio
import logging
import threading
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import replace
from datetime import date
from pathlib import Path

import pytest

from recto.client import (
    Approval,
    AsyncChatTurn,
    CallToApprove,
    Client,
    FileRefused,
    Patience,
    RequestRefused,
    TurnFailed,
)
from recto.errors import SettingsError, ToolError
from recto.testing.model_server import Answer, Call, failure
from tests.client.faulty_proxy import Fault, run_faulty_proxy
from tests.client.scripted_server import PAGE_BYTES, SOON, TURNS, Kind, ScriptedServer, answer_of, events_of, words_of
from tests.support.client import TOKEN, ask, read_events, request, start

LETTER = Answer(calls=(Call(name="send", arguments='{"to": "Bob"}'),))


def test_text_streams_with_a_blank_line_between_messages(served: ScriptedServer, kind: Kind):
    call = Call(name="calculator", arguments='{"expression": "12 * 7"}')
    served.will(Answer(text="Let me see.", calls=(call,)), Answer(text="It is 84.", delay=0.02))
    turn = served.client(kind).chat("What is 12 * 7?")
    words = words_of(turn)
    assert len(words) > 2
    assert "".join(words) == "Let me see.\n\nIt is 84."
    assert (turn.text, turn.outcome, turn.usage["totalTokens"]) == ("It is 84.", "success", 30)


def test_discarded_text_is_not_part_of_the_answer(served: ScriptedServer, kind: Kind):
    served.will(Answer(text="one two three four five six", cut_at=400), Answer(text="All of it."))
    turn = served.client(kind).chat("Count.")
    first_text, _, anew = "".join(words_of(turn)).partition("\n\n")
    assert (first_text[:3], anew, turn.text) == ("one", "All of it.", "All of it.")


def test_a_turn_sends_agent_skill_context_and_props(served: ScriptedServer, kind: Kind):
    before = served.will(Answer(text="Yes."))
    client = served.client(kind, agent="vibe-en", context={"The page": "/shoes"}, props={"timezone": "Asia/Tokyo"})
    turn = client.chat("Draw me a card.", skill="tarot")
    assert answer_of(turn) == "Yes."
    page = str(served.pages(before)[0])
    assert "tarot" in page.lower()
    assert "<description>The page</description>" in page
    thread = request(served.server.url, "GET", f"/api/v1/agent/threads/{client.thread}").json
    assert (thread["agent"], thread["skill"]) == ("vibe-en", "tarot")


def test_a_blocking_client_works_inside_an_event_loop_and_can_continue_a_turn(served: ScriptedServer):
    served.will(Answer(text="one two three", delay=0.02))

    async def cell() -> None:
        turn = Client(url=served.server.url, token=TOKEN).chat("Count.")
        first = next(iter(turn))
        assert first + "".join(turn) == turn.answer() == "one two three"

    asyncio.run(cell())


def test_P3_P11_the_model_calls_a_local_function_and_receives_its_result(served: ScriptedServer, kind: Kind):
    async def opening(day: date, city: str = "Rome") -> dict[str, str]:
        """When a shop is open.

        Args:
            day: On which day.
        """
        return {"city": city, "hours": f"{day.year}: nine to five"}

    before = served.will(
        Answer(text="I ask.", calls=(Call(name="opening", arguments='{"day": "2026-05-14"}'),)), Answer(text="At nine.")
    )
    turn = served.client(kind, tools=[opening]).chat("When is it open?")
    assert (answer_of(turn), turn.outcome) == ("At nine.", "success")
    match served.model.requests[before].page["tools"]:
        case [*_, {"function": {"name": "opening", "description": "When a shop is open.", "parameters": schema}}]:
            assert "'description': 'On which day.', 'format': 'date'" in str(schema)
        case other:
            raise AssertionError(other)
    assert served.pages(before)[1][-1]["content"] == '{"city":"Rome","hours":"2026: nine to five"}'


def test_the_model_receives_errors_of_functions(served: ScriptedServer, kind: Kind, caplog: pytest.LogCaptureFixture):
    def refuse() -> None:
        """Refuse."""
        raise ToolError("Not today.")

    def fail() -> None:
        """Fail."""
        raise KeyError("drawer")

    calls = (Call(name="refuse", id="c1"), Call(name="fail", id="c2"))
    before = served.will(Answer(calls=calls), Answer(text="Neither works."))
    with caplog.at_level(logging.CRITICAL, "recto.client"):
        assert answer_of(served.client(kind, tools=[refuse, fail]).chat("Try both.")) == "Neither works."
    results = [str(message["content"]) for message in served.pages(before)[1][-2:]]
    assert ["Not today." in results[0], "KeyError: 'drawer'" in results[1]] == [True, True]


def test_a_function_without_types_is_rejected_before_a_request(served: ScriptedServer, kind: Kind):
    def shout(words) -> None:  # pyright: ignore[reportUnknownParameterType, reportMissingParameterType] - the point
        """Shout."""

    before = served.will()
    with pytest.raises(SettingsError, match="parameter 'words' has no type hint"):
        served.client(kind, tools=[shout]).chat("Shout.")  # pyright: ignore[reportUnknownArgumentType] - as above
    assert served.pages(before) == []


def agree(_: CallToApprove) -> bool:
    return True


def put_off(_: CallToApprove) -> None:
    """Postpone the decision."""


@pytest.mark.parametrize(
    ("decision", "result_text"),
    [
        (True, "sent '' to Bob"),
        (Approval(message="Quickly!"), "sent '' to Bob"),
        (Approval(arguments={"to": "Eve", "text": "hi"}), "sent 'hi' to Eve"),
        (False, "not"),
        (Approval(approved=False, message="Not before Friday."), "Not before Friday."),
    ],
)
def test_approvals_decide_on_calls(served: ScriptedServer, kind: Kind, decision: bool | Approval, result_text: str):
    calls: list[CallToApprove] = []

    def approve(call: CallToApprove) -> bool | Approval:
        calls.append(call)
        return decision

    before = served.will(LETTER, Answer(text="Done."))
    assert answer_of(served.client(kind, approve=approve).chat("Write to Bob.")) == "Done."
    assert [(call.tool, call.arguments) for call in calls] == [("send", {"to": "Bob"})]
    assert result_text in str(served.pages(before)[1][-1]["content"])


def test_a_call_without_a_decision_waits_for_another_client(served: ScriptedServer, kind: Kind):
    served.will(LETTER, Answer(text="It is sent."))
    first = served.client(kind)
    turn = first.chat("Write to Bob.")
    assert (answer_of(turn), turn.outcome) == ("", "interrupt")
    waiting = served.client(kind, thread=first.thread, approve=put_off).resume()
    assert (answer_of(waiting), waiting.outcome) == ("", "")
    later = served.client(kind, thread=first.thread, approve=agree).resume()
    assert (answer_of(later), later.outcome) == ("It is sent.", "success")


def test_one_run_submits_results_and_approvals(served: ScriptedServer, kind: Kind):
    def address(name: str) -> str:
        """Where somebody lives."""
        return f"{name}, Rome"

    call = Call(name="address", arguments='{"name": "Bob"}', id="c2")
    before = served.will(Answer(calls=(*LETTER.calls, call)), Answer(text="Both done."))
    client = served.client(kind, tools=[address], approve=agree)
    assert answer_of(client.chat("Write to Bob in Rome.")) == "Both done."
    results = [str(message["content"]) for message in served.pages(before)[-1] if message["role"] == "tool"]
    assert results == ["sent '' to Bob", "Bob, Rome"]


def colour() -> str:
    """The user's colour."""
    return "blue"


def test_P7_a_client_follows_an_active_run_from_its_first_event(served: ScriptedServer, kind: Kind):
    served.go.clear()
    served.will(Answer(text="one two three", hold=served.go, hold_after=4))
    body = ask("Count.")
    run = start(served.server.url, body)
    turn = served.client(kind, thread=body["threadId"]).resume()
    # The model continues after the first event is read.
    events = events_of(turn, served.go.set)
    assert events == [event.event for event in read_events(served.server.url, run)]
    assert turn.text == "one two three"


def test_pending_calls_are_answered_if_their_question_is_on_an_earlier_page(served: ScriptedServer, kind: Kind):
    # The reply fills the first page, so the pending call is on the next one.
    long = Answer(text="Hm. " * (PAGE_BYTES // 4), calls=(Call(name="calculator", arguments='{"expression": "1"}'),))
    before = served.will(long, Answer(calls=(Call(name="colour", id="c2"),)), Answer(text="Blue."))
    first = Client(url=served.server.url, token=TOKEN, tools=[colour])
    assert "RUN_FINISHED" in (event["type"] for event in first.chat("My colour?").events())
    page = request(served.server.url, "GET", f"/api/v1/agent/threads/{first.thread}/messages").json
    assert page["next"]
    assert answer_of(served.client(kind, thread=first.thread, tools=[colour]).resume()) == "Blue."
    assert served.pages(before)[2][-1]["content"] == "blue"


def test_P8_a_cancelled_turn_ends_and_keeps_its_text(served: ScriptedServer):
    served.go.clear()
    served.will(Answer(text="one two three four", hold=served.go, hold_after=4))
    turn = Client(url=served.server.url, token=TOKEN).chat("Count.")
    words: list[str] = []
    for text in turn:
        words.append(text)
        turn.cancel()
    assert (turn.outcome, "".join(words)) == ("cancelled", turn.text)
    assert "one two three four".startswith(turn.text)


def test_a_turn_cancelled_before_its_start_sends_nothing(served: ScriptedServer):
    before = served.will()
    turn = Client(url=served.server.url, token=TOKEN).chat("Never mind.")
    turn.cancel()
    assert (turn.answer(), served.pages(before)) == ("", [])


@contextmanager
def on_its_way(served: ScriptedServer, kind: Kind, *, is_let_go: bool, **settings: object) -> Generator[TURNS]:
    """Yield a turn whose run reaches the server after the next request, or at the end."""
    is_sent, release = threading.Event(), threading.Event()

    def faults() -> Generator[Fault]:
        is_sent.set()
        yield release
        if is_let_go:
            release.set()

    served.go.clear()
    served.will(Answer(text="one two three four", hold=served.go, hold_after=4))
    with run_faulty_proxy(served.server.url, faults()) as url:
        turn = served.client(kind, url=url, **settings).chat("Count.")
        reading = threading.Thread(target=answer_of, args=(turn,))
        reading.start()
        assert is_sent.wait(60)
        yield turn
        release.set()
        reading.join(60)


def cancel(turn: TURNS) -> None:
    """Cancel a turn that a thread reads."""
    asyncio.run(turn.cancel()) if isinstance(turn, AsyncChatTurn) else turn.cancel()


def test_P8_a_cancel_before_the_run_arrives_takes_effect_on_arrival(served: ScriptedServer, kind: Kind):
    with on_its_way(served, kind, is_let_go=True) as turn:
        cancel(turn)
    assert turn.outcome == "cancelled"


def test_P8_a_run_that_arrives_after_a_failed_cancel_is_cancelled_by_its_reader(served: ScriptedServer, kind: Kind):
    impatient = replace(SOON, tries=1)
    with (
        on_its_way(served, kind, is_let_go=False, patience=impatient) as turn,
        pytest.raises(RequestRefused, match="404"),
    ):
        cancel(turn)
    assert turn.outcome == "cancelled"


def test_a_cancel_does_not_wait_for_a_rejected_run(served: ScriptedServer, kind: Kind):
    turn = served.client(kind, agent="nobody", patience=Patience(pause=60, longest_pause=60)).chat("Hello?")
    with pytest.raises(RequestRefused, match=r"422: .*'nobody'"):
        answer_of(turn)
    with pytest.raises(RequestRefused, match="404: There is no run"):
        cancel(turn)


def test_P9_a_message_names_its_uploaded_files(served: ScriptedServer, kind: Kind, tmp_path: Path):
    note = tmp_path / 'the "Größe".txt'
    note.write_text("Under the mat.", encoding="utf-8")
    before = served.will(Answer(text="Two."))
    turn = served.client(kind, agent="docs").chat("How many?", files=[note, ("b.md", b"# Hi\r\n--x--\r\n")])
    assert answer_of(turn) == "Two."
    page = str(served.pages(before)[0][-1]["content"])
    assert "<name>the &quot;Größe&quot;.txt</name>" in page
    assert "<name>b.md</name>" in page


def test_P9_a_rejected_file_raises_its_reason(served: ScriptedServer, kind: Kind):
    before = served.will()
    with pytest.raises(FileRefused, match=r"empty\.txt: it is empty") as error:
        answer_of(served.client(kind, agent="docs").chat("Read.", files=[("empty.txt", b""), ("good.txt", b"x")]))
    assert (error.value.code, served.pages(before)) == ("empty", [])


def test_rejections_and_failed_runs_raise_the_text_of_the_server(served: ScriptedServer, kind: Kind):
    with pytest.raises(RequestRefused, match=r"401: .*RECTO_TOKEN"):
        answer_of(served.client(kind, token="wrong").chat("Hello?"))
    served.will(failure(400, "I never do that"))
    with pytest.raises(TurnFailed, match="The model rejected the request") as error:
        answer_of(served.client(kind).chat("Do it."))
    assert error.value.code == "model_failed"
