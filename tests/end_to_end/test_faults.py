"""Faults from all sides: a model stream cut anywhere, cancels in the last moment, stops, a full disk, many runs."""

import random
import shutil
import signal
import sqlite3
import subprocess
import threading
import time
from collections import Counter
from collections.abc import Generator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager
from itertools import repeat
from pathlib import Path
from threading import Event
from typing import cast

import pytest

from recto.conversation.events import ends_run
from recto.conversation.json import Json
from recto.testing.client import RUNS, Reader, SentEvent, ask, request, run, start
from recto.testing.model_answers import DONE
from recto.testing.model_server import Answer, Call, Request, render
from recto.testing.postgres import postgres_server
from tests.costs import MEBIBYTE, resident
from tests.end_to_end.stage import Stage, a_note_then_an_answer, story, told, told_by

READERS = 16


class CutAt:
    """Answers every conversation with a call, cut at the byte its words name, and whole when asked again."""

    def __init__(self) -> None:
        self.attempts: Counter[int] = Counter()
        self._lock = threading.Lock()

    def __call__(self, asked: Request) -> Answer:
        messages = cast("list[Mapping[str, Json]]", asked.page["messages"])
        words = next(str(message["content"]) for message in messages if message["role"] == "user")
        place = int(words.rsplit(" ", 1)[-1])
        if messages[-1]["role"] == "tool":
            return Answer(text="Noted.")
        with self._lock:
            self.attempts[place] += 1
            first = self.attempts[place] == 1
        return answer_with_call(place, cut_at=place if first else None)


def answer_with_call(place: int, cut_at: int | None = None) -> Answer:
    call = Call(name="note", arguments=f'{{"text": "{place:05}"}}', id=f"call-{place:05}")
    return Answer(text="I write it down.", calls=(call,), cut_at=cut_at)


def together(stage: Stage, bodies: Sequence[Mapping[str, Json]]) -> list[list[SentEvent]]:
    with ThreadPoolExecutor(READERS) as pool:
        return list(pool.map(run, repeat(stage.url), bodies))


@pytest.mark.full
def test_a_model_stream_cut_at_any_byte_never_looks_like_success_and_runs_no_half_call(tmp_path: Path):
    script = CutAt()
    size = len(render(answer_with_call(0)))
    with Stage(tmp_path, script) as stage, stage.serve(retry_seconds=0.01):
        bodies = [ask(f"cut at {place}") for place in range(size)]
        streams = together(stage, bodies)
        assert [stream[-1].event["type"] for stream in streams] == ["RUN_FINISHED"] * size
        assert Counter(stage.notes) == Counter(f"{place:05}" for place in range(size))
        must_ask_again = range(size - len(DONE))
        assert [place for place in must_ask_again if script.attempts[place] != 2] == []
        for body, stream in random.Random(1).sample(list(zip(bodies, streams, strict=True)), 40):
            assert told(stream) == told_by(stage.log(str(body["threadId"])))


@pytest.mark.full
def test_P8_a_cancel_that_meets_the_end_of_a_run_leaves_one_terminal_event(tmp_path: Path):
    chance = random.Random(2)
    with Stage(tmp_path, lambda _: Answer(text="one two three")) as stage, stage.serve():
        outcomes: Counter[str] = Counter()
        for _ in range(200):
            body = ask("hello")
            reader = Reader(lambda: stage.url, str(body["runId"]))
            start(stage.url, body)
            time.sleep(chance.random() * 0.03)
            request(stage.url, "POST", f"{RUNS}/{body['runId']}/cancel")
            events = reader.wait()
            assert sum(ends_run(sent.body) for sent in events) == 1
            outcome = cast("Mapping[str, Json]", events[-1].event["outcome"])["type"]
            row = request(stage.url, "GET", f"{RUNS}/{body['runId']}").json
            assert row["status"] == {"success": "finished", "cancelled": "cancelled"}[str(outcome)]
            assert row["lastEventId"] == events[-1].number
            outcomes[str(outcome)] += 1
        assert outcomes.keys() == {"success", "cancelled"}


@pytest.mark.full
def test_a_stop_lets_a_running_step_finish_and_the_next_start_goes_on(tmp_path: Path):
    gate = Event()

    def script(asked: Request) -> Answer:
        answer = a_note_then_an_answer(asked)
        return answer if answer.calls else Answer(text=answer.text, hold=gate if asked.number == 1 else None)

    with Stage(tmp_path, script) as stage:
        body = ask("Please make a note.")
        with stage.serve(grace_seconds=0.5) as server:
            reader = Reader(lambda: stage.url, str(body["runId"]))
            start(stage.url, body)
            assert stage.model.wait_requests(2)[1].wait_held()
            begun = time.monotonic()
            assert server.stop(10) == 0
            assert time.monotonic() - begun < 10
        gate.set()
        with stage.serve():
            events = reader.wait()
            log = stage.log(str(body["threadId"]))
    assert [kind for kind, _ in story(log)] == ["user", "assistant", "tool_started", "tool", "assistant"]
    assert told(events) == told_by(log)
    assert stage.notes == ["milk"]


@contextmanager
def small_disk(folder: Path, megabytes: int) -> Generator[Path]:
    folder.mkdir()
    size = f"size={megabytes}m"
    subprocess.run(["mount", "-t", "tmpfs", "-o", size, "recto-test", str(folder)], check=True)
    try:
        yield folder
    finally:
        subprocess.run(["umount", "-l", str(folder)], check=True)


def fill(file: Path) -> None:
    """Write until the disk is full."""
    with file.open("wb", buffering=0) as filler, pytest.raises(OSError, match="space"):
        while True:
            filler.write(b"x" * 65_536)


def assert_whole(database: Path) -> None:
    with closing(sqlite3.connect(database)) as connection:
        assert connection.execute("PRAGMA integrity_check").fetchall() == [("ok",)]


@pytest.mark.full
def test_a_full_disk_is_a_clean_error_and_leaves_the_database_whole(tmp_path: Path):
    gate = Event()

    def script(asked: Request) -> Answer:
        return Answer(text="one two three" if b"held" in asked.body else "fine", hold=gate, hold_after=3)

    with small_disk(tmp_path / "disk", 6) as disk, Stage(tmp_path, script) as stage:
        stage.data = disk / "data"
        with stage.serve(retry_seconds=0.1, lease_seconds=3):
            before, held = ask("before"), ask("held")
            gate.set()
            assert ends_run(run(stage.url, before)[-1].body)
            gate.clear()
            reader = Reader(lambda: stage.url, str(held["runId"]))
            start(stage.url, held)
            assert stage.model.wait_requests(2)[1].wait_held()
            filler = disk / "filler"
            fill(filler)
            statuses = [request(stage.url, "POST", RUNS, ask("x" * 5_000)).status for _ in range(40)]
            assert statuses[-1] == 503
            assert request(stage.url, "GET", "/readyz").status == 503
            assert request(stage.url, "GET", f"{RUNS}/{before['runId']}").json["status"] == "finished"
            # The run at work says the rest of its answer, and there is no room for it.
            gate.set()
            time.sleep(1)
            assert request(stage.url, "GET", f"{RUNS}/{held['runId']}").json["status"] in ("queued", "running")
            filler.unlink()
            assert request(stage.url, "GET", "/readyz").status == 200
            assert told(reader.wait())["words"] == ["one two three"]
            assert ends_run(run(stage.url, ask("after"))[-1].body)
        shutil.copytree(stage.data, tmp_path / "copy")
        stage.data = tmp_path / "copy"
        assert_whole(stage.data / "recto.db")
        assert story(stage.log(str(before["threadId"]))) == [("user", "before"), ("assistant", "fine")]
        assert told(reader.events) == told_by(stage.log(str(held["threadId"])))


@pytest.mark.full
def test_five_thousand_runs_leave_memory_flat(tmp_path: Path):
    with Stage(tmp_path, lambda _: Answer(text="fine")) as stage, stage.serve() as server:
        sizes: list[float] = []
        for _ in range(10):
            streams = together(stage, [ask("hello " * 20) for _ in range(500)])
            assert all(ends_run(stream[-1].body) for stream in streams)
            sizes.append(resident(server.pid) / MEBIBYTE)
        # Threads kept in memory fill up first; after that three thousand runs may leave two megabytes a thousand.
        assert sizes[-1] - sizes[3] < 6, sizes


@pytest.mark.full
def test_X4_a_database_that_is_away_for_a_moment_stalls_no_run_for_long(tmp_path: Path):
    gate = Event()

    def script(asked: Request) -> Answer:
        return Answer(text="one two three four", hold=gate if asked.number < 3 else None, hold_after=3)

    with postgres_server() as postgres, Stage(tmp_path, script) as stage:
        stage.database = postgres.url(postgres.create_database())
        with stage.serve(event_seconds=0.0):
            bodies = [ask(f"hello {number}") for number in range(3)]
            readers = [Reader(lambda: stage.url, start(stage.url, body)) for body in bodies]
            assert all(asked.wait_held() for asked in stage.model.wait_requests(3))
            postgres.stop()
            # All of them say the rest of their answer, and there is nobody to write it down.
            gate.set()
            time.sleep(0.5)
            postgres.start()
            back = time.monotonic()
            streams = [reader.wait() for reader in readers]
            assert time.monotonic() - back < 8
            for body, stream in zip(bodies, streams, strict=True):
                assert told(stream) == told_by(stage.log(str(body["threadId"])))
                assert told(stream)["words"] == ["one two three four"]


@pytest.mark.full
def test_a_paused_worker_that_wakes_after_its_lease_writes_nothing(tmp_path: Path):
    gate = Event()

    def script(asked: Request) -> Answer:
        return Answer(text="one two three four", hold=gate if asked.number == 0 else None, hold_after=3)

    with postgres_server() as postgres, Stage(tmp_path, script) as stage:
        stage.database = postgres.url(postgres.create_database())
        storage = f"file://{tmp_path / 'files'}"
        settings = {"lease_seconds": 1.5, "event_seconds": 0.0, "storage_url": storage}
        with stage.serve(**settings) as paused:
            body = ask("hello")
            start(stage.url, body)
            assert stage.model.wait_requests(1)[0].wait_held()
            paused.send(signal.SIGSTOP)
            with stage.serve_beside(tmp_path / "other", **settings) as other:
                events = Reader(lambda: other.url, str(body["runId"])).wait()
                log = stage.log(str(body["threadId"]))
                assert told(events) == told_by(log)
                assert told(events)["words"] == ["one two three four"]
                gate.set()
                paused.send(signal.SIGCONT)
                time.sleep(3)
                assert stage.log(str(body["threadId"])) == log
                assert list(Reader(lambda: other.url, str(body["runId"])).wait()) == list(events)
                assert request(stage.url, "GET", "/healthz").status == 200
                assert ends_run(run(stage.url, ask("again"))[-1].body)
