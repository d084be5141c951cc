"""P8, R10: a page ends with a user's word or a tool's result, whatever was broken off before, in both wires."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Literal, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recto.conversation.json import Json
from recto.conversation.log import Entry, Interrupted
from recto.conversation.messages import AssistantMessage, Message, Text, UserMessage
from recto.page.assemble import CONTINUED, TRIMMED, assemble
from recto.page.body import Page
from recto.page.facts import Facts, Turn
from recto.page.wire.base import Target, WireName
from recto.page.wire.formats import WIRES
from tests.page.log_strategies import FOLD, OFFERS, logs
from tests.page.page_rules import gaps, orphans, parse
from tests.page.talk import asks, result

EACH_WIRE = pytest.mark.parametrize("wire", WIRES)
question = UserMessage(id="u", parts=(Text(text="Tell me."),), response_id="r")
partial = AssistantMessage(id="a", parts=(Text(text="Once upon "),))
broken_off = Interrupted(id="i", message="a", reason="broken off")


def facts_of(log: Sequence[Entry], wire: WireName, calling: Literal["native", "prompt"] = "native") -> Facts:
    return Facts(
        log=tuple(log),
        target=Target(wire=wire, model="claude-x"),
        tools=OFFERS,
        tool_calling=calling,
        turn=Turn(response_id="r"),
        locale="en",
        fold=replace(FOLD),
    )


def message_rows(page: Page) -> list[Mapping[str, Json]]:
    body = parse(page)
    (talk,) = {"messages", "contents", "input"} & body.keys()
    return list(cast("Sequence[Mapping[str, Json]]", body[talk]))


@EACH_WIRE
def test_P8_a_turn_that_goes_on_after_a_cancel_ends_with_a_users_word(wire: WireName):
    page, manifest = assemble(facts_of((question, partial, broken_off), wire))
    words: dict[str, Json] = {
        "openai": {"role": "user", "content": "Continue."},
        "openai-responses": {"type": "message", "role": "user", "content": "Continue."},
        "anthropic": {"role": "user", "content": [{"type": "text", "text": "Continue."}]},
        "gemini": {"role": "user", "parts": [{"text": "Continue."}]},
    }
    assert message_rows(page)[-1] == words[wire]
    assert "Once upon " in str(message_rows(page)[-2])
    assert list(gaps(page, manifest)) == []
    part = manifest.parts[-2]
    described = (part.kind, part.source, part.role, part.decision, part.reason)
    assert described == ("closing", "closing", "user", "injected", CONTINUED.reason)


def test_P8_the_word_is_in_the_language_of_the_agent():
    page, _ = assemble(replace(facts_of((question, partial), "openai"), locale="zh"))
    assert message_rows(page)[-1]["content"] == "请继续。"


@EACH_WIRE
@pytest.mark.parametrize(
    "log",
    [
        (question, asks("a", "c1"), result("t", "c1")),
        (question,),
        (question, AssistantMessage(id="a", parts=(Text(text=" \n"),)), asks("b", "c1"), result("t", "c1")),
    ],
)
def test_a_page_that_ends_with_a_user_or_a_result_is_left_as_it_is(wire: WireName, log: tuple[Message, ...]):
    _, manifest = assemble(facts_of(log, wire))
    assert all(part.source != "closing" for part in manifest.parts)


def test_a_conversation_of_others_only_loses_a_blank_that_its_provider_refuses():
    log = (replace(question, response_id=""), partial)
    page, manifest = assemble(Facts(log=log, target=Target(wire="anthropic")))
    assert message_rows(page)[-1] == {"role": "assistant", "content": [{"type": "text", "text": "Once upon"}]}
    assert TRIMMED.reason in manifest.parts[-2].reason
    page, _ = assemble(Facts(log=log))
    assert message_rows(page)[-1]["content"] == "Once upon "


@given(logs(), st.sampled_from(tuple(WIRES)), st.sampled_from(("native", "prompt")))
def test_P8_no_page_of_a_turn_ends_with_the_assistant(
    log: tuple[Message, ...], wire: WireName, calling: Literal["native", "prompt"]
):
    page, manifest = assemble(facts_of(log, wire, calling))
    # Items of Responses that nobody says have no role: a call, which has a result behind it, or a result.
    roles = [str(message.get("role", "tool")) for message in message_rows(page)]
    talk = [role for role in roles if role not in ("system", "developer")]
    assert not talk or talk[-1] in ("user", "tool")
    assert list(gaps(page, manifest)) == []
    assert orphans(parse(page), wire) == []
