"""Files over many turns: rollback, fork, deletion and crashes (F4, P3, P10, X4)."""

import zlib
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from threading import Event

import pytest

from recto.conversation.json import Json, load_object
from recto.ids import new_id
from recto.testing.model_server import Answer, failure
from tests.api.forms import file
from tests.end_to_end.files import (
    ANN,
    ATTACHMENTS,
    THREADS,
    FileWorld,
    Talk,
    a_run,
    base64_of,
    binary,
    calling,
    inline,
    part,
    reading,
    rows,
    words,
)
from tests.files.heads import PNG
from tests.support.client import RUNS, Reader, start
from tests.support.s3 import bucket_server
from tests.waiting import wait_for

pytestmark = pytest.mark.full

NOTES, PLANS = file("notes.txt", b"Buy milk."), file("plans.md", b"# Plans\nRest.")
OF_THREAD = "(SELECT id FROM runs WHERE thread = ?)"
ASK_ME: Json = {"name": "ask_me", "description": "Ask the user.", "parameters": {"type": "object"}}


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[FileWorld]:
    world = FileWorld(tmp_path_factory.mktemp("turns"))
    world.write_agent("always", files=", mode: always")
    with world:
        yield world


def test_F4_a_file_that_a_rollback_hides_is_read_by_its_id_and_so_it_is_in_forks_of_a_deleted_thread(world: FileWorld):
    talk, (notes, plans) = Talk(), world.upload(NOTES, PLANS)
    first, second = world.attach(talk, notes), world.attach(talk, plans)
    forks = [world.ask("POST", f"{THREADS}/{talk.thread}/fork", {}).json["id"]]
    hidden = {"messageId": world.users(talk.thread)[-1].id}
    assert world.ask("POST", f"{THREADS}/{talk.thread}/rollback", hidden).status == 200
    turn = world.say(talk, "Read both.", reading(f"{second}-0", f"{first}-0"))
    assert turn.contents == ["# Plans\nRest.", "Buy milk."]
    assert second not in str(turn.pages[0])
    assert f"<id>{first}-0</id>" in str(turn.pages[0])
    forks.append(world.ask("POST", f"{THREADS}/{talk.thread}/fork", {}).json["id"])
    world.delete_thread(talk.thread)
    for fork in forks:
        turn = world.say(Talk(thread=str(fork)), "Read both.", reading(f"{second}-0", f"{first}-0"))
        assert turn.contents == ["# Plans\nRest.", "Buy milk."]


def test_F4_a_deleted_file_is_gone_from_pages_and_says_so_when_it_is_read(world: FileWorld):
    talk = Talk()
    notes, plans, photo = world.upload(NOTES, PLANS, file("photo.png", PNG + b"deleted"))
    r = world.attach(talk, notes, plans, photo)
    assert base64_of(PNG + b"deleted") in str(world.say(talk, "Look.").pages[0][1])
    for deleted_file in (notes, photo):
        assert world.ask("DELETE", f"{ATTACHMENTS}/{deleted_file['id']}").status == 200
        assert world.get(world.page_url(deleted_file, talk.thread)).status == 404
    turn = world.say(talk, "Read them.", reading(f"{r}-0", f"{r}-1"))
    assert turn.contents == [
        "Error: notes.txt was deleted, so it cannot be read. Say so, and ask for it again if it is needed.",
        "# Plans\nRest.",
    ]
    assert turn.pages[0][1]["content"] == (
        "<system-reminder>\n# Input Files\nFiles available to the user in this turn:\n\n"
        f"<file>\n<id>{r}-0</id>\n<name>notes.txt</name>\n<type>document</type>\n</file>\n"
        f"<file>\n<id>{r}-1</id>\n<name>plans.md</name>\n<type>document</type>\n"
        f"<url>{world.page_url(plans, talk.thread)}</url>\n</file>\n"
        f"<file>\n<id>{r}-2</id>\n<name>photo.png</name>\n<type>image</type>\n</file>\n"
        f"These images cannot be shown to this model. Do not guess what they show: {r}-2\n"
        "</system-reminder>\n\nHere."
    )


def test_P3_a_turn_goes_on_with_the_same_files_under_fresh_urls(world: FileWorld):
    talk, (notes, photo) = Talk(), world.upload(NOTES, file("photo.png", PNG))
    turn = world.say(talk, [words("Ask me."), part(notes), binary(photo)], calling("ask_me", "ask-1"), tools=[ASK_ME])
    assert turn.last["outcome"] == {"type": "success", "pendingToolCallIds": ["ask-1"]}
    until = datetime.now(UTC) + timedelta(hours=3)
    fresh = [{**row, "url": world.signer.url(str(row["id"]), str(row["name"]), until)} for row in (notes, photo)]
    assert [row["url"] for row in fresh] != [notes["url"], photo["url"]]
    (message,) = rows(turn.body["messages"])
    again: Json = {**message, "content": [words("Ask me."), part(fresh[0]), binary(fresh[1])]}
    result: Json = {"id": new_id(), "role": "tool", "toolCallId": "ask-1", "content": "yes"}
    next_run = world.play(talk, {**turn.body, "runId": new_id(), "messages": [again, result]})
    assert next_run.pages[0][1] == turn.pages[0][1]
    assert [message["role"] for message in next_run.pages[0]] == ["system", "user", "assistant", "tool"]
    (user,) = world.users(talk.thread)
    # Ids that no page showed are not kept.
    file_ids = world.column("SELECT id FROM file_refs WHERE thread = ? ORDER BY id", talk.thread)
    assert file_ids == [f"{user.response_id}-{place}".encode() for place in (0, 1)]


def test_P10_D3_neither_bytes_nor_signatures_are_stored_anywhere_but_in_pages(world: FileWorld):
    secret = b"A sentence that only this file has, and no table."
    talk, (notes,) = Talk(), world.upload(NOTES)
    turn = world.say(talk, [words("Here."), part(notes), inline("document", secret, "secret.txt", "text/plain")])
    picture = [words("And a picture."), inline("image", PNG, "p.png", "image/png")]
    world.say(talk, picture, calling("ask_me", "ask-1", file=f"{world.response_id(talk.thread)}-0"), tools=[ASK_ME])
    signature = str(notes["url"]).rpartition("=")[2]
    assert signature not in turn.requests[0].body.decode()
    queries = (
        "SELECT body FROM log WHERE thread = ?",
        "SELECT input FROM runs WHERE thread = ?",
        f"SELECT body FROM events WHERE run IN {OF_THREAD}",
        "SELECT body FROM file_refs WHERE thread = ?",
    )
    manifests = world.column(f"SELECT manifest FROM calls WHERE run IN {OF_THREAD}", talk.thread)
    stored_values = [one for query in queries for one in world.column(query, talk.thread)]
    stored_bytes = b"\n".join([*stored_values, *map(zlib.decompress, manifests)])
    for part_of_turn in (b"ask-1", b'"parts"', str(notes["id"]).encode()):
        assert part_of_turn in stored_bytes
    for hidden in (b"signature", signature.encode(), base64_of(secret).encode(), secret, base64_of(PNG).encode()):
        assert hidden not in stored_bytes, hidden


def test_X4_a_run_with_files_that_was_killed_goes_on_with_the_same_page(tmp_path: Path):
    with FileWorld(tmp_path) as world:
        notes, photo = world.upload(NOTES, file("photo.png", PNG))
        talk, gate = Talk(), Event()
        own = inline("document", b"Inline.", "i.txt", "text/plain")
        body = a_run(talk, [words("Here."), part(notes), part(photo), own])
        world.answers[:] = [Answer(text="I was held up.", hold=gate, hold_after=2)]
        start(world.url, body, token=ANN)
        assert world.model.wait_requests(1)[0].wait_held()
        world.end(kill=True)
        world.answers[:] = []
        world.start()
        Reader(lambda: world.url, str(body["runId"]), token=ANN).wait()
        gate.set()
        first, second = world.model.requests
        assert first.body == second.body
        r = world.response_id(talk.thread)
        assert world.say(talk, "Read.", reading(f"{r}-0", f"{r}-2")).contents == ["Buy milk.", "Inline."]
        assert world.ask("GET", f"{RUNS}/{body['runId']}").json["status"] == "finished"


def test_F4_an_answer_that_is_asked_for_again_before_a_word_was_heard_has_the_turns_id(world: FileWorld):
    talk, (notes,) = Talk(), world.upload(NOTES)
    turn = world.say(talk, [words("Here."), part(notes)], failure(500), Answer(text="Yes."))
    ids = [received.event["messageId"] for received in turn.events if received.event["type"] == "TEXT_MESSAGE_START"]
    assert ids == [world.response_id(talk.thread)]
    assert turn.requests[0].body == turn.requests[1].body


def test_X4_a_server_killed_while_it_reads_documents_goes_on_and_tells_the_run_from_its_start(world: FileWorld):
    rows_of_csv = b"".join(b"%d,some words in a cell,%d\n" % (number, number * 7) for number in range(200_000))
    (large,) = world.upload(file("large.csv", rows_of_csv))
    body = a_run(Talk(agent="always"), [words("So?"), part(large)])
    assert world.post(body).status == 202
    run, thread = str(body["runId"]), str(body["threadId"])
    wait_for(lambda: any(b"ACTIVITY_SNAPSHOT" in event for event in told_of(world, run)))
    assert len(world.users(thread)) == 1
    world.restart(kill=True)
    wait_for(lambda: world.ask("GET", f"{RUNS}/{run}").json["status"] == "finished")
    types = [str((load_object(event) or {})["type"]) for event in told_of(world, run)]
    assert (types[0], types.count("RUN_STARTED"), types[-1]) == ("RUN_STARTED", 1, "RUN_FINISHED")
    world.forget_all()


def told_of(world: FileWorld, run: str) -> list[bytes]:
    query = "SELECT body FROM events WHERE run IN (SELECT id FROM runs WHERE name = ?) ORDER BY number"
    return world.column(query, run)


def test_F5_files_of_a_bucket_are_read_after_a_restart_and_gone_once_deleted(tmp_path: Path):
    with bucket_server() as bucket, FileWorld(tmp_path, storage_url=bucket.url()) as world:
        talk, (notes,) = Talk(), world.upload(NOTES)
        id = f"{world.attach(talk, notes)}-0"
        world.restart()
        assert world.say(talk, "What is to buy?", reading(id)).contents == ["Buy milk."]
        assert world.ask("DELETE", f"{ATTACHMENTS}/{notes['id']}").status == 200
        assert world.get(str(notes["url"])).status == 404
