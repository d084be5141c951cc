"""Step 2: a run is stored with its input, in one transaction; only then it is answered."""

from tests.flow.in_process import InProcess
from tests.support.client import RUNS, ask


async def test_P1_what_was_answered_is_stored(server: InProcess):
    body = ask("hello")
    response = await server.send("POST", RUNS, body)
    assert response.status == 202
    assert (await server.send("GET", f"{RUNS}/{response.json['taskId']}")).json["threadId"] == body["threadId"]


async def test_P2_what_breaks_a_rule_is_refused_in_its_words_and_leaves_nothing(server: InProcess):
    rejection = await server.send("POST", RUNS, {**ask("hello"), "threadId": "mine"})
    assert (rejection.status, rejection.json["detail"]) == (422, "threadId must be a valid UUID")
    assert (await server.send("GET", "/api/v1/agent/threads")).json["threads"] == []


async def test_P4_the_same_run_sent_again_is_one_run(server: InProcess):
    body = ask("hello")
    first, again = [(await server.send("POST", RUNS, body)).json["taskId"] for _ in range(2)]
    assert first == again
