"""R12 over real HTTP: files that a tool changed are told since a turn, put back, and that is taken back."""

from collections.abc import Mapping
from pathlib import Path
from typing import cast

import pytest

from recto.conversation.json import Json
from recto.ids import new_id
from recto.testing.model_server import Answer, Call
from tests.api.scripted_server import Scripted
from tests.support.client import HttpReply, ask, request

THREADS = "/api/v1/agent/threads"
DONE = Answer(text="It is done.")


@pytest.fixture
def work(shared_folder: Path) -> Path:
    """Where threads have folders of their own."""
    return shared_folder / "data" / "workspaces"


@pytest.fixture
def project(shared_folder: Path) -> Path:
    return shared_folder / "project"


def play(server: Scripted, thread: str, *calls: tuple[str, Mapping[str, str]], agent: str = "own") -> str:
    """A turn in which the model makes these calls. Returns the id of its user message."""
    own_calls = [
        Call(name=name, arguments=str(dict(arguments)).replace("'", '"'), id=new_id()) for name, arguments in calls
    ]
    server.answers[:] = [Answer(calls=(call,)) for call in own_calls] + [DONE]
    body = ask("Go on.", thread=thread, forwardedProps={"agent": agent})
    reply = server.post(body)
    assert reply.status == 202, reply.body
    server.reader(str(reply.json["taskId"])).wait()
    return str(cast("list[Mapping[str, Json]]", body["messages"])[0]["id"])


def put(path: str, text: str) -> tuple[str, Mapping[str, str]]:
    return "put", {"path": path, "text": text}


def changes(server: Scripted, thread: str, since: str) -> list[tuple[Json, Json]]:
    rows = server.rows(f"/threads/{thread}/files/changes?since={since}", "changes")
    assert all(row["kept"] is True for row in rows)
    return [(row["path"], row["change"]) for row in rows]


def put_back(server: Scripted, thread: str, body: Mapping[str, Json]) -> HttpReply:
    return request(server.url, "POST", f"{THREADS}/{thread}/files/restore", body, token=server.token)


def test_R12_files_are_put_back_as_before_a_turn_and_that_is_taken_back(server: Scripted, work: Path):
    thread = new_id()
    first = play(server, thread, put("a.txt", "one"), put("b/c.txt", "two"))
    second = play(server, thread, put("a.txt", "three"), put("b/c.txt", ""), put("new.txt", "four"))
    assert changes(server, thread, second) == [("a.txt", "changed"), ("b/c.txt", "deleted"), ("new.txt", "created")]
    assert changes(server, thread, first) == [("a.txt", "created"), ("new.txt", "created")]
    done = put_back(server, thread, {"messageId": second})
    assert (done.status, done.json["restored"], done.json["left"]) == (200, ["a.txt", "b/c.txt", "new.txt"], [])
    assert {path.name: path.read_text() for path in (work / thread).rglob("*.txt")} == {"a.txt": "one", "c.txt": "two"}
    assert changes(server, thread, second) == []
    undone = put_back(server, thread, {"snapshot": done.json["undo"]})
    assert undone.json["restored"] == ["a.txt", "b/c.txt", "new.txt"]
    assert (work / thread / "a.txt").read_text() == "three"
    some = put_back(server, thread, {"messageId": second, "paths": ["new.txt", "nowhere.txt"]})
    assert some.json["restored"] == ["new.txt"]
    assert sorted(path.name for path in (work / thread).iterdir()) == ["a.txt", "b"]


EITHER = "messageId: name either a message in messageId or a snapshot, not both"
PATHS = "paths: must be a list of up to 10,000 paths, each a string"
REJECTIONS: list[tuple[Mapping[str, Json], int, str]] = [
    ({"messageId": "nobody"}, 404, "nobody"),
    ({"snapshot": "nowhere"}, 404, "nowhere"),
    ({"snapshot": "../turns/x"}, 404, ""),
    ({"snapshot": "a" * 5_000}, 404, ""),
    ({}, 422, EITHER),
    ({"messageId": "a", "snapshot": "b"}, 422, EITHER),
    ({"messageId": 1}, 422, "body.messageId: must be a string, is a number"),
    ({"messageId": "a", "paths": "a.txt"}, 422, PATHS),
    ({"messageId": "a", "paths": ["a.txt", 1]}, 422, PATHS),
    ({"messageId": "a", "path": ["a.txt"]}, 422, "path: is unknown; known are messageId, snapshot, paths"),
]


def test_R12_what_cannot_be_put_back_is_refused_in_words(server: Scripted):
    thread = new_id()
    play(server, thread, put("a.txt", "one"))
    for body, status, words in REJECTIONS:
        rejection = put_back(server, thread, body)
        assert (rejection.status, words in str(rejection.json["detail"])) == (status, True), rejection.body
    rejection = request(server.url, "GET", f"{THREADS}/{thread}/files/changes", token=server.token)
    assert (rejection.status, rejection.json["detail"]) == (422, "since: is missing")


def test_R12_a_fork_has_the_files_as_they_were_before_its_message(server: Scripted, work: Path):
    thread = new_id()
    play(server, thread, put("a.txt", "one"))
    second = play(server, thread, put("a.txt", "two"), put("b.txt", "three"))
    forks = [
        request(server.url, "POST", f"{THREADS}/{thread}/fork", body, token=server.token).json["id"]
        for body in ({"before": second}, {})
    ]
    results = [{path.name: path.read_text() for path in (work / str(fork)).iterdir()} for fork in forks]
    assert results == [{"a.txt": "one"}, {"a.txt": "two", "b.txt": "three"}]
    assert (work / thread / "b.txt").exists()


def test_R12_in_a_shared_folder_a_fork_copies_nothing_and_files_are_put_back(
    server: Scripted, work: Path, project: Path
):
    thread = new_id()
    first = play(server, thread, put("given.txt", "taken"), agent="shared")
    fork = request(server.url, "POST", f"{THREADS}/{thread}/fork", {}, token=server.token).json["id"]
    assert not (work / str(fork)).exists()
    assert put_back(server, thread, {"messageId": first}).json["restored"] == ["given.txt"]
    assert (project / "given.txt").read_text() == "given"


def test_R12_where_files_cannot_be_kept_the_tools_do_their_work_all_the_same(server: Scripted, work: Path):
    thread = new_id()
    (work.parent / "snapshots").mkdir(exist_ok=True)
    (work.parent / "snapshots" / thread).write_text("in the way")
    play(server, thread, put("a.txt", "one"))
    assert (work / thread / "a.txt").read_text() == "one"


def test_P17_what_was_kept_of_files_ends_with_the_thread(server: Scripted, work: Path):
    thread = new_id()
    play(server, thread, put("a.txt", "one"))
    snapshot_folder = work.parent / "snapshots" / thread
    assert snapshot_folder.is_dir()
    assert request(server.url, "DELETE", f"{THREADS}/{thread}", token=server.token).status == 200
    assert not snapshot_folder.exists()


def test_R12_a_rollback_offers_to_put_files_back_as_they_were(server: Scripted, work: Path):
    thread = new_id()
    play(server, thread, put("a.txt", "one"))
    second = play(server, thread, put("a.txt", "two"), put("b.txt", "new"))
    rolled = request(server.url, "POST", f"{THREADS}/{thread}/rollback", {"messageId": second}, token=server.token)
    assert rolled.json["content"] == "Go on."
    assert rolled.json["changedFiles"] == [
        {"path": "a.txt", "change": "changed", "kept": True},
        {"path": "b.txt", "change": "created", "kept": True},
    ]
    assert (work / thread / "a.txt").read_text() == "two"
    assert put_back(server, thread, {"messageId": second}).status == 200
    assert ((work / thread / "a.txt").read_text(), (work / thread / "b.txt").exists()) == ("one", False)


def test_R12_a_rollback_is_answered_where_what_became_of_the_files_cannot_be_told(server: Scripted, work: Path):
    thread = new_id()
    message = play(server, thread, put("a.txt", "one"))
    for number in range(200):
        (work / thread / f"{number}.txt").touch()
    rolled = request(server.url, "POST", f"{THREADS}/{thread}/rollback", {"messageId": message}, token=server.token)
    assert (rolled.status, rolled.json.get("content"), rolled.json.get("changedFiles")) == (200, "Go on.", None)
