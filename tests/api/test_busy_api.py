"""P6 and the limits over real HTTP: runs that find their thread busy, and users who ask for more than they may have."""

from collections.abc import Generator, Mapping
from dataclasses import replace
from typing import cast

import pytest

from recto.conversation.json import Json
from recto.ids import new_id
from tests.api.scripted_server import Scripted, scripted_server
from tests.api.wrong_inputs import assert_problem
from tests.support.client import RUNS, HttpReply, ask, request

pytestmark = pytest.mark.full


def make_body(words: str, thread: str, multitask: str) -> dict[str, Json]:
    return ask(words, thread=thread, forwardedProps={"multitask": multitask})


def states(server: Scripted, thread: str) -> list[tuple[Json, Json, Json]]:
    """The runs of a thread, oldest first: status, outcome, whether it is the active one."""
    rows = server.rows(f"/threads/{thread}/runs", "runs")
    return [(row["status"], row["outcome"], row["active"]) for row in reversed(rows)]


# A busy thread


def test_P13_words_that_wait_can_be_read_and_keep_their_ids_when_their_turn_comes(server: Scripted):
    thread = new_id()
    first, _ = server.begin(ask("hold", thread=thread))
    messages: list[Json] = [{"id": "msg-001", "role": "user", "content": "and then"}]
    tasks = [server.post({**ask("", thread=thread), "messages": messages}).json["taskId"] for _ in range(2)]
    waiting = list(cast("list[Mapping[str, Json]]", server.get(f"/threads/{thread}")["queued"]))
    assert [(row["id"], row["taskId"], row["content"], row["seq"], row["status"]) for row in waiting] == [
        ("msg-001", tasks[0], "and then", None, "queued"),
        (tasks[1], tasks[1], "and then", None, "queued"),
    ]
    assert server.rows(f"/history?threadId={thread}", "messages")[-2:] == waiting
    server.go.set()
    server.reader(str(tasks[1])).wait()
    assert server.get(f"/threads/{thread}")["queued"] == []
    rows = [row for row in server.rows(f"/history?threadId={thread}", "messages") if row["role"] == "user"]
    assert [(row["id"], "status" in row) for row in rows[1:]] == [("msg-001", False), (tasks[1], False)]
    assert server.get(f"/runs/{first}")["status"] == "finished"


def test_P6_a_run_that_interrupts_ends_the_active_one_and_what_that_wrote_stays(server: Scripted):
    thread = new_id()
    first, model_request = server.begin(ask("hold", thread=thread))
    second = server.post(make_body("stop, do this", thread, "interrupt"))
    assert second.status == 202
    assert model_request.wait_disconnected()
    events = server.reader(first).wait()
    assert events[-1].event["outcome"] == {"type": "cancelled"}
    server.reader(str(second.json["taskId"])).wait()
    assert states(server, thread) == [("cancelled", "cancelled", False), ("finished", "done", False)]
    problem = [str(row["content"]) for row in server.rows(f"/history?threadId={thread}", "messages")]
    assert (problem[0], problem[2], problem[3]) == ("hold", "stop, do this", "one two three four five six")
    assert problem[1]
    assert "one two three four five six".startswith(problem[1].strip())


# Limits


@pytest.fixture(scope="module")
def limited(tmp_path_factory: pytest.TempPathFactory) -> Generator[Scripted]:
    """A server with low limits. Each test has a user of its own."""
    keys = ",".join(f"{name}:{name}-key-of-our-tests-here" for name in ("carol", "dave", "erin", "frank"))
    settings = {"USER_RUNS": "3", "THREAD_QUEUE": "1", "QUEUE": "2", "USER_TOKENS": "10"}
    environment = {"RECTO_API_KEYS": keys, **{f"RECTO_{name}": value for name, value in settings.items()}}
    with scripted_server(tmp_path_factory.mktemp("limited"), environment) as server:
        yield server


def of(limited: Scripted, name: str) -> Scripted:
    return replace(limited, user=name, token=f"{name}-key-of-our-tests-here")


def assert_too_many(reply: HttpReply, detail: str, longest: int) -> None:
    assert_problem(reply)
    assert (reply.status, reply.json["code"]) == (429, "limit_reached")
    assert detail in str(reply.json["detail"])
    assert 1 <= int(reply.headers["retry-after"]) <= longest


def test_P6_users_threads_and_the_server_have_so_many_runs_and_no_more(limited: Scripted):
    carol, dave, waiting = of(limited, "carol"), of(limited, "dave"), ask("hold")
    thread = str(waiting["threadId"])
    first, _ = carol.begin(waiting)
    assert carol.post(ask("second", thread=thread)).status == 202
    problem = "1 runs are queued for this thread, which is the limit. Wait for one to end, or cancel one."
    for multitask in ("enqueue", "interrupt"):
        assert_too_many(carol.post(make_body("third", thread, multitask)), problem, 60)
    # One that was refused has interrupted nothing.
    assert states(carol, thread) == [("running", None, True), ("queued", None, False)]
    carol.begin(ask("hold"))
    more = ask("one more")
    problem = "You have 3 active or queued runs, which is the limit. Wait for one to end, or cancel one."
    for accept in ("application/json", "text/event-stream"):
        assert_too_many(carol.post(more, accept=accept), problem, 60)
    # No thread is left of it, a request that is known is answered, and others have their own count.
    assert request(carol.url, "GET", f"/api/v1/agent/threads/{more['threadId']}", token=carol.token).status == 404
    assert carol.post(waiting).json["taskId"] == first
    erin, held_request, other = of(limited, "erin"), ask("hold"), ask("hold")
    dave.begin(held_request)
    erin.begin(other)
    assert dave.post(ask("second", thread=str(held_request["threadId"]))).status == 202
    assert_too_many(erin.post(ask("third", thread=str(other["threadId"]))), "2 runs are queued for this server", 60)
    assert request(carol.url, "POST", f"{RUNS}/{first}/cancel", token=carol.token).status == 200
    carol.reader(first).wait()
    limited.go.set()
