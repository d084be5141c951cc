"""F8, F9, C5: a developer's own tools that act elsewhere get urls, and a thread's workspace ends with the thread."""

from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

from recto.conversation.json import Json, dump
from recto.conversation.messages import AssistantMessage
from recto.ids import new_id
from recto.testing.model_server import Answer, Call
from tests.api.forms import file
from tests.end_to_end.files import FileWorld, Talk, Turn, part, words
from tests.files.heads import PNG
from tests.waiting import wait_for

ROOM = 1_000
NOTES = file("notes.txt", b"Buy milk.")
SETTINGS = "---\ntools: [sandbox_fetch_user_file]\nfile_input: true\n---\nYou are careful.\n"

pytestmark = pytest.mark.full

TOOLS = '''
"""Tools that act elsewhere, and one that does not."""

from urllib.request import urlopen

from pydantic import HttpUrl

from recto import tool


@tool(external=True)
def fetch(urls: list[HttpUrl], about: str) -> str:
    """Say what is behind some urls."""
    found = [urlopen(str(url)).read().decode("latin-1") for url in urls]
    return f"{about}: {found}"


@tool
def show(urls: list[str], about: str) -> str:
    """Say what it was given."""
    return f"{about}: {urls}"
'''


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[FileWorld]:
    folder = tmp_path_factory.mktemp("external")
    agent = folder / "agents" / "reaching"
    agent.mkdir(parents=True)
    (agent / "AGENT.md").write_text(SETTINGS, encoding="utf-8")
    (agent / "tools.py").write_text(TOOLS, encoding="utf-8")
    with FileWorld(folder, workspace_bytes=ROOM) as made:
        yield made


def with_files(world: FileWorld, talk: Talk, *files: Mapping[str, Json]) -> str:
    """A turn with files. Returns the prefix of their ids."""
    world.say(talk, [words("Here."), *map(part, files)])
    return world.response_id(talk.thread)


def calling(name: str, arguments: Json) -> Answer:
    return Answer(calls=(Call(name=name, arguments=dump(arguments).decode(), id="c1"),))


def result_text(turn: Turn, type: str, field: str) -> str:
    return "".join([str(sent.event[field]) for sent in turn.events if sent.event["type"] == type])


def logged_arguments(world: FileWorld, thread: str) -> list[str]:
    replies = [entry for entry in world.log(thread) if isinstance(entry, AssistantMessage)]
    return [call.arguments for reply in replies for call in reply.tool_calls]


def test_F8_C5_a_tool_marked_external_gets_urls_that_work_and_all_that_is_stored_keeps_the_ids(world: FileWorld):
    talk = Talk(agent="reaching")
    r = with_files(world, talk, *world.upload(NOTES, file("photo.png", PNG)))
    asked = calling("fetch", {"urls": [f"{r}-0", f"{r}-1"], "about": f"see {r}-0"})
    turn = world.say(talk, "Look at them.", asked)
    behind = ["Buy milk.", PNG.decode("latin-1")]
    assert result_text(turn, "TOOL_CALL_RESULT", "content") == f"see {r}-0: {behind}"
    assert result_text(turn, "TOOL_CALL_ARGS", "delta") == asked.calls[0].arguments
    assert logged_arguments(world, talk.thread) == [asked.calls[0].arguments]
    assert asked.calls[0].arguments in str([message.get("tool_calls") for message in turn.pages[-1]])


def test_F8_C5_a_tool_without_the_mark_gets_the_ids_as_the_model_wrote_them(world: FileWorld):
    talk = Talk(agent="reaching")
    r = with_files(world, talk, *world.upload(NOTES))
    turn = world.say(talk, "Show it.", calling("show", {"urls": [f"{r}-0"], "about": "given"}))
    assert result_text(turn, "TOOL_CALL_RESULT", "content") == f"given: {[f'{r}-0']}"


# Workspaces


def put_into_workspace(world: FileWorld, talk: Talk) -> Path:
    """A file in the thread's workspace. Returns the folder."""
    r = with_files(world, talk, *world.upload(NOTES))
    arguments = {"file_index": f"{r}-0", "target_path": "in/notes.txt"}
    world.say(talk, "Put it there.", calling("sandbox_fetch_user_file", arguments))
    workspace = world.data / "workspaces" / talk.thread
    assert (workspace / "in" / "notes.txt").read_bytes() == b"Buy milk."
    return workspace


def test_F9_P17_a_workspace_is_gone_once_its_thread_is_deleted_and_no_other_is(world: FileWorld):
    talk, other = Talk(agent="reaching"), Talk(agent="reaching")
    workspace, kept = put_into_workspace(world, talk), put_into_workspace(world, other)
    world.delete_thread(talk.thread)
    assert not workspace.exists()
    assert kept.exists()


def test_F9_a_server_sweeps_workspaces_whose_thread_is_gone(world: FileWorld):
    kept = put_into_workspace(world, Talk(agent="reaching"))
    orphan = world.data / "workspaces" / new_id()
    (orphan / "in").mkdir(parents=True)
    (orphan / "in" / "notes.txt").write_text("Buy milk.")
    world.restart()
    wait_for(lambda: not orphan.exists(), "the workspace of no thread to be swept")
    assert (kept / "in" / "notes.txt").read_bytes() == b"Buy milk."
