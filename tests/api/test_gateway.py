"""The gateway with the SDKs that agents are written with: they are pointed at it and notice nothing."""

import json
import threading
from collections.abc import Generator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from http.client import IncompleteRead
from pathlib import Path
from typing import cast

import anthropic
import openai
import pytest
from anthropic.types import ToolUseBlock
from openai.types.chat import ChatCompletionMessageFunctionToolCall

from recto.conversation.json import Json, dump
from recto.testing.answer_bytes import render
from recto.testing.client import request
from recto.testing.model_server import Answer, Call, Request, failure
from tests.api.relaying_server import (
    ALICE,
    BOB,
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

PIXEL = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
WIRES = {CHAT: "openai", MESSAGES: "anthropic"}
STREAMED = {CHAT: {"model": "m", "stream": True}, MESSAGES: {"model": "m", "max_tokens": 9, "stream": True}}


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Generator[Relaying]:
    with relaying_server(tmp_path_factory.mktemp("gateway")) as server:
        yield server


@pytest.fixture
def server(shared: Relaying) -> Generator[Relaying]:
    shared.answers.clear()
    shared.scripts.clear()
    yield shared
    while OPENED:
        OPENED.pop().close()


# Clients of the test at hand, to be closed at its end.
OPENED: list[openai.OpenAI | anthropic.Anthropic] = []


def chat_of(server: Relaying) -> openai.OpenAI:
    client = openai.OpenAI(base_url=f"{server.url}/v1", api_key=ALICE, max_retries=0)
    OPENED.append(client)
    return client


def messages_of(server: Relaying) -> anthropic.Anthropic:
    client = anthropic.Anthropic(base_url=server.url, api_key=ALICE, max_retries=0)
    OPENED.append(client)
    return client


def test_X3_the_openai_sdk_gets_words_tools_and_usage_streamed_and_whole(server: Relaying):
    client = chat_of(server)
    whole = client.chat.completions.create(model="m", messages=[{"role": "user", "content": "hi"}], temperature=0.5)
    assert (whole.choices[0].message.content, whole.usage and whole.usage.total_tokens) == (WORDS, 15)
    server.answers.append(Answer(text="I look.", calls=(Call(name="look", arguments='{"at": 1}'),)))
    stream = client.chat.completions.stream(model="m", messages=[{"role": "user", "content": "hi"}])
    with stream as events:
        message = events.get_final_completion().choices[0].message
    (call,) = message.tool_calls or []
    assert isinstance(call, ChatCompletionMessageFunctionToolCall)
    assert (message.content, call.function.name, call.function.arguments) == ("I look.", "look", '{"at": 1}')
    assert server.sent.headers["authorization"] == f"Bearer {SERVER_KEYS[0]}"


def test_X3_the_anthropic_sdk_gets_words_tools_and_usage_streamed_and_whole(server: Relaying):
    client = messages_of(server)
    whole = client.messages.create(model="m", max_tokens=9, messages=[{"role": "user", "content": "hi"}])
    assert (whole.content[0].type, whole.usage.output_tokens) == ("text", 5)
    server.answers.append(Answer(text="I look.", calls=(Call(name="look", arguments='{"at": 1}'),)))
    said = [{"role": "user", "content": "hi"}]
    with client.messages.stream(model="m", max_tokens=9, messages=said) as events:  # pyright: ignore[reportArgumentType] - plain
        message = events.get_final_message()
    (call,) = [block for block in message.content if isinstance(block, ToolUseBlock)]
    assert (call.name, call.input) == ("look", {"at": 1})
    assert server.sent.headers["x-api-key"] == SERVER_KEYS[1]


@pytest.mark.parametrize("path", [CHAT, MESSAGES])
def test_X3_a_request_goes_on_with_its_own_bytes_headers_and_query_and_its_answer_comes_back_as_it_is(
    server: Relaying, path: str
):
    image: Json = {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{PIXEL}"}}
    source: Json = {"type": "base64", "media_type": "image/png", "data": PIXEL}
    seen: Json = image if path == CHAT else {"type": "image", "source": source, "cache_control": {"type": "ephemeral"}}
    content: Json = [{"type": "text", "text": "What is it? é"}, seen]
    fields: dict[str, Json] = {**STREAMED[path], "metadata": {"odd": [None, 1.50]}, "unknown": {"deep": [[]]}}
    body = json.dumps({**fields, "messages": [{"role": "user", "content": content}]}, indent=1).encode()
    headers = {"anthropic_beta": "new-2026", "x_request": "mine", "openai_organization": "org"}
    answer = Answer(text="A dot é.", headers=(("X-RateLimit-Remaining", "7"), ("Request-Id", "r1")))
    server.answers.append(answer)
    reply = server.post(f"{path}?beta=true&a=%2F", body, **headers)
    made = server.sent
    assert (made.body, made.path) == (body, f"{path}?beta=true&a=%2F")
    assert [made.headers[name.replace("_", "-")] for name in headers] == list(headers.values())
    assert reply.body == render(answer, WIRES[path])
    assert (reply.headers["x-ratelimit-remaining"], reply.headers["request-id"]) == ("7", "r1")
    assert reply.headers["content-type"] == "text/event-stream"
    assert ALICE not in str(made.headers)
    assert server.newest_call()["bytes"] == len(body)


@pytest.mark.parametrize("path", [CHAT, MESSAGES])
def test_X3_a_call_is_seen_as_every_call_with_its_price_and_why_each_part_is_there(server: Relaying, path: str):
    said = f"Look me up on {path}."
    reply = server.post(path, {**STREAMED[path], "messages": [user(said)]})
    assert reply.status == 200
    (thread,) = [row for row in server.rows("/threads", "threads") if row["title"] == said]
    assert thread["agent"] == "gateway"
    (row,) = server.rows(f"/threads/{thread['id']}/calls", "calls")
    assert (row["finish"], row["error"]) == ("stop", None)
    assert cast("Mapping[str, Json]", row["usage"])["totalTokens"] == 15
    call = server.newest_call()
    assert (call["verified"], call["page"]) == (True, server.sent.page)
    (run,) = server.rows(f"/threads/{thread['id']}/runs", "runs")
    assert (run["status"], run["outcome"], run["calls"]) == ("finished", "done", 1)
    assert server.get(f"/api/v1/agent/runs/{row['run']}/calls/1?as=curl").status == 200


@pytest.mark.parametrize(("path", "mode"), [(CHAT, "cost"), (MESSAGES, "cost"), (CHAT, "eager"), (MESSAGES, "eager")])
def test_X3_what_was_folded_stays_folded_and_the_next_request_begins_with_the_last_one(
    server: Relaying, tmp_path: Path, path: str, mode: str
):
    commands = reads(16, 3_000, "bash") if path == CHAT else message_reads(16, 3_000, "Bash")
    looked = reads(12, 200) if path == CHAT else message_reads(12, 200)
    grown = commands if mode == "cost" else looked
    with relaying_server(tmp_path, {"RECTO_GATEWAY_FOLD": mode}) as fresh:
        for end in (len(grown) - 2, len(grown)):
            fresh.post(path, {**STREAMED[path], "messages": grown[:end]})
        first, second = [cast("list[Json]", made.page["messages"]) for made in fresh.model.requests[-2:]]
        folded = [place for place, one in enumerate(first) if one != grown[place]]
        assert folded
        if mode == "cost":
            assert second[: len(first)] == first
            shared = len(dump(first)) - 1
            assert dump(second)[:shared] == dump(first)[:shared]
            assert OLD in str(first[folded[0]])
            step = cast("Mapping[str, Json]", fresh.newest_call()["manifest"])
            rules = {str(part["rule"]) for part in cast("Sequence[Mapping[str, Json]]", step["parts"])}
            assert rules == {"None", "X2"}
            assert len(fresh.rows("/threads", "threads")) == 1
            saved = fresh.get("/api/v1/agent/savings").body.decode()
            assert ('"agent":"gateway"' in saved, '"X2"' in saved) == (True, True)
        else:
            assert len([place for place, one in enumerate(second) if one != grown[place]]) == len(folded) + 1


def test_X3_steps_outlive_the_server_and_are_those_of_their_own_branch(tmp_path: Path):
    grown = reads(16, 3_000, "bash")
    with relaying_server(tmp_path) as before:
        before.post(CHAT, {**STREAMED[CHAT], "messages": grown[:-2]})
        first = cast("list[Json]", before.sent.page["messages"])
        assert first != grown[:-2]
    with relaying_server(tmp_path) as after:
        after.post(CHAT, {**STREAMED[CHAT], "messages": grown})
        assert cast("list[Json]", after.sent.page["messages"])[: len(first)] == first
        # Somebody else's conversation of the same words has nothing to do with it.
        assert after.rows("/threads", "threads", BOB) == []
        assert len(after.rows("/threads", "threads")) == 1
        # Where a message cannot be read, what was folded before it stays folded, and nothing else is done.
        call = {"id": "x", "type": "custom", "custom": {"name": "x"}}
        odd: list[Json] = [{"role": "assistant", "tool_calls": [call]}, user("And?"), {"role": "tool", "content": "?"}]
        known = cast("list[Json]", after.sent.page["messages"])
        after.post(CHAT, {**STREAMED[CHAT], "messages": [*grown, *odd]})
        assert after.sent.page["messages"] == [*known, *odd]
        other = [*grown[:-2], user("Something else, then.")]
        after.post(CHAT, {**STREAMED[CHAT], "messages": other})
        assert cast("list[Json]", after.sent.page["messages"])[: len(first)] == first
        assert len(after.rows("/threads", "threads")) == 2


def test_X3_breaks_of_the_cache_are_counted_after_a_refusal_in_a_branch_and_where_an_agent_makes_them(tmp_path: Path):
    grown = reads(12, 100)
    with relaying_server(tmp_path, {"RECTO_GATEWAY_FOLD": "eager"}) as fresh:

        def ask(messages: Sequence[Json], **fields: Json) -> list[tuple[Json, Json]]:
            """The causes of breaks so far, and how many."""
            fresh.post(CHAT, {**STREAMED[CHAT], **fields, "messages": messages})
            rows = cast("Sequence[Mapping[str, Json]]", fresh.get("/api/v1/agent/savings").json["breaks"])
            return [(row["cause"], row["breaks"]) for row in rows]

        assert ask(grown[:17]) == []
        fresh.answers.append(failure(429, "slow down"))
        assert ask(grown[:19]) == []
        # What was folded with a request that was refused is paid for when it is sent again.
        assert ask(grown[:19]) == [("fold_step", 1)]
        assert ask(grown[:21]) == [("fold_step", 2)]
        assert ask([*grown[:19], *grown[21:23]]) == [("fold_step", 3)]
        assert ask([user("hi")]) == [("fold_step", 3)]
        assert ask([user("hi"), user("ho")], top_p=1) == [("fold_step", 3), ("settings_changed", 1)]


def test_X3_the_same_request_again_is_the_same_conversation_and_the_same_bytes(server: Relaying):
    body = {**STREAMED[CHAT], "messages": [user("Again and again."), *reads(10, 100)[1:]]}
    for _ in range(2):
        server.post(CHAT, body)
    first, second = server.model.requests[-2:]
    assert first.body == second.body
    (thread,) = [row for row in server.rows("/threads", "threads") if row["title"] == "Again and again."]
    assert len(server.rows(f"/threads/{thread['id']}/calls", "calls")) == 2


@pytest.mark.parametrize(
    "messages",
    [
        [user("hi"), {"role": "wizard", "content": "!"}],
        [user("hi"), {"role": "assistant", "content": None, "function_call": {"name": "f", "arguments": "{}"}}],
        [user("hi"), {"role": "assistant", "tool_calls": [{"id": "c", "type": "custom", "custom": {"name": "x"}}]}],
        [*reads(16, 3_000, "bash"), {"role": "tool", "content": "of no id"}],
        ["hi"],
    ],
)
def test_X3_on_doubt_nothing_is_folded_and_the_manifest_says_why(server: Relaying, messages: list[Json]):
    body = json.dumps({**STREAMED[CHAT], "messages": messages}).encode()
    assert server.post(CHAT, body).status == 200
    assert server.sent.body == body
    manifest = cast("Mapping[str, Json]", server.newest_call()["manifest"])
    (part,) = cast("Sequence[Mapping[str, Json]]", manifest["parts"])
    assert str(part["reason"]).startswith("passed on as it came, nothing folded: messages[")


def test_X3_requests_beside_messages_are_passed_on(server: Relaying):
    known = rows_of(server, ALICE)
    body = dump({"model": "m", "input": "hi", "stream": True})
    reply = server.post("/v1/responses", body)
    assert (reply.status, server.sent.body, server.sent.path) == (200, body, "/v1/responses")
    for path, sdk in (("/v1/models", {}), ("/v1/models/gpt%2F4?x=1", {"anthropic_version": "2023-06-01"})):
        # The scripted model has no list: what it says of that comes back.
        reply = server.get(path, **sdk)
        assert (reply.status, "there is only POST" in reply.body.decode()) == (404, True)
        assert (server.sent.method, server.sent.path) == ("GET", path)
        key = ("x-api-key", SERVER_KEYS[1]) if sdk else ("authorization", f"Bearer {SERVER_KEYS[0]}")
        assert server.sent.headers[key[0]] == key[1]
    server.post("/v1/messages/count_tokens", {"messages": [user("hi")]})
    assert server.sent.path == "/v1/messages/count_tokens"
    assert rows_of(server, ALICE) == known


def test_X3_errors_of_the_provider_come_back_as_they_are_and_sdks_know_them(server: Relaying):
    server.answers.append(failure(429, "slow down", retry_after="7"))
    with pytest.raises(openai.RateLimitError, match="slow down") as limited:
        chat_of(server).chat.completions.create(model="m", messages=[{"role": "user", "content": "hi"}])
    assert limited.value.response.headers["retry-after"] == "7"
    body = dump({"type": "error", "error": {"type": "overloaded_error", "message": "busy"}})
    server.answers.append(Answer(status=529, headers=JSON, body=body))
    with pytest.raises(anthropic.APIStatusError) as busy:
        messages_of(server).messages.create(model="m", max_tokens=9, messages=[{"role": "user", "content": "hi"}])
    assert (busy.value.status_code, busy.value.body) == (529, json.loads(body))
    call = server.newest_call()
    assert call["error"]
    server.answers.append(failure(400, "bad word"))
    with pytest.raises(openai.BadRequestError, match="bad word"):
        chat_of(server).chat.completions.create(model="m", messages=[{"role": "user", "content": "x"}], stream=True)


def test_X3_a_fault_inside_a_stream_is_passed_on_and_written_down(server: Relaying):
    answer = Answer(text="half a", fault=("server_error", "it broke"))
    server.answers.append(answer)
    reply = server.post(CHAT, {**STREAMED[CHAT], "messages": [user("A fault, please.")]})
    assert reply.body == render(answer)
    call = server.newest_call()
    assert call["finish"] is None
    assert call["error"]
    # Half a reply is paid for: where the provider gives no figures, by our own count.
    assert cast("Mapping[str, Json]", call["usage"])["estimated"] is True


@pytest.mark.parametrize("path", [CHAT, MESSAGES])
def test_X3_a_stream_that_is_cut_at_any_byte_ends_with_whole_events_and_says_so(server: Relaying, path: str):
    answer = Answer(text="a b", calls=(Call(name="look"),))
    whole = render(answer, WIRES[path])
    # One request each: a longer stream would only take longer.
    assert len(whole) < 1_500
    cuts = range(1, len(whole))
    body = dump({**STREAMED[path], "messages": [user("Cut me.")]})
    server.scripts.append(lambda made: Answer(text="a b", calls=answer.calls, cut_at=int(made.headers["x-cut"])))

    def cut(at: int) -> bytes:
        return request(server.url, "POST", path, body, token=ALICE, x_cut=str(at)).body

    with ThreadPoolExecutor(8) as pool:
        for at, got in zip(cuts, pool.map(cut, cuts), strict=True):
            kept = whole[: whole.rfind(b"\n\n", 0, at) + 2] if b"\n\n" in whole[:at] else b""
            assert got.startswith(kept)
            told = got[len(kept) :].removeprefix(b"event: error\n")
            fault = cast("Mapping[str, Json]", json.loads(told.removeprefix(b"data: ")))
            said = cast("Mapping[str, Json]", fault["error"])
            assert "the connection broke before the reply was whole" in str(said["message"])
            assert got.endswith(b"\n\n")
            assert (b"event: error\n" in got[len(kept) :]) == (path == MESSAGES) == (fault.get("type") == "error")


def test_X3_sdks_raise_where_a_stream_breaks_off(server: Relaying):
    server.answers.append(Answer(text="a b c d", cut_at=300))
    with pytest.raises(openai.APIError, match="the connection broke"):
        list(
            chat_of(server).chat.completions.create(
                model="m", messages=[{"role": "user", "content": "hi"}], stream=True
            )
        )
    server.answers.append(Answer(text="a b c d", cut_at=600))
    said = [{"role": "user", "content": "hi"}]
    with (
        pytest.raises(anthropic.APIStatusError, match="the connection broke"),
        messages_of(server).messages.stream(model="m", max_tokens=9, messages=said) as events,  # pyright: ignore[reportArgumentType] - plain
    ):
        events.get_final_message()


@pytest.mark.parametrize("path", [CHAT, MESSAGES])
def test_X3_a_whole_reply_that_is_cut_is_none_and_may_be_tried_again(server: Relaying, path: str):
    whole = whole_chat(WORDS) if path == CHAT else whole_message(WORDS)
    server.scripts.append(lambda made: Answer(headers=JSON, body=whole, framing="length", cut_at=len(whole) // 2))
    reply = server.post(path, {**STREAMED[path], "stream": False, "messages": [user("hi")]})
    assert reply.status == 502
    server.scripts.clear()
    done = server.post(path, {**STREAMED[path], "stream": False, "messages": [user("hi")]})
    assert (done.status, done.body) == (200, whole)


def test_X3_a_long_reply_that_breaks_off_after_it_began_is_written_down(server: Relaying):
    whole = whole_chat("x" * 18 * 1024 * 1024)
    server.answers.append(Answer(headers=JSON, body=whole, framing="length", cut_at=len(whole) - 1024))
    with pytest.raises(IncompleteRead):
        server.post(CHAT, {**STREAMED[CHAT], "stream": False, "messages": [user("Be long.")]})
    (thread,) = [row for row in server.rows("/threads", "threads") if row["title"] == "Be long."]
    (run,) = server.rows(f"/threads/{thread['id']}/runs", "runs")
    assert (run["status"], run["outcome"]) == ("failed", "model_failed")
    assert "Traceback" not in server.process.output


def test_X3_a_client_that_leaves_ends_the_call_of_the_model(server: Relaying):
    go = threading.Event()
    server.answers.append(Answer(text="a b c d e f", hold=go, hold_after=3))
    client = chat_of(server)
    stream = client.chat.completions.create(
        model="m", messages=[{"role": "user", "content": "I leave early."}], stream=True
    )
    next(iter(stream))
    made = server.sent
    assert made.wait_held()
    stream.close()
    client.close()
    assert made.wait_disconnected()
    go.set()
    (thread,) = [row for row in server.rows("/threads", "threads") if row["title"] == "I leave early."]
    (run,) = server.rows(f"/threads/{thread['id']}/runs", "runs")
    for _ in range(200):
        if run["outcome"] == "cancelled":
            break
        threading.Event().wait(0.02)
        (run,) = server.rows(f"/threads/{thread['id']}/runs", "runs")
    assert (run["status"], run["error"]) == ("cancelled", "broken off")


def test_X3_two_hundred_conversations_at_once_each_get_their_own_words(server: Relaying):
    def echo(made: Request) -> Answer:
        said = cast("list[Mapping[str, Json]]", made.page["messages"])
        return reply_to(made, f"You said {said[-1]['content']}.")

    server.scripts.append(echo)

    def talk(number: int) -> list[str]:
        """Two turns, with words nobody else says; every other one under another name."""
        key, path = (ALICE, BOB)[number % 2], (CHAT, MESSAGES)[number // 2 % 2]
        said, heard = [user(f"first-{number}")], list[str]()
        for turn in ("first", "second"):
            reply = server.post(path, {**STREAMED[path], "stream": False, "messages": said}, key)
            content = cast("list[Mapping[str, Json]]", reply.json.get("content") or [{}])[0].get("text")
            choices = cast("list[Mapping[str, Mapping[str, Json]]]", reply.json.get("choices") or [])
            words = str(choices[0]["message"]["content"] if choices else content)
            assert words == f"You said {turn}-{number}."
            heard.append(words)
            said = [*said, {"role": "assistant", "content": words}, user(f"second-{number}")]
        return heard

    with ThreadPoolExecutor(200) as pool:
        assert len(list(pool.map(talk, range(200)))) == 200
    for key, numbers in ((ALICE, range(0, 200, 2)), (BOB, range(1, 200, 2))):
        listed = [row for row in rows_of(server, key) if str(row["title"]).startswith("first-")]
        assert {str(row["title"]) for row in listed} == {f"first-{number}" for number in numbers}
        assert len(listed) == 100


def rows_of(server: Relaying, key: str) -> list[Mapping[str, Json]]:
    """All threads of a user, page by page."""
    found, cursor = list[Mapping[str, Json]](), ""
    while True:
        reply = server.get(f"/api/v1/agent/threads?limit=100{cursor}", key).json
        found += cast("list[Mapping[str, Json]]", reply["threads"])
        if reply["next"] is None:
            return found
        cursor = f"&cursor={reply['next']}"
