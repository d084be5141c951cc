"""What keeps streams and has stock clients read them, tried out: a bad stream is found, shapes are told apart."""

from pathlib import Path

from recto.conversation.json import dump
from tests.clients.agents import Row
from tests.clients.read_streams import list_rejected
from tests.support.stream_recorder import keep

STARTED: Row = {"type": "RUN_STARTED", "threadId": "t", "runId": "r"}
FINISHED: Row = {"type": "RUN_FINISHED", "threadId": "t", "runId": "r", "outcome": {"type": "success"}}
CANCELLED: Row = {"type": "RUN_FINISHED", "threadId": "t", "runId": "r", "outcome": {"type": "cancelled"}}


def text_start(id: str) -> Row:
    return {"type": "TEXT_MESSAGE_START", "messageId": id, "role": "assistant"}


def text_content(id: str, words: str) -> Row:
    return {"type": "TEXT_MESSAGE_CONTENT", "messageId": id, "delta": words}


def text_end(id: str) -> Row:
    return {"type": "TEXT_MESSAGE_END", "messageId": id}


def bodies(*events: Row) -> list[bytes]:
    return [dump(event) for event in events]


def test_only_streams_that_a_client_refuses_are_told(tmp_path: Path):
    wrong = {
        "words of no message": [text_content("a", "hi")],
        "a message that is left open": [text_start("a"), text_content("a", "hi")],
        "a field that is missing": [{"type": "TEXT_MESSAGE_START", "role": "assistant", "id": "a"}],
    }
    # An end that older clients do not know: they are told otherwise.
    for last in (FINISHED, CANCELLED):
        keep(bodies(STARTED, text_start("a"), text_content("a", "hi"), text_end("a"), last), tmp_path)
    for events in wrong.values():
        keep(bodies(STARTED, *events, FINISHED), tmp_path)
    assert len(list(tmp_path.glob("*/*"))) == 10
    assert sorted(problem.partition(":")[0] for problem in list_rejected(tmp_path)) == ["0.0.59"] * 3 + ["1.0.0"] * 3
