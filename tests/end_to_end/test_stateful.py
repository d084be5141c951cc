"""The whole server under hundreds of random requests, stops and kills, against a small model of what it promises.

One real server over HTTP on one data folder. Each example has two users of its own, a few threads both try to use, and
forks of them. What the users are told, what is exported and what the model receives has to fit together all the time.
"""

import asyncio
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from itertools import islice
from pathlib import Path
from typing import cast

import pytest
from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import initialize, invariant, rule, run_state_machine_as_test

from recto.conversation.events import ends_run
from recto.conversation.json import Json
from recto.ids import new_id
from recto.store.store import open_store
from recto.store.threads.cleanup import Retention
from tests.end_to_end.naive_log import (
    Conversation,
    body_of,
    check_log,
    content,
    in_view,
    meant_by,
    messages_in,
    users_in,
    waiting_in,
    words_in,
)
from tests.end_to_end.two_users import PATH, THREADS, TwoUsers, UserState
from tests.end_to_end.world import WORD, Row, World
from tests.support.client import RUNS, ReceivedEvent, ask, read_events

pytestmark = [pytest.mark.full, pytest.mark.hypothesis]

# An example takes seconds: a part of those that a profile asks for (12 in the full tier, 100 in `make fuzz`).
EXAMPLES, STEPS_EACH = max(12, settings().max_examples // 20), 50
# The fewest steps, and real compactions among the requested ones, that the examples must reach.
STEPS, COMPACTED = EXAMPLES * 500 // 12, EXAMPLES // 4
MOST_FORKS = 4
CLIENT_TOOL: Json = {"name": "ask_me", "description": "Ask the user.", "parameters": {"type": "object"}}


kinds = st.sampled_from(["say", "note", "client", "send", "hold", "hold", "fail"])


@dataclass(frozen=True, kw_only=True)
class Dice:
    """Random choices of a step. Each action uses some of them."""

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
    "start": 11,
    "start with a tool": 3,
    "start the same again": 1,
    "start another under its name": 1,
    "cancel": 2,
    "bring a result": 4,
    "decide": 3,
    "roll back": 4,
    "undo": 3,
    "compact": 3,
    "let go": 3,
    "read": 2,
    "fork": 2,
    "rename": 1,
    "delete a thread": 1,
    "delete a user": 1,
    "clean": 1,
}
actions = st.sampled_from([name for name, weight in WEIGHTS.items() for _ in range(weight)])


class Server(TwoUsers):
    """Two users and their threads. The choices never depend on the server."""

    def __init__(self, world: World) -> None:
        super().__init__(world)
        self.ending, self.steps_left = "none", 0
        self.actions: Mapping[str, Callable[[Dice], None]] = {
            "start": lambda dice: self.start(dice, dice.kind),
            "start with a tool": lambda dice: self.start(dice, "client"),
            "start the same again": self.start_the_same_again,
            "start another under its name": self.start_another_under_its_name,
            "cancel": self.cancel,
            "bring a result": self.bring_a_result,
            "decide": self.decide,
            "roll back": self.roll_back,
            "undo": self.undo,
            "compact": self.compact,
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
            reply = self.ask(run.user, "POST", run.path, run.body)
            assert (reply.status, reply.json["taskId"]) == (202, run.task)

    def start_another_under_its_name(self, dice: Dice) -> None:
        run = self.a_run(dice.number)
        if run:
            other = {**ask("else", thread=run.thread.id), "runId": run.name}
            body = {**run.body, "state": {"other": dice.other}} if run.path == RUNS else other
            assert self.ask(run.user, "POST", RUNS, body).status == 409

    def cancel(self, dice: Dice) -> None:
        run = self.a_run(dice.number)
        if run:
            self.refused_to_other(run.user, "POST", f"{RUNS}/{run.task}/cancel")
            assert self.ask(run.user, "POST", f"{RUNS}/{run.task}/cancel").status == 200
            self.wait(run)

    def bring_a_result(self, dice: Dice) -> None:
        waiting = [run for run in self.runs if run.ended_at == "waiting" or self.run(run)["status"] == "waiting"]
        if not waiting:
            return
        run, how = waiting[dice.number % len(waiting)], dice.how
        thread_row = self.ask(run.user, "GET", f"{PATH}/{run.thread.id}").json
        calls = cast("list[Row]", thread_row["pendingCalls"]) or [{"id": "over and done with"}]
        user_row = cast("list[Row]", run.body["messages"])[0]
        for _ in range(2 if how == "twice" else 1):
            call = "nobody's" if how == "wrong" else calls[0]["id"]
            answer: Row = {"id": new_id(), "role": "tool", "toolCallId": call, "content": "yes"}
            body: dict[str, Json] = {
                **run.body,
                "runId": new_id(),
                "messages": [user_row, answer],
                "forwardedProps": None,
            }
            assert self.post(run.user, run.thread.id, body).status == 202
        self.world.tally[f"result {how} {'pending' if thread_row['pendingCalls'] else 'late'}"] += 1

    def let_go(self, _dice: Dice) -> None:
        """Release the held model answers."""
        self.world.gate.set()
        self.world.gate = threading.Event()

    def read(self, dice: Dice) -> None:
        run = self.a_run(dice.number)
        if run:
            self.refused_to_other(run.user, "GET", f"{RUNS}/{run.task}/events")
            row = self.run(run)
            last = cast("int", row["lastEventId"])
            self.hear(run, dice.other % (last + 1), last)

    def hear(self, run: UserState, after: int, last: int) -> list[ReceivedEvent]:
        """Return the events after a number, and check that they equal earlier reads."""
        stream = read_events(self.world.url, run.task, after, token=self.tokens[run.user])
        received_events = list(stream) if run.ended_at else list(islice(stream, last - after))
        if not run.is_cleaned:
            assert [received.number for received in received_events] == list(range(after + 1, last + 1))
            for received in received_events:
                assert run.bodies_by_number.setdefault(received.number, received.body) == received.body
        return received_events

    def decide(self, dice: Dice) -> None:
        """Approve or deny a pending call, or answer an unknown interrupt."""
        conversations = [(talk, self.thread(talk)) for talk in self.threads.values()]
        waiting = [(talk, row) for talk, row in conversations if row["interrupts"]]
        if not waiting:
            return
        talk, row = waiting[dice.number % len(waiting)]
        interrupt = cast("list[Row]", row["interrupts"])[0]
        id = "nobody's" if dice.how == "wrong" else interrupt["id"]
        item: Json = {"interruptId": id, "status": "resolved", "payload": {"approved": dice.sure}}
        is_idle = not self.open_runs(talk.id)
        body = {**ask("", thread=talk.id), "messages": [], "resume": [item]}
        for _ in range(2 if dice.how == "twice" else 1):
            reply = self.post(talk.owner, talk.id, body)
            assert reply.status == (404 if dice.how == "wrong" else 202) or not is_idle, reply
            self.world.tally[f"decide {dice.how} {reply.status}"] += 1

    def roll_back(self, dice: Dice) -> None:
        talk = self.a_thread(dice.number)
        if talk is None:
            return
        users = users_in(self.entries(talk)) or ["nobody"]
        self.refused_to_other(talk.owner, "POST", f"{PATH}/{talk.id}/rollback", {"messageId": users[0]})
        target, is_idle = users[dice.other % len(users)], not self.open_runs(talk.id)
        reply = self.ask(talk.owner, "POST", f"{PATH}/{talk.id}/rollback", {"messageId": target})
        if reply.status == 409:
            assert not is_idle
        elif reply.status == 404:
            assert meant_by(in_view(self.entries(talk)), target) is None
        else:
            rows = self.entries(talk)
            *before, marker = rows
            log_view, to = messages_in(in_view(before)), meant_by(in_view(before), target)
            assert (reply.status, marker["kind"], body_of(marker)["to"]) == (200, "rolled_back", to)
            talk.back.append(log_view)
            self.check_turned(talk, rows, log_view[: log_view.index(str(to))])
            user_row = next(row for row in before if row["id"] == to)
            assert WORD.findall(str(reply.json["content"])) == WORD.findall(str(body_of(user_row)["parts"]))
        self.world.tally[f"roll back {reply.status}"] += 1

    def undo(self, dice: Dice) -> None:
        talk = self.a_thread(dice.number)
        if talk is None:
            return
        self.refused_to_other(talk.owner, "POST", f"{PATH}/{talk.id}/undo")
        is_idle = not self.open_runs(talk.id)
        reply = self.ask(talk.owner, "POST", f"{PATH}/{talk.id}/undo")
        if reply.status == 409:
            assert not (is_idle and talk.back)
        else:
            rows, view_before = self.entries(talk), talk.back.pop()
            *before, marker = rows
            assert (reply.status, marker["kind"]) == (200, "undone")
            hidden = set(messages_in(in_view(before)))
            assert reply.json["messageIds"] == [id for id in view_before if id not in hidden]
            self.check_turned(talk, rows, view_before)
        self.world.tally[f"undo {reply.status}"] += 1

    def check_turned(self, talk: Conversation, rows: Sequence[Row], expected: Sequence[str]) -> None:
        """Check that an idle thread shows what the model of it shows."""
        self.check_requests()
        view = in_view(rows)
        talk.shown_ids = words_in([row for row in view if row["kind"] == "user"])
        assert messages_in(view) == list(expected)
        messages = cast("list[Row]", self.ask(talk.owner, "GET", f"{PATH}/{talk.id}/messages").json["messages"])
        # A reply of nothing but calls that nobody will answer is not told.
        assert [row["id"] for row in messages if row["role"] != "assistant"] == [
            row["id"] for row in view if row["kind"] in ("user", "tool")
        ]
        assert {str(row["id"]) for row in messages} <= set(expected)
        row = self.thread(talk)
        waiting = [[one["id"] for one in cast("list[Row]", row[name])] for name in ("pendingCalls", "interrupts")]
        assert (row["canUndo"], *waiting) == (bool(talk.back), *waiting_in(view))

    def compact(self, dice: Dice) -> None:
        talk = self.a_thread(dice.number)
        if talk is None:
            return
        path, body = f"{PATH}/{talk.id}/compact", cast("dict[str, Json]", {"runId": new_id()})
        self.refused_to_other(talk.owner, "POST", path, body)
        is_idle = not self.open_runs(talk.id)
        reply = self.ask(talk.owner, "POST", path, body)
        assert reply.status == 202 or (reply.status == 409 and not is_idle), reply
        if reply.status == 202:
            task = str(reply.json["taskId"])
            self.runs.append(UserState(user=talk.owner, thread=talk, body=body, task=task, path=path))
        self.world.tally[f"compact {reply.status}"] += 1

    def fork(self, dice: Dice) -> None:
        talk, whole = self.a_thread(dice.number), dice.sure
        if talk is None or len(self.slots) >= THREADS + MOST_FORKS:
            return
        path = f"{PATH}/{talk.id}/fork"
        self.refused_to_other(talk.owner, "POST", path, {})
        before = in_view(self.entries(talk))
        users = users_in(before)
        if not whole and not users:
            return
        choice = None if whole else users[dice.other % len(users)]
        reply = self.ask(talk.owner, "POST", path, {"before": choice} if choice else {})
        assert reply.status == 201, reply
        fork = Conversation(id=str(reply.json["id"]), owner=talk.owner)
        self.threads[fork.id] = fork
        self.talks.append(fork)
        self.slots.append(fork.id)
        fork.copied = [content(row) for row in self.entries(fork)]
        fork.words = set(WORD.findall(str(fork.copied))) & talk.words
        fork.shown_ids = set(fork.words)
        source = [content(row) for row in in_view(self.entries(talk))]
        assert list(fork.copied) == source[: len(fork.copied)]
        place = [row["id"] for row in before].index(choice) if choice else len(before)
        assert len(fork.copied) == place if choice else len(fork.copied) >= place
        self.world.tally["fork"] += 1

    def rename(self, dice: Dice) -> None:
        talk = self.a_thread(dice.number)
        if talk:
            path, title = f"{PATH}/{talk.id}", f"Title {dice.other}"
            self.refused_to_other(talk.owner, "PATCH", path, {"title": title})
            assert self.ask(talk.owner, "PATCH", path, {"title": title}).json["title"] == title
            talk.title = title

    def delete_a_thread(self, dice: Dice) -> None:
        talk = self.a_thread(dice.number)
        if talk:
            path = f"{PATH}/{talk.id}"
            self.refused_to_other(talk.owner, "DELETE", path)
            assert self.ask(talk.owner, "DELETE", path).status == 200
            self.forget([talk])

    def delete_a_user(self, dice: Dice) -> None:
        name, sure = self.users[dice.user], dice.sure
        reply = self.ask(name, "DELETE", f"/api/v1/agent/me?confirm={name.replace(' ', '%20') if sure else 'no'}")
        assert reply.status == (200 if sure else 422)
        if sure:
            self.forget([talk for talk in self.threads.values() if talk.owner == name])
            remaining = self.export(name)
            # What was used today still counts today.
            assert [kind for kind, rows in remaining.items() if rows] in ([], ["spending"])

    def forget(self, deleted: Sequence[Conversation]) -> None:
        """Check that nobody finds these threads or their runs."""
        for talk in deleted:
            del self.threads[talk.id]
            for user in self.users:
                assert self.ask(user, "GET", f"{PATH}/{talk.id}").status == 404
        for run in [run for run in self.runs if run.thread in deleted]:
            self.runs.remove(run)
            assert self.ask(run.user, "GET", f"{RUNS}/{run.task}").status == 404
        self.world.tally["deleted"] += len(deleted)

    def start_the_server_again(self) -> None:
        """Restart the server, once per example because it is slow."""
        if self.ending != "none":
            self.world.end(kill=self.ending == "kill")
            self.world.start()
        self.world.tally[self.ending] += 1

    def clean(self, dice: Dice) -> None:
        """Delete what ended until now, like the janitor."""
        now = datetime.now(UTC)
        now = now.replace(microsecond=now.microsecond // 1000 * 1000)
        asyncio.run(_clean(self.world.data, Retention(events_before=now, calls_before=now if dice.sure else None)))
        for run in self.runs:
            ended_at = self.run(run)["ended"]
            if isinstance(ended_at, str) and datetime.fromisoformat(ended_at) < now:
                run.is_cleaned = True

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

    def check_user(self, user: str) -> None:
        mine = [talk for talk in self.threads.values() if talk.owner == user]
        export_rows = self.export(user)
        assert {str(row["id"]) for row in export_rows["thread"]} == {talk.id for talk in mine}
        assert {str(row["id"]) for row in export_rows["run"]} == {run.task for run in self.runs if run.user == user}
        titles = {row["id"]: row["title"] for row in export_rows["thread"]}
        for talk in mine:
            assert talk.title in (None, titles[talk.id])
            rows = [row for row in export_rows["entry"] if row["thread"] == talk.id]
            new = rows[max(len(talk.rows), len(talk.copied)) :]
            self.world.tally["compacted"] += sum(row["kind"] == "compacted" for row in new)
            check_log(talk, rows)
            at_work = [row for row in export_rows["run"] if row["thread"] == talk.id and row["status"] == "running"]
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

    def check_run(self, run: UserState) -> None:
        """Check that a run ended once, is readable from the start, and has verified calls."""
        last = cast("int", self.run(run)["lastEventId"])
        received_events = self.hear(run, 0, last)
        assert [received.number for received in received_events if ends_run(received.body)] == [last]
        assert received_events[-1].number == last
        for call in cast("list[Row]", self.ask(run.user, "GET", f"{RUNS}/{run.task}/calls").json["calls"]):
            assert self.ask(run.user, "GET", f"{RUNS}/{run.task}/calls/{call['n']}").json["verified"] is True


async def _clean(data: Path, retention: Retention) -> None:
    store = await open_store(f"sqlite:///{data / 'recto.db'}")
    try:
        while any(vars(await store.threads.clean(retention)).values()):
            pass
    finally:
        await store.close()


def test_X4_P4_P5_P6_whatever_happens_in_whatever_order_the_server_keeps_its_promises(tmp_path: Path):
    how = settings(
        max_examples=EXAMPLES,
        stateful_step_count=STEPS_EACH,
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
        assert {f"{what} {status}" for what in ("roll back", "undo") for status in (200, 409)} <= world.tally.keys()
        # That one was asked for is not that one was made; and nearly all pages can be compared.
        assert world.tally["compacted"] >= COMPACTED
        assert world.tally["page compared"] >= 10 * world.tally["page of a thread that is gone"]
        assert {"compact 202", "compact 409", "roll back 404", "decide right 202"} <= world.tally.keys()
