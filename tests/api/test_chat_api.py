"""Chat (P16): words in, events out, by the way every run goes; what a client has of the past is not read."""

from collections.abc import AsyncIterator, Generator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import cast

import pytest

from recto.api import chat
from recto.ids import new_id
from recto.page import Text, UserMessage
from recto.page.canonical import Json, dump, load, load_object
from recto.page.refuse import LONG_WORDS, UUID
from recto.page.wire.agui_input import RunInput, decode_input
from recto.store.ports import Admission, Admitted
from recto.testing.client import Reply, Sent, parse_events, request
from recto.testing.process import ServerProcess
from tests.api.local_api import LocalApi, assert_problem, local_api
from tests.api.scripted_server import ALICE, BOB, KEYS, LOOKER

CHAT = "/api/v1/chat"
THREAD = "550e8400-e29b-41d4-a716-44665544000A"


@dataclass(kw_only=True)
class Door:
    """The route, and the runs that would have been stored."""

    api: LocalApi
    admitted: list[Admission] = field(default_factory=list[Admission])

    async def run_of(self, body: object) -> RunInput:
        """The run a request comes to."""
        with pytest.raises(RuntimeError, match="enough"):
            await self.api.ask("POST", CHAT, body)
        return decode_input(load(self.admitted[-1].input))


@pytest.fixture
async def door(tmp_path: Path) -> AsyncIterator[Door]:
    async with local_api(tmp_path, chat.ROUTES) as api:
        made = Door(api=api)

        async def admit(admission: Admission) -> Admitted:
            made.admitted.append(admission)
            raise RuntimeError("enough")

        api.app.state.backend = replace(api.backend, admit=admit)
        yield made


def words_of(run: RunInput) -> list[str]:
    users = [message for message in run.messages if isinstance(message, UserMessage)]
    return [part.text for user in users for part in user.parts if isinstance(part, Text)]


PAST: list[Json] = [
    {"role": "user", "content": "first"},
    {"role": "assistant", "content": "no"},
    {"role": "user", "content": "last"},
    {"role": "assistant", "content": "never"},
]
PARTS: list[Json] = [{"type": "text", "text": "a"}, {"type": "image", "source": {}}, {"type": "text", "text": "b"}]


SAID: list[tuple[Json, str]] = [
    ({"message": "hi"}, "hi"),
    ({"message": " hi\n", "messages": PAST}, " hi\n"),
    ({"message": "hi", "messages": "what we do not read"}, "hi"),
    ({"message": " \n", "messages": PAST}, "last"),
    ({"message": None, "messages": PAST}, "last"),
    ({"messages": PAST}, "last"),
    ({"messages": [*PAST, {"role": "user", "content": PARTS}]}, "a\nb"),
    ({"message": "x" * 10_000}, "x" * 10_000),
]


async def test_P16_the_message_wins_then_the_last_of_the_user(door: Door):
    for body, words in SAID:
        run = await door.run_of(body)
        assert [message.role for message in run.messages] == ["user"]
        assert words_of(run) == [words], body


async def test_P16_without_a_conversation_a_new_one_begins_and_ids_are_new_each_time(door: Door):
    one, two = await door.run_of({"message": "hi"}), await door.run_of({"message": "hi", "conversation_id": None})
    ids = [one.thread, one.run, one.messages[0].id, two.thread, two.run, two.messages[0].id]
    assert len(set(ids)) == 6
    assert all(UUID.fullmatch(str(id)) for id in ids)


async def test_P16_a_conversation_goes_on_under_its_id(door: Door):
    assert (await door.run_of({"message": "hi", "conversation_id": THREAD})).thread == THREAD
    assert door.admitted[-1].thread == THREAD.lower()


async def test_P16_skill_and_tone_are_wishes_of_the_run_and_all_else_is_ignored(door: Door):
    asked: dict[str, Json] = {"message": "hi", "skill": "core", "voice_mode": "warm", "agent": "x", "threadId": 7}
    assert (await door.run_of(asked)).props == {"skill": "core", "voice_mode": "warm"}
    assert (await door.run_of({"message": "hi", "skill": " ", "voice_mode": None})).props == {}


REFUSED: list[tuple[object, str]] = [
    (b"", "body: is no JSON"),
    (b"{", "body: is no JSON"),
    (b'{"message": "\\ud800"}', "body: is no JSON"),
    ([], "body: must be an object, is an array"),
    ({}, "send the user's words as `message`"),
    ({"message": " "}, "send the user's words as `message`"),
    ({"messages": []}, "send the user's words as `message`"),
    ({"messages": [{"role": "assistant", "content": "x"}]}, "send the user's words as `message`"),
    ({"messages": [{"role": "user"}]}, "send the user's words as `message`"),
    ({"messages": [{"role": "user", "content": [PARTS[1]]}]}, "send the user's words as `message`"),
    ({"message": 7}, "message: must be a string, is a number"),
    ({"messages": {}}, "messages: must be an array, is an object"),
    ({"messages": ["x"]}, "messages[0]: must be an object, is a string"),
    ({"messages": [{"role": "user", "content": 7}]}, "messages[0].content: must be an array, is a number"),
    ({"messages": [{"role": "user", "content": [{"type": "text", "text": 7}]}]}, "messages[0].content[0].text"),
    ({"message": "x", "skill": 7}, "skill: must be a string, is a number"),
    ({"message": "x", "voice_mode": []}, "voice_mode: must be a string, is an array"),
    ({"message": "x", "conversation_id": 7}, "conversation_id: must be a string, is a number"),
    ({"message": "x", "conversation_id": "no"}, "conversation_id: must be a UUID, is 'no'"),
    ({"message": "x", "conversation_id": ""}, "conversation_id: must be a UUID, is ''"),
    ({"message": "x", "skill": "no-such-skill"}, "no-such-skill"),
    ({"message": "a\0b"}, "U+0000"),
    ({"message": "x" * 10_001}, LONG_WORDS),
    ({"messages": [{"role": "user", "content": "x" * 10_001}]}, LONG_WORDS),
]


async def test_P16_what_cannot_be_a_message_is_refused_in_words_that_say_what_to_send(door: Door):
    for body, words in REFUSED:
        assert_problem(await door.api.ask("POST", CHAT, body), 422, words)
    assert door.admitted == []


async def test_P2_a_body_too_large_is_refused(door: Door):
    body = dump({"message": "hi"}).ljust(262_145)
    assert_problem(await door.api.ask("POST", CHAT, body), 413, "exceeds size limit")
    await door.run_of(body[:-1])


# Over real HTTP


@pytest.fixture(scope="module")
def url(tmp_path_factory: pytest.TempPathFactory) -> Generator[str]:
    known = {"RECTO_MODEL": "demo", "RECTO_API_KEYS": KEYS, "RECTO_AGENT": "chat"}
    with ServerProcess.serve(tmp_path_factory.mktemp("chat"), known) as server:
        yield server.url


def say(url: str, body: object, token: str | None = ALICE, accept: str = "application/json") -> Reply:
    return request(url, "POST", CHAT, body, token=token, accept=accept)


def events_of(reply: Reply) -> list[Sent]:
    return list(parse_events(line + b"\n" for line in reply.body.split(b"\n")))


def told(events: list[Sent]) -> str:
    return "".join(str(sent.event["delta"]) for sent in events if sent.event["type"] == "TEXT_MESSAGE_CONTENT")


@pytest.mark.full
@pytest.mark.parametrize("accept", ["application/json", "text/event-stream", "*/*"])
def test_P16_the_answer_is_always_the_stream_whose_first_event_names_the_thread(url: str, accept: str):
    reply = say(url, {"message": "What is 12*7?"}, accept=accept)
    assert (reply.status, reply.headers["content-type"]) == (200, "text/event-stream")
    events = events_of(reply)
    assert (events[0].event["type"], events[-1].event["type"]) == ("RUN_STARTED", "RUN_FINISHED")
    assert "84" in told(events)
    thread = str(events[0].event["threadId"])
    again = events_of(say(url, {"message": "What is 2*3?", "conversation_id": thread}))
    assert again[0].event["threadId"] == thread
    history = request(url, "GET", f"/api/v1/agent/history?threadId={thread}", token=ALICE).json["messages"]
    said = [row["content"] for row in cast("list[Mapping[str, Json]]", history) if row["role"] == "user"]
    assert said == ["What is 12*7?", "What is 2*3?"]


@pytest.mark.full
def test_P5_somebody_else_s_conversation_is_not_there_and_credentials_are_as_everywhere(url: str):
    thread = str(events_of(say(url, {"message": "mine"}))[0].event["threadId"])
    foreign, absent = (say(url, {"message": "hi", "conversation_id": id}, BOB) for id in (thread, new_id()))
    assert (foreign.status, absent.status) == (404, 200)
    assert say(url, {"message": "hi"}, None).status == 401
    assert say(url, {"message": "hi"}, LOOKER).status == 403
    assert request(url, "POST", CHAT, b"hi", token=ALICE, content_type="text/plain").status == 415


@pytest.mark.full
def test_P16_the_body_in_the_page_on_clients_does_what_it_says(url: str):
    page = Path(__file__).parents[2] / "docs" / "clients.md"
    blocks = page.read_text(encoding="utf-8").split("```json\n")[1:]
    (body,) = [block.partition("```")[0] for block in blocks if "conversation_id" in block]
    events = events_of(say(url, load_object(body)))
    assert events[0].event["threadId"] == "7d0f7a52-3c1e-4f6b-9a53-0d7f2b8c4e05"
    assert "84" in told(events)
