"""P6 and the limits over real HTTP: runs that find their thread busy, and users who ask for more than they may have."""

from collections.abc import Generator, Mapping
from pathlib import Path
from typing import cast

import pytest

from recto.conversation.json import Json
from recto.ids import new_id
from recto.testing.client import RUNS, HttpReply, ask, request
from tests.api.scripted_server import ALICE, BOB, Scripted, scripted_server
from tests.api.wrong_inputs import assert_problem, assert_refused

pytestmark = pytest.mark.full

BUSY = "Another run of this thread is active. Wait for its end, or send multitask enqueue or interrupt."
DAY = 86_400


@pytest.fixture(scope="module")
def held(tmp_path_factory: pytest.TempPathFactory) -> Generator[Scripted]:
    with scripted_server(tmp_path_factory.mktemp("held")) as server:
        yield server


def asked(words: str, thread: str, multitask: str) -> dict[str, Json]:
    return ask(words, thread=thread, forwardedProps={"multitask": multitask})


def states(server: Scripted, thread: str) -> list[tuple[Json, Json, Json]]:
    """The runs of a thread, oldest first: status, outcome, whether it is the active one."""
    rows = server.rows(f"/threads/{thread}/runs", "runs")
    return [(row["status"], row["outcome"], row["active"]) for row in reversed(rows)]


# A busy thread


@pytest.mark.parametrize("multitask", ["enqueue", None])
def test_P6_a_run_waits_for_the_active_one_and_then_has_its_turn(held: Scripted, multitask: str | None):
    thread = new_id()
    first, _ = held.begin(ask("hold", thread=thread))
    second = held.post(asked("and then", thread, multitask) if multitask else ask("and then", thread=thread))
    assert second.status == 202
    assert states(held, thread) == [("running", None, True), ("queued", None, False)]
    held.go.set()
    held.reader(str(second.json["taskId"])).wait()
    assert states(held, thread) == [("finished", "done", False)] * 2
    ended, started = held.get(f"/runs/{first}")["ended"], held.get(f"/runs/{second.json['taskId']}")["started"]
    assert str(ended) <= str(started)


def test_P13_words_that_wait_can_be_read_and_keep_their_ids_when_their_turn_comes(held: Scripted):
    thread = new_id()
    first, _ = held.begin(ask("hold", thread=thread))
    said: list[Json] = [{"id": "msg-001", "role": "user", "content": "and then"}]
    tasks = [held.post({**ask("", thread=thread), "messages": said}).json["taskId"] for _ in range(2)]
    waiting = list(cast("list[Mapping[str, Json]]", held.get(f"/threads/{thread}")["queued"]))
    assert [(row["id"], row["taskId"], row["content"], row["seq"], row["status"]) for row in waiting] == [
        ("msg-001", tasks[0], "and then", None, "queued"),
        (tasks[1], tasks[1], "and then", None, "queued"),
    ]
    assert held.rows(f"/history?threadId={thread}", "messages")[-2:] == waiting
    held.go.set()
    held.reader(str(tasks[1])).wait()
    assert held.get(f"/threads/{thread}")["queued"] == []
    rows = [row for row in held.rows(f"/history?threadId={thread}", "messages") if row["role"] == "user"]
    assert [(row["id"], "status" in row) for row in rows[1:]] == [("msg-001", False), (tasks[1], False)]
    assert held.get(f"/runs/{first}")["status"] == "finished"


def test_P8_an_answer_that_was_cancelled_is_marked_in_history(held: Scripted):
    thread = new_id()
    run, _ = held.begin(ask("hold", thread=thread))
    request(held.url, "POST", f"{RUNS}/{run}/cancel", token=ALICE)
    held.reader(run).wait()
    rows = held.rows(f"/history?threadId={thread}", "messages")
    assert [(row["role"], row.get("status")) for row in rows] == [("user", None), ("assistant", "interrupted")]


def test_P6_a_run_that_will_not_wait_is_refused_and_leaves_nothing_behind(held: Scripted):
    thread = new_id()
    first, _ = held.begin(ask("hold", thread=thread))
    body = asked("me now", thread, "reject")
    assert_refused(held.post(body), 409, BUSY, "conflict")
    assert_refused(held.post(body, accept="text/event-stream"), 409, BUSY, "conflict")
    assert request(held.url, "GET", f"{RUNS}/{body['runId']}", token=ALICE).status == 404
    assert states(held, thread) == [("running", None, True)]
    held.go.set()
    held.reader(first).wait()
    assert held.post(body).status == 202
    held.reader(str(body["runId"])).wait()
    assert states(held, thread) == [("finished", "done", False)] * 2


def test_P4_a_run_that_will_not_wait_is_known_again_while_it_is_itself_the_active_one(held: Scripted):
    body = asked("hold", new_id(), "reject")
    run, _ = held.begin(body)
    again = held.post(body)
    assert (again.status, again.json["taskId"]) == (202, run)
    held.go.set()
    held.reader(run).wait()


def test_P6_a_run_that_interrupts_ends_the_active_one_and_what_that_wrote_stays(held: Scripted):
    thread = new_id()
    first, made = held.begin(ask("hold", thread=thread))
    second = held.post(asked("stop, do this", thread, "interrupt"))
    assert second.status == 202
    assert made.wait_disconnected()
    events = held.reader(first).wait()
    assert events[-1].event["outcome"] == {"type": "cancelled"}
    held.reader(str(second.json["taskId"])).wait()
    assert states(held, thread) == [("cancelled", "cancelled", False), ("finished", "done", False)]
    problem = [str(row["content"]) for row in held.rows(f"/history?threadId={thread}", "messages")]
    assert (problem[0], problem[2], problem[3]) == ("hold", "stop, do this", "one two three four five six")
    assert problem[1]
    assert "one two three four five six".startswith(problem[1].strip())


def test_P6_where_nothing_is_active_all_wishes_are_the_same(held: Scripted):
    for multitask in ("enqueue", "reject", "interrupt"):
        reply = held.post(asked("hello", new_id(), multitask))
        assert reply.status == 202
        assert held.reader(str(reply.json["taskId"])).wait()[-1].event["outcome"] == {"type": "success"}


# Limits


@pytest.fixture
def limited(tmp_path: Path, request: pytest.FixtureRequest) -> Generator[Scripted]:
    """A server with one limit, named by the test."""
    settings: Mapping[str, str] = request.param
    with scripted_server(tmp_path, settings) as server:
        yield server


def limit(name: str, most: int) -> pytest.MarkDecorator:
    return pytest.mark.parametrize("limited", [{f"RECTO_{name}": str(most)}], indirect=True)


def assert_too_many(reply: HttpReply, detail: str, longest: int) -> None:
    assert_problem(reply)
    assert (reply.status, reply.json["code"]) == (429, "limit_reached")
    assert detail in str(reply.json["detail"])
    assert 1 <= int(reply.headers["retry-after"]) <= longest


@limit("USER_RUNS", 2)
def test_P6_a_user_with_as_many_runs_as_they_may_have_is_told_to_wait(limited: Scripted):
    known = ask("hold")
    first, _ = limited.begin(known)
    limited.begin(ask("hold"))
    more = ask("one more")
    problem = "You have 2 runs at work or waiting, which is the limit. Wait for one to end, or cancel one."
    assert_too_many(limited.post(more), problem, 60)
    assert_too_many(limited.post(more, accept="text/event-stream"), problem, 60)
    # No thread is left of it, what is known is known, and others have their own count.
    assert request(limited.url, "GET", f"/api/v1/agent/threads/{more['threadId']}", token=ALICE).status == 404
    assert limited.post(known).json["taskId"] == first
    assert limited.post(ask("I am bob"), BOB).status == 202
    assert request(limited.url, "POST", f"{RUNS}/{first}/cancel", token=ALICE).status == 200
    limited.reader(first).wait()
    assert limited.post(more).status == 202


@limit("RUNS", 4)
def test_P6_a_user_with_fifty_runs_waiting_holds_up_nobody_else(limited: Scripted):
    limited.begin(ask("hold"))
    waiting = [str(limited.post(ask("hold")).json["taskId"]) for _ in range(50)]
    for _ in range(2):
        bob = limited.post(ask("I am bob"), BOB)
        assert limited.reader(str(bob.json["taskId"]), BOB).wait()[-1].event["outcome"] == {"type": "success"}
    assert {str(limited.get(f"/runs/{run}")["status"]) for run in waiting} == {"queued"}


@limit("THREAD_QUEUE", 1)
def test_P6_a_thread_with_as_many_runs_waiting_as_may_be_takes_no_more(limited: Scripted):
    thread = new_id()
    limited.begin(ask("hold", thread=thread))
    assert limited.post(ask("second", thread=thread)).status == 202
    problem = "1 runs wait for this thread, which is the limit. Wait for one to end, or cancel one."
    for multitask in ("enqueue", "interrupt"):
        assert_too_many(limited.post(asked("third", thread, multitask)), problem, 60)
    # One that was refused has interrupted nothing.
    assert states(limited, thread) == [("running", None, True), ("queued", None, False)]
    assert limited.post(ask("elsewhere")).status == 202


@limit("QUEUE", 1)
def test_P6_a_server_with_as_many_runs_waiting_as_may_be_takes_none_that_would_wait(limited: Scripted):
    thread = new_id()
    limited.begin(ask("hold", thread=thread))
    assert limited.post(ask("second", thread=thread)).status == 202
    assert_too_many(limited.post(ask("third", thread=thread)), "1 runs wait for this server", 60)
    assert limited.post(ask("elsewhere")).status == 202


@limit("USER_TOKENS", 10)
def test_a_user_who_used_the_tokens_of_the_day_is_told_to_come_back_tomorrow(limited: Scripted):
    first = ask("hello")
    task = str(limited.post(first).json["taskId"])
    limited.reader(task).wait()
    more = ask("one more")
    assert_too_many(limited.post(more), "You used 15 of 10 tokens today (UTC). Try again tomorrow.", DAY)
    assert request(limited.url, "GET", f"/api/v1/agent/threads/{more['threadId']}", token=ALICE).status == 404
    assert limited.post(first).json["taskId"] == task
    assert limited.get(f"/runs/{task}")["status"] == "finished"
    assert limited.post(ask("I am bob"), BOB).status == 202
    # Who deletes everything begins anew tomorrow, not today.
    assert request(limited.url, "DELETE", "/api/v1/agent/me?confirm=alice", token=ALICE).status == 200
    assert limited.post(ask("me again")).status == 429


@limit("USER_REQUESTS", 3)
def test_a_user_who_asks_too_often_is_told_to_wait_and_others_are_not(limited: Scripted):
    replies = [request(limited.url, "GET", "/api/v1/agent/agents", token=ALICE) for _ in range(4)]
    assert [reply.status for reply in replies] == [200, 200, 200, 429]
    assert_too_many(replies[3], "Too many requests of this user within a minute.", 60)
    more = ask("one more")
    assert_too_many(limited.post(more), "Too many requests of this user within a minute.", 60)
    assert limited.post({**more, "threadId": new_id()}, BOB).status == 202
