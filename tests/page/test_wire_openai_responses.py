"""OpenAI Responses, both ways: items of each message, thoughts in their place and never alone, refusals by name."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import cast

import orjson
import pytest
from hypothesis import given

from recto.conversation.json import Json
from recto.conversation.messages import (
    ActivityMessage,
    AssistantMessage,
    AssistantPart,
    Data,
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
from recto.page.assemble import Facts, assemble
from recto.page.manifest import Manifest
from recto.page.wire import openai_responses
from recto.page.wire.base import Target
from recto.page.wire.formats import decode, encode
from tests.page.log_strategies import FOLD, OFFERS, logs
from tests.page.oracles import breaches
from tests.page.page_rules import gaps, lies, orphans, parse

WIRE = "openai-responses"
MODEL = "gpt-x"
HELLO = Text(text="hello")
PNG = Data(base64="aGk=")
CALL = ToolCall(id="c1", name="read", arguments='{"path":"a"}')
ANSWERED = ToolMessage(tool_call_id="c1", parts=(HELLO,))
ASKED = UserMessage(parts=(HELLO,))
WROTE = '{"type":"message","role":"assistant","content":"hello"}'
CALLED = '{"type":"function_call","call_id":"c1","name":"read","arguments":"{\\"path\\":\\"a\\"}"}'


def item(number: int) -> str:
    return f'{{"type":"reasoning","id":"rs_{number}","summary":[],"encrypted_content":"gAAA"}}'


def state(name: str, data: str, place: str = "block", model: str | None = MODEL) -> Opaque:
    return Opaque(provider=WIRE, model=model, place="field" if place == "field" else "block", name=name, data=data)


def thought(number: int = 1) -> Opaque:
    return state("reasoning", item(number))


BOTH_WAYS: dict[str, tuple[str, Message]] = {
    "a user's words": ('{"type":"message","role":"user","content":"hello"}', UserMessage(parts=(HELLO,))),
    "a picture by url": (
        '{"type":"message","role":"user","content":[{"type":"input_text","text":"hello"},'
        '{"type":"input_image","detail":"auto","image_url":"https://x.test/a.png"}]}',
        UserMessage(parts=(HELLO, File(kind="image", source=Url(url="https://x.test/a.png")))),
    ),
    "a picture by the provider's own handle": (
        '{"type":"message","role":"user","content":[{"type":"input_image","detail":"auto","file_id":"file-1"}]}',
        UserMessage(parts=(File(kind="image", source=ProviderFile(provider="openai", handle="file-1")),)),
    ),
    "a document by bytes": (
        '{"type":"message","role":"user","content":[{"type":"input_file","filename":"a.pdf",'
        '"file_data":"data:application/pdf;base64,aGk="}]}',
        UserMessage(parts=(File(kind="document", source=PNG, mime_type="application/pdf", name="a.pdf"),)),
    ),
    "a block that nobody knows": (
        '{"type":"message","role":"user","content":[{"type":"hologram","n":1}]}',
        UserMessage(parts=(state("hologram", '{"type":"hologram","n":1}'),)),
    ),
    "instructions": ('{"type":"message","role":"system","content":"Be brief."}', SystemMessage(text="Be brief.")),
    "a result": ('{"type":"function_call_output","call_id":"c1","output":"hello"}', ANSWERED),
    "a result with a picture": (
        '{"type":"function_call_output","call_id":"c1","output":[{"type":"input_text","text":"hello"},'
        '{"type":"input_image","detail":"auto","image_url":"https://x.test/a.png"}]}',
        ToolMessage(tool_call_id="c1", parts=(HELLO, File(kind="image", source=Url(url="https://x.test/a.png")))),
    ),
    "an assistant's words": (WROTE, AssistantMessage(parts=(HELLO,))),
    "a thought before the words it led to": (f"{item(1)},{WROTE}", AssistantMessage(parts=(thought(), HELLO))),
    "thoughts before the words and the call they led to": (
        f"{item(1)},{WROTE},{item(2)},{CALLED}",
        AssistantMessage(parts=(thought(), HELLO, replace(CALL, state=thought(2)))),
    ),
    "two thoughts before a call": (
        f"{item(1)},{item(2)},{CALLED}",
        AssistantMessage(parts=(thought(1), replace(CALL, state=thought(2)))),
    ),
    "what words are for": (
        f'{WROTE[:-1]},"phase":"commentary"}},{WROTE}',
        AssistantMessage(parts=(state("phase", '"commentary"', "field"), HELLO, HELLO)),
    ),
    "what a tool of the provider's did": (
        f'{{"type":"web_search_call","id":"ws_1"}},{WROTE}',
        AssistantMessage(parts=(state("web_search_call", '{"type":"web_search_call","id":"ws_1"}'), HELLO)),
    ),
}


@pytest.mark.parametrize(("written", "message"), BOTH_WAYS.values(), ids=BOTH_WAYS.keys())
def test_messages_both_ways(written: str, message: Message):
    assert openai_responses.encode(message).decode() == written
    assert decode(orjson.loads(f"[{written}]"), WIRE, model=MODEL) == (message,)


READ_ONLY: dict[str, tuple[Json, tuple[Message, ...]]] = {
    "instructions beside": (
        {"instructions": "Be brief.", "input": "hello"},
        (SystemMessage(text="Be brief."), UserMessage(parts=(HELLO,))),
    ),
    "a body without input": ({}, ()),
    "messages without a type": ([{"role": "user", "content": "hello"}], (ASKED,)),
    "what the provider wrote itself": (
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
            {**orjson.loads(CALLED), "id": "fc_1", "status": "completed"},
        ],
        (AssistantMessage(parts=(HELLO, Text(text="no"), CALL)),),
    ),
    "a picture in detail": (
        [{"role": "user", "content": [{"type": "input_image", "detail": "high", "image_url": "u"}]}],
        (UserMessage(parts=(state("input_image", '{"type":"input_image","detail":"high","image_url":"u"}'),)),),
    ),
}


@pytest.mark.parametrize(("body", "messages"), READ_ONLY.values(), ids=READ_ONLY.keys())
def test_what_others_write_is_read(body: Json, messages: tuple[Message, ...]):
    assert decode(body, WIRE, model=MODEL) == messages


REFUSED: dict[str, tuple[Json, str]] = {
    "no list": (7, "input: must be an array, is a number"),
    "a role nobody has": ([{"role": "tool"}], "input[0].role: 'tool' is no role of OpenAI Responses"),
    "a call without an id": (
        [{"type": "function_call", "name": "n", "arguments": ""}],
        "input[0].call_id: is missing; a string is needed",
    ),
    "a picture in instructions": (
        [{"role": "system", "content": [{"type": "input_image", "image_url": "u"}]}],
        "input[0].content: instructions are text; other blocks have no place in them",
    ),
    "a picture of an assistant's": (
        [{"role": "assistant", "content": [{"type": "input_image", "image_url": "u"}]}],
        "input[0].content: an assistant says words; other blocks have no place",
    ),
}


@pytest.mark.parametrize(("body", "problem"), REFUSED.values(), ids=REFUSED.keys())
def test_what_cannot_be_read_is_refused_by_its_place(body: Json, problem: str):
    with pytest.raises(WireError) as caught:
        decode(body, WIRE)
    assert str(caught.value) == problem


NOT_CARRIED: dict[str, tuple[Message, str]] = {
    "thinking for people": (ReasoningMessage(text="hm"), "a message of role reasoning"),
    "an activity": (ActivityMessage(activity_type="a", content="{}"), "a message of role activity"),
    "nothing": (AssistantMessage(), "a message with nothing in it"),
    "a picture of an assistant's": (
        AssistantMessage(parts=(File(kind="image", source=PNG),)),
        "a file of kind image in a message of role assistant",
    ),
    "a document without a name": (
        UserMessage(parts=(File(kind="document", source=PNG),)),
        "a file of kind document by Data",
    ),
    "another's state": (
        AssistantMessage(parts=(replace(thought(), provider="anthropic"), HELLO)),
        "state of anthropic (reasoning)",
    ),
    "sound": (UserMessage(parts=(File(kind="audio", source=PNG),)), "a file of kind audio by Data"),
    "a file of ours": (
        UserMessage(parts=(File(kind="document", source=Key(key="k")),)),
        "a file of kind document by Key",
    ),
    "another's file": (
        UserMessage(parts=(File(kind="image", source=ProviderFile(provider="anthropic", handle="f")),)),
        "a file of kind image by ProviderFile",
    ),
}


@pytest.mark.parametrize(("message", "what"), NOT_CARRIED.values(), ids=NOT_CARRIED.keys())
def test_what_has_no_place_is_refused_by_name(message: Message, what: str):
    with pytest.raises(CannotCarry) as caught:
        openai_responses.encode(message)
    assert str(caught.value).startswith(f"The {WIRE} format cannot carry {what}")


def test_a_tool_goes_with_its_schema_as_written_and_is_not_held_to_it():
    assert openai_responses.encode_tool("look", "Looks.", '{ "type": "object" }') == (
        b'{"type":"function","name":"look","description":"Looks.","parameters":{ "type": "object" },"strict":false}'
    )


# Thoughts in a page


def page_of(*said: Message, model: str = MODEL) -> tuple[list[str], Manifest]:
    """The items of a page, each by its type or role, and its manifest."""
    page, manifest = assemble(Facts(log=said, target=Target(wire=WIRE, model=model)))
    body = parse(page)
    assert orphans(body, WIRE) == []
    items = cast("Sequence[Mapping[str, str]]", body["input"])
    return [one.get("role") or f"{one['type']} {one.get('id', '')}".strip() for one in items], manifest


def reply(*parts: AssistantPart) -> AssistantMessage:
    return AssistantMessage(id="a", parts=parts)


ALONE: dict[str, tuple[tuple[Message, ...], list[str]]] = {
    "a thought that led to a call goes with it": (
        (ASKED, reply(replace(CALL, state=thought())), ANSWERED),
        ["user", "reasoning rs_1", "function_call", "function_call_output"],
    ),
    "a call that nobody answered takes its thought along": (
        (ASKED, reply(thought(1), HELLO, replace(CALL, state=thought(2))), ASKED),
        ["user", "reasoning rs_1", "assistant", "user"],
    ),
    "of two calls one stays, with the thought that led to it": (
        (ASKED, reply(replace(CALL, id="lost", state=thought(1)), replace(CALL, state=thought(2))), ANSWERED),
        ["user", "reasoning rs_2", "function_call", "function_call_output"],
    ),
    "a reply of thoughts alone is left out": ((ASKED, reply(thought(1), thought(2)), ASKED), ["user", "user"]),
    "what words are for is nothing without them": (
        (ASKED, reply(thought(), state("phase", '"commentary"', "field")), ASKED),
        ["user", "user"],
    ),
    "a thought behind the last words is left out": (
        (ASKED, reply(thought(1), HELLO, thought(2)), ASKED),
        ["user", "reasoning rs_1", "assistant", "user"],
    ),
    "thoughts behind a call that is gone are left out": (
        (ASKED, reply(HELLO, thought(1), replace(CALL, state=thought(2))), ASKED),
        ["user", "assistant", "user"],
    ),
}


@pytest.mark.parametrize(("log", "items"), ALONE.values(), ids=ALONE.keys())
def test_R10_a_thought_is_never_sent_without_what_it_led_to(log: tuple[Message, ...], items: list[str]):
    assert page_of(*log)[0] == items


def test_R10_a_thought_that_is_left_out_is_noted():
    _, manifest = page_of(ASKED, reply(HELLO, thought()), ASKED)
    [part] = [part for part in manifest.parts if part.source == "a"]
    assert (part.decision, part.rule) == ("repaired", "fit")
    assert part.reason == "thinking left out, since nothing follows it"


def test_thoughts_go_to_no_model_but_the_one_that_made_them():
    log = (ASKED, reply(thought(1), HELLO, replace(CALL, state=thought(2))), ANSWERED)
    assert page_of(*log, model="gpt-y")[0] == ["user", "assistant", "function_call", "function_call_output"]


def test_other_wires_leave_out_thoughts_of_this_one():
    log = (ASKED, reply(thought(1), HELLO, replace(CALL, state=thought(2))), ANSWERED)
    for wire in ("openai", "anthropic"):
        page, _ = assemble(Facts(log=log, target=Target(wire=wire, model=MODEL)))
        assert b"gAAA" not in page.body
        assert orphans(parse(page), wire) == []


def with_our_state(message: Message) -> Message:
    """The message with real thoughts of this provider wherever an assistant has state, and no state elsewhere."""
    match message:
        case AssistantMessage():
            kept = [thought() if isinstance(part, Opaque) else part for part in message.parts]
            calls = [
                replace(part, state=part.state and thought(2)) if isinstance(part, ToolCall) else part for part in kept
            ]
            return replace(message, parts=tuple(calls))
        case UserMessage() | ToolMessage():
            return replace(message, parts=tuple(part for part in message.parts if not isinstance(part, Opaque)))
        case _:
            return message


@pytest.mark.full
@given(logs().map(lambda log: tuple(map(with_our_state, log))))
def test_R10_of_any_log_with_thoughts_the_providers_types_accept_the_body_and_no_thought_stands_alone(
    log: tuple[Message, ...],
):
    facts = Facts(log=log, target=Target(wire=WIRE, model=MODEL), tools=OFFERS, fold=replace(FOLD))
    page, manifest = assemble(facts)
    body = parse(page)
    assert breaches(body, WIRE) == []
    assert orphans(body, WIRE) == []
    assert list(gaps(page, manifest)) == []
    assert list(lies(manifest, log)) == []
    # What is sent is a conversation again, and as such makes the same items.
    messages = decode(body["input"], WIRE, model=MODEL)
    assert encode(messages, WIRE) == body["input"]
