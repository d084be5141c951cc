"""The gateway relays requests of agents to a provider: bytes, records, folding, faults and broken streams."""

import json
import threading
from collections.abc import Generator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import replace
from http.client import HTTPConnection, IncompleteRead
from pathlib import Path
from typing import cast
from urllib.parse import urlsplit

import pytest

from recto.conversation.json import Json, dump
from recto.testing.answer_bytes import render
from recto.testing.model_server import Answer, Call, Request, failure
from tests.api.relaying_server import (
    CHAT,
    JSON,
    MESSAGES,
    OLD,
    SERVER_KEYS,
    WORDS,
    Relaying,
    message_reads,
    reads,
    relaying_server,
    reply_to,
    user,
    whole_chat,
    whole_message,
)
from tests.api.scripted_server import ALICE, BOB
from tests.support.client import bearer
from tests.waiting import wait_for

PIXEL = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
WIRES = {CHAT: "openai", MESSAGES: "anthropic"}
TALKS = 20
LOOK = Answer(text="I look.", calls=(Call(name="look", arguments='{"at": 1}'),))
STREAMED = {CHAT: {"model": "m", "stream": True}, MESSAGES: {"model": "m", "max_tokens": 9, "stream": True}}


@pytest.fixture(scope="module")
def eager(tmp_path_factory: pytest.TempPathFactory) -> Generator[Relaying]:
    with relaying_server(tmp_path_factory.mktemp("eager"), {"RECTO_GATEWAY_FOLD": "eager"}) as server:
        yield server


@pytest.mark.parametrize("path", [CHAT, MESSAGES])
def test_X3_a_request_goes_on_with_its_own_bytes_headers_and_query_and_its_answer_comes_back_as_it_is(
    gateway: Relaying, path: str
):
    image: Json = {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{PIXEL}"}}
    source: Json = {"type": "base64", "media_type": "image/png", "data": PIXEL}
    image_part: Json = (
        image if path == CHAT else {"type": "image", "source": source, "cache_control": {"type": "ephemeral"}}
    )
    content: Json = [{"type": "text", "text": "What is it? é"}, image_part]
    fields: dict[str, Json] = {**STREAMED[path], "metadata": {"odd": [None, 1.50]}, "unknown": {"deep": [[]]}}
    body = json.dumps({**fields, "messages": [{"role": "user", "content": content}]}, indent=1).encode()
    headers = {"anthropic_beta": "new-2026", "x_request": "mine", "openai_organization": "org"}
    answer = Answer(text="A dot é.", headers=(("X-RateLimit-Remaining", "7"), ("Request-Id", "r1")))
    gateway.answers.append(answer)
    reply = gateway.post(f"{path}?beta=true&a=%2F", body, **headers)
    model_request = gateway.last_request
    assert (model_request.body, model_request.path) == (body, f"{path}?beta=true&a=%2F")
    assert [model_request.headers[name.replace("_", "-")] for name in headers] == list(headers.values())
    assert reply.body == render(answer, WIRES[path])
    assert (reply.headers["x-ratelimit-remaining"], reply.headers["request-id"]) == ("7", "r1")
    assert reply.headers["content-type"] == "text/event-stream"
    assert ALICE not in str(model_request.headers)
    assert gateway.newest_call()["bytes"] == len(body)


@pytest.mark.parametrize("path", [CHAT, MESSAGES])
def test_X3_a_call_is_seen_as_every_call_with_its_price_and_why_each_part_is_there(gateway: Relaying, path: str):
    text = f"Look me up on {path}."
    reply = gateway.post(path, {**STREAMED[path], "messages": [user(text)]})
    assert reply.status == 200
    (thread,) = [row for row in gateway.rows("/threads", "threads") if row["title"] == text]
    assert thread["agent"] == "gateway"
    (row,) = gateway.rows(f"/threads/{thread['id']}/calls", "calls")
    assert (row["finish"], row["error"]) == ("stop", None)
    assert cast("Mapping[str, Json]", row["usage"])["totalTokens"] == 15
    call = gateway.newest_call()
    assert (call["verified"], call["page"]) == (True, gateway.last_request.page)
    (run,) = gateway.rows(f"/threads/{thread['id']}/runs", "runs")
    assert (run["status"], run["outcome"], run["calls"]) == ("finished", "done", 1)
    assert gateway.get(f"/api/v1/agent/runs/{row['run']}/calls/1?as=curl").status == 200


def messages_sent(server: Relaying) -> list[Json]:
    return cast("list[Json]", server.last_request.page["messages"])


@pytest.mark.parametrize("path", [CHAT, MESSAGES])
def test_X3_what_was_folded_stays_folded_and_the_next_request_begins_with_the_last_one(gateway: Relaying, path: str):
    messages = [
        user(f"At {path}."),
        *(reads(16, 3_000, "bash") if path == CHAT else message_reads(16, 3_000, "Bash"))[1:],
    ]
    count_before = len(rows_of(gateway, ALICE))
    gateway.post(path, {**STREAMED[path], "messages": messages[:-2]})
    first = messages_sent(gateway)
    gateway.post(path, {**STREAMED[path], "messages": messages})
    second = messages_sent(gateway)
    folded_places = [place for place, one in enumerate(first) if one != messages[place]]
    assert OLD in str(first[folded_places[0]])
    shared = len(dump(first)) - 1
    assert dump(second)[:shared] == dump(first)[:shared]
    manifest = cast("Mapping[str, Json]", gateway.newest_call()["manifest"])
    rules = {str(part["rule"]) for part in cast("Sequence[Mapping[str, Json]]", manifest["parts"])}
    assert rules == {"None", "X2"}
    assert len(rows_of(gateway, ALICE)) == count_before + 1
    savings_text = gateway.get("/api/v1/agent/savings").body.decode()
    assert ('"agent":"gateway"' in savings_text, '"X2"' in savings_text) == (True, True)


def test_X3_a_gateway_that_folds_eagerly_folds_one_more_with_each_read(eager: Relaying):
    messages = message_reads(12, 200)
    folded_places = list[int]()
    for end in (len(messages) - 2, len(messages)):
        eager.post(MESSAGES, {**STREAMED[MESSAGES], "messages": messages[:end]}, BOB)
        folded_places.append(sum(one != messages[place] for place, one in enumerate(messages_sent(eager))))
    assert folded_places[0] > 0
    assert folded_places[1] == folded_places[0] + 1


@pytest.mark.full
def test_X3_steps_outlive_the_server_and_are_those_of_their_own_branch(tmp_path: Path):
    messages = reads(16, 3_000, "bash")
    with relaying_server(tmp_path) as before:
        before.post(CHAT, {**STREAMED[CHAT], "messages": messages[:-2]})
        first = messages_sent(before)
        assert first != messages[:-2]
    with relaying_server(tmp_path) as after:
        after.post(CHAT, {**STREAMED[CHAT], "messages": messages})
        messages_before = messages_sent(after)
        assert messages_before[: len(first)] == first
        # Somebody else's conversation of the same words has nothing to do with it.
        assert after.rows("/threads", "threads", BOB) == []
        assert len(after.rows("/threads", "threads")) == 1
        # Where a message cannot be read, what was folded before it stays folded, and nothing else is done.
        call = {"id": "x", "type": "custom", "custom": {"name": "x"}}
        odd: list[Json] = [{"role": "assistant", "tool_calls": [call]}, user("And?"), {"role": "tool", "content": "?"}]
        after.post(CHAT, {**STREAMED[CHAT], "messages": [*messages, *odd]})
        assert messages_sent(after) == [*messages_before, *odd]
        after.post(CHAT, {**STREAMED[CHAT], "messages": [*messages[:-2], user("Something else, then.")]})
        assert messages_sent(after)[: len(first)] == first
        assert len(after.rows("/threads", "threads")) == 2


def test_X3_breaks_of_the_cache_are_counted_after_a_refusal_in_a_branch_and_where_an_agent_makes_them(eager: Relaying):
    longer = reads(12, 100)

    def ask(messages: Sequence[Json], **fields: Json) -> list[tuple[Json, Json]]:
        """The causes of breaks so far, and how many."""
        eager.post(CHAT, {**STREAMED[CHAT], **fields, "messages": messages})
        rows = cast("Sequence[Mapping[str, Json]]", eager.get("/api/v1/agent/savings").json["breaks"])
        return [(row["cause"], row["breaks"]) for row in rows]

    assert ask(longer[:17]) == []
    eager.answers.append(failure(429, "slow down"))
    assert ask(longer[:19]) == []
    # What was folded with a request that was refused is paid for when it is sent again.
    assert ask(longer[:19]) == [("fold_step", 1)]
    assert ask(longer[:21]) == [("fold_step", 2)]
    assert ask([*longer[:19], *longer[21:23]]) == [("fold_step", 3)]
    assert ask([user("hi")]) == [("fold_step", 3)]
    assert ask([user("hi"), user("ho")], top_p=1) == [("fold_step", 3), ("settings_changed", 1)]


def test_X3_on_doubt_nothing_is_folded_and_the_manifest_says_why(gateway: Relaying):
    doubtful = [*reads(16, 3_000, "bash"), {"role": "tool", "content": "of no id"}]
    body = json.dumps({**STREAMED[CHAT], "messages": doubtful}).encode()
    assert gateway.post(CHAT, body).status == 200
    assert gateway.last_request.body == body
    manifest = cast("Mapping[str, Json]", gateway.newest_call()["manifest"])
    (part,) = cast("Sequence[Mapping[str, Json]]", manifest["parts"])
    assert str(part["reason"]).startswith("passed on as it came, nothing folded: messages[")


def test_X3_requests_beside_messages_are_passed_on(gateway: Relaying):
    rows_before = rows_of(gateway, ALICE)
    body = dump({"model": "m", "input": "hi", "stream": True})
    reply = gateway.post("/v1/responses", body)
    assert (reply.status, gateway.last_request.body, gateway.last_request.path) == (200, body, "/v1/responses")
    for path, sdk in (("/v1/models", {}), ("/v1/models/gpt%2F4?x=1", {"anthropic_version": "2023-06-01"})):
        # The scripted model has no list: what it says of that comes back.
        reply = gateway.get(path, **sdk)
        assert (reply.status, "there is only POST" in reply.body.decode()) == (404, True)
        assert (gateway.last_request.method, gateway.last_request.path) == ("GET", path)
        key = ("x-api-key", SERVER_KEYS[1]) if sdk else ("authorization", f"Bearer {SERVER_KEYS[0]}")
        assert gateway.last_request.headers[key[0]] == key[1]
    gateway.post("/v1/messages/count_tokens", {"messages": [user("hi")]})
    assert gateway.last_request.path == "/v1/messages/count_tokens"
    assert rows_of(gateway, ALICE) == rows_before


def test_X3_a_fault_inside_a_stream_is_passed_on_and_written_down(gateway: Relaying):
    answer = Answer(text="half a", fault=("server_error", "it broke"))
    gateway.answers.append(answer)
    reply = gateway.post(CHAT, {**STREAMED[CHAT], "messages": [user("A fault, please.")]})
    assert reply.body == render(answer)
    call = gateway.newest_call()
    assert call["finish"] is None
    assert call["error"]
    # Half a reply is paid for: where the provider gives no figures, by our own count.
    assert cast("Mapping[str, Json]", call["usage"])["estimated"] is True


@pytest.mark.parametrize("path", [CHAT, MESSAGES])
def test_X3_a_stream_that_is_cut_anywhere_ends_with_whole_events_and_says_so(gateway: Relaying, path: str):
    whole = render(LOOK, WIRES[path])
    # Around the end of each event, and in the middle of each.
    ends = [place + 2 for place in range(len(whole)) if whole[place : place + 2] == b"\n\n"]
    cuts = sorted({at for end in ends for at in (end - 40, end - 2, end - 1, end, end + 1) if 0 < at < len(whole)})
    body = dump({**STREAMED[path], "messages": [user("Cut me.")]})
    for at in cuts:
        gateway.answers.append(replace(LOOK, cut_at=at))
        got = gateway.post(path, body).body
        rest = whole[: max([end for end in ends if end <= at], default=0)]
        assert got.startswith(rest)
        error_event = got[len(rest) :].removeprefix(b"event: error\n")
        fault = cast("Mapping[str, Json]", json.loads(error_event.removeprefix(b"data: ")))
        fault_row = cast("Mapping[str, Json]", fault["error"])
        assert "the connection broke before the reply was whole" in str(fault_row["message"])
        assert got.endswith(b"\n\n")
        assert (b"event: error\n" in got[len(rest) :]) == (path == MESSAGES) == (fault.get("type") == "error")


@pytest.mark.parametrize("path", [CHAT, MESSAGES])
def test_X3_a_whole_reply_that_is_cut_is_none_and_may_be_tried_again(gateway: Relaying, path: str):
    whole = whole_chat(WORDS) if path == CHAT else whole_message(WORDS)
    gateway.scripts.append(
        lambda model_request: Answer(headers=JSON, body=whole, framing="length", cut_at=len(whole) // 2)
    )
    reply = gateway.post(path, {**STREAMED[path], "stream": False, "messages": [user("hi")]})
    assert reply.status == 502
    gateway.scripts.clear()
    done = gateway.post(path, {**STREAMED[path], "stream": False, "messages": [user("hi")]})
    assert (done.status, done.body) == (200, whole)


def test_X3_a_long_reply_that_breaks_off_after_it_began_is_written_down(gateway: Relaying):
    whole = whole_chat("x" * 18 * 1024 * 1024)
    gateway.answers.append(Answer(headers=JSON, body=whole, framing="length", cut_at=len(whole) - 1024))
    with pytest.raises(IncompleteRead):
        gateway.post(CHAT, {**STREAMED[CHAT], "stream": False, "messages": [user("Be long.")]})
    (thread,) = [row for row in gateway.rows("/threads", "threads") if row["title"] == "Be long."]
    (run,) = gateway.rows(f"/threads/{thread['id']}/runs", "runs")
    assert (run["status"], run["outcome"]) == ("failed", "model_failed")
    assert "Traceback" not in gateway.process.output


def test_X3_a_client_that_leaves_ends_the_call_of_the_model(gateway: Relaying):
    go = threading.Event()
    gateway.answers.append(Answer(text="a b c d e f", hold=go, hold_after=3))
    before, address = len(gateway.model.requests), urlsplit(gateway.url)
    body = dump({**STREAMED[CHAT], "messages": [user("I leave early.")]})
    with closing(HTTPConnection(address.hostname or "", address.port, timeout=30)) as connection:
        connection.request("POST", CHAT, body, {"content-type": "application/json", **bearer(ALICE)})
        assert connection.getresponse().readline()
        model_request = gateway.model.wait_requests(before + 1)[before]
        assert model_request.wait_held()
    assert model_request.wait_disconnected()
    go.set()
    (thread,) = [row for row in gateway.rows("/threads", "threads") if row["title"] == "I leave early."]

    def find_ended_call() -> Mapping[str, Json] | None:
        (run,) = gateway.rows(f"/threads/{thread['id']}/runs", "runs")
        return run if run["outcome"] == "cancelled" else None

    run = cast("Mapping[str, Json]", wait_for(find_ended_call, "the end of the run"))
    assert (run["status"], run["error"]) == ("cancelled", "broken off")


@pytest.mark.full
def test_X3_the_openai_sdk_raises_where_a_stream_breaks_off(gateway: Relaying):
    # It takes seconds to import.
    import openai

    gateway.answers.append(Answer(text="a b c d", cut_at=300))
    with openai.OpenAI(base_url=f"{gateway.url}/v1", api_key=ALICE, max_retries=0) as client:
        stream = client.chat.completions.create(model="m", messages=[{"role": "user", "content": "hi"}], stream=True)
        with pytest.raises(openai.APIError, match="the connection broke"):
            list(stream)


def test_X3_twenty_conversations_at_once_each_get_their_own_words(gateway: Relaying):
    questions, have_all_asked = list[str](), threading.Event()

    def echo(model_request: Request) -> Answer:
        """Answer what was said last, once everybody has said something."""
        messages = cast("list[Mapping[str, Json]]", model_request.page["messages"])
        questions.append(str(messages[-1]["content"]))
        if len(questions) == TALKS:
            have_all_asked.set()
        return replace(reply_to(model_request, f"You said {questions[-1]}."), hold=have_all_asked)

    def talk(number: int) -> None:
        """Say words in two turns that nobody else says; every other one under another name."""
        key, path = (ALICE, BOB)[number % 2], (CHAT, MESSAGES)[number // 2 % 2]
        messages = [user(f"first-{number}")]
        for turn in ("first", "second"):
            reply = gateway.post(path, {**STREAMED[path], "stream": False, "messages": messages}, key)
            words = f"You said {turn}-{number}."
            assert reply.body == (whole_chat(words) if path == CHAT else whole_message(words))
            messages += [{"role": "assistant", "content": words}, user(f"second-{number}")]

    gateway.scripts.append(echo)
    with ThreadPoolExecutor(TALKS) as pool:
        list(pool.map(talk, range(TALKS)))
    for place, key in enumerate((ALICE, BOB)):
        titles = [str(row["title"]) for row in rows_of(gateway, key)]
        own = sorted(title for title in titles if title.startswith("first-"))
        assert own == sorted(f"first-{number}" for number in range(place, TALKS, 2))


def rows_of(gateway: Relaying, key: str) -> list[Mapping[str, Json]]:
    """All threads of a user, page by page."""
    threads, cursor = list[Mapping[str, Json]](), ""
    while True:
        reply = gateway.get(f"/api/v1/agent/threads?limit=100{cursor}", key).json
        threads += cast("list[Mapping[str, Json]]", reply["threads"])
        if reply["next"] is None:
            return threads
        cursor = f"&cursor={reply['next']}"
