"""Refusals of every wire: messages it cannot carry, by name; input it cannot read, by the field and its problem."""

from dataclasses import replace

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
    Text,
    ToolCall,
    ToolMessage,
    Url,
    UserMessage,
)
from recto.errors import CannotCarry, WireError
from recto.page.wire.formats import AGUI, WIRES, decode, encode
from tests.page.wire_strategies import encode_with

RESPONSES = "openai-responses"
OPENAI = ("openai", RESPONSES)
TURNS = ("anthropic", "gemini")
HELLO = Text(text="hello")
CALL = ToolCall(id="c1", name="read", arguments="{}")
FOREIGN = Opaque(provider="google", model=None, place="field", name="thought", data="{}")
IMAGE = File(kind="image", source=Url(url="u"))


def assistant_message(*parts: Text | File | ToolCall | Opaque) -> AssistantMessage:
    return AssistantMessage(parts=parts)


def user(*parts: Text | File | Opaque) -> UserMessage:
    return UserMessage(parts=parts)


# A message, the wires that cannot carry it, and what they say of it.
CANNOT: list[tuple[Message, tuple[str, ...], str]] = [
    (ReasoningMessage(text="a"), tuple(WIRES), "a message of role reasoning"),
    (ActivityMessage(activity_type="a", content="{}"), tuple(WIRES), "a message of role activity"),
    (user(File(kind="image", source=Key(key="k"))), tuple(WIRES), "a file of kind image by Key"),
    (user(File(kind="image", source=Key(key="k"))), (AGUI,), "a file by its storage key; sign a url for it first"),
    (
        user(File(kind="image", source=ProviderFile(provider="google", handle="f"))),
        tuple(WIRES),
        "a file of kind image by ProviderFile",
    ),
    (user(File(kind="audio", source=Data(base64="aGk="))), tuple(WIRES), "a file of kind audio by Data"),
    (user(File(kind="document", source=Data(base64="aGk="))), OPENAI, "a file of kind document by Data"),
    (UserMessage(), TURNS, "a message with nothing in it"),
    (AssistantMessage(), (RESPONSES, *TURNS), "a message with nothing in it"),
    (user(HELLO, Text(text="")), TURNS, "an empty text"),
    (assistant_message(CALL, HELLO), ("openai", AGUI), "text that follows a tool call in one message"),
    (assistant_message(HELLO, FOREIGN), tuple(WIRES), "state of google (thought)"),
    (assistant_message(HELLO, FOREIGN), (AGUI,), "an assistant's message of anything but one text and calls"),
    (user(FOREIGN), ("openai",), "state of google (thought) in a message of role user"),
    (user(FOREIGN), (RESPONSES, *TURNS, AGUI), "state of google (thought)"),
    (assistant_message(replace(FOREIGN, provider="anthropic")), ("anthropic",), "state of anthropic (thought)"),
    (assistant_message(replace(CALL, state=FOREIGN)), ("openai", "anthropic", AGUI), "state of google on a tool call"),
    (assistant_message(replace(CALL, state=FOREIGN)), (RESPONSES, "gemini"), "state of google (thought)"),
    (assistant_message(replace(CALL, arguments='{"a":')), TURNS, "arguments of call c1 that are no JSON object"),
    (assistant_message(replace(CALL, arguments="[]")), TURNS, "arguments of call c1 that are no JSON object"),
    (assistant_message(IMAGE), OPENAI, "a file of kind image in a message of role assistant"),
    (ToolMessage(tool_call_id="c", parts=(IMAGE,)), ("openai",), "a file of kind image in a message of role tool"),
    (ToolMessage(tool_call_id="c"), ("gemini",), "a result of c without the name of its tool"),
]


@pytest.mark.parametrize(("message", "wires", "what"), CANNOT)
def test_what_a_format_cannot_carry_is_refused_by_name(message: Message, wires: tuple[str, ...], what: str):
    for wire in wires:
        with pytest.raises(CannotCarry) as caught_error:
            encode_with(message, wire)
        assert str(caught_error.value) == f"The {wire} format cannot carry {what}."


def nested(depth: int) -> object:
    return [nested(depth - 1)] if depth else []


def of_user(content: object) -> list[dict[str, object]]:
    return [{"id": "u", "role": "user", "content": content}]


def of_model(*parts: object) -> list[dict[str, object]]:
    return [{"role": "model", "parts": parts}]


def of_assistant(**fields: object) -> list[dict[str, object]]:
    return [{"id": "a", "role": "assistant", **fields}]


TOO_DEEP = "JSON: cannot be written: Recursion limit reached"
PART = "contents[0].parts[0]"
NO_STRING = "is missing; a string is needed"
CALL_JSON = {"id": "c", "type": "function", "function": {"name": "n", "arguments": "{}"}}
UNREADABLE: list[tuple[str, object, str]] = [
    ("openai", {}, "messages: must be an array, is an object"),
    ("openai", [7], "messages[0]: must be an object, is a number"),
    ("openai", [{"role": 1}], "messages[0].role: must be a string, is a number"),
    ("openai", [{"role": "narrator"}], "messages[0].role: 'narrator' is no role of OpenAI chat"),
    ("openai", of_user(1), "messages[0].content: must be an array, is a number"),
    ("openai", of_user([{"text": "a"}]), f"messages[0].content[0].type: {NO_STRING}"),
    ("openai", [*of_user("a"), {"role": "tool", "content": "a"}], f"messages[1].tool_call_id: {NO_STRING}"),
    (
        "openai",
        of_assistant(tool_calls=[CALL_JSON, CALL_JSON | {"type": "custom"}]),
        "messages[0].tool_calls[1].type: 'custom' is not supported; only function calls are",
    ),
    (
        "openai",
        of_assistant(tool_calls=[CALL_JSON | {"function": {"name": "n", "arguments": dict[str, str]()}}]),
        "messages[0].tool_calls[0].function.arguments: must be a string, is an object",
    ),
    ("openai", of_assistant(reasoning_details=nested(300)), TOO_DEEP),
    (RESPONSES, 7, "input: must be an array, is a number"),
    (RESPONSES, [{"role": "tool"}], "input[0].role: 'tool' is no role of OpenAI Responses"),
    (RESPONSES, [{"type": "function_call", "name": "n", "arguments": ""}], f"input[0].call_id: {NO_STRING}"),
    (
        RESPONSES,
        [{"role": "system", "content": [{"type": "input_image", "image_url": "u"}]}],
        "input[0].content: instructions are text; other blocks have no place in them",
    ),
    (
        RESPONSES,
        of_assistant(content=[{"type": "input_image", "image_url": "u"}]),
        "input[0].content: an assistant says words; other blocks have no place",
    ),
    ("anthropic", {"messages": None}, "messages: must be an array, is null"),
    ("anthropic", {"system": [{}]}, f"system[0].text: {NO_STRING}"),
    ("anthropic", [{"role": "tool", "content": "a"}], "messages[0].role: 'tool' is no role of Anthropic messages"),
    ("anthropic", [{"role": "user"}], "messages[0].content: must be an array, is null"),
    (
        "anthropic",
        of_assistant(content=[{"type": "tool_use", "id": "c", "name": "n", "input": "{}"}]),
        "messages[0].content[0].input: must be an object, is a string",
    ),
    ("anthropic", of_user([{"type": "tool_result"}]), f"messages[0].content[0].tool_use_id: {NO_STRING}"),
    ("anthropic", of_user([{"type": "hologram", "deep": nested(300)}]), TOO_DEEP),
    ("gemini", [{"role": "assistant", "parts": []}], "contents[0].role: 'assistant' is no role of Gemini contents"),
    ("gemini", of_model({"functionCall": {"args": {}}}), f"{PART}.functionCall.name: {NO_STRING}"),
    (
        "gemini",
        of_model({"functionCall": {"name": "n", "args": []}}),
        f"{PART}.functionCall.args: must be an object, is an array",
    ),
    ("gemini", {"systemInstruction": "words", "contents": []}, "systemInstruction: must be an object, is a string"),
    ("gemini", "words", "contents: must be an array, is a string"),
    (AGUI, {"messages": []}, "messages: must be an array, is an object"),
    (AGUI, [{"id": "u", "role": "narrator"}], "messages[0].role: 'narrator' is no role of AG-UI"),
    (AGUI, [{"role": "user", "content": "a"}], f"messages[0].id: {NO_STRING}"),
    (AGUI, of_assistant(content=[]), "messages[0].content: must be a string, is an array"),
    (
        AGUI,
        of_user([{"type": "hologram"}]),
        "messages[0].content[0].type: 'hologram' is no part of AG-UI; known: text, document, image, audio, video",
    ),
    (
        AGUI,
        of_user([{"type": "image", "source": {"type": "tape", "value": "v"}}]),
        "messages[0].content[0].source.type: 'tape' is no source of AG-UI; known: url, data, file",
    ),
    (AGUI, of_user([{"type": "image"}]), "messages[0].content[0].source: must be an object, is null"),
    (AGUI, of_user([{"type": "binary", "url": "u"}]), f"messages[0].content[0].mimeType: {NO_STRING}"),
    (
        AGUI,
        of_user([{"type": "text", "text": "a"}, {"type": "binary", "mimeType": "image/png"}]),
        "messages[0].content[1]: a binary part needs a url or data",
    ),
    (AGUI, [{"id": "t", "role": "tool", "content": "a"}], f"messages[0].toolCallId: {NO_STRING}"),
    (AGUI, of_assistant(tool_calls=["c"]), "messages[0].tool_calls[0]: must be an object, is a string"),
    (AGUI, [{"id": "p", "role": "activity", "activityType": "x", "content": {"deep": nested(300)}}], TOO_DEEP),
]


@pytest.mark.parametrize(("wire", "value", "problem"), UNREADABLE)
def test_P3_bad_input_is_refused_with_the_field_and_what_was_wrong(wire: str, value: object, problem: str):
    with pytest.raises(WireError) as caught_error:
        decode(value, wire)
    assert str(caught_error.value) == problem


@pytest.mark.parametrize(
    ("stamp", "text"),
    [
        ("yesterday", "'yesterday'"),
        (True, "True"),
        ([], "[]"),
        (float("nan"), "nan"),
        (10**30, str(10**30)),
        ("2026-13-01", "'2026-13-01'"),
    ],
)
def test_a_timestamp_that_is_none_is_refused(stamp: object, text: str):
    with pytest.raises(WireError) as caught_error:
        decode([{"role": "user", "content": "a", "timestamp": stamp}])
    assert str(caught_error.value) == f"messages[0].timestamp: must be milliseconds since 1970 or ISO 8601, is {text}"


def test_a_format_nobody_knows_is_named():
    formats = "openai, openai-responses, anthropic, gemini, ag-ui"
    with pytest.raises(WireError, match=rf"^wire: 'morse' is unknown; known: {formats}$"):
        decode([], "morse")
    for wire in ("morse", "gemini"):
        with pytest.raises(CannotCarry, match=rf"^The {wire} format cannot carry messages one by one; set a page"):
            encode([], wire)
