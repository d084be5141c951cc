"""Two users of a real server: what they ask it, and what they know of their threads and runs."""

import sqlite3
from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import cast

import jwt
from hypothesis.stateful import RuleBasedStateMachine

from recto.conversation.json import Json, load_object
from recto.ids import new_id
from tests.end_to_end.naive_log import Conversation, words_when_said
from tests.end_to_end.world import SECRET, WORD, Row, World
from tests.support.client import RUNS, HttpReply, request
from tests.waiting import wait_for

PATH = "/api/v1/agent/threads"
THREADS = 3
COLUMNS = ("seq", "id", "kind", "run", "body")
ENTRIES = f"SELECT {', '.join(COLUMNS)} FROM log WHERE thread = ? ORDER BY seq"
SUMMARISES = b'"content":"You summarise'


@dataclass(kw_only=True, eq=False)
class UserState:
    """An accepted run."""

    user: str
    thread: Conversation
    body: dict[str, Json]
    task: str
    path: str = RUNS
    ended_at: str | None = None
    is_cleaned: bool = False
    bodies_by_number: dict[int, bytes] = field(default_factory=dict[int, bytes])

    @property
    def name(self) -> str:
        return str(self.body["runId"])


class TwoUsers(RuleBasedStateMachine):
    """Two users, each with a token, that both try the same threads."""

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
        self.runs: list[UserState] = []
        self.by_word: dict[str, Conversation] = {}
        self.talks: list[Conversation] = []

    def ask(self, user: str, method: str, path: str, body: Json = None) -> HttpReply:
        return request(self.world.url, method, path, body, token=self.tokens[user])

    def other(self, user: str) -> str:
        return next(one for one in self.users if one != user)

    def refused_to_other(self, user: str, method: str, path: str, body: Json = None) -> None:
        assert self.ask(self.other(user), method, path, body).status == 404

    def run(self, run: UserState) -> Row:
        """Return the row of a run. An ended run never changes."""
        reply = self.ask(run.user, "GET", f"{RUNS}/{run.task}")
        assert reply.status == 200, (run, reply)
        row = reply.json
        assert (row["runId"], row["threadId"]) == (run.name, run.thread.id)
        status = str(row["status"])
        assert run.ended_at in (None, status)
        run.ended_at = status if status not in ("queued", "running") else None
        return row

    def is_over(self, run: UserState) -> bool:
        self.run(run)
        return run.ended_at is not None

    def wait(self, run: UserState) -> None:
        wait_for(lambda: self.is_over(run), f"run {run.task} ({run.body}) to end")

    def open_runs(self, thread: str) -> list[UserState]:
        return [run for run in self.runs if run.thread.id == thread and not run.ended_at and not self.is_over(run)]

    def thread(self, talk: Conversation) -> Row:
        return self.ask(talk.owner, "GET", f"{PATH}/{talk.id}").json

    def a_thread(self, number: int) -> Conversation | None:
        conversations = list(self.threads.values())
        return conversations[number % len(conversations)] if conversations else None

    def a_run(self, number: int) -> UserState | None:
        return self.runs[number % len(self.runs)] if self.runs else None

    def export(self, user: str) -> dict[str, list[Row]]:
        lines = [cast("Row", load_object(line)) for line in self._exported(user).splitlines()]
        rows_by_table: dict[str, list[Row]] = {"thread": [], "entry": [], "run": [], "call": [], "spending": []}
        for line in lines:
            rows_by_table[str(line["type"])].append(line)
        return rows_by_table

    def _exported(self, user: str) -> bytes:
        return self.ask(user, "GET", "/api/v1/agent/me/export").body

    def entries(self, thread: Conversation) -> list[Row]:
        """Return the stored log of a thread. This is faster than an export."""
        with closing(sqlite3.connect(f"file:{self.world.data / 'recto.db'}?mode=ro", uri=True)) as database:
            rows = cast("list[Sequence[Json]]", database.execute(ENTRIES, (thread.id,)).fetchall())
        return [{**dict(zip(COLUMNS, row, strict=True)), "body": load_object(cast("bytes", row[-1]))} for row in rows]

    def post(self, user: str, thread: str, body: dict[str, Json]) -> HttpReply:
        """Start a run and record it."""
        talk = self.threads.get(thread) or Conversation(id=thread, owner=user)
        if talk.owner == user:
            for word in WORD.findall(str(body["messages"])):
                talk.words.add(word)
                talk.shown_ids.add(word)
                self.by_word[word] = talk
        reply = self.ask(user, "POST", RUNS, body)
        if reply.status == 202:
            assert talk.owner == user
            self.threads[thread] = talk
            self.talks.append(talk)
            self.runs.append(UserState(user=user, thread=talk, body=body, task=str(reply.json["taskId"])))
        self.world.tally[f"start {reply.status}"] += 1
        return reply

    def check_requests(self) -> None:
        """Check that each page has exactly the visible words of its thread."""
        requests = self.world.model.requests
        for model_request in requests[self.received :]:
            words = WORD.findall(model_request.body.decode())
            # A fork is summarised before anything was said in it.
            whose = self.talks if SUMMARISES in model_request.body else [self.by_word[words[-1]]]
            assert any(set(words) <= talk.shown_ids for talk in whose), model_request.body
            if SUMMARISES not in model_request.body:
                self.check_page(words)
        self.received = len(requests)

    def check_page(self, words: Sequence[str]) -> None:
        """Compare a page with the view at its newest words, in the thread or a fork."""
        views = [view for talk in self.threads.values() for view in words_when_said(self.entries(talk), words[-1])]
        # Of a thread that was deleted since, there is no log to compare with.
        self.world.tally["page compared" if views else "page of a thread that is gone"] += 1
        assert not views or set(words) in views, (words, views)
