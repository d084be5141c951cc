"""OpenAI Responses: thoughts in their place in a page and never alone."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import cast

import pytest
from hypothesis import given

from recto.conversation.messages import (
    AssistantMessage,
    AssistantPart,
    Message,
    Opaque,
    Text,
    ToolCall,
    ToolMessage,
    UserMessage,
)
from recto.page.assemble import Facts, assemble
from recto.page.manifest import Manifest
from recto.page.wire.base import Target
from recto.page.wire.formats import decode, encode
from tests.page.log_strategies import FOLD, OFFERS, logs
from tests.page.oracles import breaches
from tests.page.page_rules import gaps, lies, orphans, parse

WIRE = "openai-responses"
MODEL = "gpt-x"
HELLO = Text(text="hello")
CALL = ToolCall(id="c1", name="read", arguments='{"path":"a"}')
ANSWER = ToolMessage(tool_call_id="c1", parts=(HELLO,))
QUESTION = UserMessage(parts=(HELLO,))


def item(number: int) -> str:
    return f'{{"type":"reasoning","id":"rs_{number}","summary":[],"encrypted_content":"gAAA"}}'


def state(name: str, data: str, place: str = "block", model: str | None = MODEL) -> Opaque:
    return Opaque(provider=WIRE, model=model, place="field" if place == "field" else "block", name=name, data=data)


def reasoning_state(number: int = 1) -> Opaque:
    return state("reasoning", item(number))


def page_of(*messages: Message, model: str = MODEL) -> tuple[list[str], Manifest]:
    """The items of a page, each by its type or role, and its manifest."""
    page, manifest = assemble(Facts(log=messages, target=Target(wire=WIRE, model=model)))
    body = parse(page)
    assert orphans(body, WIRE) == []
    items = cast("Sequence[Mapping[str, str]]", body["input"])
    return [one.get("role") or f"{one['type']} {one.get('id', '')}".strip() for one in items], manifest


def reply(*parts: AssistantPart) -> AssistantMessage:
    return AssistantMessage(id="a", parts=parts)


ALONE: dict[str, tuple[tuple[Message, ...], list[str]]] = {
    "a thought that led to a call goes with it": (
        (QUESTION, reply(replace(CALL, state=reasoning_state())), ANSWER),
        ["user", "reasoning rs_1", "function_call", "function_call_output"],
    ),
    "a call that nobody answered takes its thought along": (
        (QUESTION, reply(reasoning_state(1), HELLO, replace(CALL, state=reasoning_state(2))), QUESTION),
        ["user", "reasoning rs_1", "assistant", "user"],
    ),
    "of two calls one stays, with the thought that led to it": (
        (
            QUESTION,
            reply(replace(CALL, id="lost", state=reasoning_state(1)), replace(CALL, state=reasoning_state(2))),
            ANSWER,
        ),
        ["user", "reasoning rs_2", "function_call", "function_call_output"],
    ),
    "a reply of thoughts alone is left out": (
        (QUESTION, reply(reasoning_state(1), reasoning_state(2)), QUESTION),
        ["user", "user"],
    ),
    "what words are for is nothing without them": (
        (QUESTION, reply(reasoning_state(), state("phase", '"commentary"', "field")), QUESTION),
        ["user", "user"],
    ),
    "a thought behind the last words is left out": (
        (QUESTION, reply(reasoning_state(1), HELLO, reasoning_state(2)), QUESTION),
        ["user", "reasoning rs_1", "assistant", "user"],
    ),
    "thoughts behind a call that is gone are left out": (
        (QUESTION, reply(HELLO, reasoning_state(1), replace(CALL, state=reasoning_state(2))), QUESTION),
        ["user", "assistant", "user"],
    ),
}


@pytest.mark.parametrize(("log", "items"), ALONE.values(), ids=ALONE.keys())
def test_R10_a_thought_is_never_sent_without_what_it_led_to(log: tuple[Message, ...], items: list[str]):
    assert page_of(*log)[0] == items


def test_R10_a_thought_that_is_left_out_is_noted():
    _, manifest = page_of(QUESTION, reply(HELLO, reasoning_state()), QUESTION)
    [part] = [part for part in manifest.parts if part.source == "a"]
    assert (part.decision, part.rule) == ("repaired", "fit")
    assert part.reason == "thinking left out, since nothing follows it"


def test_thoughts_go_to_no_model_but_the_one_that_made_them():
    log = (QUESTION, reply(reasoning_state(1), HELLO, replace(CALL, state=reasoning_state(2))), ANSWER)
    assert page_of(*log, model="gpt-y")[0] == ["user", "assistant", "function_call", "function_call_output"]


def test_other_wires_leave_out_thoughts_of_this_one():
    log = (QUESTION, reply(reasoning_state(1), HELLO, replace(CALL, state=reasoning_state(2))), ANSWER)
    for wire in ("openai", "anthropic"):
        page, _ = assemble(Facts(log=log, target=Target(wire=wire, model=MODEL)))
        assert b"gAAA" not in page.body
        assert orphans(parse(page), wire) == []


def with_our_state(message: Message) -> Message:
    """The message with real thoughts of this provider wherever an assistant has state, and no state elsewhere."""
    match message:
        case AssistantMessage():
            parts = [reasoning_state() if isinstance(part, Opaque) else part for part in message.parts]
            calls = [
                replace(part, state=part.state and reasoning_state(2)) if isinstance(part, ToolCall) else part
                for part in parts
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
