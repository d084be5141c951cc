"""Anthropic messages, both ways: whole blocks, state byte for byte, refusals by name, errors with their field."""

import orjson
import pytest

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
from recto.page.wire import anthropic
from recto.page.wire.formats import decode

MODEL = "claude-x"
HELLO = Text(text="hello")
BYTES = Data(base64="aGk=")
CALL = ToolCall(id="c1", name="read", arguments='{"path":"a"}')


def state(name: str, data: str) -> Opaque:
    return Opaque(provider="anthropic", model=MODEL, place="block", name=name, data=data)


# The role, the blocks as text, and the message they stand for.
BOTH_WAYS: dict[str, tuple[str, str, Message]] = {
    "a user's words": ("user", '{"type":"text","text":"hello"}', UserMessage(parts=(HELLO,))),
    "a picture by url": (
        "user",
        '{"type":"text","text":"hello"},{"type":"image","source":{"type":"url","url":"https://x.test/a.png"}}',
        UserMessage(parts=(HELLO, File(kind="image", source=Url(url="https://x.test/a.png")))),
    ),
    "a picture by bytes": (
        "user",
        '{"type":"image","source":{"type":"base64","media_type":"image/png","data":"aGk="}}',
        UserMessage(parts=(File(kind="image", source=BYTES, mime_type="image/png"),)),
    ),
    "a document by handle": (
        "user",
        '{"type":"document","source":{"type":"file","file_id":"file_1"},"title":"a"}',
        UserMessage(
            parts=(File(kind="document", source=ProviderFile(provider="anthropic", handle="file_1"), name="a"),)
        ),
    ),
    "words behind a call": (
        "assistant",
        '{"type":"tool_use","id":"c1","name":"read","input":{"path":"a"}},{"type":"text","text":"hello"}',
        AssistantMessage(parts=(CALL, HELLO)),
    ),
    "signed thinking": (
        "assistant",
        '{"type":"thinking","thinking":"so  \\n","signature":"EqQB=="},{"type":"text","text":"hello"}',
        AssistantMessage(
            parts=(state("thinking", '{"type":"thinking","thinking":"so  \\n","signature":"EqQB=="}'), HELLO)
        ),
    ),
    "a block nobody knows": (
        "assistant",
        '{"type":"hologram","z":1,"a":null,"deep":{"b":[null]}}',
        AssistantMessage(parts=(state("hologram", '{"type":"hologram","z":1,"a":null,"deep":{"b":[null]}}'),)),
    ),
    "a document with settings of its own": (
        "user",
        '{"type":"document","source":{"type":"url","url":"u"},"citations":{"enabled":true},"context":"c"}',
        UserMessage(
            parts=(
                state(
                    "document",
                    '{"type":"document","source":{"type":"url","url":"u"},"citations":{"enabled":true},"context":"c"}',
                ),
            )
        ),
    ),
    "a tool's answer": (
        "user",
        '{"type":"tool_result","tool_use_id":"c1","content":"hello"}',
        ToolMessage(tool_call_id="c1", parts=(HELLO,)),
    ),
    "a tool's failure": (
        "user",
        '{"type":"tool_result","tool_use_id":"c1","content":"hello","is_error":true}',
        ToolMessage(tool_call_id="c1", parts=(HELLO,), error="error"),
    ),
    "a tool's picture": (
        "user",
        '{"type":"tool_result","tool_use_id":"c1","content":'
        '[{"type":"text","text":"hello"},{"type":"image","source":{"type":"url","url":"u"}}]}',
        ToolMessage(tool_call_id="c1", parts=(HELLO, File(kind="image", source=Url(url="u")))),
    ),
    "words with citations": (
        "assistant",
        '{"type":"text","text":"a","citations":[{"type":"x"}]}',
        AssistantMessage(parts=(state("text", '{"type":"text","text":"a","citations":[{"type":"x"}]}'),)),
    ),
}


@pytest.mark.parametrize(("role", "blocks", "message"), BOTH_WAYS.values(), ids=BOTH_WAYS.keys())
def test_P3_blocks_are_written_byte_for_byte_and_read_back_whole(role: str, blocks: str, message: Message):
    assert anthropic.encode(message) == (role, blocks.encode())
    turn = {"role": role, "content": orjson.loads(f"[{blocks}]")}
    assert decode([turn], "anthropic", model=MODEL) == (message,)


@pytest.mark.parametrize("message", [SystemMessage(text="Be brief."), DeveloperMessage(text="Be brief.")])
def test_instructions_are_blocks_of_the_system_field(message: Message):
    assert anthropic.encode(message) == ("system", b'{"type":"text","text":"Be brief."}')


def test_a_whole_body_is_read_in_order():
    body: dict[str, object] = {
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
    assert decode(body, "anthropic") == (
        SystemMessage(text="One."),
        SystemMessage(text="Two."),
        UserMessage(parts=(HELLO,)),
        AssistantMessage(parts=(ToolCall(id="c1", name="list", arguments="{}"),)),
        ToolMessage(tool_call_id="c1"),
        ToolMessage(tool_call_id="c2"),
        UserMessage(parts=(Text(text="and"), Text(text="more"))),
        AssistantMessage(parts=(Text(text="bye"),)),
    )


def test_a_system_text_is_one_message_and_no_messages_are_none():
    assert decode({"system": "Be brief."}, "anthropic") == (SystemMessage(text="Be brief."),)
    assert decode({"messages": []}, "anthropic") == ()
    assert decode([], "anthropic") == ()


ODD_ARGUMENTS = (
    ' { "b" : 1.0e3,\n"a":-0.0 , "big": 123456789012345678901234567890 }\t',
    '{"a":1,"a":2}',
    '{"emoji":"\\ud83d\\ude00","raw":"😀"}',
)


@pytest.mark.parametrize("arguments", ODD_ARGUMENTS)
def test_arguments_are_spliced_in_as_the_model_wrote_them(arguments: str):
    call = ToolCall(id="c1", name="read", arguments=arguments)
    blocks = '{"type":"tool_use","id":"c1","name":"read","input":' + arguments + "}"
    assert anthropic.encode(AssistantMessage(parts=(call,))) == ("assistant", blocks.encode())


def test_signed_state_goes_back_byte_for_byte():
    odd = ' {"type" : "thinking","n":1.0e3, "a":[ null ],"big":123456789012345678901234567890} '
    blocks = '{"type":"text","text":"hello"},' + odd
    assert anthropic.encode(AssistantMessage(parts=(HELLO, state("thinking", odd)))) == ("assistant", blocks.encode())


def test_breakpoints_of_another_are_not_carried_on():
    block = {"type": "search_result", "title": "t", "cache_control": {"type": "ephemeral"}}
    (message,) = decode([{"role": "user", "content": [block]}], "anthropic")
    assert anthropic.encode(message) == ("user", b'{"type":"search_result","title":"t"}')


def test_a_tool_is_offered_with_its_schema_as_written():
    assert anthropic.encode_tool("list", "List files.", '{ "type": "object" }') == (
        b'{"name":"list","description":"List files.","input_schema":{ "type": "object" }}'
    )


FOREIGN = Opaque(provider="openai", model=None, place="field", name="reasoning_content", data='"a"')
REFUSED: dict[str, tuple[Message, str]] = {
    "reasoning": (ReasoningMessage(text="a"), "a message of role reasoning"),
    "activity": (ActivityMessage(activity_type="a", content="{}"), "a message of role activity"),
    "an empty user": (UserMessage(), "a message with nothing in it"),
    "an empty text": (UserMessage(parts=(HELLO, Text(text=""))), "an empty text"),
    "a file in our storage": (
        UserMessage(parts=(File(kind="image", source=Key(key="k")),)),
        "a file of kind image by Key",
    ),
    "another provider's state": (AssistantMessage(parts=(HELLO, FOREIGN)), "state of openai (reasoning_content)"),
    "state that is no block": (
        AssistantMessage(parts=(Opaque(provider="anthropic", model=None, place="field", name="x", data="1"),)),
        "state of anthropic (x)",
    ),
    "state on a call": (
        AssistantMessage(parts=(ToolCall(id="c", name="n", arguments="{}", state=FOREIGN),)),
        "state of openai on a tool call",
    ),
    "arguments that are no JSON": (
        AssistantMessage(parts=(ToolCall(id="c9", name="n", arguments='{"a":'),)),
        "arguments of call c9 that are no JSON object",
    ),
}


@pytest.mark.parametrize(("message", "what"), REFUSED.values(), ids=REFUSED.keys())
def test_what_the_format_cannot_carry_is_refused_by_name(message: Message, what: str):
    with pytest.raises(CannotCarry) as refused:
        anthropic.encode(message)
    assert str(refused.value) == f"The anthropic format cannot carry {what}."


def nested(depth: int) -> object:
    return [nested(depth - 1)] if depth else []


BAD: dict[str, tuple[object, str]] = {
    "messages of null": ({"messages": None}, "messages: must be an array, is null"),
    "a system block without text": ({"system": [{}]}, "system[0].text: is missing; a string is needed"),
    "an unknown role": (
        [{"role": "tool", "content": "a"}],
        "messages[0].role: 'tool' is no role of Anthropic messages",
    ),
    "no content": ([{"role": "user"}], "messages[0].content: must be an array, is null"),
    "a call without an id": (
        [{"role": "assistant", "content": [{"type": "tool_use", "name": "n", "input": {}}]}],
        "messages[0].content[0].id: is missing; a string is needed",
    ),
    "an input that is a text": (
        [{"role": "assistant", "content": [{"type": "tool_use", "id": "c", "name": "n", "input": "{}"}]}],
        "messages[0].content[0].input: must be an object, is a string",
    ),
    "an answer without a call": (
        [{"role": "user", "content": [{"type": "tool_result"}]}],
        "messages[0].content[0].tool_use_id: is missing; a string is needed",
    ),
    "a block too deep to write": (
        [{"role": "user", "content": [{"type": "hologram", "deep": nested(300)}]}],
        "JSON: cannot be written: Recursion limit reached",
    ),
}


@pytest.mark.parametrize(("given", "text"), BAD.values(), ids=BAD.keys())
def test_bad_input_is_refused_with_the_field_and_what_was_wrong(given: object, text: str):
    with pytest.raises(WireError) as refused:
        decode(given, "anthropic")
    assert str(refused.value) == text
