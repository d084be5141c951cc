"""Faults: cut model streams, late cancels, a full disk, a lost database, a paused worker."""

import gc
import shutil
import signal
import sqlite3
import subprocess
import threading
import tracemalloc
from collections import Counter
from collections.abc import Callable, Generator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager
from functools import partial
from itertools import repeat
from pathlib import Path
from threading import Event
from typing import cast

import pytest

import recto
from recto.conversation.events import ends_run
from recto.conversation.json import Json
from recto.testing.answer_bytes import DONE
from recto.testing.model_server import Answer, Call, Request, render
from tests.end_to_end.harness import Harness, a_note_then_an_answer, log_texts, story, stream_texts
from tests.flow.in_process import InProcess, in_process
from tests.support.client import RUNS, Reader, ReceivedEvent, ask, request, run, start
from tests.support.postgres import postgres_server
from tests.waiting import wait_for

READERS = 16
PACKAGE = Path(recto.__file__).parent


class CutAt:
    """A model whose first call is cut at the byte in the user's message."""

    def __init__(self) -> None:
        self.attempts: Counter[int] = Counter()
        self._lock = threading.Lock()

    def __call__(self, model_request: Request) -> Answer:
        place = place_named(model_request)
        if cast("list[Mapping[str, Json]]", model_request.page["messages"])[-1]["role"] == "tool":
            return Answer(text="Noted.")
        with self._lock:
            self.attempts[place] += 1
            first = self.attempts[place] == 1
        return answer_with_call(place, cut_at=place if first else None)


def place_named(model_request: Request) -> int:
    messages = cast("list[Mapping[str, Json]]", model_request.page["messages"])
    words = next(str(message["content"]) for message in messages if message["role"] == "user")
    return int(words.rsplit(" ", 1)[-1])


def answer_with_call(place: int, cut_at: int | None = None) -> Answer:
    call = Call(name="note", arguments=f'{{"text": "{place:05}"}}', id=f"call-{place:05}")
    return Answer(text="I write it down.", calls=(call,), cut_at=cut_at)


def together(harness: Harness, bodies: Sequence[Mapping[str, Json]]) -> list[list[ReceivedEvent]]:
    with ThreadPoolExecutor(READERS) as pool:
        return list(pool.map(run, repeat(harness.url), bodies))


@pytest.mark.full
def test_a_model_stream_cut_at_any_byte_never_looks_like_success_and_runs_no_half_call(tmp_path: Path):
    script = CutAt()
    size = len(render(answer_with_call(0)))
    with Harness(tmp_path, script) as harness, harness.serve(retry_seconds=0.01):
        # Within events, between them, and before and in the words that end the stream.
        places = [*range(0, size, 23), *range(size - len(DONE) - 3, size, 3)]
        bodies = [ask(f"cut at {place}") for place in places]
        streams = together(harness, bodies)
        assert {str(stream[-1].event["type"]) for stream in streams} == {"RUN_FINISHED"}
        assert Counter(harness.notes) == Counter(f"{place:05}" for place in places)
        assert [place for place in places if place < size - len(DONE) and script.attempts[place] != 2] == []
        for body, stream in list(zip(bodies, streams, strict=True))[::5]:
            assert stream_texts(stream) == log_texts(harness.log(str(body["threadId"])))


@pytest.mark.full
def test_P8_a_cancel_that_meets_the_end_of_a_run_leaves_one_terminal_event(tmp_path: Path):
    gates, outcomes = [Event() for _ in range(30)], Counter[str]()

    def script(model_request: Request) -> Answer:
        return Answer(text="one two three", hold=gates[place_named(model_request)])

    with Harness(tmp_path, script) as harness, harness.serve():
        for place, gate in enumerate(gates):
            body = ask(f"hello {place}")
            reader = Reader(lambda: harness.url, str(body["runId"]))
            start(harness.url, body)
            cancel = partial(request, harness.url, "POST", f"{RUNS}/{body['runId']}/cancel")
            # The first is cancelled before its end, the second after it; all others meet it.
            steps: dict[int, Sequence[Callable[[], object]]] = {0: (cancel, gate.set), 1: (gate.set, reader.wait)}
            for act in steps.get(place, ()):
                act()
            with ThreadPoolExecutor(2) as both:
                both.submit(gate.set)
                both.submit(cancel)
            events = reader.wait()
            assert sum(ends_run(received.body) for received in events) == 1
            outcome = cast("Mapping[str, Json]", events[-1].event["outcome"])["type"]
            row = request(harness.url, "GET", f"{RUNS}/{body['runId']}").json
            assert row["status"] == {"success": "finished", "cancelled": "cancelled"}[str(outcome)]
            assert row["lastEventId"] == events[-1].number
            outcomes[str(outcome)] += 1
        assert outcomes.keys() == {"success", "cancelled"}


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

    def script(model_request: Request) -> Answer:
        return Answer(text="one two three" if b"held" in model_request.body else "fine", hold=gate, hold_after=3)

    with small_disk(tmp_path / "disk", 6) as disk, Harness(tmp_path, script) as harness:
        harness.data = disk / "data"
        with harness.serve(retry_seconds=0.1, lease_seconds=3) as server:
            before, waiting = ask("before"), ask("held")
            gate.set()
            assert ends_run(run(harness.url, before)[-1].body)
            gate.clear()
            reader = Reader(lambda: harness.url, str(waiting["runId"]))
            start(harness.url, waiting)
            assert harness.model.wait_requests(2)[1].wait_held()
            filler = disk / "filler"
            fill(filler)
            statuses = [request(harness.url, "POST", RUNS, ask("x" * 5_000)).status for _ in range(40)]
            assert statuses[-1] == 503
            assert request(harness.url, "GET", "/readyz").status == 503
            assert request(harness.url, "GET", f"{RUNS}/{before['runId']}").json["status"] == "finished"
            # The run at work says the rest of its answer, and there is no room for it.
            gate.set()
            wait_for(lambda: " stopped here: " in server.output, "the run to find no room")
            assert request(harness.url, "GET", f"{RUNS}/{waiting['runId']}").json["status"] in ("queued", "running")
            filler.unlink()
            assert request(harness.url, "GET", "/readyz").status == 200
            assert stream_texts(reader.wait())["words"] == ["one two three"]
            assert ends_run(run(harness.url, ask("after"))[-1].body)
        shutil.copytree(harness.data, tmp_path / "copy")
        harness.data = tmp_path / "copy"
        assert_whole(harness.data / "recto.db")
        assert story(harness.log(str(before["threadId"]))) == [("user", "before"), ("assistant", "fine")]
        assert stream_texts(reader.events) == log_texts(harness.log(str(waiting["threadId"])))


@pytest.mark.full
async def test_runs_of_a_user_who_was_deleted_leave_memory_flat(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    async with in_process(tmp_path, monkeypatch) as server:
        tracemalloc.start()
        sizes = [await bytes_after_runs(server, count) for count in (20, 60)]
        tracemalloc.stop()
        assert sizes[1] - sizes[0] < 60 * 500, sizes


async def bytes_after_runs(server: InProcess, count: int) -> int:
    """Return the bytes that our code holds after so many runs of a deleted user."""
    for _ in range(count):
        assert ends_run((await server.run("hello " * 200))[-1].body)
    assert (await server.send("DELETE", "/api/v1/agent/me?confirm=local")).status == 200
    gc.collect()
    ours = [tracemalloc.Filter(True, f"{PACKAGE}/*"), tracemalloc.Filter(False, f"{PACKAGE}/testing/*")]
    return sum([one.size for one in tracemalloc.take_snapshot().filter_traces(ours).traces])


@pytest.mark.full
def test_a_stop_lets_a_running_step_finish_and_the_next_start_goes_on(tmp_path: Path):
    gate = Event()

    def script(model_request: Request) -> Answer:
        answer = a_note_then_an_answer(model_request)
        return answer if answer.calls else Answer(text=answer.text, hold=gate if model_request.number == 1 else None)

    with Harness(tmp_path, script) as harness:
        body = ask("Please make a note.")
        with harness.serve(grace_seconds=0.5) as server:
            reader = Reader(lambda: harness.url, str(body["runId"]))
            start(harness.url, body)
            assert harness.model.wait_requests(2)[1].wait_held()
            assert server.stop(10) == 0
        gate.set()
        with harness.serve():
            events = reader.wait()
            log = harness.log(str(body["threadId"]))
    assert [kind for kind, _ in story(log)] == ["user", "assistant", "tool_started", "tool", "assistant"]
    assert stream_texts(events) == log_texts(log)
    assert harness.notes == ["milk"]


@pytest.mark.full
def test_X4_a_database_that_is_away_for_a_moment_loses_nothing_of_any_run(tmp_path: Path):
    gate = Event()

    def script(model_request: Request) -> Answer:
        return Answer(text="one two three four", hold=gate if model_request.number < 3 else None, hold_after=3)

    with postgres_server() as postgres, Harness(tmp_path, script) as harness:
        harness.database = postgres.url(postgres.create_database())
        with harness.serve(event_seconds=0.0):
            bodies = [ask(f"hello {number}") for number in range(3)]
            readers = [Reader(lambda: harness.url, start(harness.url, body)) for body in bodies]
            assert all(model_request.wait_held() for model_request in harness.model.wait_requests(3))
            postgres.stop()
            # All of them say the rest of their answer, and there is nobody to write it down.
            gate.set()
            wait_for(lambda: request(harness.url, "GET", "/readyz").status == 503, "the server to notice")
            postgres.start()
            streams = [reader.wait() for reader in readers]
            for body, stream in zip(bodies, streams, strict=True):
                assert stream_texts(stream) == log_texts(harness.log(str(body["threadId"])))
                assert stream_texts(stream)["words"] == ["one two three four"]


@pytest.mark.full
def test_a_paused_worker_that_wakes_after_its_lease_writes_nothing(tmp_path: Path):
    gate = Event()

    def script(model_request: Request) -> Answer:
        return Answer(text="one two three four", hold=gate if model_request.number == 0 else None, hold_after=3)

    with postgres_server() as postgres, Harness(tmp_path, script) as harness:
        harness.database = postgres.url(postgres.create_database())
        storage = f"file://{tmp_path / 'files'}"
        settings = {"lease_seconds": 1.5, "event_seconds": 0.0, "storage_url": storage}
        with harness.serve(**settings) as paused:
            body = ask("hello")
            start(harness.url, body)
            assert harness.model.wait_requests(1)[0].wait_held()
            paused.send(signal.SIGSTOP)
            with harness.serve_beside(tmp_path / "other", **settings) as other:
                events = Reader(lambda: other.url, str(body["runId"])).wait()
                log = harness.log(str(body["threadId"]))
                assert stream_texts(events) == log_texts(log)
                assert stream_texts(events)["words"] == ["one two three four"]
                gate.set()
                paused.send(signal.SIGCONT)
                wait_for(lambda: "is no longer ours" in paused.output, "the paused worker to give up")
                assert harness.log(str(body["threadId"])) == log
                assert list(Reader(lambda: other.url, str(body["runId"])).wait()) == list(events)
                assert request(harness.url, "GET", "/healthz").status == 200
                assert ends_run(run(harness.url, ask("again"))[-1].body)
