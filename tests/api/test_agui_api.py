"""AG-UI clients as they are (P15): whole lists in, streams out; edits, answers again, names of threads, parts."""

import base64
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import cast
from urllib.parse import quote

import pytest

from recto.conversation.json import Json
from recto.ids import new_id
from tests.api.scripted_server import BOB, Scripted, last_words, page_messages
from tests.support.client import HttpReply, ReceivedEvent, parse_events, request

AG_UI = "/api/v1/agent/ag-ui"
PNG = base64.b64encode(
    base64.b64decode("iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==")
).decode()


@dataclass(kw_only=True)
class ListClient:
    """A client that keeps its own list and sends all of it, as AG-UI's do."""

    server: Scripted
    thread: str = field(default_factory=new_id)
    token: str = ""
    messages: list[Json] = field(default_factory=list[Json])

    def say(self, words: Json, id: str = "") -> list[ReceivedEvent]:
        self.messages.append({"id": id or new_id(), "role": "user", "content": words})
        return self.run()

    def run(self) -> list[ReceivedEvent]:
        reply = self.send()
        assert reply.status == 200, reply.body
        assert reply.headers["content-type"] == "text/event-stream"
        events = list(parse_events(iter(reply.body.splitlines(keepends=True))))
        self.messages += _visible_rows(events)
        return events

    def send(self, **more: Json) -> HttpReply:
        body: dict[str, Json] = {"threadId": self.thread, "runId": new_id(), "messages": self.messages}
        return request(self.server.url, "POST", AG_UI, {**body, **more}, token=self.token or self.server.token)

    def page(self) -> list[tuple[str, str]]:
        """Who said what on the page that the model saw last, without the system prompt."""
        rows = page_messages(self.server.model.requests[-1])
        return [
            (str(row["role"]), str(row["content"]).rsplit("\n\n", 1)[-1]) for row in rows if row["role"] != "system"
        ]


def _visible_rows(events: Sequence[ReceivedEvent]) -> list[Json]:
    """What a client shows of a run: its texts, by the ids of their messages."""
    texts = dict[str, str]()
    for event in (received.event for received in events):
        match event:
            case {"type": "TEXT_MESSAGE_CONTENT", "messageId": str(id), "delta": str(delta)}:
                texts[id] = texts.get(id, "") + delta
            case _:
                pass
    return [{"id": id, "role": "assistant", "content": text} for id, text in texts.items()]


def kinds(events: Sequence[ReceivedEvent]) -> list[str]:
    return [str(received.event["type"]) for received in events]


def views(client: ListClient) -> list[str]:
    """What history has: what is in view."""
    rows = client.server.rows(f"/history?threadId={client.thread}", "messages", client.token)
    return [str(row["content"]) for row in rows]


def test_P15_a_thread_has_any_name_and_is_its_users(server: Scripted):
    name = f"chat/{new_id()} 聊天"
    mine, theirs = ListClient(server=server, thread=name), ListClient(server=server, thread=name, token=BOB)
    events = mine.say("mine")
    assert [received.event["threadId"] for received in events if "threadId" in received.event] == [name, name]
    theirs.say("theirs")
    assert [words for role, words in theirs.page() if role == "user"] == ["theirs"]
    mine.say("more")
    assert server.get(f"/threads/{quote(name, safe='')}")["title"] == "mine"
    assert [words for role, words in mine.page() if role == "user"] == ["mine", "more"]


@pytest.mark.parametrize("more", [None, "mine now", ""], ids=["its copy", "more words", "an empty list"])
def test_P5_a_thread_of_somebody_else_is_not_there(server: Scripted, more: str | None):
    mine = ListClient(server=server)
    mine.say("secret")
    messages: list[Json] = [{"id": new_id(), "role": "user", "content": more}] if more else []
    theirs = [] if more == "" else [*mine.messages, *messages]
    assert ListClient(server=server, thread=mine.thread, token=BOB, messages=theirs).send().status == 404


def test_P15_files_come_along_and_what_cannot_be_used_is_told(server: Scripted):
    client = ListClient(server=server)
    data: Json = {"type": "data", "value": PNG, "mimeType": "image/png"}
    url: Json = {"type": "url", "value": "https://elsewhere/x.pdf"}
    parts: list[Json] = [
        {"type": "text", "text": "look at these"},
        {"type": "image", "source": data, "metadata": {"filename": "dot.png"}},
        {"type": "document", "source": url, "metadata": {"filename": "x.pdf"}},
        {"type": "hologram", "beam": True},
        {"type": "binary", "mimeType": "text/plain", "data": base64.b64encode(b"a note").decode(), "filename": "n.txt"},
    ]
    events = client.say(parts)
    snapshots = [received.event for received in events if received.event["type"] == "ACTIVITY_SNAPSHOT"]
    notes = cast("Mapping[str, list[str]]", snapshots[0]["content"])["notes"]
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


@pytest.mark.parametrize("kept_count", [0, 2, 4], ids=["an empty list", "a stale one", "nothing new"])
def test_P15_where_nothing_is_new_the_answer_is_the_thread_as_it_stands(server: Scripted, kept_count: int):
    client = ListClient(server=server, thread=f"named {new_id()}")
    client.say("one")
    client.say("two")
    count_before, messages_before = len(server.model.requests), list(client.messages)
    client.messages = client.messages[:kept_count]
    events = client.run()
    assert kinds(events) == ["RUN_STARTED", "MESSAGES_SNAPSHOT", "RUN_FINISHED"]
    assert events[0].event["threadId"] == client.thread
    rows = cast("list[Mapping[str, Json]]", events[1].event["messages"])
    assert [row["id"] for row in rows] == [cast("Mapping[str, Json]", row)["id"] for row in messages_before]
    assert len(server.model.requests) == count_before
    # Nothing was rolled back for it.
    client.messages = messages_before
    client.say("three")
    assert [words for role, words in client.page() if role == "user"] == ["one", "two", "three"]


def test_P15_the_same_run_again_is_no_second_one(server: Scripted):
    client = ListClient(server=server, messages=[{"id": "u", "role": "user", "content": "once"}])
    run = new_id()
    first, again = client.send(runId=run), client.send(runId=run)
    assert first.body == again.body
    client.messages.append({"id": "v", "role": "user", "content": "other"})
    assert client.send(runId=run).status == 409


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
        (b'{"threadId":"t","runId":"","messages":[{"id":"u","role":"user","content":"x"}]}', 422),
        (b'{"threadId":"t","runId":"r","messages":[{"id":"u","role":"user","content":7}]}', 422),
        (b"[" * 1_000_001, 413),
        (b'{"threadId":"","runId":"r","messages":[{"id":"u","role":"user","content":"x"}]}', 422),
        (b'{"threadId":"%b","runId":"r","messages":[{"id":"u","role":"user","content":"x"}]}' % (b"x" * 513), 422),
    ],
)
def test_P15_what_is_no_request_is_refused_in_words(server: Scripted, body: bytes, status: int):
    reply = request(server.url, "POST", AG_UI, body, token=server.token)
    assert (reply.status, bool(reply.json["detail"])) == (status, True)
