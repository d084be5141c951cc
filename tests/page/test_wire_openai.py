"""OpenAI chat, both ways: whole messages, state byte for byte, refusals by name, errors that name the field."""

from collections.abc import Callable
from datetime import UTC, datetime, timedelta

import orjson
import pytest

from recto.conversation.messages import (
    ActivityMessage,
    AssistantMessage,
    Data,
    File,
    Key,
    Message,
    Opaque,
    ProviderFile,
    ReasoningMessage,
    Source,
    SystemMessage,
    Text,
    ToolCall,
    ToolMessage,
    Url,
    UserMessage,
)
from recto.errors import CannotCarry, WireError
from recto.page.wire import openai
from recto.page.wire.formats import decode, encode

MODEL = "gpt-x"
HELLO = Text(text="hello")
PNG = Data(base64="aGk=")
CALL = ToolCall(id="c1", name="read", arguments='{"path":"a"}')


def state(name: str, data: str) -> Opaque:
    return Opaque(provider="openai", model=MODEL, place="field", name=name, data=data)


def block(name: str, data: str) -> Opaque:
    return Opaque(provider="openai", model=MODEL, place="block", name=name, data=data)


BOTH_WAYS: dict[str, tuple[str, Message]] = {
    "a user's words": ('{"role":"user","content":"hello"}', UserMessage(parts=(HELLO,))),
    "a user who says nothing": ('{"role":"user","content":""}', UserMessage()),
    "two texts": (
        '{"role":"user","content":[{"type":"text","text":"hello"},{"type":"text","text":""}]}',
        UserMessage(parts=(HELLO, Text(text=""))),
    ),
    "a picture by url": (
        '{"role":"user","content":[{"type":"text","text":"hello"},'
        '{"type":"image_url","image_url":{"url":"https://x.test/a.png"}}]}',
        UserMessage(parts=(HELLO, File(kind="image", source=Url(url="https://x.test/a.png")))),
    ),
    "a picture by bytes": (
        '{"role":"user","content":[{"type":"image_url","image_url":{"url":"data:image/png;base64,aGk="}}]}',
        UserMessage(parts=(File(kind="image", source=PNG, mime_type="image/png"),)),
    ),
    "sound as wav": (
        '{"role":"user","content":[{"type":"input_audio","input_audio":{"data":"aGk=","format":"wav"}}]}',
        UserMessage(parts=(File(kind="audio", source=PNG, mime_type="audio/wav"),)),
    ),
    "a document by bytes": (
        '{"role":"user","content":[{"type":"file","file":'
        '{"file_data":"data:application/pdf;base64,aGk=","filename":"a.pdf"}}]}',
        UserMessage(parts=(File(kind="document", source=PNG, mime_type="application/pdf", name="a.pdf"),)),
    ),
    "a document by the provider's own handle": (
        '{"role":"user","content":[{"type":"file","file":{"file_id":"file-1"}}]}',
        UserMessage(parts=(File(kind="document", source=ProviderFile(provider="openai", handle="file-1")),)),
    ),
    "an assistant's words": ('{"role":"assistant","content":"hello"}', AssistantMessage(parts=(HELLO,))),
    "an assistant's calls": (
        '{"role":"assistant","content":null,"tool_calls":['
        '{"id":"c1","type":"function","function":{"name":"read","arguments":"{\\"path\\":\\"a\\"}"}},'
        '{"id":"c2","type":"function","function":{"name":"list","arguments":""}}]}',
        AssistantMessage(parts=(CALL, ToolCall(id="c2", name="list", arguments=""))),
    ),
    "a tool's answer": (
        '{"role":"tool","tool_call_id":"c1","content":"hello"}',
        ToolMessage(tool_call_id="c1", parts=(HELLO,)),
    ),
    "a tool's answer in parts": (
        '{"role":"tool","tool_call_id":"c1","content":[{"type":"text","text":"hello"},{"type":"text","text":"b"}]}',
        ToolMessage(tool_call_id="c1", parts=(HELLO, Text(text="b"))),
    ),
    "system": ('{"role":"system","content":"Be brief.","name":"house"}', SystemMessage(text="Be brief.", name="house")),
    "text beyond ASCII": (
        '{"role":"user","content":"北京 ☂ \\n\\u0000"}',
        UserMessage(parts=(Text(text="北京 ☂ \n\0"),)),
    ),
    "reasoning in details": (
        '{"role":"assistant","content":null,"reasoning":"r","reasoning_details":[{"type":"x","b":1,"a":[null]}],'
        '"tool_calls":[{"id":"c1","type":"function","function":{"name":"read","arguments":"{\\"path\\":\\"a\\"}"}}]}',
        AssistantMessage(
            parts=(
                state("reasoning", '"r"'),
                state("reasoning_details", '[{"type":"x","b":1,"a":[null]}]'),
                CALL,
            )
        ),
    ),
    "a refusal": (
        '{"role":"assistant","content":null,"refusal":"I will not."}',
        AssistantMessage(parts=(state("refusal", '"I will not."'),)),
    ),
    "a block nobody knows": (
        '{"role":"user","content":[{"type":"hologram","hologram":{"z":1,"a":null}}]}',
        UserMessage(parts=(block("hologram", '{"type":"hologram","hologram":{"z":1,"a":null}}'),)),
    ),
    "state on a call": (
        '{"role":"assistant","content":null,"tool_calls":[{"id":"c1","type":"function",'
        '"function":{"name":"read","arguments":"{}"},"extra_content":{"google":{"thought_signature":"x=="}}}]}',
        AssistantMessage(
            parts=(
                ToolCall(
                    id="c1",
                    name="read",
                    arguments="{}",
                    state=state("call", '{"extra_content":{"google":{"thought_signature":"x=="}}}'),
                ),
            )
        ),
    ),
    "a picture with a detail we do not know": (
        '{"role":"user","content":[{"type":"image_url","image_url":{"url":"https://x.test/a","detail":"low"}}]}',
        UserMessage(
            parts=(block("image_url", '{"type":"image_url","image_url":{"url":"https://x.test/a","detail":"low"}}'),)
        ),
    ),
}


@pytest.mark.parametrize(("text", "message"), BOTH_WAYS.values(), ids=BOTH_WAYS.keys())
def test_P3_a_message_is_written_byte_for_byte_and_read_back_whole(text: str, message: Message):
    assert openai.encode(message).decode() == text
    assert openai.decode([orjson.loads(text)], model=MODEL) == (message,)


ODD_STATE = ' {"b" : 1.0e3, "a":[ null ],"big":123456789012345678901234567890} '


def test_state_beside_the_content_goes_back_byte_for_byte():
    message = AssistantMessage(parts=(state("reasoning_details", ODD_STATE), HELLO))
    assert openai.encode(message).decode() == (
        '{"role":"assistant","content":"hello","reasoning_details":' + ODD_STATE + "}"
    )


def test_state_in_a_block_goes_back_byte_for_byte():
    message = UserMessage(parts=(HELLO, block("hologram", ODD_STATE)))
    assert openai.encode(message).decode() == (
        '{"role":"user","content":[{"type":"text","text":"hello"},' + ODD_STATE + "]}"
    )


def test_state_on_a_call_goes_back_byte_for_byte():
    odd = '"extra_content": { "b" : 1.0e3, "big":123456789012345678901234567890 }'
    call = ToolCall(id="c1", name="read", arguments="{}", state=state("call", "{" + odd + "}"))
    assert openai.encode(AssistantMessage(parts=(call,))).decode() == (
        '{"role":"assistant","content":null,"tool_calls":[{"id":"c1","type":"function",'
        '"function":{"name":"read","arguments":"{}"},' + odd + "}]}"
    )


def test_facts_of_the_log_are_read_and_never_sent():
    given = {
        "id": "t1",
        "role": "tool",
        "tool_call_id": "c1",
        "timestamp": 1_700_000_000_500,
        "messageStatus": "error",
        "content": [{"type": "text", "text": "a", "path": "src/a.py"}],
    }
    (message,) = openai.decode([given])
    assert message == ToolMessage(
        id="t1",
        tool_call_id="c1",
        time=datetime(2023, 11, 14, 22, 13, 20, 500_000, tzinfo=UTC),
        error="error",
        parts=(Text(text="a", path="src/a.py"),),
    )
    assert openai.encode(message) == b'{"role":"tool","tool_call_id":"c1","content":"a"}'


@pytest.mark.parametrize(
    ("stamp", "time"),
    [
        (0, datetime(1970, 1, 1, tzinfo=UTC)),
        (-1.5, datetime(1969, 12, 31, 23, 59, 59, 998_500, tzinfo=UTC)),
        ("2026-05-14T12:00:00Z", datetime(2026, 5, 14, 12, tzinfo=UTC)),
        ("2026-05-14T12:00:00", datetime(2026, 5, 14, 12, tzinfo=UTC)),
        ("2026-05-14T12:00:00+02:00", datetime(2026, 5, 14, 10, tzinfo=UTC)),
        (None, None),
    ],
)
def test_a_timestamp_is_milliseconds_or_iso(stamp: float | str | None, time: datetime | None):
    (message,) = openai.decode([{"role": "user", "content": "a", "timestamp": stamp}])
    assert message.time == time
    assert time is None or (message.time or time) - time == timedelta(0)


def test_fields_outside_the_format_are_ignored():
    given = {"role": "user", "content": "hello", "mood": {"deep": [1]}, "seq": "x"}
    assert openai.decode([given]) == (UserMessage(parts=(HELLO,)),)


def test_lone_halves_of_surrogate_pairs_are_cleaned():
    (message,) = openai.decode([{"role": "user", "content": "a\ud800b", "name": "\udc00", "id": "\ud800"}])
    assert message == UserMessage(id="\ufffd", name="\ufffd", parts=(Text(text="a\ufffdb"),))
    broken = UserMessage(parts=(File(kind="image", source=Url(url="https://x.test/\ud800")),))
    url = b'{"url":"https://x.test/\xef\xbf\xbd"}'
    assert openai.encode(broken) == b'{"role":"user","content":[{"type":"image_url","image_url":' + url + b"}]}"


def test_whole_surrogate_pairs_written_as_two_halves_become_one_character():
    assert openai.encode(UserMessage(parts=(Text(text="\ud83d\ude00"),))).decode() == '{"role":"user","content":"😀"}'


def file(kind: str, source: Source, *, mime: str | None = None, name: str | None = None) -> Callable[[], UserMessage]:
    match kind:
        case "image" | "audio" | "video" | "document":
            return lambda: UserMessage(parts=(File(kind=kind, source=source, mime_type=mime, name=name),))
        case _:
            raise ValueError(kind)


REFUSED: dict[str, tuple[Callable[[], Message], str]] = {
    "reasoning": (lambda: ReasoningMessage(text="a"), "a message of role reasoning"),
    "activity": (lambda: ActivityMessage(activity_type="a", content="{}"), "a message of role activity"),
    "a file in our storage": (file("image", Key(key="k")), "a file of kind image by Key"),
    "an assistant's file": (
        lambda: AssistantMessage(parts=(File(kind="image", source=Url(url="u")),)),
        "a file of kind image in a message of role assistant",
    ),
    "a tool's file": (
        lambda: ToolMessage(tool_call_id="c", parts=(File(kind="image", source=Url(url="u")),)),
        "a file of kind image in a message of role tool",
    ),
    "words behind a call": (
        lambda: AssistantMessage(parts=(CALL, HELLO)),
        "text that follows a tool call in one message",
    ),
    "another provider's field": (
        lambda: AssistantMessage(
            parts=(HELLO, Opaque(provider="google", model=None, place="field", name="thought", data="{}"))
        ),
        "state of google (thought)",
    ),
    "a field in a user's message": (
        lambda: UserMessage(parts=(state("refusal", '"no"'),)),
        "state of openai (refusal) in a message of role user",
    ),
    "another provider's state on a call": (
        lambda: AssistantMessage(
            parts=(
                ToolCall(
                    id="c",
                    name="n",
                    arguments="{}",
                    state=Opaque(provider="google", model=None, place="field", name="call", data="{}"),
                ),
            )
        ),
        "state of google on a tool call",
    ),
}


@pytest.mark.parametrize(("make", "what"), REFUSED.values(), ids=REFUSED.keys())
def test_what_the_format_cannot_carry_is_refused_by_name(make: Callable[[], Message], what: str):
    with pytest.raises(CannotCarry) as refused:
        openai.encode(make())
    assert str(refused.value) == f"The openai format cannot carry {what}."


def nested(depth: int) -> object:
    return [nested(depth - 1)] if depth else []


CALL_JSON = {"id": "c", "type": "function", "function": {"name": "n", "arguments": "{}"}}
BAD: dict[str, tuple[object, str]] = {
    "no array": ({}, "messages: must be an array, is an object"),
    "a number for a message": ([7], "messages[0]: must be an object, is a number"),
    "no role": ([{"content": "a"}], "messages[0].role: is missing; a string is needed"),
    "a role that is no text": ([{"role": 1}], "messages[0].role: must be a string, is a number"),
    "an unknown role": ([{"role": "narrator"}], "messages[0].role: 'narrator' is no role of OpenAI chat"),
    "content that is a number": (
        [{"role": "user", "content": 1}],
        "messages[0].content: must be an array, is a number",
    ),
    "a part without a type": (
        [{"role": "user", "content": [{"text": "a"}]}],
        "messages[0].content[0].type: is missing; a string is needed",
    ),
    "a tool without a call": (
        [{"role": "user", "content": "a"}, {"role": "tool", "content": "a"}],
        "messages[1].tool_call_id: is missing; a string is needed",
    ),
    "a call of another type": (
        [{"role": "assistant", "tool_calls": [CALL_JSON, CALL_JSON | {"type": "custom"}]}],
        "messages[0].tool_calls[1].type: 'custom' is not supported; only function calls are",
    ),
    "arguments that are an object": (
        [{"role": "assistant", "tool_calls": [{"id": "c", "function": {"name": "n", "arguments": {}}}]}],
        "messages[0].tool_calls[0].function.arguments: must be a string, is an object",
    ),
    "state too deep to write": (
        [{"role": "assistant", "reasoning_details": nested(300)}],
        "JSON: cannot be written: Recursion limit reached",
    ),
}


@pytest.mark.parametrize(("given", "text"), BAD.values(), ids=BAD.keys())
def test_bad_input_is_refused_with_the_field_and_what_was_wrong(given: object, text: str):
    with pytest.raises(WireError) as refused:
        decode(given, "openai")
    assert str(refused.value) == text


@pytest.mark.parametrize(
    ("stamp", "shown"),
    [
        ("yesterday", "'yesterday'"),
        ("", "''"),
        (True, "True"),
        ([], "[]"),
        (float("nan"), "nan"),
        (float("inf"), "inf"),
        (10**30, str(10**30)),
        (-(10**18), str(-(10**18))),
        ("2026-13-01", "'2026-13-01'"),
    ],
)
def test_a_timestamp_that_is_none_is_refused(stamp: object, shown: str):
    with pytest.raises(WireError) as refused:
        decode([{"role": "user", "content": "a", "timestamp": stamp}])
    assert str(refused.value) == f"messages[0].timestamp: must be milliseconds since 1970 or ISO 8601, is {shown}"


def test_a_format_nobody_knows_is_named():
    known = "openai, openai-responses, anthropic, gemini, ag-ui"
    with pytest.raises(WireError, match=rf"^wire: 'morse' is unknown; known: {known}$"):
        decode([], "morse")
    with pytest.raises(CannotCarry, match=r"^The morse format cannot carry messages one by one; set a page"):
        encode([], "morse")
