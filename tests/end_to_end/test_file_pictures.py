"""D2: a page with pictures that its provider will not take is sent once more without; which pictures a page shows."""

from collections.abc import Iterator, Mapping

import pytest

from recto.conversation.json import Json, dump, load
from recto.ids import new_id
from recto.testing.model_server import Answer, Call, failure
from tests.api.forms import file
from tests.end_to_end.files import WELL, FileWorld, Talk, Turn, a_run, part, rows, words
from tests.files.heads import PNG, SVG

pytestmark = pytest.mark.full

WIRES = ("en-openai", "en-anthropic")
REFUSED = failure(400, "Could not process image", code="invalid_request_error")
BLIND = "This model cannot see images: of those above it has the id, name and url only. Do not guess what they show."
ASK_ME = {"name": "ask_me", "description": "Ask.", "parameters": {"type": "object"}}
# In base64 a little less than this, so that three fit into a page of the server below and four do not.
LENGTH = 2_000


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[FileWorld]:
    folder = tmp_path_factory.mktemp("pictures")
    for name, setting in (("once", "limits: {failures: 1}"), ("short", "history: 1")):
        (folder / "agents" / name).mkdir(parents=True)
        settings = f"---\nmodel: openai:sees\nfile_input: true\n{setting}\n---\nYou are careful.\n"
        (folder / "agents" / name / "AGENT.md").write_text(settings, encoding="utf-8")
    with FileWorld(folder, image_bytes=LENGTH * 2, page_image_bytes=LENGTH * 3) as made:
        yield made


def a_png(mark: int, length: int = LENGTH) -> bytes:
    return PNG + bytes([mark]) * (length * 3 // 4 - len(PNG) - 4)


def upload(world: FileWorld, *pictures: bytes) -> list[Mapping[str, Json]]:
    return world.upload(*[file(f"{place}.png", data) for place, data in enumerate(pictures)])


def images(turn: Turn) -> list[int]:
    """How many pictures each page of a turn shows."""
    return [body.count(b'"type":"image') for body in (made.body for made in turn.requests)]


def calling(name: str, arguments: Json) -> Answer:
    return Answer(calls=(Call(name=name, arguments=dump(arguments).decode(), id=new_id()),))


def kinds(turn: Turn) -> str:
    return str(turn.last["type"])


@pytest.mark.parametrize("agent", WIRES)
@pytest.mark.parametrize("status", [400, 422])
def test_D2_a_page_with_pictures_that_is_refused_is_sent_again_without(world: FileWorld, agent: str, status: int):
    talk, (photo,) = Talk(agent=agent), upload(world, a_png(1))
    turn = world.say(talk, [words("Look."), part(photo)], failure(status, "Could not process image"))
    assert (kinds(turn), images(turn)) == ("RUN_FINISHED", [1, 0])
    first, second = [made.body.decode() for made in turn.requests]
    assert BLIND not in first
    assert BLIND in second


def test_D2_the_rest_of_the_run_goes_without_and_the_next_one_tries_again(world: FileWorld):
    talk, (photo,) = Talk(), upload(world, a_png(1))
    turn = world.say(talk, [words("Look."), part(photo)], REFUSED, calling("show", {"file": "x"}))
    assert (kinds(turn), images(turn)) == ("RUN_FINISHED", [1, 0, 0])
    assert images(world.say(talk, "And now?")) == [1]


@pytest.mark.parametrize("agent", WIRES)
def test_D2_a_page_that_is_refused_without_pictures_too_ends_the_run(world: FileWorld, agent: str):
    talk, (photo,) = Talk(agent=agent), upload(world, a_png(1))
    turn = world.say(talk, [words("Look."), part(photo)], REFUSED, REFUSED)
    assert (kinds(turn), images(turn)) == ("RUN_ERROR", [1, 0])
    assert str(turn.last["message"]).startswith("The model refused the request.")


@pytest.mark.parametrize("status", [401, 403, 404])
def test_D2_what_is_not_for_the_page_is_not_tried_again(world: FileWorld, status: int):
    talk, (photo,) = Talk(), upload(world, a_png(1))
    turn = world.say(talk, [words("Look."), part(photo)], failure(status))
    assert (kinds(turn), images(turn)) == ("RUN_ERROR", [1])


def test_D2_a_page_without_pictures_is_not_tried_again(world: FileWorld):
    assert images(world.say(Talk(), "Hello.", REFUSED)) == [0]
    # One that no model takes is told of, and not shown.
    (drawing,) = world.upload(file("drawing.svg", SVG))
    assert images(world.say(Talk(), [words("Look."), part(drawing)], REFUSED)) == [0]
    # One that the window no longer shows is in no page.
    short = Talk(agent="short")
    assert images(world.say(short, [words("Look."), part(*upload(world, a_png(1)))])) == [1]
    assert images(world.say(short, "And now?", REFUSED)) == [0]
    blind = Talk(agent="en-blind")
    assert images(world.say(blind, [words("Look."), part(*upload(world, a_png(1)))], REFUSED)) == [0]


def test_D2_the_refusal_counts_as_a_failure_of_the_run(world: FileWorld):
    turn = world.say(Talk(agent="once"), [words("Look."), part(*upload(world, a_png(1)))], REFUSED)
    assert (kinds(turn), images(turn)) == ("RUN_ERROR", [1])


def test_D2_a_page_too_large_that_is_mostly_pictures_goes_without_them_and_any_other_does_not(world: FileWorld):
    too_large = failure(413, "Request too large", code="request_too_large")
    large = upload(world, a_png(1, LENGTH * 2))
    turn = world.say(Talk(), [words("Look."), part(*large)], too_large)
    assert (kinds(turn), images(turn)) == ("RUN_FINISHED", [1, 0])
    turn = world.say(Talk(), [words("Look. " * 1_500), part(*large)], too_large)
    assert (kinds(turn), images(turn)) == ("RUN_ERROR", [1])


# Which pictures a page shows


def answered(world: FileWorld, talk: Talk, body: Mapping[str, Json], *content: Json) -> dict[str, Json]:
    """The run with the result of the client's call that waits."""
    (call,) = rows(world.ask("GET", f"/api/v1/agent/threads/{talk.thread}").json["pendingCalls"])
    result = {"id": new_id(), "role": "tool", "toolCallId": call["id"], "content": [words("done"), *content]}
    return {**body, "runId": new_id(), "messages": [*rows(body["messages"]), result]}


@pytest.mark.parametrize("agent", [*WIRES, "en-blind"])
def test_F5_a_document_in_a_clients_result_is_named_with_an_id_that_read_files_takes(world: FileWorld, agent: str):
    talk, (notes,) = Talk(agent=agent), world.upload(file("notes.txt", b"Buy milk."), agent=agent)
    body = a_run(talk, "Fetch it.", tools=[ASK_ME])
    world.play(talk, body, calling("ask_me", {}))
    read = calling("read_files", {"ids": [str(notes["id"])]})
    turn = world.play(talk, answered(world, talk, body, part(notes)), read, WELL)
    assert f"[document not shown: notes.txt, id {notes['id']}]" in str(turn.pages[0][-1]["content"])
    (result,) = [str(sent.event["content"]) for sent in turn.events if sent.event["type"] == "TOOL_CALL_RESULT"]
    assert load(result) == [{"id": notes["id"], "name": "notes.txt", "content": "Buy milk."}]
