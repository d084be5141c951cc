"""The whole server under two thousand random requests, stops and kills, against a small model of what it promises.

One real server over HTTP on one data folder. Each example has two users of its own, a few threads both try to use, and
forks of them. What the users are told, what is exported and what the model receives has to fit together all the time.
"""

import asyncio
import re
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from itertools import groupby, islice
from pathlib import Path
from typing import cast

import jwt
import pytest
from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule, run_state_machine_as_test

from recto.conversation.events import ends_run
from recto.conversation.json import Json, load_object
from recto.ids import new_id
from recto.store.store import open_store
from recto.store.threads.cleaning import Retention
from recto.testing.client import RUNS, HttpReply, SentEvent, ask, read_events, request
from tests.end_to_end.world import SECRET, Row, World, wait_until

pytestmark = pytest.mark.full

STEPS, EXAMPLES, STEPS_EACH = 2_000, 43, 50
THREADS, MOST_FORKS = 3, 4
CLIENT_TOOL: Json = {"name": "ask_me", "description": "Ask the user.", "parameters": {"type": "object"}}
WORD = re.compile(r"w[0-9a-f]{12}")


@dataclass(kw_only=True, eq=False)
class Conversation:
    """A thread from its making to its deletion. `copied` is what a fork began with."""

    id: str
    owner: str
    words: set[str] = field(default_factory=set[str])
    copied: Sequence[object] = ()
    title: str | None = None


@dataclass(kw_only=True, eq=False)
class Known:
    """A run that was answered with 202."""

    user: str
    thread: Conversation
    body: dict[str, Json]
    task: str
    ended: str | None = None
    is_cleaned: bool = False
    heard: dict[int, bytes] = field(default_factory=dict[int, bytes])

    @property
    def name(self) -> str:
        return str(self.body["runId"])


kinds = st.sampled_from(["say", "note", "client", "hold", "hold", "fail"])


@dataclass(frozen=True, kw_only=True)
class Dice:
    """What was drawn for a step; each takes of it what it needs."""

    user: int
    number: int
    other: int
    kind: str
    multitask: str
    how: str
    sure: bool


dice = st.builds(
    Dice,
    user=st.integers(0, 1),
    number=st.integers(0, 999),
    other=st.integers(0, 999),
    kind=kinds,
    multitask=st.sampled_from(["enqueue", "enqueue", "reject", "interrupt"]),
    how=st.sampled_from(["right", "right", "wrong", "twice"]),
    sure=st.booleans(),
)
# How often each is done. One rule for all: of several, Hypothesis leaves some out of each example.
WEIGHTS = {
    "start": 7,
    "start with a tool": 3,
    "start the same again": 1,
    "start another under its name": 1,
    "cancel": 2,
    "bring a result": 4,
    "let go": 2,
    "read": 2,
    "fork": 2,
    "rename": 1,
    "delete a thread": 1,
    "delete a user": 1,
    "clean": 1,
}
actions = st.sampled_from([name for name, weight in WEIGHTS.items() for _ in range(weight)])


class Server(RuleBasedStateMachine):
    """Two users and their threads. What is drawn never depends on what the server did, only what is done with it."""

    def __init__(self, world: World) -> None:
        super().__init__()
        self.world = world
        self.received = len(world.model.requests)
        mark = new_id()
        self.users = [f"ann {mark}", f"bob {mark}"]
        lasts = datetime.now(UTC) + timedelta(hours=1)
        self.tokens = {user: jwt.encode({"sub": user, "exp": lasts}, SECRET, "HS256") for user in self.users}
        self.slots = [new_id() for _ in range(THREADS)]
        self.threads: dict[str, Conversation] = {}
        self.runs: list[Known] = []
        self.by_word: dict[str, Conversation] = {}
        self.ending, self.steps_left = "none", 0
        self.actions: Mapping[str, Callable[[Dice], None]] = {
            "start": lambda dice: self.start(dice, dice.kind),
            "start with a tool": lambda dice: self.start(dice, "client"),
            "start the same again": self.start_the_same_again,
            "start another under its name": self.start_another_under_its_name,
            "cancel": self.cancel,
            "bring a result": self.bring_a_result,
            "let go": self.let_go,
            "read": self.read,
            "fork": self.fork,
            "rename": self.rename,
            "delete a thread": self.delete_a_thread,
            "delete a user": self.delete_a_user,
            "clean": self.clean,
        }

    @rule(action=actions, dice=dice)
    def do(self, action: str, dice: Dice) -> None:
        self.actions[action](dice)

    # Asking

    def ask(self, user: str, method: str, path: str, body: Json = None) -> HttpReply:
        return request(self.world.url, method, path, body, token=self.tokens[user])

    def other(self, user: str) -> str:
        return next(one for one in self.users if one != user)

    def refused_to_other(self, user: str, method: str, path: str, body: Json = None) -> None:
        assert self.ask(self.other(user), method, path, body).status == 404

    def run(self, run: Known) -> Row:
        """A run as its user sees it. Once it has ended, it stays as it is."""
        reply = self.ask(run.user, "GET", f"{RUNS}/{run.task}")
        assert reply.status == 200, (run, reply)
        row = reply.json
        assert (row["runId"], row["threadId"]) == (run.name, run.thread.id)
        status = str(row["status"])
        assert run.ended in (None, status)
        run.ended = status if status not in ("queued", "running") else None
        return row

    def is_over(self, run: Known) -> bool:
        self.run(run)
        return run.ended is not None

    def wait(self, run: Known) -> None:
        wait_until(lambda: self.is_over(run), f"run {run.task} ({run.body}) to end")

    def open_runs(self, thread: str) -> list[Known]:
        return [run for run in self.runs if run.thread.id == thread and not run.ended and not self.is_over(run)]

    def a_thread(self, number: int) -> Conversation | None:
        found = list(self.threads.values())
        return found[number % len(found)] if found else None

    def a_run(self, number: int) -> Known | None:
        return self.runs[number % len(self.runs)] if self.runs else None

    def export(self, user: str) -> dict[str, list[Row]]:
        lines = [cast("Row", load_object(line)) for line in self._exported(user).splitlines()]
        found: dict[str, list[Row]] = {"thread": [], "entry": [], "run": [], "call": [], "spending": []}
        for line in lines:
            found[str(line["type"])].append(line)
        return found

    def _exported(self, user: str) -> bytes:
        return self.ask(user, "GET", "/api/v1/agent/me/export").body

    def entries(self, thread: Conversation) -> list[Row]:
        return [row for row in self.export(thread.owner)["entry"] if row["thread"] == thread.id]

    # Runs

    def post(self, user: str, thread: str, body: dict[str, Json]) -> HttpReply:
        """Start a run, and know it from then on."""
        talk = self.threads.get(thread) or Conversation(id=thread, owner=user)
        if talk.owner == user:
            for word in WORD.findall(str(body["messages"])):
                talk.words.add(word)
                self.by_word[word] = talk
        reply = self.ask(user, "POST", RUNS, body)
        if reply.status == 202:
            assert talk.owner == user
            self.threads[thread] = talk
            self.runs.append(Known(user=user, thread=talk, body=body, task=str(reply.json["taskId"])))
        self.world.tally[f"start {reply.status}"] += 1
        return reply

    def start(self, dice: Dice, kind: str) -> None:
        who, thread, multitask = self.users[dice.user], self.slots[dice.number % len(self.slots)], dice.multitask
        body = ask(f"{kind} w{new_id()[-12:]}", thread=thread, forwardedProps={"multitask": multitask})
        if kind == "client":
            body["tools"] = [CLIENT_TOOL]
        before = self.open_runs(thread)
        at_work = [run for run in before if self.run(run)["status"] == "running"]
        talk = self.threads.get(thread)
        reply = self.post(who, thread, body)
        if talk and talk.owner != who:
            assert reply.status == 404
            return
        if multitask != "reject" or not before:
            assert reply.status == 202, reply
        elif any(not self.is_over(run) for run in before):
            assert reply.status == 409, reply
        if multitask == "interrupt":
            for run in at_work:
                self.wait(run)

    def start_the_same_again(self, dice: Dice) -> None:
        run = self.a_run(dice.number)
        if run:
            reply = self.ask(run.user, "POST", RUNS, run.body)
            assert (reply.status, reply.json["taskId"]) == (202, run.task)

    def start_another_under_its_name(self, dice: Dice) -> None:
        run = self.a_run(dice.number)
        if run:
            assert self.ask(run.user, "POST", RUNS, {**run.body, "state": {"other": dice.other}}).status == 409

    def cancel(self, dice: Dice) -> None:
        run = self.a_run(dice.number)
        if run:
            self.refused_to_other(run.user, "POST", f"{RUNS}/{run.task}/cancel")
            assert self.ask(run.user, "POST", f"{RUNS}/{run.task}/cancel").status == 200
            self.wait(run)

    def bring_a_result(self, dice: Dice) -> None:
        waiting = [run for run in self.runs if run.ended == "waiting" or self.run(run)["status"] == "waiting"]
        if not waiting:
            return
        run, how = waiting[dice.number % len(waiting)], dice.how
        seen = self.ask(run.user, "GET", f"/api/v1/agent/threads/{run.thread.id}").json
        calls = cast("list[Row]", seen["pendingCalls"]) or [{"id": "over and done with"}]
        said = cast("list[Row]", run.body["messages"])[0]
        for _ in range(2 if how == "twice" else 1):
            call = "nobody's" if how == "wrong" else calls[0]["id"]
            answer: Row = {"id": new_id(), "role": "tool", "toolCallId": call, "content": "yes"}
            body: dict[str, Json] = {**run.body, "runId": new_id(), "messages": [said, answer], "forwardedProps": None}
            assert self.post(run.user, run.thread.id, body).status == 202
        self.world.tally[f"result {how} {'pending' if seen['pendingCalls'] else 'late'}"] += 1

    def let_go(self, _dice: Dice) -> None:
        """The model goes on with what it held back."""
        self.world.gate.set()
        self.world.gate = threading.Event()

    def read(self, dice: Dice) -> None:
        run = self.a_run(dice.number)
        if run:
            self.refused_to_other(run.user, "GET", f"{RUNS}/{run.task}/events")
            row = self.run(run)
            last = cast("int", row["lastEventId"])
            self.hear(run, dice.other % (last + 1), last)

    def hear(self, run: Known, after: int, last: int) -> list[SentEvent]:
        """Events behind a number, up to one that is there. They are what was told before."""
        stream = read_events(self.world.url, run.task, after, token=self.tokens[run.user])
        heard = list(stream) if run.ended else list(islice(stream, last - after))
        if not run.is_cleaned:
            assert [sent.number for sent in heard] == list(range(after + 1, last + 1))
            for sent in heard:
                assert run.heard.setdefault(sent.number, sent.body) == sent.body
        return heard

    # Threads and users

    def fork(self, dice: Dice) -> None:
        talk, whole = self.a_thread(dice.number), dice.sure
        if talk is None or len(self.slots) >= THREADS + MOST_FORKS:
            return
        path = f"/api/v1/agent/threads/{talk.id}/fork"
        self.refused_to_other(talk.owner, "POST", path, {})
        before = self.entries(talk)
        users = [row for row in before if row["kind"] == "user"]
        if not whole and not users:
            return
        chosen = None if whole else users[dice.other % len(users)]
        reply = self.ask(talk.owner, "POST", path, {"before": chosen["id"]} if chosen else {})
        assert reply.status == 201, reply
        made = Conversation(id=str(reply.json["id"]), owner=talk.owner)
        self.threads[made.id] = made
        self.slots.append(made.id)
        made.copied = [_content(row) for row in self.entries(made)]
        made.words = set(WORD.findall(str(made.copied))) & talk.words
        source = [_content(row) for row in self.entries(talk)]
        assert list(made.copied) == source[: len(made.copied)]
        place = before.index(chosen) if chosen else len(before)
        assert len(made.copied) == place if chosen else len(made.copied) >= place
        self.world.tally["fork"] += 1

    def rename(self, dice: Dice) -> None:
        talk = self.a_thread(dice.number)
        if talk:
            path, title = f"/api/v1/agent/threads/{talk.id}", f"Title {dice.other}"
            self.refused_to_other(talk.owner, "PATCH", path, {"title": title})
            assert self.ask(talk.owner, "PATCH", path, {"title": title}).json["title"] == title
            talk.title = title

    def delete_a_thread(self, dice: Dice) -> None:
        talk = self.a_thread(dice.number)
        if talk:
            path = f"/api/v1/agent/threads/{talk.id}"
            self.refused_to_other(talk.owner, "DELETE", path)
            assert self.ask(talk.owner, "DELETE", path).status == 200
            self.forget([talk])

    def delete_a_user(self, dice: Dice) -> None:
        name, sure = self.users[dice.user], dice.sure
        reply = self.ask(name, "DELETE", f"/api/v1/agent/me?confirm={name.replace(' ', '%20') if sure else 'no'}")
        assert reply.status == (200 if sure else 422)
        if sure:
            self.forget([talk for talk in self.threads.values() if talk.owner == name])
            left = self.export(name)
            # What was used today still counts today.
            assert [kind for kind, rows in left.items() if rows] in ([], ["spending"])

    def forget(self, gone: Sequence[Conversation]) -> None:
        """Nobody finds these threads or their runs any more."""
        for talk in gone:
            del self.threads[talk.id]
            for user in self.users:
                assert self.ask(user, "GET", f"/api/v1/agent/threads/{talk.id}").status == 404
        for run in [run for run in self.runs if run.thread in gone]:
            self.runs.remove(run)
            assert self.ask(run.user, "GET", f"{RUNS}/{run.task}").status == 404
        self.world.tally["deleted"] += len(gone)

    # The server

    def start_the_server_again(self) -> None:
        """Once an example, for it takes as long as everything else in it."""
        if self.ending != "none":
            self.world.end(kill=self.ending == "kill")
            self.world.start()
        self.world.tally[self.ending] += 1

    def clean(self, dice: Dice) -> None:
        """Keep nothing of what ended until now, as the janitor does."""
        now = datetime.now(UTC)
        now = now.replace(microsecond=now.microsecond // 1000 * 1000)
        asyncio.run(_clean(self.world.data, Retention(events_before=now, calls_before=now if dice.sure else None)))
        for run in self.runs:
            ended = self.run(run)["ended"]
            if isinstance(ended, str) and datetime.fromisoformat(ended) < now:
                run.is_cleaned = True

    # What is always so

    @initialize(dice=dice, kinds=st.tuples(kinds, kinds), ending=st.sampled_from(["stop", "kill", "none"]))
    def begin(self, dice: Dice, kinds: tuple[str, str], ending: str) -> None:
        self.world.gate = threading.Event()
        self.ending, self.steps_left = ending, 3 + dice.other % 30
        for user, kind in enumerate(kinds):
            self.start(replace(dice, user=user, number=user), kind)

    @invariant()
    def holds(self) -> None:
        self.world.steps += 1
        self.steps_left -= 1
        if self.steps_left == 0:
            self.start_the_server_again()
        # In turns: reading all there is of somebody is what takes longest here.
        if self.steps_left % 2:
            self.check_user(self.users[self.steps_left // 2 % 2])
        self.check_requests()

    def check_requests(self) -> None:
        """No page holds words of another thread, of one that is gone, or of somebody else."""
        requests = self.world.model.requests
        for asked in requests[self.received :]:
            words = WORD.findall(asked.body.decode())
            assert set(words) <= self.by_word[words[-1]].words, asked.body
        self.received = len(requests)

    def check_user(self, user: str) -> None:
        mine = [talk for talk in self.threads.values() if talk.owner == user]
        found = self.export(user)
        assert {str(row["id"]) for row in found["thread"]} == {talk.id for talk in mine}
        assert {str(row["id"]) for row in found["run"]} == {run.task for run in self.runs if run.user == user}
        titles = {row["id"]: row["title"] for row in found["thread"]}
        for talk in mine:
            assert talk.title in (None, titles[talk.id])
            rows = [row for row in found["entry"] if row["thread"] == talk.id]
            check_log(talk, rows)
            at_work = [row for row in found["run"] if row["thread"] == talk.id and row["status"] == "running"]
            assert len(at_work) <= 1

    def teardown(self) -> None:
        self.world.gate.set()
        for run in self.runs:
            self.wait(run)
            self.check_run(run)
        for user in self.users:
            self.check_user(user)
        self.check_requests()
        for name in self.users:
            assert self.ask(name, "DELETE", f"/api/v1/agent/me?confirm={name.replace(' ', '%20')}").status == 200

    def check_run(self, run: Known) -> None:
        """It ended once, all of it can be read again, and its calls are as they were sent."""
        last = cast("int", self.run(run)["lastEventId"])
        heard = self.hear(run, 0, last)
        assert [sent.number for sent in heard if ends_run(sent.body)] == [last]
        assert heard[-1].number == last
        for call in cast("list[Row]", self.ask(run.user, "GET", f"{RUNS}/{run.task}/calls").json["calls"]):
            assert self.ask(run.user, "GET", f"{RUNS}/{run.task}/calls/{call['n']}").json["verified"] is True


def check_log(talk: Conversation, rows: Sequence[Row]) -> None:
    """No gap, no id twice, each result behind its call and only once, each run's entries together and in order."""
    assert [row["seq"] for row in rows] == list(range(1, len(rows) + 1))
    assert len({str(row["id"]) for row in rows}) == len(rows)
    assert [_content(row) for row in rows[: len(talk.copied)]] == list(talk.copied)
    assert set(WORD.findall(str([row["body"] for row in rows]))) <= talk.words
    own = [str(row["run"]) for row in rows[len(talk.copied) :]]
    order = [run for run, _ in groupby(own)]
    assert order == sorted(set(own))
    called: set[str] = set()
    for row in rows:
        body = cast("Row", row["body"])
        if row["kind"] == "tool":
            assert body["tool_call_id"] in called
            called.remove(str(body["tool_call_id"]))
        called |= set(_calls(row))


def _calls(row: Row) -> Iterator[str]:
    parts = cast("Row", row["body"]).get("parts") if row["kind"] == "assistant" else ()
    return (str(part["id"]) for part in cast("list[Row]", parts or ()) if part["is"] == "call")


def _content(row: Row) -> object:
    return row["id"], row["kind"], row["body"]


async def _clean(data: Path, retention: Retention) -> None:
    store = await open_store(f"sqlite:///{data / 'recto.db'}")
    try:
        while any(vars(await store.clean(retention)).values()):
            pass
    finally:
        await store.close()


def test_X4_P4_P5_P6_whatever_happens_in_whatever_order_the_server_keeps_its_promises(tmp_path: Path):
    how = settings(
        max_examples=EXAMPLES,
        stateful_step_count=STEPS_EACH,
        deadline=None,
        derandomize=True,
        phases=[Phase.generate],
        suppress_health_check=[HealthCheck.too_slow],
    )
    with World(tmp_path) as world:

        class Here(Server):
            def __init__(self) -> None:
                super().__init__(world)

        run_state_machine_as_test(Here, settings=how)
        print(f"{world.steps} steps: {dict(world.tally)}")
        assert world.steps >= STEPS
        assert {"kill", "stop", "fork", "deleted", "start 202", "start 404", "start 409"} <= world.tally.keys()
        assert {f"result {how} pending" for how in ("right", "wrong", "twice")} <= world.tally.keys()
