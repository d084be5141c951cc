"""What decoders accept from others: whole bodies, both generations of AG-UI, times of a log, broken characters."""

from datetime import UTC, datetime, timedelta, timezone

import orjson
import pytest

from recto.conversation.json import Json
from recto.conversation.messages import (
    ActivityMessage,
    AssistantMessage,
    Data,
    File,
    Message,
    Opaque,
    SystemMessage,
    Text,
    ToolCall,
    ToolMessage,
    Url,
    UserMessage,
)
from recto.page.wire.formats import AGUI, decode
from tests.page.wire_strategies import MODEL, encode_with

RESPONSES = "openai-responses"
HELLO = Text(text="hello")
CALL = ToolCall(id="c1", name="list", arguments="{}")
ANTHROPIC_BODY: Json = {
    "model": "claude-x",
    "max_tokens": 5,
    "system": [{"type": "text", "text": "One.", "cache_control": {"type": "ephemeral"}}, {"text": "Two."}],
    "messages": [
        {"role": "user", "content": "hello"},
        {"role": "assistant", "content": [{"type": "tool_use", "id": "c1", "name": "list"}]},
        {
            "role": "user",
            "content": [
                {"type": "text", "text": "and", "cache_control": {"type": "ephemeral"}, "citations": None},
                {"type": "tool_result", "tool_use_id": "c1"},
                {"type": "tool_result", "tool_use_id": "c2", "content": [{"type": "text", "text": ""}]},
                {"type": "text", "text": "more"},
            ],
        },
        {"role": "assistant", "content": "bye"},
    ],
}
AGUI_CALL: Json = {
    "id": "c1",
    "type": "function",
    "function": {"name": "list", "arguments": "{}"},
    "encrypted_value": "y",
}
DETAILED = '{"type":"input_image","detail":"high","image_url":"u"}'
READ: list[tuple[str, Json, tuple[Message, ...]]] = [
    (
        "anthropic",
        ANTHROPIC_BODY,
        (
            SystemMessage(text="One."),
            SystemMessage(text="Two."),
            UserMessage(parts=(HELLO,)),
            AssistantMessage(parts=(CALL,)),
            ToolMessage(tool_call_id="c1"),
            ToolMessage(tool_call_id="c2"),
            UserMessage(parts=(Text(text="and"), Text(text="more"))),
            AssistantMessage(parts=(Text(text="bye"),)),
        ),
    ),
    ("anthropic", {"system": "Be brief."}, (SystemMessage(text="Be brief."),)),
    ("anthropic", {"messages": []}, ()),
    (
        RESPONSES,
        {"instructions": "Be brief.", "input": "hello"},
        (SystemMessage(text="Be brief."), UserMessage(parts=(HELLO,))),
    ),
    (RESPONSES, {}, ()),
    (RESPONSES, [{"role": "user", "content": "hello"}], (UserMessage(parts=(HELLO,)),)),
    (
        RESPONSES,
        [
            {
                "type": "message",
                "id": "msg_1",
                "role": "assistant",
                "status": "completed",
                "content": [
                    {"type": "output_text", "text": "hello", "annotations": [], "logprobs": []},
                    {"type": "refusal", "refusal": "no"},
                ],
            },
            {"type": "function_call", "call_id": "c1", "name": "list", "arguments": "{}", "id": "fc_1", "status": "x"},
        ],
        (AssistantMessage(parts=(HELLO, Text(text="no"), CALL)),),
    ),
    (
        RESPONSES,
        [{"role": "user", "content": [orjson.loads(DETAILED)]}],
        (
            UserMessage(
                parts=(Opaque(provider=RESPONSES, model=MODEL, place="block", name="input_image", data=DETAILED),)
            ),
        ),
    ),
    (
        "openai",
        [{"role": "user", "content": "hello", "mood": {"deep": [1]}, "seq": "x"}],
        (UserMessage(parts=(HELLO,)),),
    ),
    # Snake case and nulls
    (
        AGUI,
        [
            {"id": "a", "role": "assistant", "content": None, "tool_calls": [AGUI_CALL], "encrypted_value": "x"},
            {"id": "t", "role": "tool", "content": "hello", "tool_call_id": "c1", "error": None, "mood": [1]},
            {"id": "p", "role": "activity", "activity_type": "PLAN", "content": {}},
            {"id": "b", "role": "assistant", "toolCalls": None, "encryptedValue": None},
        ],
        (
            AssistantMessage(
                id="a",
                encrypted_value="x",
                parts=(ToolCall(id="c1", name="list", arguments="{}", encrypted_value="y"),),
            ),
            ToolMessage(id="t", tool_call_id="c1", parts=(HELLO,)),
            ActivityMessage(id="p", activity_type="PLAN", content="{}"),
            AssistantMessage(id="b"),
        ),
    ),
    # Lone halves of surrogate pairs
    (
        "openai",
        [{"role": "user", "content": "a\ud800b", "name": "\udc00", "id": "\ud800"}],
        (UserMessage(id="\ufffd", name="\ufffd", parts=(Text(text="a\ufffdb"),)),),
    ),
    (
        AGUI,
        [
            {"id": "\ud800", "role": "user", "content": "a\udc00"},
            {"id": "p", "role": "activity", "activityType": "x", "content": {"\ud800": ["\udc00"]}},
        ],
        (
            UserMessage(id="\ufffd", parts=(Text(text="a\ufffd"),)),
            ActivityMessage(id="p", activity_type="x", content='{"\ufffd":["\ufffd"]}'),
        ),
    ),
]


@pytest.mark.parametrize(("wire", "value", "messages"), READ)
def test_P3_what_others_write_is_read(wire: str, value: Json, messages: tuple[Message, ...]):
    assert decode(value, wire, model=MODEL) == messages


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
    assert decode([{"id": "u", "role": "user", "content": [part]}], AGUI) == (UserMessage(id="u", parts=(file,)),)


def test_facts_of_the_log_are_read_and_never_sent():
    fields = {
        "id": "t1",
        "role": "tool",
        "tool_call_id": "c1",
        "timestamp": 1_700_000_000_500,
        "messageStatus": "error",
        "content": [{"type": "text", "text": "a", "path": "src/a.py"}],
    }
    (message,) = decode([fields])
    time = datetime(2023, 11, 14, 22, 13, 20, 500_000, tzinfo=UTC)
    parts = (Text(text="a", path="src/a.py"),)
    assert message == ToolMessage(id="t1", tool_call_id="c1", time=time, error="error", parts=parts)
    assert encode_with(message, "openai") == '{"role":"tool","tool_call_id":"c1","content":"a"}'
    encoded = encode_with(UserMessage(id="u", seq=7, parts=parts), AGUI)
    assert encoded == '{"id":"u","role":"user","content":"a"}'


@pytest.mark.parametrize(
    ("stamp", "time"),
    [
        (0, datetime(1970, 1, 1, tzinfo=UTC)),
        (-1.5, datetime(1969, 12, 31, 23, 59, 59, 998_500, tzinfo=UTC)),
        ("2026-05-14T12:00:00Z", datetime(2026, 5, 14, 12, tzinfo=UTC)),
        ("2026-05-14T12:00:00", datetime(2026, 5, 14, 12, tzinfo=UTC)),
        ("2026-05-14T12:00:00+02:00", datetime(2026, 5, 14, 12, tzinfo=timezone(timedelta(hours=2)))),
        (None, None),
    ],
)
def test_a_timestamp_is_milliseconds_or_iso(stamp: float | str | None, time: datetime | None):
    (message,) = decode([{"role": "user", "content": "a", "timestamp": stamp}])
    assert message.time == time


def test_halves_of_surrogate_pairs_are_joined_or_replaced_when_written():
    picture = File(kind="image", source=Url(url="https://x.test/\ud800"))
    assert '{"url":"https://x.test/\ufffd"}' in encode_with(UserMessage(parts=(picture,)), "openai")
    whole = UserMessage(parts=(Text(text="\ud83d\ude00"),))
    assert encode_with(whole, "openai") == '{"role":"user","content":"😀"}'


def test_breakpoints_of_another_are_not_carried_on():
    block: Json = {"type": "search_result", "title": "t", "cache_control": {"type": "ephemeral"}}
    (message,) = decode([{"role": "user", "content": [block]}], "anthropic")
    assert encode_with(message, "anthropic") == '{"role":"user","content":[{"type":"search_result","title":"t"}]}'
