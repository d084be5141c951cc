"""Threads over HTTP (P5, P8, P17): list, get, rename, delete, fork, runs; and a user's own data."""

import json
from collections.abc import AsyncIterator
from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest

from recto.agents.agent import CHAT
from recto.api import accounts
from recto.api.threads import routes as threads
from recto.config.settings import Limits
from recto.conversation.json import Json, load, load_object
from recto.conversation.log import Entry, RolledBack
from recto.conversation.messages import AssistantMessage, Text, ToolCall, ToolMessage
from recto.store.ports import Lease, RunChange, RunEnding
from tests.api.local_api import NOW, Answer, LocalApi, assert_problem, local_api
from tests.store.suite.samples import NODE, admit, at, lease_of, message_of

ONE, TWO, OTHER = (f"{number}50e8400-e29b-41d4-a716-44665544000a" for number in (1, 2, 3))
THREADS = "/api/v1/agent/threads"
CALL_MESSAGE = AssistantMessage(
    id="a1",
    parts=(
        Text(text="Pick."),
        ToolCall(id="c1", name="pick", arguments='{"n": 1.0}'),
        ToolCall(id="c2", name="ours", arguments="{}"),
        ToolCall(id="c3", name="pick", arguments="{}"),
    ),
)
RESULT_MESSAGE = ToolMessage(id="t1", tool_call_id="c3", parts=(Text(text="3"),))


@pytest.fixture
async def api(tmp_path: Path) -> AsyncIterator[LocalApi]:
    async with local_api(tmp_path, (*threads.ROUTES, *accounts.ROUTES)) as server:
        yield server


async def begin(api: LocalApi, name: str, thread: str = ONE) -> Lease:
    await admit(api.store, name, thread)
    (run,) = await api.store.runs.claim(NODE, at(0), 1)
    return lease_of(run)


async def talk(api: LocalApi, *entries: Entry, thread: str = ONE, outcome: str = "done") -> Lease:
    lease = await begin(api, f"run of {thread}", thread)
    await api.store.runs.record(lease, RunChange(entries=entries, ending=RunEnding(outcome=outcome)), at(1))
    return lease


async def test_P17_a_thread_is_told_with_its_title_and_its_times_in_utc(api: LocalApi):
    await talk(api, message_of("m1", "Plan my week"))
    answer = await api.ask("GET", f"{THREADS}/{ONE.upper()}")
    assert (answer.status, answer.headers["content-type"]) == (200, "application/json")
    assert answer.json == {
        "id": ONE,
        "title": "Plan my week",
        "agent": "vibe",
        "skill": None,
        "scenario": None,
        "created": "2026-03-01T12:00:00.123Z",
        "updated": "2026-03-01T12:00:01.123Z",
        "activeRun": None,
        "pendingCalls": [],
        "interrupts": [],
        "queued": [],
        "canUndo": False,
        "agreed": [],
        "state": None,
    }


async def test_P11_a_waiting_thread_tells_the_calls_that_are_the_clients_to_answer(api: LocalApi):
    await talk(api, message_of("m1"), CALL_MESSAGE, RESULT_MESSAGE, outcome="waiting")
    calls = (await api.ask("GET", f"{THREADS}/{ONE}")).json["pendingCalls"]
    # Nobody knows the agent of the thread any more, nor how long it would wait.
    assert calls == [{"id": "c1", "name": "pick", "arguments": '{"n": 1.0}', "expiresAt": None}]


async def test_P11_a_call_that_waits_tells_until_when_and_is_not_there_after(api: LocalApi):
    await talk(api, message_of("m1"), replace(CALL_MESSAGE, time=at(1)), RESULT_MESSAGE, outcome="waiting")
    agent = replace(CHAT, limits=Limits(client_seconds=60))
    for seconds, expected in ((61, ["2026-03-01T12:01:01.123Z"]), (62, [])):
        api.change(by_name={"vibe": agent}, clock=partial(at, seconds))
        calls = (await api.ask("GET", f"{THREADS}/{ONE}")).rows("pendingCalls")
        assert [call["expiresAt"] for call in calls] == expected


async def test_P17_a_list_goes_on_with_its_cursor(api: LocalApi):
    for thread in (ONE, TWO):
        await talk(api, message_of("m1", f"About {thread[0]}"), thread=thread)
    first = await api.ask("GET", f"{THREADS}?limit=1")
    second = await api.ask("GET", f"{THREADS}?limit=1&cursor={first.json['next']}")
    assert [ids(first), ids(second), second.json["next"]] == [[TWO], [ONE], None]
    assert ids(await api.ask("GET", f"{THREADS}?search=ABOUT%201")) == [ONE]


async def test_P17_a_list_that_is_asked_for_wrongly_is_refused(api: LocalApi):
    for query in ("cursor=xyz", "limit=0", "limit=101", "limit=x", "search=%00", f"search={'x' * 201}"):
        assert_problem(await api.ask("GET", f"{THREADS}?{query}"), 422, query.partition("=")[0])


def ids(page: Answer) -> list[Json]:
    return [thread["id"] for thread in page.rows("threads")]


async def test_P17_a_thread_is_renamed(api: LocalApi):
    await talk(api, message_of("m1", "First"))
    answer = await api.ask("PATCH", f"{THREADS}/{ONE}", {"title": "  四柱\u3000八字 "})
    assert (answer.status, answer.json["title"]) == (200, "四柱\u3000八字")
    approval = await api.ask("PATCH", f"{THREADS}/{ONE}", {"agreed": ["send", "edit", "send"]})
    assert (approval.json["agreed"], approval.json["title"]) == (["send", "edit"], "四柱\u3000八字")
    assert (await api.ask("GET", f"{THREADS}/{ONE}")).json["title"] == "四柱\u3000八字"


WRONG_NAMES: list[object] = [None, "send", [7], ["a\x00"], ["x"] * 201]
WRONG_CHANGES: list[tuple[object, str]] = [
    *(({"title": title}, "title") for title in ("a\nb", "", 7, None)),
    *(({"agreed": names, "title": "x"}, "agreed") for names in WRONG_NAMES),
    ({}, ""),
    ([], ""),
    (b"{", ""),
]


async def test_P17_what_is_no_title_and_what_are_no_names_of_tools_are_refused(api: LocalApi):
    await talk(api, message_of("m1", "First"))
    for body, words in WRONG_CHANGES:
        assert_problem(await api.ask("PATCH", f"{THREADS}/{ONE}", body), 422, words)
    response = (await api.ask("GET", f"{THREADS}/{ONE}")).json
    assert (response["title"], response["agreed"]) == ("First", [])


async def test_P17_a_deleted_thread_is_gone_and_its_runs_are_stopped(api: LocalApi):
    lease = await begin(api, "r1")
    await api.store.runs.record(lease, RunChange(events=(b"{}",)), at(1))
    follower = api.hub.follow(lease.run, 1, last=None)
    with api.hub.open_listener(lease.run):
        answer = await api.ask("DELETE", f"{THREADS}/{ONE}")
        ending = await anext(follower)
    await follower.aclose()
    assert answer.json == {"id": ONE, "stopped": [lease.run]}
    assert api.cancelled == [lease.run]
    end = {"type": "RUN_FINISHED", "threadId": ONE, "runId": "r1", "outcome": {"type": "cancelled"}}
    assert [(event.number, load(event.body)) for event in ending] == [(2, end)]
    assert_problem(await api.ask("GET", f"{THREADS}/{ONE}"), 404, f"There is no thread '{ONE}'.")
    assert (await api.ask("DELETE", f"{THREADS}/{ONE}")).status == 404


async def test_P17_a_run_that_waits_while_its_thread_is_deleted_is_told_from_its_start_to_its_end(api: LocalApi):
    await begin(api, "r1")
    waiting = await admit(api.store, "r2", ONE)
    follower = api.hub.follow(waiting.id, 0, last=None)
    with api.hub.open_listener(waiting.id):
        await api.ask("DELETE", f"{THREADS}/{ONE}")
        problem = [(event.number, load_object(event.body)) for event in await anext(follower)]
    await follower.aclose()
    assert [(number, (event or {})["type"]) for number, event in problem] == [(1, "RUN_STARTED"), (2, "RUN_FINISHED")]


async def test_P17_a_fork_is_a_thread_of_its_own(api: LocalApi):
    await talk(api, message_of("m1", "One"), message_of("m2", "Two"), message_of("m3", "Three"))
    answer = await api.ask("POST", f"{THREADS}/{ONE}/fork", {"before": "m3", "title": " Another way "})
    assert answer.status == 201
    fork_id = str(answer.json["id"])
    assert fork_id != ONE
    assert (answer.json["title"], answer.json["created"]) == ("Another way", "2026-05-14T12:00:00.000Z")
    assert [entry.id for entry in await api.store.log.read_after(fork_id)] == ["m1", "m2"]
    assert (await api.ask("POST", f"{THREADS}/{ONE}/fork")).json["title"] == "One"


async def test_P17_a_fork_where_none_can_be_is_refused(api: LocalApi):
    await talk(api, message_of("m1"), message_of("m2"), RolledBack(id="b", to="m2"))
    bodies: list[object] = [{"before": "m2"}, {"before": "\0"}, {"before": 7}, {"title": ""}, b"[]"]
    statuses = [(await api.ask("POST", f"{THREADS}/{ONE}/fork", body)).status for body in bodies]
    assert statuses == [404, 404, 422, 422, 422]
    assert ids(await api.ask("GET", THREADS)) == [ONE]


async def test_P8_runs_are_told_newest_first_with_the_active_one_marked(api: LocalApi):
    await talk(api, message_of("m1"))
    lease = await begin(api, "r2")
    waiting = await admit(api.store, "r3", ONE)
    page = await api.ask("GET", f"{THREADS}/{ONE}/runs?limit=2")
    run_rows = [(run["taskId"], run["status"], run["active"]) for run in page.rows("runs")]
    assert run_rows == [(waiting.id, "queued", False), (lease.run, "running", True)]
    rest = await api.ask("GET", f"{THREADS}/{ONE}/runs?cursor={page.json['next']}")
    assert [run["status"] for run in rest.rows("runs")] == ["finished"]
    assert_problem(await api.ask("GET", f"{THREADS}/{ONE}/runs?cursor=x"), 422, "cursor")


async def test_P5_each_user_is_told_who_they_are(api: LocalApi):
    api.change(operators=frozenset({"bob"}))
    await api.store.users.set_tier("bob", "pro", NOW)
    ann, bob = [(await api.ask("GET", "/api/v1/agent/me", user=name)).json for name in ("ann", "bob")]
    assert ann == {"user": "ann", "operator": False, "tier": "free"}
    assert bob == {"user": "bob", "operator": True, "tier": "pro"}


async def test_P17_a_user_takes_all_of_it_away_as_lines(api: LocalApi):
    await talk(api, message_of("m1", "四"))
    await admit(api.store, "other", OTHER, owner="bob")
    answer = await api.ask("GET", "/api/v1/agent/me/export")
    assert (answer.status, answer.headers["content-type"]) == (200, "application/x-ndjson")
    lines = [json.loads(line) for line in answer.body.splitlines()]
    assert [line["type"] for line in lines] == ["thread", "entry", "run"]
    assert OTHER.encode() not in answer.body


async def test_P17_a_user_is_deleted_only_when_they_mean_it(api: LocalApi):
    lease = await begin(api, "r1")
    await admit(api.store, "other", OTHER, owner="bob")
    for query in ("", "?confirm=", "?confirm=bob"):
        assert_problem(await api.ask("DELETE", f"/api/v1/agent/me{query}"), 422, "must be your user name, 'ann'")
    assert ids(await api.ask("GET", THREADS)) == [ONE]
    answer = await api.ask("DELETE", "/api/v1/agent/me?confirm=ann")
    counts = {"threads": 1, "profiles": 0, "days": 0, "attachments": 0, "datasets": 0}
    assert answer.json == {**counts, "stopped": [lease.run]}
    assert api.cancelled == [lease.run]
    assert ids(await api.ask("GET", THREADS)) == []
    assert ids(await api.ask("GET", THREADS, user="bob")) == [OTHER]
