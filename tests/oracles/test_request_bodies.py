"""Bodies that the providers' own packages accept, field by field, by their types."""

from collections.abc import Sequence
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recto.conversation.json import Json, load
from recto.conversation.messages import (
    AssistantMessage,
    Data,
    DeveloperMessage,
    File,
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
from recto.page.assemble import Facts, assemble
from recto.page.body import Page
from recto.page.wire.base import Target, WireName
from recto.page.wire.formats import WIRES
from recto.testing.model_server import ModelServer, wire_at
from tests.oracles.official_clients import SEND
from tests.page.log_strategies import FOLD, OFFERS, logs
from tests.page.oracles import breaches
from tests.page.page_rules import parse

EACH_WIRE = pytest.mark.parametrize("wire", WIRES)
OPTIONS: dict[WireName, dict[str, Json]] = {
    "openai": {"temperature": 0.5, "max_completion_tokens": 64, "parallel_tool_calls": True},
    "openai-responses": {"temperature": 0.5, "store": False, "include": ["reasoning.encrypted_content"]},
    "anthropic": {"stop_sequences": ["."], "max_tokens": 64, "tool_choice": {"type": "auto"}},
    "gemini": {
        "generationConfig": {"temperature": 0.5, "maxOutputTokens": 64, "stopSequences": ["."]},
        "toolConfig": {"functionCallingConfig": {"mode": "AUTO"}},
    },
}
# That of Gemini stands in the address.
STREAM: dict[WireName, dict[str, Json]] = {wire: {} if wire == "gemini" else {"stream": True} for wire in WIRES}
HELLO = Text(text="hello 北京")
THINKING = '{"type":"thinking","thinking":"so","signature":"EqQB"}'
REASONING = '{"type":"reasoning","id":"rs_1","summary":[],"encrypted_content":"gAAA"}'
CALLS = (
    ToolCall(id="c1", name="read", arguments='{ "path": "a.py", "n": 1.0e3 }'),
    ToolCall(id="c2", name="read", arguments="{broken"),
)


def state(provider: str, place: str, name: str, data: str) -> Opaque:
    return Opaque(provider=provider, model=None, place="block" if place == "block" else "field", name=name, data=data)


TALK: tuple[Message, ...] = (
    SystemMessage(text="Be brief.", name="house"),
    UserMessage(parts=(HELLO,), name="Ann"),
    AssistantMessage(parts=(HELLO, *CALLS, Text(text="behind"))),
    ToolMessage(tool_call_id="c1", parts=(Text(text="a"), Text(text="b"))),
    ToolMessage(tool_call_id="c2", parts=(), error="gone"),
    DeveloperMessage(text="In English."),
    AssistantMessage(parts=(HELLO,)),
)
RICH: dict[str, tuple[Message, ...]] = {
    "nothing": (),
    "a talk with tools": TALK,
    "files of every kind": (
        UserMessage(
            parts=(
                HELLO,
                File(kind="image", source=Url(url="https://x.test/a.png")),
                File(kind="image", source=Data(base64="aGk="), mime_type="image/png"),
                File(kind="image", source=Data(base64="aGk="), mime_type="image/svg+xml"),
                File(kind="image", source=ProviderFile(provider="anthropic", handle="file_1")),
                File(kind="document", source=Data(base64="aGk="), mime_type="application/pdf", name="a.pdf"),
                File(kind="document", source=Data(base64="aGk="), mime_type="text/csv", name="a.csv"),
                File(kind="document", source=Url(url="https://x.test/a.pdf"), name="a.pdf"),
                File(kind="document", source=ProviderFile(provider="openai", handle="file-1")),
                File(kind="audio", source=Data(base64="aGk="), mime_type="audio/mpeg"),
                File(kind="video", source=Url(url="https://x.test/v.mp4")),
            )
        ),
        AssistantMessage(parts=(CALLS[0],)),
        ToolMessage(tool_call_id="c1", parts=(HELLO, File(kind="image", source=Url(url="https://x.test/a.png")))),
    ),
    "state of every provider": (
        UserMessage(
            parts=(
                HELLO,
                state("openai", "block", "image_url", '{"type":"image_url","image_url":{"url":"u","detail":"low"}}'),
                state(
                    "anthropic",
                    "block",
                    "document",
                    '{"type":"document","source":{"type":"text","media_type":"text/plain","data":"a"},"context":"c"}',
                ),
            )
        ),
        AssistantMessage(
            parts=(
                state("anthropic", "block", "thinking", THINKING),
                state("anthropic", "block", "redacted_thinking", '{"type":"redacted_thinking","data":"x"}'),
                state("openai", "field", "refusal", '"no"'),
                state("openai", "field", "audio", '{"id":"audio_1"}'),
                state("openai", "block", "refusal", '{"type":"refusal","refusal":"no"}'),
                state("gemini", "block", "executableCode", '{"executableCode":{"language":"PYTHON","code":"1"}}'),
                state("openai-responses", "block", "reasoning", REASONING),
                state("openai-responses", "field", "phase", '"commentary"'),
                HELLO,
                state("gemini", "field", "thinking", '"c2lnbmVk"'),
                replace(CALLS[0], state=state("openai-responses", "block", "reasoning", REASONING)),
                state("gemini", "block", "thinking", '{"text":"","thoughtSignature":"c28="}'),
            )
        ),
        ToolMessage(tool_call_id="c1", parts=(HELLO,)),
    ),
    "orphans and what is for people": (
        AssistantMessage(parts=(HELLO,)),
        ToolMessage(tool_call_id="nobody", parts=(HELLO,)),
        UserMessage(),
        ReasoningMessage(text="hm"),
        AssistantMessage(parts=CALLS),
        UserMessage(parts=(Text(text=" "),)),
        ToolMessage(tool_call_id="c2", parts=(HELLO,)),
    ),
}
LOGS = pytest.mark.parametrize("log", RICH.values(), ids=RICH.keys())


def set_page(log: Sequence[Message], wire: WireName, **options: Json) -> Page:
    target = Target(wire=wire, model="model-x")
    return assemble(Facts(log=log, target=target, tools=OFFERS, options=OPTIONS[wire] | options, fold=FOLD))[0]


@EACH_WIRE
@LOGS
def test_the_providers_types_accept_the_body(log: tuple[Message, ...], wire: WireName):
    assert breaches(parse(set_page(log, wire)), wire) == []
    assert breaches(parse(set_page(log, wire, **STREAM[wire])), wire) == []


def without_state(message: Message) -> Message:
    if not isinstance(message, (UserMessage, AssistantMessage, ToolMessage)):
        return message
    if isinstance(message, AssistantMessage):
        parts = [replace(part, state=None) if isinstance(part, ToolCall) else part for part in message.parts]
        return replace(message, parts=tuple(part for part in parts if not isinstance(part, Opaque)))
    return replace(message, parts=tuple(part for part in message.parts if not isinstance(part, Opaque)))


# State that strategies make up is in no provider's types; what providers really make is in RICH.
@given(logs().map(lambda log: tuple(map(without_state, log))), st.sampled_from(tuple(WIRES)))
def test_the_providers_types_accept_the_body_of_any_log(log: tuple[Message, ...], wire: WireName):
    assert breaches(parse(set_page(log, wire)), wire) == []


# Gemini's own client writes these names as Python does; its API takes both.
SPELLINGS = {"parameters_json_schema": "parametersJsonSchema", "mime_type": "mimeType", "file_uri": "fileUri"}


def as_we_spell(value: Json) -> Json:
    match value:
        case dict():
            return {SPELLINGS.get(name, name): as_we_spell(inner) for name, inner in value.items()}
        case list():
            return [as_we_spell(inner) for inner in value]
        case _:
            return value


@EACH_WIRE
def test_the_official_client_sends_the_same_json(wire: WireName):
    # The client of Gemini wants something to be said.
    bodies = [parse(set_page(log, wire, **STREAM[wire])) for log in RICH.values() if log or wire != "gemini"]
    with ModelServer() as server:
        for body in bodies:
            SEND[wire](server, body)
        requests = server.requests
    assert [wire_at(request.path) for request in requests] == [wire] * len(bodies)
    assert [as_we_spell(load(request.body)) for request in requests] == bodies


BROKEN: dict[str, tuple[WireName, dict[str, object], list[str]]] = {
    "a field nobody knows": (
        "openai",
        {"model": "m", "messages": [], "mood": 1},
        ["body.mood is no field of CompletionCreateParamsNonStreaming"],
    ),
    "a field that is missing": ("anthropic", {"model": "m", "messages": []}, ["body.max_tokens is missing"]),
    "a field deep inside": (
        "anthropic",
        {
            "model": "m",
            "max_tokens": 1,
            "messages": [{"role": "user", "content": [{"type": "text", "text": "a", "path": "b"}]}],
        },
        ["body.messages[0].content[0].path is no field of TextBlockParam"],
    ),
    "a field of no part": (
        "gemini",
        {"contents": [{"role": "user", "parts": [{"text": "a", "path": "b"}]}]},
        ["contents.0.parts.0.path: Extra inputs are not permitted"],
    ),
    "a field nobody posts": ("gemini", {"model": "m", "contents": []}, ["model: Extra inputs are not permitted"]),
}


@pytest.mark.parametrize(("wire", "body", "expected"), BROKEN.values(), ids=BROKEN.keys())
def test_the_judge_sees_what_is_wrong(wire: WireName, body: dict[str, object], expected: list[str]):
    assert breaches(body, wire) == expected
