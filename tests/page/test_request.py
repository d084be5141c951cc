"""Requests of other agents: what is not folded and not repaired goes on as the very bytes that came."""

import json
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recto.conversation.json import Json, dump, load
from recto.conversation.messages import Message
from recto.errors import WireError
from recto.page.body import Page
from recto.page.fold.agent_tools import known_tools, rule_for
from recto.page.fold.fold_settings import FoldSettings
from recto.page.fold.rules import RULES, rules_in
from recto.page.manifest import Manifest
from recto.page.rewrite import HALF_READ, OTHER_ENDS, RewriteRules, pass_on, rewrite
from recto.page.sent_request import SentRequest, heads_of, messages_in, parse_request
from recto.page.wire.anthropic import ANTHROPIC
from recto.page.wire.base import Wire
from recto.page.wire.openai import OPENAI
from tests.api.relaying_server import message_reads, reads, user

NOW = datetime(2026, 5, 14, 12, tzinfo=UTC)
EAGER = FoldSettings(rules=tuple([rule_for(rule, known_tools()) for rule in rules_in("en", RULES) if rule.on]))
PLACEHOLDER = "[An older read of this file, folded: see the newest one]"
CALL: dict[str, Json] = {"id": "c1", "type": "function", "function": {"name": "look", "arguments": "{}"}, "extra": 1}
USE: dict[str, Json] = {"type": "tool_use", "id": "c1", "name": "look", "input": {}, "cache_control": {"type": "x"}}


def messages_of(request: SentRequest, wire: Wire) -> list[tuple[Message, ...]]:
    heads = heads_of(request.items, wire)
    return [messages_in(item, n, wire, heads[n], NOW) for n, item in enumerate(request.items)]


def rewritten(body: bytes, wire: Wire, fold: FoldSettings | None = EAGER) -> tuple[Page, Manifest]:
    request = parse_request(body)
    return rewrite(request, messages_of(request, wire), RewriteRules(fold=fold, now=NOW))


def orphan(id: str = "c9") -> dict[str, Json]:
    return {"role": "tool", "tool_call_id": id, "content": "of nobody"}


def block_orphan() -> dict[str, Json]:
    return {"type": "tool_result", "tool_use_id": "c9", "content": "of nobody"}


def reply(words: str, *calls: Json) -> dict[str, Json]:
    return {"role": "assistant", "content": words, **({"tool_calls": list(calls)} if calls else {})}


def send(messages: Sequence[Json], wire: Wire = OPENAI) -> tuple[list[dict[str, Json]], Manifest]:
    """The messages as they are sent on, and the manifest."""
    page, manifest = rewritten(dump({"model": "m", "messages": messages}), wire)
    assert sum(manifest.sizes) == len(page.body)
    body = cast("Mapping[str, Json]", load(page.body))
    return cast("list[dict[str, Json]]", body["messages"]), manifest


values = st.recursive(
    st.none() | st.booleans() | st.integers(-9, 9) | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=8,
)
words = st.text(min_size=1, max_size=8).filter(str.strip)


def said_with(message: str, more: Json) -> Json:
    return {**user(message), "meta": more}


chat = st.lists(st.builds(said_with, words, values), min_size=1, max_size=4)


@given(
    messages=chat,
    before=st.dictionaries(st.text(max_size=6), values, max_size=3),
    after=st.dictionaries(st.text(max_size=6), values, max_size=3),
    indent=st.sampled_from([None, 0, 2, "\t"]),
    separators=st.sampled_from([(",", ":"), (" , ", " : "), (",\r\n", ": ")]),
)
def test_X3_a_request_that_nothing_is_done_to_goes_on_as_the_bytes_that_came(
    messages: list[Json],
    before: dict[str, Json],
    after: dict[str, Json],
    indent: int | str | None,
    separators: tuple[str, str],
):
    fields = {**before, "messages": messages, **{name: one for name, one in after.items() if name != "messages"}}
    body = json.dumps(fields, indent=indent, ensure_ascii=indent is None, separators=separators).encode()
    page, manifest = rewritten(b" \n" + body + b"\t", OPENAI)
    assert page.body == b" \n" + body + b"\t"
    assert {part.decision for part in manifest.parts} == {"kept"}
    assert pass_on(parse_request(body), "why")[0].body == body


def test_X3_of_a_folded_result_the_words_alone_are_others_and_all_else_stands_as_it_was_written():
    messages = reads(8, 50)
    messages[2] |= {"name": "kept", "odd": [1, {"a": None}]}
    body = json.dumps({"temperature": 0.1, "messages": messages, "tools": [], "x": "é"}, indent=1).encode()
    page, manifest = rewritten(body, OPENAI)
    fields = cast("dict[str, Json]", load(page.body))
    expected = [
        {**one, "content": PLACEHOLDER} if one["role"] == "tool" and place < 8 else one
        for place, one in enumerate(messages)
    ]
    assert fields == {"temperature": 0.1, "messages": expected, "tools": [], "x": "é"}
    # What comes behind the last that was folded is byte for byte what came.
    tail = body[body.index(b'"call_3"') :].partition(b'"call_4"')[2]
    assert page.body.endswith(tail)
    assert [part.source for part in manifest.parts if part.decision == "folded"] == [
        "messages[2]",
        "messages[4]",
        "messages[6]",
    ]


def test_X3_a_folded_block_of_anthropic_keeps_its_id_its_mark_and_its_neighbours():
    messages = message_reads(8, 50)
    first = cast("list[dict[str, Json]]", messages[2]["content"])
    first[0] |= {"cache_control": {"type": "ephemeral"}, "content": [{"type": "text", "text": "word " * 50}]}
    first.append({"type": "text", "text": "and this?"})
    page_body, _ = send(messages, ANTHROPIC)
    block = {**first[0], "content": [{"type": "text", "text": PLACEHOLDER}]}
    assert page_body[2] == {"role": "user", "content": [block, {"type": "text", "text": "and this?"}]}
    assert page_body[-1] == messages[-1]


RESULT: dict[str, Json] = {"role": "tool", "tool_call_id": "c1", "content": "done"}


def test_X3_R10_calls_without_a_result_are_taken_out_and_those_answered_keep_their_fields():
    page_body, manifest = send([user("hi"), {**reply("I look.", CALL), "odd": 1}, user("and?")])
    assert page_body[1] == {"role": "assistant", "content": "I look.", "odd": 1}
    assert [part.rule for part in manifest.parts if part.decision == "repaired"] == ["R10"]
    page_body, _ = send([user("hi"), reply("", CALL, {**CALL, "id": "c2"}), RESULT, user("and?")])
    assert page_body[1:] == [reply("", CALL), RESULT, user("and?")]


def test_X3_R10_a_result_without_a_call_is_left_out_and_one_that_came_late_moves_up():
    page_body, manifest = send([orphan(), user("hi"), reply("", CALL), user("well?"), RESULT])
    assert page_body == [user("hi"), reply("", CALL), RESULT, user("well?")]
    dropped = [(part.source, part.tokens_after) for part in manifest.parts if part.decision == "dropped"]
    assert dropped == [("messages[0]", 0)]


def test_X3_R10_blocks_of_anthropic_are_repaired_in_their_turns():
    message: dict[str, Json] = {"role": "assistant", "content": [{"type": "text", "text": "I look."}, USE]}
    result: dict[str, Json] = {"type": "tool_result", "tool_use_id": "c1", "content": "done"}
    words: dict[str, Json] = {"type": "text", "text": "well?"}
    turn: dict[str, Json] = {"role": "user", "content": [block_orphan(), result, words]}
    page_body, _ = send([user("hi"), message, user("wait"), turn], ANTHROPIC)
    assert page_body == [
        user("hi"),
        message,
        {"role": "user", "content": [result]},
        user("wait"),
        {"role": "user", "content": [words]},
    ]
    page_body, _ = send([user("hi"), message, user("never mind")], ANTHROPIC)
    assert page_body[1] == {"role": "assistant", "content": [{"type": "text", "text": "I look."}]}


@pytest.mark.parametrize(
    ("messages", "wire"),
    [
        ([orphan()], OPENAI),
        ([{"role": "system", "content": "Be brief."}, orphan(), reply("hello"), user("hi")], OPENAI),
        ([user("hi"), reply("I look.", CALL)], OPENAI),
        ([user("hi"), reply("I look.", CALL), {"role": "system", "content": "Be brief."}], OPENAI),
        ([user("hi"), {"role": "assistant", "content": [{"type": "text", "text": "I look."}, USE]}], ANTHROPIC),
        ([user("hi"), reply("hello"), {"role": "user", "content": [block_orphan()]}], ANTHROPIC),
    ],
)
def test_X3_R10_nothing_is_repaired_where_others_would_speak_first_or_last(messages: list[Json], wire: Wire):
    page_body, manifest = send(messages, wire)
    assert page_body == messages
    assert [part.reason.partition(": ")[2] for part in manifest.parts] == [OTHER_ENDS]


def test_X3_R10_what_was_folded_stays_folded_where_the_end_cannot_be_repaired():
    messages = [*reads(8, 50), reply("I look.", CALL)]
    page_body, manifest = send(messages)
    assert page_body == [*send(messages[:-1])[0], messages[-1]]
    assert manifest.parts[0].reason == HALF_READ.format(why=OTHER_ENDS)


def test_X3_silent_replies_and_results_in_another_order_than_their_calls_stay_as_they_came():
    call_reply = reply("", CALL, {**CALL, "id": "c2"})
    messages = [user("hi"), reply(""), user("well?"), call_reply, orphan("c2"), orphan("c1"), user("and?")]
    assert send(messages)[0] == messages


@pytest.mark.parametrize(
    ("item", "problem"),
    [
        (dump(reply("", {**CALL, "id": ""}, {**CALL, "id": ""})), "has two calls of one id"),
        (dump(reply("I look.", CALL))[:-1] + b',"tool_calls":[]}', "has a name twice in one object"),
    ],
)
def test_X3_a_message_that_can_be_read_in_two_ways_is_a_doubt(item: bytes, problem: str):
    request = parse_request(b'{"messages":[' + dump(user("hi")) + b"," + item + b"]}")
    with pytest.raises(WireError, match=rf"messages\[1\]: {problem}"):
        messages_of(request, OPENAI)


def test_X3_what_is_nested_too_deep_is_refused():
    deep = b'{"cache_control":1,"a":' + b"[" * 600 + b"]" * 600 + b"}"
    request = parse_request(b'{"messages":[{"role":"user","content":[' + deep + b"]}]}")
    with pytest.raises(WireError, match=r"nested too deep|cannot be written"):
        messages_of(request, OPENAI)


def test_X3_a_conversation_goes_by_its_words_and_not_by_marks_instructions_or_how_they_are_written():
    plain = parse_request(dump({"messages": [user("hi"), user("you")]}))
    marked: Json = {"role": "user", "content": [{"type": "text", "text": "hi", "cache_control": {"type": "ephemeral"}}]}
    instruction: Json = {"role": "system", "content": "It is Monday."}
    other = parse_request(json.dumps({"messages": [instruction, marked, user("you")]}, indent=3).encode())
    assert heads_of(plain.items, ANTHROPIC) == heads_of(other.items, ANTHROPIC)[1:]
    changed = parse_request(dump({"messages": [user("ho"), user("you")]}))
    assert not set(heads_of(plain.items, OPENAI)) & set(heads_of(changed.items, OPENAI))
    assert not set(heads_of(plain.items, OPENAI)) & set(heads_of(plain.items, ANTHROPIC))


@pytest.mark.parametrize(
    ("body", "problem"),
    [
        (b"", "is no JSON"),
        (b'{1: 2, "messages": [{}]}', "a name is missing"),
        (b'{"messages": [{"a": 1}]} {}', "more than one value"),
        (b'{"messages": []}', "a list with at least one message"),
        (b'{"messages": ["\xff"]}', "cannot be read as JSON"),
        (b'{"messages": ' + b"[" * 100_000, "cannot be read as JSON"),
    ],
)
def test_X3_what_is_no_request_is_refused_with_what_is_wrong(body: bytes, problem: str):
    with pytest.raises(WireError, match=problem):
        parse_request(body)


def test_X3_a_role_nobody_knows_is_told_by_its_place_and_two_lists_of_messages_are_a_doubt():
    request = parse_request(dump({"messages": [user("hi"), {"role": "wizard", "content": "!"}]}))
    with pytest.raises(WireError, match=r"messages\[1\].role: 'wizard' is no role"):
        messages_of(request, OPENAI)
    assert parse_request(b'{"messages": [{}], "messages": [{}]}').doubt == "`messages` stands in it twice"
