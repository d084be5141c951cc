"""Which files are conversations, how they are told apart, and what is said of those that are none."""

import json
from collections import Counter
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recto.cli.sessions.reader import read_session
from recto.cli.sessions.session import Session
from recto.conversation.json import Json
from recto.conversation.messages import AssistantMessage, Text, ToolMessage, UserMessage
from recto.errors import NotAConversation
from tests.cli.session_outline import outline
from tests.long_session import EACH_SESSION, TracedSession

EXPECTED = (
    "Recto reads an array of messages, an object with `messages`, and sessions of pi, Claude Code, Codex, opencode"
)
HELLO: dict[str, Json] = {"role": "user", "content": "hello"}
HELLO_SESSION = Session(format="openai", messages=(UserMessage(parts=(Text(text="hello"),)),))


def read(value: object) -> Session:
    return read_session(json.dumps(value).encode(), source="talk.json")


def lines(*rows: object) -> bytes:
    return "".join(json.dumps(row) + "\n" for row in rows).encode()


def refusal(data: bytes) -> str:
    with pytest.raises(NotAConversation) as caught_error:
        read_session(data, source="talk.json")
    return str(caught_error.value)


def test_an_object_with_messages_and_an_array_of_them_are_a_conversation():
    assert read({"title": "a talk", "messages": [HELLO]}) == read([HELLO]) == HELLO_SESSION


CALL = {"id": "c1", "type": "function", "function": {"name": "ls", "arguments": "{}"}}
RESULT = {"role": "tool", "tool_call_id": "c1", "content": "a.py", "messageStatus": "error"}
BLOCKS = [
    {"type": "thinking", "thinking": "Look.", "signature": "sig"},
    {"type": "tool_use", "id": "t1", "name": "ls", "input": {"path": "."}},
]
SIGNED_TEXT = 'anthropic:claude thinking {"type":"thinking","thinking":"Look.","signature":"sig"}'
ANSWER = {"type": "tool_result", "tool_use_id": "t1", "content": "a.py"}
IMAGE = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "aGk="}}
BODIES: dict[str, tuple[Json, list[str]]] = {
    "messages of openai": (
        {"messages": [HELLO, {"role": "assistant", "content": None, "tool_calls": [CALL]}, RESULT]},
        [" user: hello", " assistant: c1 = ls {}", " error of c1: a.py"],
    ),
    "state of openai": (
        {"model": "gpt", "messages": [{"role": "assistant", "content": "hi", "reasoning_content": "hm"}]},
        [' assistant: openai:gpt reasoning_content "hm" + hi'],
    ),
    "a system field": (
        {"model": "claude", "system": "Be brief.", "messages": [HELLO]},
        [" system: Be brief.", " user: hello"],
    ),
    "blocks of anthropic": (
        {
            "model": "claude",
            "messages": [{"role": "assistant", "content": BLOCKS}, {"role": "user", "content": [ANSWER]}],
        },
        [f' assistant: {SIGNED_TEXT} + t1 = ls {{"path":"."}}', " result of t1: a.py"],
    ),
    "an image": ({"messages": [{"role": "user", "content": [IMAGE]}]}, [" user: image aGk= image/png"]),
}


@pytest.mark.parametrize(("body", "expected"), BODIES.values(), ids=BODIES)
def test_a_request_body_is_a_conversation_with(body: Json, expected: list[str]):
    assert outline(read(body)) == expected


def test_openai_messages_line_by_line_keep_their_ids_and_times():
    session = read_session(lines(HELLO | {"id": "u1", "timestamp": 1_700_000_000_000}, RESULT), source="talk.jsonl")
    assert outline(session) == ["u1 user: hello", " error of c1: a.py"]
    assert session.messages[0].time == datetime(2023, 11, 14, 22, 13, 20, tzinfo=UTC)


def test_the_model_of_a_request_body_is_named_with_its_provider():
    assert read({"model": "claude", "system": "Be brief.", "messages": [HELLO]}).model == "anthropic:claude"


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16"])
def test_byte_order_marks_change_nothing(encoding: str):
    data = json.dumps([HELLO | {"content": "héllo 你好"}], ensure_ascii=False).encode(encoding)
    assert read_session(data, source="talk.json").messages == (UserMessage(parts=(Text(text="héllo 你好"),)),)


def test_halves_of_surrogate_pairs_become_replacement_characters():
    data = rb'{"role": "user", "content": "a\ud83d"}' + b"\n" + rb'{"role": "user", "content": "\udc00b \ud83d\ude00"}'
    texts = [message.parts for message in read_session(data, source="talk.jsonl").messages if message.role == "user"]
    assert texts == [(Text(text="a\ufffd"),), (Text(text="\ufffdb \U0001f600"),)]


def test_numbers_that_only_python_writes_do_not_spoil_a_conversation():
    big = 2**200
    data = json.dumps([HELLO | {"score": float("nan"), "big": big, "ids": [2**63, -(2**62)]}]).encode()
    assert read_session(data, source="talk.json") == HELLO_SESSION


def test_blank_lines_and_windows_line_ends_are_passed_over():
    data = lines(HELLO, HELLO).replace(b"\n", b"\r\n\r\n")
    assert len(read_session(data, source="talk.jsonl").messages) == 2


def test_a_last_line_that_is_cut_off_is_left_out_with_a_note():
    data = lines(HELLO) + b'{"role": "assistant", "content": "hel'
    assert read_session(data, source="talk.jsonl") == Session(
        format="openai", messages=HELLO_SESSION.messages, notes=("Line 2, the last one, is incomplete.",)
    )


@pytest.mark.parametrize(
    ("data", "problem"),
    [
        (b"", "it is empty"),
        (b"\xef\xbb\xbf \n\t\n", "it is empty"),
        (b"\x89PNG\r\n\x1a\n\x00\x00", "it is a binary file; a conversation is JSON text"),
        (b"\x28\xb5\x2f\xfd\x00", "it is compressed (zstd); decompress it first"),
        (b"\x1f\x8b\x08\x00", "it is compressed (gzip); decompress it first"),
        (b"caf\xe9", "it cannot be read as JSON: it is not UTF-8 text"),
        (b"# Notes", "it cannot be read as JSON: it breaks at column 1"),
        (b'{\n  "messages": nothing\n}', "it cannot be read as JSON: it breaks at line 2, column 15"),
        (
            lines(HELLO) + b"{oops}\n" + lines(HELLO),
            "line 2 cannot be read as JSON: it breaks at column 2; mend it or take it out",
        ),
        (lines(HELLO, [HELLO]), "line 2 is an array; every line of a session is an object"),
        (lines({"messages": [HELLO]}, {"messages": [HELLO]}), "it contains a conversation per line. Pass one of them"),
        (lines({"type": "session", "version": 3, "id": "s1", "cwd": "/app"}), f"it contains no messages. {EXPECTED}"),
        (b"42", f"it is JSON, but a number. {EXPECTED}"),
        (b"null", f"it is JSON, but null. {EXPECTED}"),
        (b'"hello"', f"it is JSON, but a string. {EXPECTED}"),
        (b"[]", f"it contains no messages. {EXPECTED}"),
        (b'{"messages": []}', f"it contains no messages. {EXPECTED}"),
        (b'{"name": "recto", "version": 1}', f"it is JSON, but no conversation (its keys: name, version). {EXPECTED}"),
        (b"{}", f"it is JSON, but no conversation (its keys: none). {EXPECTED}"),
        (b"[1]", "it cannot be read as a conversation: messages[0]: must be an object, is a number"),
        (b'{"messages": 3}', "it cannot be read as a conversation: messages: must be an array, is a number"),
        (b"[{}]", "it cannot be read as a conversation: messages[0].role: is missing; a string is needed"),
    ],
)
def test_other_data_is_rejected_in_one_line(data: bytes, problem: str):
    assert refusal(data) == f"talk.json: {problem}"


@pytest.mark.parametrize("levels", [300, 100_000])
@pytest.mark.parametrize("filler", [b"", rb'"\ud800", '])
def test_too_deep_nesting_is_rejected(levels: int, filler: bytes):
    nested = b"[" * levels + filler + b"1" + b"]" * levels
    problem = "it is nested more than 250 levels deep"
    assert refusal(b'{"messages": ' + nested + b"}") == f"talk.json: it cannot be read as JSON: {problem}"
    assert refusal(lines(HELLO) + nested + b"\n" + lines(HELLO)) == (
        f"talk.json: line 2 cannot be read as JSON: {problem}; mend it or take it out"
    )


def test_a_problem_with_a_huge_value_is_still_one_short_line():
    output = refusal(json.dumps([HELLO | {"timestamp": "soon\n" * 10_000}]).encode())
    assert output.startswith(
        "talk.json: it cannot be read as a conversation: messages[0].timestamp: must be millisecond"
    )
    assert len(output) < 500
    assert "\n" not in output


# A row of every kind, so that chance finds its way past the door: one node of one of them is damaged at a time.
ROWS: tuple[Json, ...] = (
    HELLO,
    {"role": "assistant", "content": [{"type": "tool_use", "id": "t1", "name": "ls", "input": {}}]},
    {"type": "session", "version": 3, "id": "s1", "timestamp": "2026-01-01T00:00:00Z", "cwd": "/app"},
    {"kind": "header", "version": 4, "id": "s1", "createdAt": 1, "cwd": "/app"},
    {"kind": "lane", "lane": "main", "leafId": "p1"},
    {"type": "message", "id": "p1", "parentId": None, "message": {"role": "user", "content": "hello"}},
    {
        "type": "message",
        "message": {
            "role": "assistant",
            "api": "anthropic-messages",
            "content": [
                {"type": "thinking", "thinking": "hm", "thinkingSignature": "sig"},
                {"type": "toolCall", "id": "c1", "name": "ls", "arguments": {"path": "."}},
            ],
            "usage": {"input": 1, "cacheRead": 2},
        },
    },
    {"type": "message", "message": {"role": "bashExecution", "command": "ls", "output": "a", "exitCode": 1}},
    {"type": "message", "message": {"role": "toolResult", "toolCallId": "c1", "content": [{"type": "image"}]}},
    {
        "type": "assistant",
        "uuid": "a1",
        "parentUuid": "u1",
        "message": {
            "id": "msg",
            "role": "assistant",
            "content": [{"type": "tool_use", "id": "t1", "name": "ls", "input": {}}],
            "usage": {"input_tokens": 3},
        },
    },
    {
        "type": "user",
        "uuid": "r1",
        "parentUuid": "a1",
        "message": {
            "role": "user",
            "content": [{"type": "tool_result", "tool_use_id": "t1", "content": [{"type": "text", "text": "a"}]}],
        },
    },
    {"type": "attachment", "attachment": {"type": "queued_command", "prompt": "and now"}, "sessionId": "s"},
    {"type": "system", "subtype": "compact_boundary", "uuid": "b1", "parentUuid": None, "logicalParentUuid": "r1"},
    {
        "type": "response_item",
        "timestamp": "2026-01-01T00:00:00Z",
        "payload": {"type": "message", "role": "user", "content": [{"type": "input_image", "image_url": "data:x"}]},
    },
    {"type": "function_call", "name": "shell", "arguments": "{}", "call_id": "f1"},
    {"type": "function_call_output", "call_id": "f1", "output": '{"metadata": {"exit_code": 1}}'},
    {"type": "local_shell_call", "id": "l1", "action": {"type": "exec", "command": ["ls"]}},
    {
        "type": "event_msg",
        "payload": {
            "type": "token_count",
            "info": {"last_token_usage": {"input_tokens": 5}, "total_token_usage": {"total_tokens": 9}},
        },
    },
)
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=4), inner, max_size=4),
    max_leaves=10,
)


def places(value: Json) -> Iterator[tuple[str | int, ...]]:
    """Where the nodes of a JSON value are."""
    yield ()
    match value:
        case Mapping():
            yield from ((key, *place) for key, inner in value.items() for place in places(inner))
        case list():
            yield from ((index, *place) for index, inner in enumerate(value) for place in places(inner))
        case _:
            return


def damaged(value: Json, place: tuple[str | int, ...], new: Json) -> Json:
    match place, value:
        case (str(key), *rest), Mapping():
            return {**value, key: damaged(value[key], tuple(rest), new)}
        case (int(index), *rest), list():
            return [*value[:index], damaged(value[index], tuple(rest), new), *value[index + 1 :]]
        case _:
            return new


@st.composite
def damaged_rows(draw: st.DrawFn) -> Json:
    row = draw(st.sampled_from(ROWS))
    place = draw(st.sampled_from(list(places(row))))
    return damaged(row, place, draw(VALUES)) if draw(st.booleans()) else row


def refused_or_read(data: bytes) -> bool:
    try:
        return bool(read_session(data, source="any").messages)
    except NotAConversation as error:
        return str(error).startswith("any: ") and "\n" not in str(error)


@EACH_SESSION
def test_a_long_session_is_read_to_the_last_message(traced: TracedSession):
    session = read_session(traced.data, source=traced.name)
    results = [message for message in session.messages if isinstance(message, ToolMessage)]
    replies = [message for message in session.messages if isinstance(message, AssistantMessage)]
    calls = [call.id for reply in replies for call in reply.tool_calls]
    assert Counter(message.role for message in session.messages) == traced.roles
    assert sum(result.error is not None for result in results) == traced.errors
    assert len(set(calls) - {result.tool_call_id for result in results}) == traced.unanswered
    assert (session.root, session.notes) == (traced.root, (traced.note,))
    assert len(session.usages) > traced.guesses
    assert set(session.usages) <= {reply.id for reply in replies}
    assert all(message.time is not None for message in session.messages)
    assert len({message.id for message in session.messages}) == len(session.messages)


@given(st.binary(max_size=200))
def test_no_bytes_raise_anything_but_not_a_conversation(data: bytes):
    assert refused_or_read(data)


@given(st.lists(damaged_rows(), min_size=1, max_size=8))
def test_no_damaged_session_raises_anything_but_not_a_conversation(rows: list[Json]):
    assert refused_or_read(lines(*rows))
