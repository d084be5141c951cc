"""Turns with `recto.client`, blocking and on an event loop, against a real server with a scripted model."""

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
from tests.client.faulty_way import Fault, faulty_way
from tests.client.talking import PAGE_BYTES, SOON, TURNS, Kind, Talking, answer_of, events_of, words_of
from tests.support.client import TOKEN, ask, read_events, request, start

LETTER = Answer(calls=(Call(name="send", arguments='{"to": "Bob"}'),))


def test_words_come_as_they_are_said_with_a_blank_line_between_messages(served: Talking, kind: Kind):
    call = Call(name="calculator", arguments='{"expression": "12 * 7"}')
    served.will(Answer(text="Let me see.", calls=(call,)), Answer(text="It is 84.", delay=0.02))
    turn = served.client(kind).chat("What is 12 * 7?")
    words = words_of(turn)
    assert len(words) > 2
    assert "".join(words) == "Let me see.\n\nIt is 84."
    assert (turn.text, turn.outcome, turn.usage["totalTokens"]) == ("It is 84.", "success", 30)


def test_what_the_server_takes_back_is_in_no_answer(served: Talking, kind: Kind):
    served.will(Answer(text="one two three four five six", cut_at=400), Answer(text="All of it."))
    turn = served.client(kind).chat("Count.")
    shown, _, anew = "".join(words_of(turn)).partition("\n\n")
    assert (shown[:3], anew, turn.text) == ("one", "All of it.", "All of it.")


def test_agent_skill_context_and_props_go_with_a_turn(served: Talking, kind: Kind):
    before = served.will(Answer(text="Yes."))
    client = served.client(kind, agent="vibe-en", context={"The page": "/shoes"}, props={"timezone": "Asia/Tokyo"})
    turn = client.chat("Draw me a card.", skill="tarot")
    assert answer_of(turn) == "Yes."
    page = str(served.pages(before)[0])
    assert "tarot" in page.lower()
    assert "<description>The page</description>" in page
    known = request(served.server.url, "GET", f"/api/v1/agent/threads/{client.thread}").json
    assert (known["agent"], known["skill"]) == ("vibe-en", "tarot")


def test_a_blocking_client_works_where_an_event_loop_runs_and_its_turn_can_be_read_on(served: Talking):
    served.will(Answer(text="one two three", delay=0.02))

    async def cell() -> None:
        turn = Client(url=served.server.url, token=TOKEN).chat("Count.")
        first = next(iter(turn))
        assert first + "".join(turn) == turn.answer() == "one two three"

    asyncio.run(cell())


def test_P3_P11_a_function_is_offered_called_and_its_answer_told(served: Talking, kind: Kind):
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


def test_what_a_function_raises_the_model_is_told(served: Talking, kind: Kind, caplog: pytest.LogCaptureFixture):
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
    told = [str(message["content"]) for message in served.pages(before)[1][-2:]]
    assert ["Not today." in told[0], "KeyError: 'drawer'" in told[1]] == [True, True]


def test_a_function_that_no_model_could_call_is_refused_before_anything_is_sent(served: Talking, kind: Kind):
    def shout(words) -> None:  # pyright: ignore[reportUnknownParameterType, reportMissingParameterType] - the point
        """Shout."""

    before = served.will()
    with pytest.raises(SettingsError, match="parameter 'words' has no type hint"):
        served.client(kind, tools=[shout]).chat("Shout.")  # pyright: ignore[reportUnknownArgumentType] - as above
    assert served.pages(before) == []


def agree(_: CallToApprove) -> bool:
    return True


def put_off(_: CallToApprove) -> None:
    """Neither yes nor no."""


@pytest.mark.parametrize(
    ("said", "told"),
    [
        (True, "sent '' to Bob"),
        (Approval(message="Quickly!"), "sent '' to Bob"),
        (Approval(arguments={"to": "Eve", "text": "hi"}), "sent 'hi' to Eve"),
        (False, "not"),
        (Approval(approved=False, message="Not before Friday."), "Not before Friday."),
    ],
)
def test_calls_are_made_as_a_person_says(served: Talking, kind: Kind, said: bool | Approval, told: str):
    asked: list[CallToApprove] = []

    def approve(call: CallToApprove) -> bool | Approval:
        asked.append(call)
        return said

    before = served.will(LETTER, Answer(text="Done."))
    assert answer_of(served.client(kind, approve=approve).chat("Write to Bob.")) == "Done."
    assert [(call.tool, call.arguments) for call in asked] == [("send", {"to": "Bob"})]
    assert told in str(served.pages(before)[1][-1]["content"])


def test_a_call_nobody_says_anything_to_waits_and_another_client_goes_on(served: Talking, kind: Kind):
    served.will(LETTER, Answer(text="It is sent."))
    first = served.client(kind)
    turn = first.chat("Write to Bob.")
    assert (answer_of(turn), turn.outcome) == ("", "interrupt")
    waiting = served.client(kind, thread=first.thread, approve=put_off).resume()
    assert (answer_of(waiting), waiting.outcome) == ("", "")
    later = served.client(kind, thread=first.thread, approve=agree).resume()
    assert (answer_of(later), later.outcome) == ("It is sent.", "success")


def test_a_result_and_an_approval_are_brought_by_one_run(served: Talking, kind: Kind):
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


def test_P7_a_run_at_work_is_followed_from_its_first_event(served: Talking, kind: Kind):
    served.go.clear()
    served.will(Answer(text="one two three", hold=served.go, hold_after=4))
    body = ask("Count.")
    run = start(served.server.url, body)
    turn = served.client(kind, thread=body["threadId"]).resume()
    # It goes on once it is followed.
    events = events_of(turn, served.go.set)
    assert events == [sent.event for sent in read_events(served.server.url, run)]
    assert turn.text == "one two three"


def test_calls_that_wait_are_answered_where_their_question_is_pages_before_the_end(served: Talking, kind: Kind):
    # A reply that fills what is left of the page: the call that waits is on the next.
    long = Answer(text="Hm. " * (PAGE_BYTES // 4), calls=(Call(name="calculator", arguments='{"expression": "1"}'),))
    before = served.will(long, Answer(calls=(Call(name="colour", id="c2"),)), Answer(text="Blue."))
    first = Client(url=served.server.url, token=TOKEN, tools=[colour])
    assert "RUN_FINISHED" in (event["type"] for event in first.chat("My colour?").events())
    page = request(served.server.url, "GET", f"/api/v1/agent/threads/{first.thread}/messages").json
    assert page["next"]
    assert answer_of(served.client(kind, thread=first.thread, tools=[colour]).resume()) == "Blue."
    assert served.pages(before)[2][-1]["content"] == "blue"


def test_P8_a_cancelled_turn_ends_and_keeps_what_was_said(served: Talking):
    served.go.clear()
    served.will(Answer(text="one two three four", hold=served.go, hold_after=4))
    turn = Client(url=served.server.url, token=TOKEN).chat("Count.")
    words: list[str] = []
    for said in turn:
        words.append(said)
        turn.cancel()
    assert (turn.outcome, "".join(words)) == ("cancelled", turn.text)
    assert "one two three four".startswith(turn.text)


def test_a_turn_that_is_cancelled_before_it_begins_sends_nothing(served: Talking):
    before = served.will()
    turn = Client(url=served.server.url, token=TOKEN).chat("Never mind.")
    turn.cancel()
    assert (turn.answer(), served.pages(before)) == ("", [])


@contextmanager
def on_its_way(served: Talking, kind: Kind, *, is_let_go: bool, **settings: object) -> Generator[TURNS]:
    """A turn somebody reads whose run has not reached the server: until the next request, where it is let go."""
    is_sent, held = threading.Event(), threading.Event()

    def faults() -> Generator[Fault]:
        is_sent.set()
        yield held
        if is_let_go:
            held.set()

    served.go.clear()
    served.will(Answer(text="one two three four", hold=served.go, hold_after=4))
    with faulty_way(served.server.url, faults()) as url:
        turn = served.client(kind, url=url, **settings).chat("Count.")
        reading = threading.Thread(target=answer_of, args=(turn,))
        reading.start()
        assert is_sent.wait(60)
        yield turn
        held.set()
        reading.join(60)


def cancel(turn: TURNS) -> None:
    """Cancel a turn that is read elsewhere."""
    asyncio.run(turn.cancel()) if isinstance(turn, AsyncChatTurn) else turn.cancel()


def test_P8_a_turn_whose_run_is_still_on_its_way_is_cancelled_once_it_is_there(served: Talking, kind: Kind):
    with on_its_way(served, kind, is_let_go=True) as turn:
        cancel(turn)
    assert turn.outcome == "cancelled"


def test_P8_a_run_that_comes_after_a_cancel_gave_up_is_ended_by_its_reader(served: Talking, kind: Kind):
    impatient = replace(SOON, tries=1)
    with (
        on_its_way(served, kind, is_let_go=False, patience=impatient) as turn,
        pytest.raises(RequestRefused, match="404"),
    ):
        cancel(turn)
    assert turn.outcome == "cancelled"


def test_a_cancel_does_not_wait_for_a_run_that_was_refused(served: Talking, kind: Kind):
    turn = served.client(kind, agent="nobody", patience=Patience(pause=60, longest_pause=60)).chat("Hello?")
    with pytest.raises(RequestRefused, match=r"422: .*'nobody'"):
        answer_of(turn)
    with pytest.raises(RequestRefused, match="404: There is no run"):
        cancel(turn)


def test_P9_files_are_sent_and_named_in_the_message(served: Talking, kind: Kind, tmp_path: Path):
    note = tmp_path / 'the "Größe".txt'
    note.write_text("Under the mat.", encoding="utf-8")
    before = served.will(Answer(text="Two."))
    turn = served.client(kind, agent="docs").chat("How many?", files=[note, ("b.md", b"# Hi\r\n--x--\r\n")])
    assert answer_of(turn) == "Two."
    page = str(served.pages(before)[0][-1]["content"])
    assert "<name>the &quot;Größe&quot;.txt</name>" in page
    assert "<name>b.md</name>" in page


def test_P9_a_file_that_is_not_taken_is_told_with_its_reason(served: Talking, kind: Kind):
    before = served.will()
    with pytest.raises(FileRefused, match=r"empty\.txt: it is empty") as caught:
        answer_of(served.client(kind, agent="docs").chat("Read.", files=[("empty.txt", b""), ("good.txt", b"x")]))
    assert (caught.value.code, served.pages(before)) == ("empty", [])


def test_a_refusal_has_the_servers_words_and_a_run_that_fails_says_why(served: Talking, kind: Kind):
    with pytest.raises(RequestRefused, match=r"401: .*RECTO_TOKEN"):
        answer_of(served.client(kind, token="wrong").chat("Hello?"))
    served.will(failure(400, "I never do that"))
    with pytest.raises(TurnFailed, match="The model rejected the request") as caught:
        answer_of(served.client(kind).chat("Do it."))
    assert caught.value.code == "model_failed"
