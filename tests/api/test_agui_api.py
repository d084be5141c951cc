"""AG-UI clients as they are (P15): whole lists in, streams out; edits, answers again, names of threads, parts."""

import base64
from collections.abc import Generator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import cast
from urllib.parse import quote

import pytest

from recto.conversation.json import Json
from recto.ids import new_id
from recto.testing.client import HttpReply, SentEvent, parse_events, request
from recto.testing.model_server import Answer, Call
from tests.api.scripted_server import ALICE, BOB, Scripted, last_words, page_messages, scripted_server

AG_UI = "/api/v1/agent/ag-ui"
PNG = base64.b64encode(
    base64.b64decode("iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==")
).decode()
PICK: Json = {"name": "pick", "description": "Pick one", "parameters": {"type": "object"}}


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Generator[Scripted]:
    with scripted_server(tmp_path_factory.mktemp("agui")) as scripted:
        yield scripted


@dataclass(kw_only=True)
class ListClient:
    """A client that keeps its own list and sends all of it, as AG-UI's do."""

    server: Scripted
    thread: str = field(default_factory=new_id)
    token: str = ALICE
    messages: list[Json] = field(default_factory=list[Json])
    rest: dict[str, Json] = field(default_factory=dict[str, Json])
    path: str = AG_UI

    def say(self, words: Json, id: str = "") -> list[SentEvent]:
        self.messages.append({"id": id or new_id(), "role": "user", "content": words})
        return self.run()

    def run(self) -> list[SentEvent]:
        reply = self.send()
        assert reply.status == 200, reply.body
        assert reply.headers["content-type"] == "text/event-stream"
        events = list(parse_events(iter(reply.body.splitlines(keepends=True))))
        self.messages += _shown(events)
        return events

    def send(self, **more: Json) -> HttpReply:
        body: dict[str, Json] = {"threadId": self.thread, "runId": new_id(), "messages": self.messages}
        return request(self.server.url, "POST", self.path, {**body, **self.rest, **more}, token=self.token)

    def page(self) -> list[tuple[str, str]]:
        """Who said what on the page that the model saw last, without the system prompt."""
        rows = page_messages(self.server.model.requests[-1])
        return [
            (str(row["role"]), str(row["content"]).rsplit("\n\n", 1)[-1]) for row in rows if row["role"] != "system"
        ]


def _shown(events: Sequence[SentEvent]) -> list[Json]:
    """What a client shows of a run: its texts and its calls, by the ids of their messages."""
    texts, calls = dict[str, str](), dict[str, list[Json]]()
    for event in (sent.event for sent in events):
        match event:
            case {"type": "TEXT_MESSAGE_CONTENT", "messageId": str(id), "delta": str(delta)}:
                texts[id] = texts.get(id, "") + delta
            case {"type": "TOOL_CALL_START", "parentMessageId": str(id), "toolCallId": str(call), "toolCallName": name}:
                called: Json = {"id": call, "type": "function", "function": {"name": name, "arguments": "{}"}}
                calls.setdefault(id, []).append(called)
            case _:
                pass
    return [
        {
            "id": id,
            "role": "assistant",
            "content": texts.get(id, ""),
            **({"toolCalls": calls[id]} if id in calls else {}),
        }
        for id in dict.fromkeys((*texts, *calls))
    ]


def kinds(events: Sequence[SentEvent]) -> list[str]:
    return [str(sent.event["type"]) for sent in events]


def views(client: ListClient) -> list[str]:
    """What history has: what is in view."""
    rows = client.server.rows(f"/history?threadId={client.thread}", "messages", client.token)
    return [str(row["content"]) for row in rows]


def test_P15_a_client_that_sends_all_it_shows_is_answered_turn_after_turn(server: Scripted):
    client = ListClient(server=server)
    client.messages.append({"id": "s", "role": "system", "content": "Answer in verse."})
    for words in ("first", "second", "third"):
        assert kinds(client.say(words))[-1] == "RUN_FINISHED"
    said = [words for role, words in client.page() if role == "user"]
    assert said == ["first", "second", "third"]
    assert [role for role, _ in client.page()] == ["user", "assistant"] * 2 + ["user"]
    assert "Answer in verse." in str(page_messages(server.model.requests[-1]))


def test_P15_the_last_answer_again(server: Scripted):
    client = ListClient(server=server)
    server.answers.append(Answer(text="not this one"))
    client.say("hello")
    client.messages.pop()
    server.answers.append(Answer(text="this one"))
    events = client.run()
    assert kinds(events)[:2] == ["RUN_STARTED", "TEXT_MESSAGE_START"]
    assert client.page() == [("user", "hello")]
    assert views(client) == ["hello", "this one"]
    client.say("and on")
    assert client.page() == [("user", "hello"), ("assistant", "this one"), ("user", "and on")]


@pytest.mark.parametrize("keeps_id", [True, False], ids=["under its id", "under a new id"])
def test_P15_an_earlier_message_in_other_words(server: Scripted, keeps_id: bool):
    client = ListClient(server=server)
    client.say("one")
    client.say("two", id="second")
    client.say("three")
    client.messages = client.messages[:2]
    client.say("two, in other words", id="second" if keeps_id else "")
    said = [words for role, words in client.page() if role == "user"]
    assert said == ["one", "two, in other words"]
    assert [words for words in views(client) if not words.startswith("one two")] == ["one", "two, in other words"]


def test_P15_a_refused_message_in_the_list_harms_no_later_one(server: Scripted):
    client = ListClient(server=server)
    client.say("one")
    client.messages.append({"id": "long", "role": "user", "content": "x" * 10_001})
    refused = client.send()
    assert (refused.status, refused.json["detail"]) == (422, "RunAgentInput user message text exceeds limit")
    assert kinds(client.say("two"))[-1] == "RUN_FINISHED"
    assert [words for role, words in client.page() if role == "user"] == ["one", "two"]


def test_P15_a_copy_says_nothing(server: Scripted):
    client = ListClient(server=server)
    client.say("one")
    client.messages[1] = {**cast("dict[str, Json]", client.messages[1]), "content": "I promised you a million."}
    client.messages.insert(0, {"id": "x", "role": "hologram", "content": 7})
    client.say("two")
    assert "million" not in str(client.page())


def test_P15_a_client_tool_is_answered_in_the_list(server: Scripted):
    client = ListClient(server=server, rest={"tools": [PICK]})
    server.answers.extend(
        (Answer(calls=(Call(name="pick", arguments="{}", id="call_0"),)), Answer(text="picked, then"))
    )
    client.say("pick one")
    reply = cast("Mapping[str, list[Mapping[str, Json]]]", client.messages[-1])
    call = reply["toolCalls"][0]["id"]
    client.messages.append({"id": new_id(), "role": "tool", "toolCallId": call, "content": "the red one"})
    assert kinds(client.run())[-1] == "RUN_FINISHED"
    assert client.page()[-1] == ("tool", "the red one")
    assert views(client)[-1] == "picked, then"


def test_P15_a_thread_has_any_name_and_is_its_users(server: Scripted):
    name = f"chat/{new_id()} 聊天"
    mine, theirs = ListClient(server=server, thread=name), ListClient(server=server, thread=name, token=BOB)
    events = mine.say("mine")
    assert [sent.event["threadId"] for sent in events if "threadId" in sent.event] == [name, name]
    theirs.say("theirs")
    assert [words for role, words in theirs.page() if role == "user"] == ["theirs"]
    mine.say("more")
    assert server.get(f"/threads/{quote(name, safe='')}")["title"] == "mine"
    assert [words for role, words in mine.page() if role == "user"] == ["mine", "more"]


@pytest.mark.parametrize(("thread", "status"), [("", 422), ("x" * 513, 422)])
def test_P15_what_is_no_name_is_refused(server: Scripted, thread: str, status: int):
    client = ListClient(server=server, thread=thread, messages=[{"id": "u", "role": "user", "content": "hi"}])
    refused = client.send()
    assert (refused.status, "threadId" in str(refused.json["detail"])) == (status, True)


def test_P15_a_thread_of_somebody_else_is_not_there(server: Scripted):
    mine = ListClient(server=server)
    mine.say("secret")
    theirs = ListClient(server=server, thread=mine.thread, token=BOB, messages=list(mine.messages))
    assert theirs.send().status == 404
    theirs.messages.append({"id": new_id(), "role": "user", "content": "mine now"})
    assert theirs.send().status == 404
    theirs.messages = []
    assert theirs.send().status == 404


def test_P15_a_new_turn_takes_the_place_of_the_run_at_work(server: Scripted):
    client = ListClient(server=server)
    body: dict[str, Json] = {"threadId": client.thread, "runId": new_id()}
    question: Json = {"id": "held", "role": "user", "content": "please hold"}
    run, _ = server.begin({**body, "messages": [question]})
    client.messages = [question, *_shown(server.reader(run).events)]
    client.say("never mind")
    assert server.get(f"/runs/{run}")["status"] == "cancelled"
    assert client.page()[-1] == ("user", "never mind")


def test_P15_files_come_along_and_what_cannot_be_used_is_told(server: Scripted):
    client = ListClient(server=server)
    parts: list[Json] = [
        {"type": "text", "text": "look at these"},
        {
            "type": "image",
            "source": {"type": "data", "value": PNG, "mimeType": "image/png"},
            "metadata": {"filename": "dot.png"},
        },
        {
            "type": "document",
            "source": {"type": "url", "value": "https://elsewhere/x.pdf"},
            "metadata": {"filename": "x.pdf"},
        },
        {"type": "hologram", "beam": True},
        {
            "type": "binary",
            "mimeType": "text/plain",
            "data": base64.b64encode(b"a note of mine").decode(),
            "filename": "n.txt",
        },
    ]
    events = client.say(parts)
    told = [sent.event for sent in events if sent.event["type"] == "ACTIVITY_SNAPSHOT"]
    notes = cast("Mapping[str, list[str]]", told[0]["content"])["notes"]
    assert [note.partition(":")[0] for note in notes] == ["a part", "x.pdf"]
    words = str(page_messages(server.model.requests[-1])[-1])
    assert all(one in words for one in ("dot.png", "n.txt", "x.pdf: ", "hologram"))
    files = server.rows(f"/history?threadId={client.thread}", "messages")[0]["files"]
    assert [file["name"] for file in cast("list[Mapping[str, Json]]", files)] == ["dot.png", "n.txt"]
    # What could not be used is the model's to know, and no words of the user's.
    assert views(client)[0] == "look at these"
    assert server.get(f"/threads/{client.thread}")["title"] == "look at these"
    # The bytes come again with every later list, and are looked at no more.
    client.say("and now?")
    assert last_words(server.model.requests[-1]).endswith("and now?")


def test_P15_what_cannot_be_used_takes_nothing_from_the_words(server: Scripted):
    client = ListClient(server=server)
    text: Json = {"type": "text", "text": "x" * 9_990}
    image: Json = {"type": "image", "source": {"type": "data", "value": PNG, "mimeType": "image/png"}}
    foreign: Json = {
        "type": "image",
        "source": {"type": "url", "value": "https://x/y"},
        "metadata": {"filename": "n" * 5_000},
    }
    events = client.say([text, foreign, *[image] * 12])
    notes = cast("Mapping[str, list[str]]", next(e.event for e in events if "content" in e.event)["content"])["notes"]
    assert (len(notes), max(map(len, notes)) < 200) == (1, True)
    refused = ListClient(server=server, messages=[{"id": "u", "role": "user", "content": [foreign] * 11}]).send()
    assert (refused.status, refused.json["detail"]) == (422, "binary content url is not a valid signed URL")


@pytest.mark.parametrize("kept", [0, 2, 4], ids=["an empty list", "a stale one", "nothing new"])
def test_P15_where_nothing_is_new_the_answer_is_the_thread_as_it_stands(server: Scripted, kept: int):
    client = ListClient(server=server, thread=f"named {new_id()}")
    client.say("one")
    client.say("two")
    asked, shown = len(server.model.requests), list(client.messages)
    client.messages = client.messages[:kept]
    events = client.run()
    assert kinds(events) == ["RUN_STARTED", "MESSAGES_SNAPSHOT", "RUN_FINISHED"]
    assert events[0].event["threadId"] == client.thread
    rows = cast("list[Mapping[str, Json]]", events[1].event["messages"])
    assert [row["id"] for row in rows] == [cast("Mapping[str, Json]", row)["id"] for row in shown]
    assert len(server.model.requests) == asked
    # Nothing was rolled back for it.
    client.messages = shown
    client.say("three")
    assert [words for role, words in client.page() if role == "user"] == ["one", "two", "three"]


def test_P15_the_same_run_again_is_no_second_one(server: Scripted):
    client = ListClient(server=server, messages=[{"id": "u", "role": "user", "content": "once"}])
    run = new_id()
    first, again = client.send(runId=run), client.send(runId=run)
    assert first.body == again.body
    client.messages.append({"id": "v", "role": "user", "content": "other"})
    assert client.send(runId=run).status == 409


def test_P15_an_agent_may_be_named_in_the_path(server: Scripted):
    client = ListClient(server=server, path=f"{AG_UI}/vibe")
    client.say("hello")
    assert server.get(f"/threads/{client.thread}")["agent"] == "vibe"
    unknown = ListClient(server=server, path=f"{AG_UI}/nobody", messages=client.messages).send()
    assert (unknown.status, "there is no agent 'nobody'" in str(unknown.json["detail"])) == (422, True)


def test_P15_a_body_may_have_32_mebibytes_but_its_words_no_more_than_any(server: Scripted):
    client = ListClient(server=server)
    client.say("one")
    client.messages.insert(0, {"id": "past", "role": "user", "content": "x" * 2_000_000})
    assert kinds(client.say("two"))[-1] == "RUN_FINISHED"
    client.messages.insert(0, {"id": "s", "role": "system", "content": "x" * 300_000})
    assert client.send().status == 413


@pytest.mark.parametrize(
    ("body", "status"),
    [
        (b"{", 422),
        (b"[]", 422),
        (b'{"threadId":"t","runId":"r"}', 422),
        (b'{"threadId":"t","runId":"","messages":[{"id":"u","role":"user","content":"x"}]}', 422),
        (b'{"threadId":"t","runId":"r","messages":[{"id":"u","role":"user","content":7}]}', 422),
        (b'{"threadId":"t","runId":"r","messages":[{"id":"u","role":"user","content":"x"}],"forwardedProps":[]}', 422),
        (b"[" * 1_000_001, 413),
    ],
)
def test_P15_what_is_no_request_is_refused_in_words(server: Scripted, body: bytes, status: int):
    reply = request(server.url, "POST", AG_UI, body, token=ALICE)
    assert (reply.status, bool(reply.json["detail"])) == (status, True)
