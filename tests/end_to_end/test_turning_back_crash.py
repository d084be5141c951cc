"""X4: a server killed around a rollback, an undo, a compaction or a fork has all of it or nothing, and goes on."""

import http.client
import threading
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import cast

import pytest

from recto.conversation.json import Json
from recto.conversation.log import Compacted, Entry, RolledBack, Undone, view
from recto.ids import new_id
from recto.testing.model_server import Answer, Request
from recto.testing.process import ServerProcess
from recto.tools.workspace.workspaces import INCOMPLETE
from tests.end_to_end.harness import KILLED, Harness
from tests.support.client import Reader, ReceivedEvent, ask, request, run
from tests.waiting import wait_for

pytestmark = pytest.mark.full

AGENT = "---\ncompact: {least: 1}\n---\n\nBe brief.\n"
LONG = "words " * 300
FILES = 1_500
POINTS = ["entered", "call_begun", "summarised", "compacted"]


def summary_or_words(model_request: Request) -> Answer:
    first = cast("list[Mapping[str, Json]]", model_request.page["messages"])[0]
    return Answer(text="SUMMARY." if str(first["content"]).startswith("You summarise") else "Well.", usage=None)


def talked(harness: Harness, *words: str) -> str:
    thread = new_id()
    for one in words:
        run(harness.url, ask(one, thread=thread))
    return thread


def compact(harness: Harness, thread: str, name: str) -> None:
    with suppress(OSError, http.client.HTTPException):
        body = {"runId": name, "protocolVersion": "1.0"}
        assert request(harness.url, "POST", f"/api/v1/agent/threads/{thread}/compact", body).status == 202


def check_compacted(harness: Harness, thread: str, name: str, before: Sequence[Entry]) -> None:
    """Check that there is one summary, that its run ended once, and that the next page begins with it."""
    compact(harness, thread, name)
    events: Sequence[ReceivedEvent] = Reader(lambda: harness.url, name).wait()
    assert [received.number for received in events] == list(range(1, len(events) + 1))
    types = [received.event["type"] for received in events]
    assert (types.count("RUN_FINISHED"), types[-1]) == (1, "RUN_FINISHED")
    assert types.count("STEP_STARTED") == types.count("STEP_FINISHED") >= 1
    assert "result" not in events[-1].event
    log = harness.log(thread)
    assert (list(log[:-1]), type(log[-1])) == (list(before), Compacted)
    run(harness.url, ask("Go on.", thread=thread))
    assert b"SUMMARY." in harness.received[-1]
    assert b"words words" not in harness.received[-1]


@pytest.mark.parametrize("point", POINTS)
def test_R13_X4_a_server_killed_while_it_compacts_goes_on_and_compacts_once(point: str, tmp_path: Path):
    with Harness(tmp_path, summary_or_words) as harness:
        (harness.agent / "AGENT.md").write_text(AGENT)
        with harness.serve():
            thread = talked(harness, LONG, LONG, "And now?")
        before, name = harness.log(thread), new_id()
        with harness.crash(point, 1) as dying:
            compact(harness, thread, name)
            assert dying.wait() == KILLED
        with harness.serve():
            check_compacted(harness, thread, name, before)


@pytest.mark.parametrize("count", [1, 20])
def test_R12_X4_a_rollback_or_undo_that_a_server_died_over_is_there_whole_or_not_at_all(count: int, tmp_path: Path):
    with Harness(tmp_path, summary_or_words) as harness:
        with harness.serve():
            thread = talked(harness, "One", "Two", "Three")
        before = harness.log(thread)
        users = [entry.id for entry in view(before).messages if entry.role == "user"]
        with harness.serve() as dying:
            answer_count = turn_back_until_it_dies(dying, thread, users, count)
        log = harness.log(thread)
        markers = log[len(before) :]
        assert list(log[: len(before)]) == list(before)
        assert [type(one) for one in markers] == [(RolledBack, Undone)[place % 2] for place in range(len(markers))]
        # The answer to the last may have been lost, nothing else.
        assert len(markers) - answer_count in (0, 1)
        with harness.serve():
            row = request(harness.url, "GET", f"/api/v1/agent/threads/{thread}").json
            assert row["canUndo"] is view(log).can_undo
            run(harness.url, ask("Go on.", thread=thread))
            words = [word.encode() in harness.received[-1] for word in ("One", "Two", "Three")]
            assert words == [any(entry.id == id for entry in view(log).messages) for id in users]


def test_R12_X4_a_fork_that_a_server_died_over_has_no_part_of_a_folder(tmp_path: Path):
    with Harness(tmp_path, summary_or_words) as harness:
        with harness.serve():
            thread = talked(harness, "One")
        folders = harness.data / "workspaces"
        many_files(folders / thread)
        with harness.serve() as dying:
            forking = threading.Thread(target=fork, args=(harness, thread))
            forking.start()
            wait_for(lambda: sum(1 for _ in folders.glob(f"*{INCOMPLETE}/*")) >= 1, "part of a copy")
            dying.kill()
            forking.join()
        assert len(list(folders.glob(f"*{INCOMPLETE}"))) == 1
        with harness.serve():
            threads = request(harness.url, "GET", "/api/v1/agent/threads").json["threads"]
            forked = [str(row["id"]) for row in cast("list[Mapping[str, Json]]", threads) if row["id"] != thread]
            assert (len(forked), (folders / forked[0]).exists()) == (1, False)
            wait_for(lambda: [one.name for one in folders.iterdir()] == [thread], "the rest of it to be swept")
            # Nothing keeps it from being forked again.
            again = fork(harness, thread)
            assert len(list((folders / again).iterdir())) == FILES


def many_files(folder: Path) -> None:
    folder.mkdir(parents=True)
    for number in range(FILES):
        (folder / f"{number}.txt").write_bytes(b"x" * 4_096)


def fork(harness: Harness, thread: str) -> str:
    with suppress(OSError, http.client.HTTPException):
        return str(request(harness.url, "POST", f"/api/v1/agent/threads/{thread}/fork", {}).json["id"])
    return ""


def turn_back_until_it_dies(server: ServerProcess, thread: str, users: Sequence[str], count: int) -> int:
    """Roll back and undo until the server, killed at a request, is dead. Return the number of answers."""
    path, answer_count = f"/api/v1/agent/threads/{thread}", 0
    with suppress(OSError, http.client.HTTPException):
        while True:
            body: Json = {"messageId": users[answer_count % len(users)]}
            if answer_count == count:
                threading.Thread(target=server.kill).start()
            reply = request(server.url, "POST", f"{path}/{'undo' if answer_count % 2 else 'rollback'}", body)
            assert reply.status == 200
            answer_count += 1
    return answer_count
