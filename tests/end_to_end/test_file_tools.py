"""F5, F8, F9: tools and files in whole runs. External tools receive urls for ids; workspaces end with their thread."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import cast

import pytest

from recto.conversation.json import Json, load, load_object
from recto.conversation.messages import AssistantMessage
from recto.ids import new_id
from tests.api.forms import file
from tests.end_to_end.files import ANN, THREADS, FileWorld, Talk, Turn, calling, part, reading, rows, words
from tests.files.heads import MP3, PNG
from tests.support.client import ReceivedEvent, read_events
from tests.waiting import wait_for

NOTES = file("notes.txt", b"Buy milk.")

pytestmark = pytest.mark.full


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[FileWorld]:
    with FileWorld(tmp_path_factory.mktemp("tools")) as world:
        yield world


def a_tool(**properties: Json) -> Json:
    schema = {"type": "object", "properties": properties, "required": list(properties)}
    return {"name": "send", "description": "Send it.", "parameters": schema}


def arguments_in(events: Sequence[ReceivedEvent]) -> list[str]:
    return [str(received.event["delta"]) for received in events if received.event["type"] == "TOOL_CALL_ARGS"]


def stored_arguments(world: FileWorld, turn: Turn) -> list[str]:
    """Return the arguments of calls in the events and in the log as they are stored."""
    query = "SELECT body FROM events JOIN runs ON runs.id = events.run WHERE runs.name = ? ORDER BY events.number"
    events = [load_object(body) or {} for body in world.column(query, str(turn.body["runId"]))]
    replies = [entry for entry in world.log(turn.thread) if isinstance(entry, AssistantMessage)]
    logged = [call.arguments for reply in replies for call in reply.tool_calls]
    return [*[str(event["delta"]) for event in events if event["type"] == "TOOL_CALL_ARGS"], *logged]


def test_F8_a_clients_tool_gets_urls_that_work_and_all_that_is_stored_keeps_the_ids(world: FileWorld):
    talk = Talk()
    r = world.attach(talk, *world.upload(NOTES, file("photo.png", PNG), file("song.mp3", MP3)))
    arguments: dict[str, Json] = {
        "file": f"{r}-0",
        "files": [f"{r}-1", {"deep": [f"{r}-2"]}],
        f"{r}-0": "a key",
        "text": f"see {r}-0",
        "unknown": f"{r}-3",
    }
    turn = world.say(talk, "Send them.", calling("send", "c1", **arguments), tools=[a_tool()])
    again = list(read_events(world.url, str(turn.body["runId"]), token=ANN))
    (waiting,) = rows(world.ask("GET", f"{THREADS}/{talk.thread}").json["pendingCalls"])
    for arguments_text in (*arguments_in(turn.events), *arguments_in(again), str(waiting["arguments"])):
        call_arguments = cast("dict[str, Json]", load_object(arguments_text))
        first, (second, deep) = (
            call_arguments.pop("file"),
            cast("tuple[Json, dict[str, list[str]]]", call_arguments.pop("files")),
        )
        urls = [str(first), str(second), deep["deep"][0]]
        assert [world.get(url).body for url in urls] == [b"Buy milk.", PNG, MP3]
        assert call_arguments == {name: value for name, value in arguments.items() if name not in ("file", "files")}
    assert [load_object(one) for one in stored_arguments(world, turn)] == [arguments] * 2


def test_F8_P11_a_schema_that_wants_a_url_is_asked_after_ids_became_urls(world: FileWorld):
    talk = Talk()
    r = world.attach(talk, *world.upload(NOTES))
    tool = a_tool(file={"type": "string", "format": "uri", "minLength": 40})
    wrong, right = calling("send", "c1", file=f"{r}-7"), calling("send", "c2", file=f"{r}-0")
    turn = world.say(talk, "Send it.", wrong, right, tools=[tool])
    assert turn.last["outcome"] == {"type": "success", "pendingToolCallIds": ["c2"]}
    (advice,) = turn.results
    assert f"{r}-7" in advice
    assert len(turn.requests) == 2


def test_F5_a_document_in_a_clients_result_is_named_with_an_id_that_read_files_takes(world: FileWorld):
    talk, (notes,) = Talk(), world.upload(NOTES)
    turn = world.say(talk, "Fetch it.", calling("send"), tools=[a_tool()])
    (call,) = rows(world.ask("GET", f"{THREADS}/{talk.thread}").json["pendingCalls"])
    result: Json = {"id": new_id(), "role": "tool", "toolCallId": call["id"], "content": [words("done"), part(notes)]}
    body = {**turn.body, "runId": new_id(), "messages": [*rows(turn.body["messages"]), result]}
    turn = world.play(talk, cast("dict[str, Json]", body), reading(str(notes["id"])))
    assert f"[document not shown: notes.txt, id {notes['id']}]" in str(turn.pages[0][-1]["content"])
    assert [load(one) for one in turn.results] == [[{"id": notes["id"], "name": "notes.txt", "content": "Buy milk."}]]


def put_into_workspace(world: FileWorld, talk: Talk) -> Path:
    """Put a file into the thread's workspace. Return the folder."""
    r = world.attach(talk, *world.upload(file("photo.png", PNG)))
    call = calling("sandbox_fetch_user_file", file_index=f"{r}-0", target_path="in/photo.png")
    turn = world.say(talk, "Put it there.", call)
    assert turn.results == [f'{{"path":"in/photo.png","bytes":{len(PNG)},"replaced":false}}']
    workspace = world.data / "workspaces" / talk.thread
    assert (workspace / "in" / "photo.png").read_bytes() == PNG
    return workspace


def test_F9_P17_a_workspace_ends_with_its_thread_or_user_and_a_start_sweeps_those_without_a_thread(world: FileWorld):
    talks = [Talk(), Talk()]
    deleted_id, kept_id = [put_into_workspace(world, talk) for talk in talks]
    world.delete_thread(talks[0].thread)
    assert not deleted_id.exists()
    orphan = world.data / "workspaces" / new_id()
    (orphan / "in").mkdir(parents=True)
    world.restart()
    wait_for(lambda: not orphan.exists(), "the workspace of no thread to be swept")
    assert (kept_id / "in" / "photo.png").read_bytes() == PNG
    assert world.ask("DELETE", "/api/v1/agent/me?confirm=ann").status == 200
    assert not kept_id.exists()
    world.forget_all()
