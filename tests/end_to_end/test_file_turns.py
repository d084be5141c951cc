"""F4, P3, P4, P9, P10, P13: files over many turns, through rollback, fork, deletion and restarts; and refusals."""

import asyncio
import re
import zlib
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from threading import Event
from typing import cast

import pytest

from recto.conversation.input.input_rules import NOT_SIGNED
from recto.conversation.json import Json, dump, load, load_object
from recto.conversation.log import RolledBack
from recto.ids import new_id
from recto.store.store import open_store
from recto.store.threads.cleaning import Retention
from recto.testing.client import RUNS, Reader, read_events, start
from recto.testing.model_server import Answer, Call, failure
from tests.api.forms import file
from tests.end_to_end.files import (
    ANN,
    ATTACHMENTS,
    BOB,
    FileWorld,
    Talk,
    Turn,
    a_run,
    base64_of,
    binary,
    inline,
    part,
    rows,
    words,
)
from tests.files.heads import PNG

pytestmark = pytest.mark.full

THREADS = "/api/v1/agent/threads"
NOTES, PLANS = file("notes.txt", b"Buy milk."), file("plans.md", b"# Plans\nRest.")
MANIFESTS = "SELECT manifest FROM calls WHERE run IN (SELECT id FROM runs WHERE thread = ?)"
ASK_ME: Json = {"name": "ask_me", "description": "Ask the user.", "parameters": {"type": "object"}}


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[FileWorld]:
    with FileWorld(tmp_path_factory.mktemp("turns")) as made:
        yield made


def reading(*ids: str) -> Answer:
    return Answer(calls=(Call(name="read_files", arguments=dump({"ids": list(ids)}).decode(), id="c1"),))


def read(turn: Turn) -> list[Mapping[str, Json]]:
    """What read_files answered, file by file."""
    (shown,) = [str(sent.event["content"]) for sent in turn.events if sent.event["type"] == "TOOL_CALL_RESULT"]
    return rows(load(shown))


def contents(turn: Turn) -> list[Json]:
    return [row["content"] for row in read(turn)]


def attach(world: FileWorld, talk: Talk, *files: Mapping[str, Json], say: str = "Here.") -> str:
    """A turn with files. Returns the prefix of their ids."""
    world.say(talk, [words(say), *map(part, files)])
    return world.response_id(talk.thread)


def test_F4_what_a_rollback_hides_can_still_be_read_by_its_id(world: FileWorld):
    talk, (notes, plans) = Talk(), world.upload(NOTES, PLANS)
    first, second = attach(world, talk, notes), attach(world, talk, plans)
    world.append(talk.thread, RolledBack(id=new_id(), to=world.users(talk.thread)[-1].id, time=datetime.now(UTC)))
    turn = world.say(talk, "Read both.", reading(f"{second}-0", f"{first}-0"))
    assert contents(turn) == ["# Plans\nRest.", "Buy milk."]
    assert second not in str(turn.pages[0])
    assert f"<id>{first}-0</id>" in str(turn.pages[0])


def test_F4_a_fork_has_the_same_ids_and_keeps_its_files_when_the_other_thread_is_deleted(world: FileWorld):
    talk, (notes, plans) = Talk(), world.upload(NOTES, PLANS)
    first, second = attach(world, talk, notes), attach(world, talk, plans)
    past = world.say(talk, "So?").pages[0][1:4]
    body = {"before": world.users(talk.thread)[-1].id}
    fork = Talk(thread=str(world.ask("POST", f"{THREADS}/{talk.thread}/fork", body).json["id"]))
    early = {"before": world.users(talk.thread)[1].id}
    short = Talk(thread=str(world.ask("POST", f"{THREADS}/{talk.thread}/fork", early).json["id"]))
    world.delete_thread(talk.thread)
    for copy in (fork, short):
        turn = world.say(copy, "Read both.", reading(f"{second}-0", f"{first}-0"))
        assert contents(turn) == ["# Plans\nRest.", "Buy milk."]
    assert world.say(fork, "And?").pages[0][1:4] == past


def test_F4_a_deleted_file_is_gone_from_pages_and_says_so_when_it_is_read(world: FileWorld):
    talk = Talk()
    notes, plans, photo = world.upload(NOTES, PLANS, file("photo.png", PNG + b"deleted"))
    r = attach(world, talk, notes, plans, photo)
    before = str(world.say(talk, "Look.").pages[0][1])
    assert base64_of(PNG + b"deleted") in before
    for gone in (notes, photo):
        assert world.ask("DELETE", f"{ATTACHMENTS}/{gone['id']}").status == 200
        assert world.get(world.page_url(gone, talk.thread)).status == 404
    turn = world.say(talk, "Read them.", reading(f"{r}-0", f"{r}-1"))
    assert contents(turn) == [
        "Error: notes.txt was deleted, so it cannot be read. Say so, and ask for it again if it is needed.",
        "# Plans\nRest.",
    ]
    shown = str(turn.pages[0][1]["content"])
    kept = world.page_url(plans, talk.thread)
    assert shown == (
        "<system-reminder>\n# Input Files\nFiles available to the user in this turn:\n\n"
        f"<file>\n<id>{r}-0</id>\n<name>notes.txt</name>\n<type>document</type>\n</file>\n"
        f"<file>\n<id>{r}-1</id>\n<name>plans.md</name>\n<type>document</type>\n<url>{kept}</url>\n</file>\n"
        f"<file>\n<id>{r}-2</id>\n<name>photo.png</name>\n<type>image</type>\n</file>\n"
        f"These images cannot be shown to this model. Do not guess what they show: {r}-2\n"
        "</system-reminder>\n\nHere."
    )


def test_F4_ids_of_a_larger_limit_resolve_under_a_smaller_one_and_after_a_restart(world: FileWorld):
    world.write_agent("shrinking", most=2)
    world.restart()
    talk, (notes, plans) = Talk(agent="shrinking"), world.upload(NOTES, file("50%25.md", b"Half."))
    r = attach(world, talk, notes, plans)
    past = world.say(talk, "So?").pages[0][1]
    world.restart()
    assert world.say(talk, "So?").pages[0][1] == past
    world.write_agent("shrinking", most=1)
    world.restart()
    turn = world.say(talk, "Read them.", reading(f"{r}-1", f"{r}-0"))
    assert [(row["name"], row["content"]) for row in read(turn)] == [("50%.md", "Half."), ("notes.txt", "Buy milk.")]
    assert f"<id>{r}-1</id>\\n<name>50%.md</name>" in str(past)
    assert f"<id>{r}-1</id>" not in str(turn.pages[0])
    refused = world.post(a_run(talk, [words("Again."), part(notes), part(plans)]))
    assert refused.status == 422
    assert str(refused.json["detail"]).endswith("the message has 2 files; this agent takes up to 1 in one")


def pending(world: FileWorld, talk: Talk, content: Json) -> Turn:
    """A turn that waits for the client."""
    turn = world.say(talk, content, Answer(calls=(Call(name="ask_me", id="ask-1"),)), tools=[ASK_ME])
    assert turn.last["outcome"] == {"type": "success", "pendingToolCallIds": ["ask-1"]}
    return turn


def answered(turn: Turn, content: Json, answer: Json = "yes") -> dict[str, Json]:
    """The run that brings the result: the same user message, with another content of the same meaning."""
    (message,) = rows(turn.body["messages"])
    result = {"id": new_id(), "role": "tool", "toolCallId": "ask-1", "content": answer}
    return {**turn.body, "runId": new_id(), "messages": [{**message, "content": content}, result]}


def test_P3_a_turn_goes_on_with_the_same_files_under_fresh_urls(world: FileWorld):
    talk, (notes, photo) = Talk(), world.upload(NOTES, file("photo.png", PNG))
    turn = pending(world, talk, [words("Ask me."), part(notes), binary(photo)])
    r = world.response_id(talk.thread)
    until = datetime.now(UTC) + timedelta(hours=3)
    fresh = [{**row, "url": world.signer.url(str(row["id"]), str(row["name"]), until)} for row in (notes, photo)]
    assert [row["url"] for row in fresh] != [notes["url"], photo["url"]]
    next_run = world.play(talk, answered(turn, [words("Ask me."), part(fresh[0]), binary(fresh[1])]))
    assert len(world.users(talk.thread)) == 1
    assert next_run.pages[0][1] == turn.pages[0][1]
    assert [message["role"] for message in next_run.pages[0]] == ["system", "user", "assistant", "tool"]
    assert contents(world.say(talk, "Read it.", reading(f"{r}-0"))) == ["Buy milk."]


def test_P13_history_has_fresh_urls_of_files_that_are_there_and_none_of_others(world: FileWorld):
    talk, (notes, photo) = Talk(), world.upload(NOTES, file("photo.png", PNG))
    attach(world, talk, notes, photo, say="Both.")
    attach(world, talk, notes, say="One.")
    world.say(talk, "None.")

    def users() -> list[Mapping[str, Json]]:
        found = rows(world.ask("GET", f"/api/v1/agent/history?threadId={talk.thread}").json["messages"])
        return [row for row in found if row["role"] == "user"]

    both, one, none = users()
    assert (none["url"], none["files"], none["content"]) == (None, [], "None.")
    assert both["content"] == "Both."
    assert [world.get(str(row["url"])).body for row in rows(both["files"])] == [b"Buy milk.", PNG]
    named = [{name: value for name, value in row.items() if name != "url"} for row in rows(both["files"])]
    assert named == [
        {"id": notes["id"], "name": "notes.txt", "type": "document", "mimeType": "text/plain"},
        {"id": photo["id"], "name": "photo.png", "type": "image", "mimeType": "image/png"},
    ]
    assert both["url"] == rows(both["files"])[0]["url"]
    world.ask("DELETE", f"{ATTACHMENTS}/{notes['id']}")
    both, one, none = users()
    assert [row["id"] for row in rows(both["files"])] == [photo["id"]]
    assert both["url"] == rows(both["files"])[0]["url"]
    assert (one["url"], one["files"]) == (None, [])


async def forget_events(world: FileWorld) -> None:
    store = await open_store(world.database)
    try:
        while any(vars(await store.clean(Retention(events_before=datetime.now(UTC)))).values()):
            pass
    finally:
        await store.close()


def test_P7_a_snapshot_has_fresh_urls_in_messages_and_in_the_calls_of_the_client(world: FileWorld):
    talk, (notes, photo) = Talk(), world.upload(NOTES, file("photo.png", PNG))
    first = world.say(talk, [words("Here."), part(notes), part(photo)])
    r = world.response_id(talk.thread)
    arguments = dump({"file": f"{r}-0", "note": f"see {r}-0"}).decode()
    calls = (Call(name="ask_me", arguments=arguments, id="ask-1"),)
    second = world.say(talk, "Ask me.", Answer(calls=calls), tools=[ASK_ME])
    asyncio.run(forget_events(world))
    events = [sent.event for sent in read_events(world.url, str(second.body["runId"]), token=ANN)]
    assert [event["type"] for event in events] == ["RUN_STARTED", "MESSAGES_SNAPSHOT", "RUN_FINISHED"]
    user, _, _, asked = rows(events[1]["messages"])
    sources = [one["source"] for one in rows(user["content"]) if one["type"] != "text"]
    assert [world.get(str(one["value"])).body for one in rows(sources)] == [b"Buy milk.", PNG]
    function = cast("Mapping[str, str]", rows(asked["toolCalls"])[0]["function"])
    shown = load_object(function["arguments"]) or {}
    assert world.get(str(shown["file"])).body == b"Buy milk."
    assert shown["note"] == f"see {r}-0"
    world.ask("DELETE", f"{ATTACHMENTS}/{notes['id']}")
    (_, snapshot, _) = [sent.event for sent in read_events(world.url, str(first.body["runId"]), token=ANN)]
    assert [one["type"] for one in rows(rows(snapshot["messages"])[0]["content"])] == ["text", "image"]


def expired(world: FileWorld, row: Mapping[str, Json]) -> dict[str, Json]:
    past = datetime.now(UTC) - timedelta(seconds=2)
    return {**row, "url": world.signer.url(str(row["id"]), str(row["name"]), past)}


def test_P2_a_url_that_is_not_ours_or_not_valid_any_more_is_refused(world: FileWorld):
    (notes, photo) = world.upload(NOTES, file("photo.png", PNG))
    (of_bob,) = world.upload(NOTES, token=BOB)
    gone, url = world.upload(NOTES)[0], str(notes["url"])
    world.ask("DELETE", f"{ATTACHMENTS}/{gone['id']}")
    tampered = url[:-1] + ("A" if url[-1] != "A" else "B")
    urls = [
        tampered,
        url.replace("notes.txt", "other.txt"),
        url.replace(world.url, "http://127.0.0.1:1"),
        re.sub(r"signature=\d+", "signature=9999999999", url),
        str(expired(world, notes)["url"]),
        str(of_bob["url"]),
        str(gone["url"]),
        f"recto-attachment:{notes['id']}",
        "https://example.com/notes.txt",
        "",
    ]
    for bad in urls:
        reply = world.post(a_run(Talk(), [words("Here."), part(photo), part({**notes, "url": bad})]))
        assert (reply.status, reply.json["detail"]) == (422, NOT_SIGNED), bad
    reply = world.post(a_run(Talk(), [words("Here."), binary(expired(world, photo))]))
    assert (reply.status, reply.json["detail"]) == (422, NOT_SIGNED)


@pytest.fixture(scope="module")
def choosy(world: FileWorld) -> str:
    """An agent that takes next to nothing."""
    folder = world.agents / "choosy"
    folder.mkdir()
    table = "{on: true, images: false, max_files: 2, max_bytes: 20}"
    (folder / "AGENT.md").write_text(f"---\nfile_input: {table}\n---\nYou are choosy.\n", encoding="utf-8")
    folder = world.agents / "none"
    folder.mkdir()
    (folder / "AGENT.md").write_text("You take no files.\n", encoding="utf-8")
    world.restart()
    return "choosy"


def test_P9_what_an_agent_does_not_take_is_refused_at_admission_too(world: FileWorld, choosy: str):
    notes, photo, large = world.upload(NOTES, file("photo.png", PNG), file("large.txt", b"x" * 21))
    names = [file(f"{number}.txt", b"x%d" % number) for number in range(3)]
    three = world.upload(*names)
    talk = Talk(agent=choosy)
    refused: Sequence[tuple[str, Sequence[Json], str]] = [
        (choosy, [part(photo)], "photo.png: this agent takes no images; it takes documents"),
        (choosy, [part(large)], "large.txt: it has 21 bytes; this agent takes files of up to 20"),
        (choosy, [part(row) for row in three], "the message has 3 files; this agent takes up to 2 in one"),
        ("none", [part(notes)], "notes.txt: this agent takes no files; name one that does with `agent`"),
    ]
    for agent, files, why in refused:
        reply = world.post(a_run(Talk(agent=agent), [words("Here."), *files]))
        assert (reply.status, str(reply.json["detail"]).removeprefix("messages[0].content: ")) == (422, why)
    # The same file twice is one, also under another url.
    other = {**notes, "url": world.signer.url(str(notes["id"]), "notes.txt", datetime.now(UTC) + timedelta(hours=1))}
    turn = world.say(talk, [words("Here."), part(notes), part(notes), part(other), part(three[0])])
    r = world.response_id(talk.thread)
    assert re.findall(r"<id>(.+?)</id>", str(turn.pages[0][-1])) == [f"{r}-0", f"{r}-1"]


BAD_INLINE = {
    "no base64": ("a.txt", "no base64!", "a.txt: its data is no base64"),
    "nothing": ("a.txt", "", "a.txt: it is empty; send a file with something in it"),
    "a picture as text": ("a.txt", base64_of(PNG), "a.txt: its name ends in .txt, but its bytes are"),
    "text as a picture": ("a.png", base64_of(b"text"), "a.png: its name ends in .png, but its bytes are text"),
}


@pytest.mark.parametrize(("name", "data", "why"), BAD_INLINE.values(), ids=BAD_INLINE)
def test_P2_bytes_that_are_not_what_they_say_are_refused_and_nothing_is_left(
    world: FileWorld, name: str, data: str, why: str
):
    before = world.column("SELECT count(*) FROM attachments")
    good = inline("document", b"This one is good.", "good.txt", "text/plain")
    source: Json = {"type": "data", "value": data, "mimeType": "text/plain"}
    block: Json = {"type": "document", "source": source, "metadata": {"filename": name}}
    reply = world.post(a_run(Talk(), [words("Here."), block, good]))
    assert reply.status == 422
    assert str(reply.json["detail"]).startswith(why), reply.json["detail"]
    assert world.column("SELECT count(*) FROM attachments") == before


def test_P10_D3_neither_bytes_nor_signatures_are_stored_anywhere_but_in_pages(world: FileWorld):
    secret = b"A sentence that only this file has, and no table."
    talk, (notes,) = Talk(), world.upload(NOTES)
    content = [words("Here."), part(notes), inline("document", secret, "secret.txt", "text/plain")]
    turn = world.say(talk, content)
    r = world.response_id(talk.thread)
    calls = (Call(name="ask_me", arguments=dump({"file": f"{r}-0"}).decode(), id="ask-1"),)
    world.say(
        talk, [words("And a picture."), inline("image", PNG, "p.png", "image/png")], Answer(calls=calls), tools=[ASK_ME]
    )
    signature = str(notes["url"]).rpartition("=")[2]
    assert signature not in turn.requests[0].body.decode()
    stored = b"\n".join(
        world.column("SELECT body FROM log WHERE thread = ?", talk.thread)
        + world.column("SELECT input FROM runs WHERE thread = ?", talk.thread)
        + world.column("SELECT body FROM events WHERE run IN (SELECT id FROM runs WHERE thread = ?)", talk.thread)
        + [zlib.decompress(one) for one in world.column(MANIFESTS, talk.thread)]
        + world.column("SELECT body FROM file_refs WHERE thread = ?", talk.thread)
    )
    assert b"ask-1" in stored
    assert b'"parts"' in stored
    assert str(notes["id"]).encode() in stored
    for hidden in (b"signature", signature.encode(), base64_of(secret).encode(), secret, base64_of(PNG).encode()):
        assert hidden not in stored, hidden


@pytest.mark.full
def test_X4_a_run_with_files_that_was_killed_goes_on_with_the_same_page(tmp_path: Path):
    with FileWorld(tmp_path) as world:
        notes, photo = world.upload(NOTES, file("photo.png", PNG))
        talk, gate = Talk(), Event()
        body = a_run(
            talk, [words("Here."), part(notes), part(photo), inline("document", b"Inline.", "i.txt", "text/plain")]
        )
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
        assert contents(world.say(talk, "Read.", reading(f"{r}-0", f"{r}-2"))) == ["Buy milk.", "Inline."]
        assert world.ask("GET", f"{RUNS}/{body['runId']}").json["status"] == "finished"


def test_F4_R13_whoever_summarises_is_told_the_ids_of_files(world: FileWorld):
    talk, (notes, photo) = Talk(), world.upload(NOTES, file("photo.png", PNG))
    world.say(talk, [words("Here."), part(notes), part(photo)], Answer(text="words " * 1500))
    r = world.response_id(talk.thread)
    too_long = failure(400, "maximum context length", code="context_length_exceeded")
    turn = world.say(talk, "So?", too_long, Answer(text="They have notes."))
    shown = f'<message role="user">\nHere.\n[document {r}-0: notes.txt]\n[image {r}-1: photo.png]\n</message>'
    assert shown in str(turn.pages[1][-1]["content"])


def test_F4_an_answer_that_is_asked_for_again_before_a_word_was_heard_has_the_turns_id(world: FileWorld):
    talk, (notes,) = Talk(), world.upload(NOTES)
    turn = world.say(talk, [words("Here."), part(notes)], failure(500), Answer(text="Yes."))
    ids = [sent.event["messageId"] for sent in turn.events if sent.event["type"] == "TEXT_MESSAGE_START"]
    assert ids == [world.response_id(talk.thread)]
    assert turn.requests[0].body == turn.requests[1].body


def test_P17_a_thread_that_began_with_a_file_and_no_words_has_its_name(world: FileWorld):
    talk, (notes,) = Talk(), world.upload(NOTES)
    world.say(talk, [part(notes)])
    assert world.ask("GET", f"{THREADS}/{talk.thread}").json["title"] == "notes.txt"


def test_P2_a_providers_own_file_is_nobodys_here(world: FileWorld):
    block: Json = {"type": "document", "source": {"type": "file", "value": "file-123", "provider": "openai"}}
    reply = world.post(a_run(Talk(), [words("Here."), block]))
    assert (reply.status, reply.json["detail"]) == (422, NOT_SIGNED)
