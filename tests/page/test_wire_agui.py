"""AG-UI messages, both ways: every role, byte for byte, refusals by name, errors that name the field."""

import orjson
import pytest

from recto.conversation.input import agui
from recto.conversation.messages import (
    ActivityMessage,
    AssistantMessage,
    Data,
    DeveloperMessage,
    File,
    Key,
    Message,
    Opaque,
    ProviderFile,
    ReasoningMessage,
    SystemMessage,
    Text,
    ToolCall,
    ToolMessage,
    Url,
    UserMessage,
)
from recto.errors import CannotCarry, WireError
from recto.page.wire.formats import decode

HELLO = Text(text="hello")
STATE = Opaque(provider="anthropic", model=None, place="block", name="thinking", data="{}")

BOTH_WAYS: dict[str, tuple[str, Message]] = {
    "a user's words": (
        '{"id":"msg-001","role":"user","content":"帮我查一下北京今天的天气"}',
        UserMessage(id="msg-001", parts=(Text(text="帮我查一下北京今天的天气"),)),
    ),
    "a user who says nothing": ('{"id":"u","role":"user","content":""}', UserMessage(id="u")),
    "a user with all there is": (
        '{"id":"u","role":"user","content":"hello","name":"Ann","encryptedValue":"x=="}',
        UserMessage(id="u", parts=(HELLO,), name="Ann", encrypted_value="x=="),
    ),
    "files of every kind and source": (
        '{"id":"u","role":"user","content":[{"type":"text","text":"hello"},'
        '{"type":"image","source":{"type":"url","value":"https://x.test/a.png","mimeType":"image/png"}},'
        '{"type":"audio","source":{"type":"data","value":"aGk=","mimeType":"audio/wav"}},'
        '{"type":"video","id":"v1","source":{"type":"url","value":"https://x.test/v"},"metadata":{"filename":"v.mp4"}},'
        '{"type":"document","source":{"type":"file","value":"file_1","provider":"anthropic"}}]}',
        UserMessage(
            id="u",
            parts=(
                HELLO,
                File(kind="image", source=Url(url="https://x.test/a.png"), mime_type="image/png"),
                File(kind="audio", source=Data(base64="aGk="), mime_type="audio/wav"),
                File(kind="video", source=Url(url="https://x.test/v"), name="v.mp4", id="v1"),
                File(kind="document", source=ProviderFile(provider="anthropic", handle="file_1")),
            ),
        ),
    ),
    "an assistant's words": (
        '{"id":"a","role":"assistant","content":"hello"}',
        AssistantMessage(id="a", parts=(HELLO,)),
    ),
    "an assistant who says nothing": ('{"id":"a","role":"assistant"}', AssistantMessage(id="a")),
    "an assistant with all there is": (
        '{"id":"a","role":"assistant","content":"hello","toolCalls":[{"id":"c1","type":"function",'
        '"function":{"name":"get_weather","arguments":"{\\"city\\": \\"北京\\" }"},"encryptedValue":"y=="},'
        '{"id":"c2","type":"function","function":{"name":"n","arguments":"{not JSON"}}],'
        '"name":"Bot","encryptedValue":"x=="}',
        AssistantMessage(
            id="a",
            name="Bot",
            encrypted_value="x==",
            parts=(
                HELLO,
                ToolCall(id="c1", name="get_weather", arguments='{"city": "北京" }', encrypted_value="y=="),
                ToolCall(id="c2", name="n", arguments="{not JSON"),
            ),
        ),
    ),
    "a tool's answer": (
        '{"id":"t","role":"tool","content":"hello","toolCallId":"c1"}',
        ToolMessage(id="t", tool_call_id="c1", parts=(HELLO,)),
    ),
    "a tool's failure": (
        '{"id":"t","role":"tool","content":"","toolCallId":"c1","error":"timed out","encryptedValue":"x"}',
        ToolMessage(id="t", tool_call_id="c1", error="timed out", encrypted_value="x"),
    ),
    "a tool's picture": (
        '{"id":"t","role":"tool","content":[{"type":"image","source":{"type":"url","value":"u"}}],"toolCallId":"c1"}',
        ToolMessage(id="t", tool_call_id="c1", parts=(File(kind="image", source=Url(url="u")),)),
    ),
    "system": (
        '{"id":"s","role":"system","content":"Be brief.","name":"house"}',
        SystemMessage(id="s", text="Be brief.", name="house"),
    ),
    "developer": (
        '{"id":"d","role":"developer","content":"Be brief.","encryptedValue":"x"}',
        DeveloperMessage(id="d", text="Be brief.", encrypted_value="x"),
    ),
    "reasoning": (
        '{"id":"r","role":"reasoning","content":"so","encryptedValue":"x"}',
        ReasoningMessage(id="r", text="so", encrypted_value="x"),
    ),
    "activity": (
        '{"id":"p","role":"activity","activityType":"PLAN","content":{"z":[1.5,null],"a":{"b":true}}}',
        ActivityMessage(id="p", activity_type="PLAN", content='{"z":[1.5,null],"a":{"b":true}}'),
    ),
}


@pytest.mark.parametrize(("text", "message"), BOTH_WAYS.values(), ids=BOTH_WAYS.keys())
def test_P3_a_message_is_written_byte_for_byte_and_read_back_whole(text: str, message: Message):
    assert agui.encode(message).decode() == text
    assert decode([orjson.loads(text)], "ag-ui") == (message,)


@pytest.mark.parametrize(
    ("part", "file"),
    [
        (
            {"type": "binary", "mimeType": "image/png", "id": "b", "url": "u", "filename": "a.png"},
            File(kind="image", source=Url(url="u"), mime_type="image/png", id="b", name="a.png"),
        ),
        (
            {"type": "binary", "mime_type": "audio/wav", "data": "aGk="},
            File(kind="audio", source=Data(base64="aGk="), mime_type="audio/wav"),
        ),
        (
            {"type": "binary", "mimeType": "video/mp4", "url": "u", "data": "aGk="},
            File(kind="video", source=Url(url="u"), mime_type="video/mp4"),
        ),
        (
            {"type": "binary", "mimeType": "application/pdf", "url": "u"},
            File(kind="document", source=Url(url="u"), mime_type="application/pdf"),
        ),
        (
            {"type": "image", "source": {"type": "data", "value": "aGk=", "mime_type": "image/png"}, "metadata": [1]},
            File(kind="image", source=Data(base64="aGk="), mime_type="image/png"),
        ),
    ],
)
def test_P3_a_part_of_either_generation_is_a_file(part: dict[str, object], file: File):
    assert decode([{"id": "u", "role": "user", "content": [part]}], "ag-ui") == (UserMessage(id="u", parts=(file,)),)


def test_P3_snake_case_and_nulls_are_accepted_and_other_fields_ignored():
    call = {"id": "c", "type": "function", "function": {"name": "n", "arguments": ""}, "encrypted_value": "y"}
    given: list[dict[str, object]] = [
        {"id": "a", "role": "assistant", "content": None, "name": None, "tool_calls": [call], "encrypted_value": "x"},
        {"id": "t", "role": "tool", "content": "hello", "tool_call_id": "c", "error": None, "mood": [1]},
        {"id": "p", "role": "activity", "activity_type": "PLAN", "content": {}},
        {"id": "b", "role": "assistant", "toolCalls": None, "encryptedValue": None},
    ]
    assert decode(given, "ag-ui") == (
        AssistantMessage(
            id="a", encrypted_value="x", parts=(ToolCall(id="c", name="n", arguments="", encrypted_value="y"),)
        ),
        ToolMessage(id="t", tool_call_id="c", parts=(HELLO,)),
        ActivityMessage(id="p", activity_type="PLAN", content="{}"),
        AssistantMessage(id="b"),
    )


def test_lone_halves_of_surrogate_pairs_are_cleaned():
    given: list[dict[str, object]] = [
        {"id": "\ud800", "role": "user", "content": "a\udc00"},
        {"id": "p", "role": "activity", "activityType": "x", "content": {"\ud800": ["\udc00"]}},
    ]
    assert decode(given, "ag-ui") == (
        UserMessage(id="\ufffd", parts=(Text(text="a\ufffd"),)),
        ActivityMessage(id="p", activity_type="x", content='{"\ufffd":["\ufffd"]}'),
    )


def test_what_only_the_log_knows_is_not_sent():
    assert agui.encode(UserMessage(id="u", seq=7, parts=(Text(text="a", path="src/a"),))) == (
        b'{"id":"u","role":"user","content":"a"}'
    )


CALL = ToolCall(id="c", name="n", arguments="{}")
REFUSED: dict[str, tuple[Message, str]] = {
    "a file in our storage": (
        UserMessage(parts=(File(kind="image", source=Key(key="k")),)),
        "a file by its storage key; sign a url for it first",
    ),
    "a user's state": (UserMessage(parts=(STATE,)), "state of anthropic (thinking)"),
    "an assistant's state": (
        AssistantMessage(parts=(STATE, HELLO)),
        "an assistant's message of anything but one text and calls",
    ),
    "words behind a call": (AssistantMessage(parts=(CALL, HELLO)), "text that follows a tool call in one message"),
    "state on a call": (
        AssistantMessage(parts=(ToolCall(id="c", name="n", arguments="{}", state=STATE),)),
        "state of anthropic on a tool call",
    ),
}


@pytest.mark.parametrize(("message", "what"), REFUSED.values(), ids=REFUSED.keys())
def test_what_the_format_cannot_carry_is_refused_by_name(message: Message, what: str):
    with pytest.raises(CannotCarry) as refused:
        agui.encode(message)
    assert str(refused.value) == f"The ag-ui format cannot carry {what}."


def nested(depth: int) -> object:
    return [nested(depth - 1)] if depth else []


def user(content: object) -> list[dict[str, object]]:
    return [{"id": "u", "role": "user", "content": content}]


BAD: dict[str, tuple[object, str]] = {
    "no array": ({"messages": []}, "messages: must be an array, is an object"),
    "an unknown role": ([{"id": "u", "role": "narrator"}], "messages[0].role: 'narrator' is no role of AG-UI"),
    "no id": ([{"role": "user", "content": "a"}], "messages[0].id: is missing; a string is needed"),
    "no content of a user": ([{"id": "u", "role": "user"}], "messages[0].content: must be an array, is null"),
    "content of an assistant that is an array": (
        [{"id": "a", "role": "assistant", "content": []}],
        "messages[0].content: must be a string, is an array",
    ),
    "no content of a system": (
        [{"id": "s", "role": "system"}],
        "messages[0].content: is missing; a string is needed",
    ),
    "an unknown part": (
        user([{"type": "hologram"}]),
        "messages[0].content[0].type: 'hologram' is no part of AG-UI; known: text, document, image, audio, video",
    ),
    "a picture without a source": (
        user([{"type": "image"}]),
        "messages[0].content[0].source: must be an object, is null",
    ),
    "an unknown source": (
        user([{"type": "image", "source": {"type": "tape", "value": "v"}}]),
        "messages[0].content[0].source.type: 'tape' is no source of AG-UI; known: url, data, file",
    ),
    "binary without a type": (
        user([{"type": "binary", "url": "u"}]),
        "messages[0].content[0].mimeType: is missing; a string is needed",
    ),
    "binary without url and data": (
        user([{"type": "text", "text": "a"}, {"type": "binary", "mimeType": "image/png"}]),
        "messages[0].content[1]: a binary part needs a url or data",
    ),
    "a tool without a call": (
        [{"id": "t", "role": "tool", "content": "a"}],
        "messages[0].toolCallId: is missing; a string is needed",
    ),
    "a call that is a text, in snake case": (
        [{"id": "a", "role": "assistant", "tool_calls": ["c"]}],
        "messages[0].tool_calls[0]: must be an object, is a string",
    ),
    "a call without arguments": (
        [{"id": "a", "role": "assistant", "toolCalls": [{"id": "c", "function": {"name": "n"}}]}],
        "messages[0].toolCalls[0].function.arguments: is missing; a string is needed",
    ),
    "an activity that is a text": (
        [{"id": "p", "role": "activity", "activityType": "x", "content": "a"}],
        "messages[0].content: must be an object, is a string",
    ),
    "an activity too deep to write": (
        [{"id": "p", "role": "activity", "activityType": "x", "content": {"deep": nested(300)}}],
        "JSON: cannot be written: Recursion limit reached",
    ),
}


@pytest.mark.parametrize(("given", "text"), BAD.values(), ids=BAD.keys())
def test_P3_bad_input_is_refused_with_the_field_and_what_was_wrong(given: object, text: str):
    with pytest.raises(WireError) as refused:
        decode(given, "ag-ui")
    assert str(refused.value) == text
