"""Pages, for any log and every wire: nothing raises, nothing lies, nothing is lost, and memory changes nothing."""

from collections.abc import Sequence
from copy import deepcopy
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recto.conversation.json import dump
from recto.conversation.messages import Message, Text, ToolOffer
from recto.page.assemble import TRIMMED, Facts, assemble
from recto.page.body import Page
from recto.page.manifest import Manifest
from recto.page.wire.base import Target, WireName
from recto.page.wire.formats import WIRES
from tests.page.log_strategies import FOLD, OFFERS, logs, newest_user
from tests.page.page_rules import fresh, gaps, lies, orphans, parse

# What a body begins with, and where instructions and conversation stand in it.
FIELDS: dict[WireName, tuple[tuple[str, ...], str, str]] = {
    "openai": (("model", "stream"), "", "messages"),
    "openai-responses": (("model", "stream"), "", "input"),
    "anthropic": (("model", "stream"), "system", "messages"),
    "gemini": (("stream",), "systemInstruction", "contents"),
}
TARGETS = (
    Target(wire="openai", model="gpt-x"),
    Target(wire="anthropic", model="claude-x"),
    Target(wire="openai", model="gpt-y"),
    Target(wire="gemini", model="gemini-3-x"),
    Target(wire="openai-responses", model="gpt-x"),
)
wires = st.sampled_from(tuple(WIRES))
offers = st.sampled_from(((), OFFERS))


def set_page(log: Sequence[Message], target: Target, tools: tuple[ToolOffer, ...] = ()) -> tuple[Page, Manifest]:
    return assemble(Facts(log=log, target=target, tools=tools, options={"stream": True}, fold=replace(FOLD)))


@given(logs(), wires, offers)
def test_R10_no_orphan_reaches_a_page_and_the_body_has_exactly_its_fields(
    log: tuple[Message, ...], wire: WireName, tools: tuple[ToolOffer, ...]
):
    page, manifest = set_page(log, Target(wire=wire, model="gpt-x"), tools)
    body = parse(page)
    assert orphans(body, wire) == []
    roles = {part.role for part, span in zip(manifest.parts, manifest.spans, strict=True) if span}
    first, system, conversation = FIELDS[wire]
    instructed = [system] if system and roles & {"system", "developer"} else []
    assert list(body) == [*first, *(["tools"] if tools else []), *instructed, conversation]
    assert page.body.count(b'"description":"') == len(tools)


@given(logs(), wires, offers)
def test_spans_tile_the_body_and_every_decision_is_what_happened(
    log: tuple[Message, ...], wire: WireName, tools: tuple[ToolOffer, ...]
):
    page, manifest = set_page(log, Target(wire=wire, model="claude-x"), tools)
    assert list(gaps(page, manifest)) == []
    assert list(lies(manifest, log)) == []
    kinds = [part.kind for part in manifest.parts]
    assert kinds == ["envelope", *["tool"] * len(tools), *["message"] * len(log), "envelope"]


@given(logs().filter(newest_user), wires)
def test_the_newest_user_message_is_in_the_page_with_all_its_words(log: tuple[Message, ...], wire: WireName):
    source, message = newest_user(log) or ("", None)
    page, manifest = set_page(log, Target(wire=wire, model="gpt-x"))
    ((_, span),) = [
        match for match in zip(manifest.parts, manifest.spans, strict=True) if match[0].source == source and match[1]
    ]
    assert span and message
    part_bytes = page.body[span[0] : span[1]]
    words = [part.text for part in message.parts if isinstance(part, Text)]
    assert [text for text in words if text.strip() and dump(text) not in part_bytes] == []


@given(logs(), st.sampled_from(TARGETS))
def test_R1_the_log_is_not_changed_by_a_page(log: tuple[Message, ...], target: Target):
    before = deepcopy(log)
    set_page(log, target)
    assert log == before
    assert repr(log) == repr(before)


@pytest.mark.full
@given(logs(), logs(most=4))
def test_R1_a_page_of_messages_that_remember_is_that_of_messages_that_do_not(
    log: tuple[Message, ...], other_end: tuple[Message, ...]
):
    retried = (*log[: len(log) // 2], *(replace(message, id="") for message in other_end))
    growing = [log[:length] for length in range(len(log) + 1)]
    for view in (*growing, retried, log, log[1:], retried[:-1]):
        for target in TARGETS:
            assert set_page(view, target, OFFERS) == set_page(fresh(view), target, OFFERS)


@given(logs(), wires)
def test_a_page_that_only_grew_begins_with_the_one_before(log: tuple[Message, ...], wire: WireName):
    target = Target(wire=wire, model="gpt-x")
    page, manifest = set_page(log, target)
    last_message = next((message for message in reversed(log) if message.role == "user"), None)
    # At its end a page loses the blank that its provider refuses there.
    if last_message is None or any(TRIMMED.reason in part.reason for part in manifest.parts):
        return
    longer, _ = set_page((*log, replace(last_message, id="new")), target)
    tail = manifest.sizes[-1]
    assert longer.body.startswith(page.body[:-tail])
