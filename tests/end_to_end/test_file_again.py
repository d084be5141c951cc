"""P3, F1, F4, P10: turns that go on, forks and replays keep what is the turn's, and store nothing they should not."""

from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from pathlib import Path

import pytest

from recto.conversation.json import Json, dump
from recto.conversation.log import RolledBack
from recto.ids import new_id
from recto.testing.model_server import Answer, Call
from tests.end_to_end.files import FileWorld, Talk, Turn, a_run, part, words
from tests.end_to_end.test_file_turns import ASK_ME, NOTES, THREADS, attach, contents, reading

pytestmark = pytest.mark.full

ATTACHMENTS, DATASETS, EXPORT = "/api/v1/agent/attachments", "/api/v1/agent/datasets", "/api/v1/agent/me/export"


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[FileWorld]:
    with FileWorld(tmp_path_factory.mktemp("again")) as made:
        yield made


def asking(id: str, **arguments: Json) -> Answer:
    return Answer(calls=(Call(name="ask_me", arguments=dump(arguments).decode(), id=id),))


def answered(body: Mapping[str, Json], call: str, *before: Json, **rest: Json) -> dict[str, Json]:
    """The run that goes on with a turn: the user message once more, and the result of a call."""
    messages = body["messages"]
    assert isinstance(messages, list)
    result = {"id": new_id(), "role": "tool", "toolCallId": call, "content": "x"}
    return {**body, "runId": new_id(), "messages": [*messages, *before, result], **rest}


def last_words(turn: Turn) -> str:
    return str([message for message in turn.pages[-1] if message["role"] == "user"][-1]["content"])


def test_F1_a_turn_that_goes_on_keeps_its_time_zone_and_its_datasets(world: FileWorld):
    talk, handbook = Talk(), world.ask("POST", DATASETS, {"name": "Handbook"}).json
    props = {"agent": talk.agent, "datasets": [str(handbook["id"]).upper()], "timezone": "Asia/Shanghai"}
    body = {**a_run(talk, [words("Here.")], tools=[ASK_ME]), "forwardedProps": props}
    first = world.play(talk, body, asking("ask-1"))
    assert "<name>Handbook</name>" in last_words(first)
    others: list[dict[str, Json]] = [{}, {"timezone": "America/Lima", "datasets": []}]
    for number, other in enumerate(others, start=1):
        going_on = answered(body, f"ask-{number}", forwardedProps={"agent": talk.agent, **other})
        assert last_words(world.play(talk, going_on, asking(f"ask-{number + 1}"))) == last_words(first)


def test_F4_in_a_fork_even_what_a_rollback_had_hidden_is_read_by_its_id(world: FileWorld):
    talk, (notes,) = Talk(), world.upload(NOTES)
    world.say(talk, "Hello.")
    prefix = attach(world, talk, notes)
    hidden = world.users(talk.thread)[-1].id
    world.append(talk.thread, RolledBack(id=new_id(), to=hidden, time=datetime.now(UTC)))
    fork = Talk(thread=str(world.ask("POST", f"{THREADS}/{talk.thread}/fork", {}).json["id"]))
    (shown,) = contents(world.say(fork, "Read.", reading(f"{prefix}-0")))
    assert NOTES.body.decode() in str(shown)


def test_P10_a_client_s_copy_of_a_call_with_urls_is_stored_nowhere(world: FileWorld):
    talk, (notes,) = Talk(), world.upload(NOTES)
    body = a_run(talk, [words("Here."), part(notes)], tools=[ASK_ME])
    world.play(talk, body, asking("ask-0"))
    id = f"{world.response_id(talk.thread)}-0"
    turn = world.play(talk, answered(body, "ask-0"), asking("ask-1", file=id))
    (arguments,) = [str(sent.event["delta"]) for sent in turn.events if sent.event["type"] == "TOOL_CALL_ARGS"]
    assert "signature=" in arguments
    function = {"name": "ask_me", "arguments": arguments}
    copy = {"id": "a", "role": "assistant", "toolCalls": [{"id": "ask-1", "type": "function", "function": function}]}
    assert world.play(talk, answered(body, "ask-1", copy)).last["type"] == "RUN_FINISHED"
    stored = world.column("SELECT input FROM runs WHERE thread = ?", talk.thread)
    assert len(stored) == 3
    assert not any(b"signature=" in one for one in stored)
    lines = world.ask("GET", EXPORT).body.splitlines()
    # Pages that were sent have the urls the model was shown.
    assert [line for line in lines if b"signature=" in line and not line.startswith(b'{"type":"call"')] == []


def test_F4_ids_of_a_run_that_goes_on_with_a_turn_are_offered_to_nobody(world: FileWorld):
    talk, (notes,) = Talk(), world.upload(NOTES)
    body = a_run(talk, [words("Here."), part(notes)], tools=[ASK_ME])
    world.play(talk, body, asking("ask-1"))
    world.play(talk, answered(body, "ask-1"), asking("ask-2"))
    turn = world.play(talk, answered(body, "ask-2"), reading("nope"))
    (shown,) = contents(turn)
    assert str(shown).count(f"{world.response_id(talk.thread)}-0") == 1
    kept = world.column("SELECT id FROM file_refs WHERE thread = ?", talk.thread)
    assert kept == [f"{world.response_id(talk.thread)}-0".encode()]


def test_F9_a_deleted_user_leaves_no_workspace(tmp_path: Path):
    with FileWorld(tmp_path) as world:
        talk, (notes,) = Talk(), world.upload(NOTES)
        id = f"{attach(world, talk, notes)}-0"
        arguments = dump({"file_index": id, "target_path": "a.txt"}).decode()
        world.say(talk, "Copy it.", Answer(calls=(Call(name="sandbox_fetch_user_file", arguments=arguments, id="c"),)))
        folder = tmp_path / "data" / "workspaces" / talk.thread
        assert (folder / "a.txt").read_bytes() == NOTES.body
        assert world.ask("DELETE", "/api/v1/agent/me?confirm=ann").status == 200
        assert not folder.exists()
        world.forget_all()
