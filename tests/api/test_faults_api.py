"""What people read of a model's fault: users a sentence and a code, operators what the provider said."""

from collections.abc import Iterator

import pytest

from recto.testing.model_server import Answer, failure
from tests.api.scripted_server import ALICE, BOB, Scripted, scripted_server
from tests.support.client import ask, request, run

pytestmark = pytest.mark.full

SECRET = "host gpu-7.internal says Zinnober4711"
NOT_FOR_USERS = (b"Zinnober4711", b"gpu-7", b"RECTO_", b"127.0.0.1", b"status 4", b"status 5")
REJECTION = "The model rejected the request. Rephrase your message, or ask the operator of this server."
BUSY = "The model is busy. Try again in a few minutes."
UNREACHABLE = "The model cannot be reached. Try again in a few minutes."
CUT_OFF = "The model's answer was cut off each time. Try again in a few minutes."
TOO_LONG = "The conversation does not fit into the model's window, even after compaction. Start a new one."
FAULTS = {
    "401": (failure(401, SECRET), "model_failed", REJECTION),
    "404": (failure(404, SECRET), "model_failed", REJECTION),
    "429": (failure(429, SECRET), "model_failed", BUSY),
    "500": (failure(500, SECRET), "model_failed", UNREACHABLE),
    "in the stream": (Answer(text="So", fault=("server_error", SECRET)), "model_failed", UNREACHABLE),
    "cut": (Answer(text="one two", cut_at=250), "model_failed", CUT_OFF),
    "too long": (failure(400, f"prompt is too long: {SECRET}"), "too_long", TOO_LONG),
}


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Scripted]:
    settings = {"RECTO_OPERATORS": "bob", "RECTO_RETRY_SECONDS": "0.01"}
    with scripted_server(tmp_path_factory.mktemp("faults"), settings) as server:
        yield server


@pytest.mark.parametrize("name", FAULTS)
def test_P8_of_a_fault_of_the_model_users_get_a_sentence_and_a_code_and_nothing_else(server: Scripted, name: str):
    answer, code, sentence = FAULTS[name]
    server.answers[:] = [answer] * 20
    body = ask("hello")
    events = run(server.url, body, token=ALICE)
    server.answers.clear()
    end = events[-1].event
    assert (end["type"], end["code"], end["message"]) == ("RUN_ERROR", code, sentence)
    path = f"/api/v1/agent/runs/{body['runId']}"
    thread = f"/api/v1/agent/threads/{body['threadId']}"
    replies = [request(server.url, "GET", one, token=ALICE) for one in (path, f"{path}/calls", f"{thread}/runs")]
    replies.append(request(server.url, "GET", f"/api/v1/agent/history?threadId={body['threadId']}", token=ALICE))
    replies.append(request(server.url, "GET", "/api/v1/agent/me/export", token=ALICE))
    assert [one.status for one in replies] == [200] * len(replies)
    assert (replies[0].json["outcome"], replies[0].json["error"]) == (code, sentence)
    texts = [*(one.body for one in replies), *(received.body for received in events)]
    assert [word for word in NOT_FOR_USERS for text in texts if word in text] == []


def test_X1_operators_see_what_the_provider_said(server: Scripted):
    server.answers[:] = [failure(401, SECRET)]
    body = ask("hello")
    assert run(server.url, body, token=BOB)[-1].event["message"] == REJECTION
    (call,) = server.rows(f"/runs/{body['runId']}/calls", "calls", BOB)
    text = (
        f"Model compatible:x: it rejected the request (status 401). The provider says: {SECRET} Check RECTO_MODEL_KEY."
    )
    assert call["error"] == text
    assert server.get(f"/runs/{body['runId']}/calls/1", BOB)["error"] == text
