"""F5-F9: tools and files in whole runs: ids become urls for who acts elsewhere, and for nobody else."""

from collections.abc import Iterator, Mapping, Sequence
from typing import cast

import pytest

from recto.conversation.json import Json, dump, load_object
from recto.conversation.messages import AssistantMessage, File, Key, ToolMessage
from recto.ids import new_id
from recto.testing.client import SentEvent, read_events
from recto.testing.model_server import Answer, Call
from tests.api.forms import file
from tests.end_to_end.files import ANN, FileWorld, Talk, Turn, a_run, base64_of, inline, part, rows, words
from tests.files.heads import JPEG, MP3, PNG

NOTES, PLANS = file("notes.txt", b"Buy milk."), file("plans.md", b"# Plans\nRest.")
# So that pieces of an answer come one by one.
BETWEEN = 0.02

pytestmark = pytest.mark.full


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[FileWorld]:
    folder = tmp_path_factory.mktemp("tools")
    prompted = folder / "agents" / "prompted"
    prompted.mkdir(parents=True)
    settings = "---\ntool_calling: prompt\nfile_input: true\n---\nYou are careful.\n"
    (prompted / "AGENT.md").write_text(settings, encoding="utf-8")
    with FileWorld(folder) as made:
        yield made


def a_tool(name: str = "send", **properties: Json) -> Json:
    """A tool of the client's."""
    schema = {"type": "object", "properties": properties, "required": list(properties)}
    return {"name": name, "description": "Send it.", "parameters": schema}


def calling(name: str, arguments: Json, id: str = "c1") -> Answer:
    return Answer(calls=(Call(name=name, arguments=dump(arguments).decode(), id=id),), delay=BETWEEN)


def with_files(world: FileWorld, talk: Talk, *files: Mapping[str, Json]) -> str:
    """A turn with files. Returns the prefix of their ids."""
    world.say(talk, [words("Here."), *map(part, files)])
    return world.response_id(talk.thread)


def arguments_in(events: Sequence[SentEvent]) -> list[str]:
    """The arguments of calls as readers got them, event by event."""
    return [str(sent.event["delta"]) for sent in events if sent.event["type"] == "TOOL_CALL_ARGS"]


def results_in(turn: Turn) -> list[str]:
    return [str(sent.event["content"]) for sent in turn.events if sent.event["type"] == "TOOL_CALL_RESULT"]


def stored_arguments(world: FileWorld, turn: Turn) -> list[str]:
    """The same, as the events are stored."""
    query = "SELECT body FROM events JOIN runs ON runs.id = events.run WHERE runs.name = ? ORDER BY events.number"
    events = [load_object(body) or {} for body in world.column(query, str(turn.body["runId"]))]
    return [str(event["delta"]) for event in events if event["type"] == "TOOL_CALL_ARGS"]


def logged_arguments(world: FileWorld, thread: str) -> str:
    """The same, in the log."""
    replies = [entry for entry in world.log(thread) if isinstance(entry, AssistantMessage)]
    return replies[-1].tool_calls[0].arguments


@pytest.mark.parametrize("agent", ["en-openai", "zh-anthropic"])
def test_F8_a_clients_tool_gets_urls_that_work_and_all_that_is_stored_keeps_the_ids(world: FileWorld, agent: str):
    talk = Talk(agent=agent)
    r = with_files(world, talk, *world.upload(NOTES, file("photo.png", PNG), file("song.mp3", MP3), agent=agent))
    arguments: dict[str, Json] = {
        "file": f"{r}-0",
        "files": [f"{r}-1", {"deep": [f"{r}-2"]}],
        f"{r}-0": "a key",
        "text": f"see {r}-0",
        "constructor": "constructor",
        "unknown": f"{r}-3",
    }
    asked = calling("send", arguments)
    turn = world.say(talk, "Send them.", asked, tools=[a_tool()])
    again = list(read_events(world.url, str(turn.body["runId"]), token=ANN))
    for events in (turn.events, again):
        (shown,) = arguments_in(events)
        assert "rectoFiles" not in str([sent.body for sent in events])
        sent = cast("dict[str, Json]", load_object(shown))
        first, (second, deep) = sent.pop("file"), cast("tuple[Json, dict[str, list[str]]]", sent.pop("files"))
        urls = [str(first), str(second), deep["deep"][0]]
        assert [world.get(url).body for url in urls] == [b"Buy milk.", PNG, MP3]
        assert sent == {name: value for name, value in arguments.items() if name not in ("file", "files")}
    assert stored_arguments(world, turn) == [asked.calls[0].arguments]
    assert load_object(logged_arguments(world, talk.thread)) == arguments


def test_F8_P11_calls_that_are_written_into_words_get_urls_too(world: FileWorld):
    talk = Talk(agent="prompted")
    r = with_files(world, talk, *world.upload(NOTES))
    asked = Answer(text=f'Well.\n<tool_call>{{"name": "send", "arguments": {{"file": "{r}-0"}}}}</tool_call>')
    turn = world.say(talk, "Send it.", asked, tools=[a_tool()])
    (shown,) = arguments_in(turn.events)
    assert world.get(str((load_object(shown) or {})["file"])).body == b"Buy milk."
    assert stored_arguments(world, turn) == [f'{{"file": "{r}-0"}}']


def test_F8_P11_a_schema_that_wants_a_url_is_asked_after_ids_became_urls(world: FileWorld):
    talk = Talk()
    r = with_files(world, talk, *world.upload(NOTES))
    tool = a_tool(file={"type": "string", "format": "uri", "pattern": "^https?://"})
    wrong, right = calling("send", {"file": f"{r}-7"}, "c1"), calling("send", {"file": f"{r}-0"}, "c2")
    turn = world.say(talk, "Send it.", wrong, right, tools=[tool])
    assert turn.last["outcome"] == {"type": "success", "pendingToolCallIds": ["c2"]}
    (advice,) = results_in(turn)
    assert f"{r}-7" in advice
    assert len(turn.requests) == 2


def test_F6_old_logs_read_by_number_and_no_list_has_the_tool(world: FileWorld):
    talk = Talk()
    first = with_files(world, talk, *world.upload(NOTES))
    (plans,) = world.upload(PLANS)
    turn = world.say(talk, [words("And this."), part(plans)], calling("file_read", {"file_indexes": [1, 2, 3]}))
    second = world.response_id(talk.thread)
    assert results_in(turn) == [
        f'[{{"id":"{second}-0","name":"plans.md","content":"# Plans\\nRest."}},'
        f'{{"id":"{first}-0","name":"notes.txt","content":"Buy milk."}},'
        '{"id":"3","name":"","content":"Error: there is no document 3; they are counted from 1 to 2."}]'
    ]
    assert b"file_read" not in turn.requests[0].body
    assert b"read_files" in turn.requests[0].body
    assert b'"name":"file_read","description"' not in turn.requests[1].body
    assert b"file_read" not in world.ask("GET", "/api/v1/agent/agents").body


def test_F9_a_file_of_any_kind_is_put_into_the_threads_workspace(world: FileWorld):
    talk = Talk()
    r = with_files(world, talk, *world.upload(file("photo.png", PNG)))
    workspace = world.data / "workspaces" / talk.thread
    asked = calling("sandbox_fetch_user_file", {"file_index": f"{r}-0", "target_path": "in/photo.png"})
    turn = world.say(talk, "Put it there.", asked)
    assert results_in(turn) == [f'{{"path":"in/photo.png","bytes":{len(PNG)},"replaced":false}}']
    assert (workspace / "in" / "photo.png").read_bytes() == PNG


@pytest.mark.parametrize("agent", ["en-openai", "en-anthropic", "en-blind"])
def test_P10_D2_pictures_in_a_clients_result_are_stored_by_key_and_shown_where_the_wire_can(
    world: FileWorld, agent: str
):
    talk, (photo,) = Talk(agent=agent), world.upload(file("photo.png", PNG))
    turn = world.say(talk, "Take a picture.", calling("send", {}), tools=[a_tool()])
    content = [words("Two:"), inline("image", JPEG, "shot.jpg", "image/jpeg"), part(photo)]
    result = {"id": new_id(), "role": "tool", "toolCallId": "c1", "content": content}
    body = {**turn.body, "runId": new_id(), "messages": [*rows(turn.body["messages"]), result]}
    page = world.play(talk, cast("dict[str, Json]", body)).pages[0]
    (logged,) = [entry for entry in world.log(talk.thread) if isinstance(entry, ToolMessage)]
    files = [one for one in logged.parts if isinstance(one, File)]
    assert [(one.name, isinstance(one.source, Key)) for one in files] == [("shot.jpg", True), ("photo.png", True)]
    keys = [one.source.key for one in files if isinstance(one.source, Key)]
    marks = [words(f"[image not shown: {one.name}, id {key}]") for one, key in zip(files, keys, strict=True)]
    if agent == "en-anthropic":
        (block,) = rows(page[-1]["content"])
        sources = [one["source"] for one in rows(block["content"])[1:]]
        assert [source["data"] for source in rows(sources)] == [base64_of(JPEG), base64_of(PNG)]
    else:
        assert page[-1]["content"] == [words("Two:"), *marks]
    later = world.say(talk, "Look again.").pages[0]
    assert (base64_of(JPEG) in str(later)) is (agent == "en-anthropic")


def test_F8_a_client_that_comes_back_gets_urls_in_the_calls_that_wait_for_it(world: FileWorld):
    talk = Talk()
    r = with_files(world, talk, *world.upload(NOTES))
    world.say(talk, "Send it.", calling("send", {"file": f"{r}-0", "text": f"see {r}-0"}), tools=[a_tool()])
    (call,) = rows(world.ask("GET", f"/api/v1/agent/threads/{talk.thread}").json["pendingCalls"])
    shown = load_object(str(call["arguments"])) or {}
    assert world.get(str(shown["file"])).body == b"Buy milk."
    assert shown["text"] == f"see {r}-0"


def test_F8_older_clients_get_the_urls_too(world: FileWorld):
    talk = Talk()
    r = with_files(world, talk, *world.upload(NOTES))
    body = {**a_run(talk, "Send it.", tools=[a_tool()]), "protocolVersion": None}
    (shown,) = arguments_in(world.play(talk, body, calling("send", {"file": f"{r}-0"})).events)
    assert world.get(str((load_object(shown) or {})["file"])).body == b"Buy milk."


def test_F8_arguments_are_streamed_as_they_are_written_where_the_thread_has_no_files(world: FileWorld):
    asked = calling("send", {"file": "one two three four five six seven eight"})
    without = world.say(Talk(), "Send it.", asked, tools=[a_tool()])
    talk = Talk()
    with_files(world, talk, *world.upload(NOTES))
    whole = world.say(talk, "Send it.", asked, tools=[a_tool()])
    assert len(arguments_in(without.events)) > 1
    assert "".join(arguments_in(without.events)) == asked.calls[0].arguments
    assert arguments_in(whole.events) == [asked.calls[0].arguments]
