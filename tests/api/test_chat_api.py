"""Chat (P16): words in, events out, by the way every run goes; what a client has of the past is not read."""

from base64 import b64encode
from collections.abc import AsyncIterator
from dataclasses import dataclass, field, replace
from pathlib import Path

import pytest

from recto.agents.agent import CHAT as CHAT_AGENT
from recto.agents.file_input import FileInput
from recto.api.bodies import MAX_BYTES
from recto.api.runs import chat
from recto.conversation.input.input_rules import HAS_DATA, LONG_WORDS, NOT_SIGNED, UUID
from recto.conversation.input.run_input import RunInput, stored_input
from recto.conversation.json import Json, dump, load_object
from recto.conversation.messages import Data, File, Text, UserMessage
from recto.store.ports import Admission, AdmissionResult
from tests.api.local_api import NOW, Answer, LocalApi, assert_problem, local_api
from tests.api.scripted_server import Scripted
from tests.flow.in_process import events_of, in_process
from tests.support.client import ReceivedEvent, parse_events, request

CHAT = "/api/v1/chat"
THREAD = "550e8400-e29b-41d4-a716-44665544000A"


@dataclass(kw_only=True)
class Door:
    """The route, and the runs that would have been stored."""

    api: LocalApi
    admissions: list[Admission] = field(default_factory=list[Admission])

    async def run_of(self, body: object) -> RunInput:
        """The run a request comes to."""
        with pytest.raises(RuntimeError, match="enough"):
            await self.api.ask("POST", CHAT, body)
        parsed_input = stored_input(self.admissions[-1].input)
        assert self.admissions[-1].parsed == parsed_input
        return parsed_input


@pytest.fixture
async def door(tmp_path: Path) -> AsyncIterator[Door]:
    async with local_api(tmp_path, chat.ROUTES) as api:
        door = Door(api=api)

        async def admit(admission: Admission) -> AdmissionResult:
            door.admissions.append(admission)
            raise RuntimeError("enough")

        api.change(admit=admit)
        yield door


def words_of(run: RunInput) -> list[str]:
    users = [message for message in run.messages if isinstance(message, UserMessage)]
    return [part.text for user in users for part in user.parts if isinstance(part, Text)]


PAST: list[Json] = [
    {"role": "user", "content": "first"},
    {"role": "assistant", "content": "no"},
    {"role": "user", "content": "last"},
    {"role": "assistant", "content": "never"},
]
PARTS: list[Json] = [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]


def a_user(content: Json) -> Json:
    return {"role": "user", "content": content}


def deep(levels: int) -> bytes:
    """A request whose message has a part that is nested so deep, as text: not all of it can be written as a value."""
    return b'{"messages": [{"role": "user", "content": [{"type": "x", "y": %b1%b}]}]}' % (b"[" * levels, b"]" * levels)


REPLIES: list[tuple[Json, list[str]]] = [
    ({"message": "hi"}, ["hi"]),
    ({"message": " hi\n", "messages": PAST}, [" hi\n"]),
    ({"message": " \n", "messages": PAST}, ["last"]),
    ({"messages": PAST}, ["last"]),
    ({"messages": [*PAST, a_user(PARTS)]}, ["a", "b"]),
    ({"message": "x" * 10_000}, ["x" * 10_000]),
]


async def test_P16_the_message_wins_then_the_last_of_the_user(door: Door):
    for body, words in REPLIES:
        run = await door.run_of(body)
        assert [message.role for message in run.messages] == ["user"]
        assert words_of(run) == words, body


async def test_P16_without_a_conversation_a_new_one_begins_and_ids_are_new_each_time(door: Door):
    one, two = await door.run_of({"message": "hi"}), await door.run_of({"message": "hi", "conversation_id": None})
    ids = [one.thread, one.run, one.messages[0].id, two.thread, two.run, two.messages[0].id]
    assert len(set(ids)) == 6
    assert all(UUID.fullmatch(str(id)) for id in ids)


async def test_P16_a_conversation_goes_on_under_its_id(door: Door):
    assert (await door.run_of({"message": "hi", "conversation_id": THREAD})).thread == THREAD
    assert door.admissions[-1].thread == THREAD.lower()


async def test_P1_P16_skill_tone_and_zone_are_wishes_of_the_run_and_all_else_is_ignored(door: Door):
    body: dict[str, Json] = {"message": "hi", "skill": "core", "voice_mode": "warm", "agent": "x", "threadId": 7}
    body |= {"timezone": "Asia/Shanghai"}
    options = {"skill": "core", "voice_mode": "warm", "timezone": "Asia/Shanghai"}
    assert (await door.run_of(body)).props == options
    assert (await door.run_of({"message": "hi", "skill": " ", "voice_mode": None})).props == {}


REJECTIONS: list[tuple[object, str]] = [
    (b"", "body: is not JSON"),
    ([], "body: must be an object, is an array"),
    ({}, "message: is missing. Send the text as `message`"),
    ({"message": " "}, "message: is missing. Send the text as `message`"),
    ({"messages": [{"role": "assistant", "content": "x"}]}, "message: is missing. Send the text as `message`"),
    ({"messages": [a_user([])]}, "message: is missing. Send the text as `message`"),
    (
        {"messages": [a_user([{"type": "text", "text": " "}, {"type": "text"}])]},
        "message: is missing. Send the text as `message`",
    ),
    ({"message": 7}, "message: must be a string, is a number"),
    ({"messages": {}}, "messages: must be an array, is an object"),
    ({"messages": ["x"]}, "messages[0]: must be an object, is a string"),
    ({"messages": [{"role": "user", "content": 7}]}, "messages[0].content: must be an array, is a number"),
    (deep(300), "messages[0].content: is nested too deep to be stored"),
    (deep(200), "body: is nested more than 128 levels deep"),
    ({"message": "x", "skill": 7}, "skill: must be a string, is a number"),
    ({"message": "x", "timezone": "Beijing"}, "timezone: 'Beijing' is no time zone; name one such as Asia/Shanghai"),
    ({"message": "x", "conversation_id": "no"}, "conversation_id: must be a UUID, is 'no'"),
]


async def test_P16_what_cannot_be_a_message_is_refused_in_words_that_say_what_to_send(door: Door):
    for body, words in REJECTIONS:
        assert_problem(await door.api.ask("POST", CHAT, body), 422, words)
    assert door.admissions == []


def read_names(answer: Answer) -> tuple[Json, Json]:
    """The field that is wrong, and what is told of it first."""
    return answer.rows("errors")[0]["field"], answer.json["detail"]


WRONG_FIELDS: list[tuple[dict[str, Json], str]] = [
    ({"message": "x", "skill": "none"}, "skill"),
    ({"message": "x", "skill": "a\0"}, "skill"),
    ({"message": "x", "voice_mode": "none"}, "voice_mode"),
    ({"message": "a\0b"}, "message"),
    ({"messages": [*PAST, a_user("a\0b")]}, "messages[4].content"),
    ({"messages": [*PAST, a_user([{"type": "text", "text": 7}])]}, "messages[4].content[0].text"),
    ({"messages": [a_user([{"type": "image_url", "image_url": {}}])]}, "messages[0].content[0].type"),
    ({"messages": [*PAST, a_user([{"type": "image", "source": {}}])]}, "messages[4].content[0].source.type"),
]


async def test_P16_a_refusal_names_the_field_as_the_client_sent_it(door: Door):
    skilled = replace(CHAT_AGENT, name="vibe", voices={"warm": "Be warm."})
    door.api.change(by_name={"vibe": skilled})
    for body, field_name in WRONG_FIELDS:
        answer = await door.api.ask("POST", CHAT, body)
        assert answer.status == 422
        where, detail = read_names(answer)
        assert (where, str(detail).partition(": ")[0]) == (field_name, field_name)
    for body, where in (
        ({"message": "x" * 10_001}, "message"),
        ({"messages": [a_user("x" * 10_001)]}, "messages[0].content"),
    ):
        assert read_names(await door.api.ask("POST", CHAT, body)) == (where, LONG_WORDS)


async def test_P16_a_history_that_is_not_read_may_be_long_and_is_not_stored(door: Door):
    past: list[Json] = [{"role": "assistant", "content": "never " * 50_000}, a_user("last")]
    for body in ({"message": "hi", "messages": past}, {"messages": past}):
        await door.run_of(body)
        assert len(door.admissions[-1].input) < 500


async def test_P16_a_body_has_a_size_of_its_own_and_the_parts_of_a_message_what_a_run_may(door: Door):
    body = dump({"message": "hi"}).ljust(door.api.backend.bodies.chat_bytes)
    await door.run_of(body)
    assert_problem(await door.api.ask("POST", CHAT, body + b" "), 413, "Request body exceeds size limit")
    part = {"type": "text", "text": "", "more": "x" * MAX_BYTES}
    answer = await door.api.ask("POST", CHAT, {"messages": [a_user([*PARTS, part])]})
    assert_problem(answer, 413, "The parts of the message exceed 262,144 bytes. Upload files, and send their URLs")
    past: list[Json] = [{}] * 65_536
    answer = await door.api.ask("POST", CHAT, {"messages": [*past, a_user("last")]})
    assert_problem(answer, 413, "Request body has more than 65,536 objects and arrays.")
    await door.run_of({"messages": [*past[:65_533], a_user("last")]})


# Files

PNG = b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR\0\0\0\x01\0\0\0\x01\x08\x06\0\0\0\x1f\x15\xc4\x89" + bytes(100)
ANY = FileInput(is_on=True)


async def a_picture(door: Door, owner: str = "ann", allowed: FileInput = ANY) -> str:
    """The url of a picture somebody uploaded, for an agent that takes such files."""
    agent = replace(CHAT_AGENT, name="vibe", file_input=allowed)
    door.api.change(by_name={"vibe": agent})
    file = File(kind="image", name="a.png", mime_type="image/png", source=Data(base64=b64encode(PNG).decode()))
    one = await door.api.backend.files.attachments.receive_inline(owner, file, ANY)
    return door.api.backend.files.signer.url(one.id, one.name, NOW.replace(year=NOW.year + 1))


def image_parts(url: str) -> list[Json]:
    return [{"type": "text", "text": "What is it?"}, {"type": "image", "source": {"type": "url", "value": url}}]


async def test_P16_pictures_of_the_last_message_go_with_it_as_in_any_run(door: Door):
    url = await a_picture(door)
    for parts in (image_parts(url), image_parts(url)[1:], [{"type": "binary", "mimeType": "image/png", "url": url}]):
        run = await door.run_of({"messages": [*PAST, a_user(parts)]})
        (user,) = run.messages
        assert isinstance(user, UserMessage)
        assert [type(part).__name__ for part in user.parts] == (["Text", "File"] if len(parts) == 2 else ["File"])
        # By its attachment, with no signature (P10).
        assert b"recto-attachment:" in door.admissions[-1].input
        assert url.encode() not in door.admissions[-1].input
        assert [ref.name for ref in door.admissions[-1].files] == ["a.png"]


async def test_P2_a_picture_that_is_not_signed_not_theirs_or_not_taken_is_refused_where_it_stands(door: Door):
    theirs, mine = await a_picture(door, "bob"), await a_picture(door)
    for url in (theirs, f"{mine}0", "https://elsewhere.example/a.png"):
        answer = await door.api.ask("POST", CHAT, {"messages": [*PAST, a_user(image_parts(url))]})
        assert read_names(answer) == ("messages[4].content[1]", NOT_SIGNED)
    data: Json = {"type": "binary", "mimeType": "image/png", "url": mine, "data": "AA=="}
    answer = await door.api.ask("POST", CHAT, {"messages": [a_user([data])]})
    assert read_names(answer) == ("messages[0].content[0].data", HAS_DATA)
    await a_picture(door, allowed=replace(ANY, images=False))
    answer = await door.api.ask("POST", CHAT, {"messages": [a_user(image_parts(mine))]})
    assert (answer.status, str(read_names(answer)[0])[:19]) == (422, "messages[0].content")
    assert door.admissions == []


# Over real HTTP


def say(server: Scripted, body: object, accept: str = "application/json") -> list[ReceivedEvent]:
    reply = request(server.url, "POST", CHAT, body, token=server.token, accept=accept)
    assert (reply.status, reply.headers["content-type"]) == (200, "text/event-stream")
    return list(parse_events(line + b"\n" for line in reply.body.split(b"\n")))


def test_P16_the_answer_is_always_the_stream_whose_first_event_names_the_thread(server: Scripted):
    first = say(server, {"message": "Hello"})
    assert (first[0].event["type"], first[-1].event["type"]) == ("RUN_STARTED", "RUN_FINISHED")
    thread = str(first[0].event["threadId"])
    for accept in ("text/event-stream", "*/*"):
        again = say(server, {"message": "Thanks", "conversation_id": thread}, accept)
        assert again[0].event["threadId"] == thread
    rows = server.rows(f"/history?threadId={thread}", "messages")
    assert [row["content"] for row in rows if row["role"] == "user"] == ["Hello", "Thanks", "Thanks"]
    wrong_type = request(server.url, "POST", CHAT, b"hi", token=server.token, content_type="text/plain")
    assert wrong_type.status == 415


async def test_P16_the_body_in_the_page_on_clients_does_what_it_says(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    page = Path(__file__).parents[2] / "docs" / "clients.md"
    blocks = page.read_text(encoding="utf-8").split("```json\n")[1:]
    (body,) = [block.partition("```")[0] for block in blocks if "conversation_id" in block]
    async with in_process(tmp_path, monkeypatch, agent=None) as server:
        events = events_of(await server.send("POST", CHAT, load_object(body)))
        assert events[0].event["threadId"] == "7d0f7a52-3c1e-4f6b-9a53-0d7f2b8c4e05"
        assert "八字" in str(server.pages[-1])
