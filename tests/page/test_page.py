"""Small pages, whole: the bytes of both wire formats, their segments and digests, their manifests, their counts."""

import os
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from hashlib import sha256
from itertools import accumulate
from pathlib import Path
from typing import TypeAlias

import pytest

from recto.conversation.messages import (
    AssistantMessage,
    DeveloperMessage,
    File,
    Message,
    Opaque,
    ReasoningMessage,
    SystemMessage,
    Text,
    ToolCall,
    ToolMessage,
    ToolOffer,
    Url,
    UserMessage,
)
from recto.errors import SettingsError
from recto.page.assemble import Facts, assemble
from recto.page.body import Segment, build_segment
from recto.page.fold.fold_settings import FoldSettings
from recto.page.fold.rules import READS
from recto.page.text.tokens import Calibration, TokenCount
from recto.page.wire.base import Target, WireName
from tests.page.counters import CharacterCounter

Row: TypeAlias = dict[str, object]

ROOT = Path(__file__).resolve().parents[2]
NOW = datetime(2026, 1, 1, tzinfo=UTC)
OPENAI = Target(wire="openai", model="gpt-x")
ANTHROPIC = Target(wire="anthropic", model="claude-x")
TARGETS = pytest.mark.parametrize("target", [OPENAI, ANTHROPIC], ids=["openai", "anthropic"])
READ = ToolOffer(name="read", description="Read a file.", parameters='{"type":"object", "properties":{}}')
LIST = ToolOffer(name="list", description="List files.", parameters='{"type":"object"}')


def system(text: str) -> SystemMessage:
    return SystemMessage(id="s", text=text)


def user(id: str, text: str) -> UserMessage:
    return UserMessage(id=id, parts=(Text(text=text),))


def call(id: str, path: str) -> ToolCall:
    return ToolCall(id=id, name="read", arguments='{"path": "' + path + '"}')


def result(id: str, call: str, text: str) -> ToolMessage:
    return ToolMessage(id=id, tool_call_id=call, parts=(Text(text=text),))


LOG: tuple[Message, ...] = (
    system("Be brief."),
    DeveloperMessage(id="d", text="In English."),
    user("u1", "Read a and b."),
    AssistantMessage(id="a1", parts=(Text(text="I look."), call("c1", "a"), call("c2", "b"))),
    result("t1", "c1", "A"),
    ToolMessage(id="t2", tool_call_id="c2", error="gone", parts=(Text(text="no b"),)),
    user("u2", "And?"),
    AssistantMessage(id="a2", parts=(Text(text="a is A,"),)),
    AssistantMessage(id="a3", parts=(Text(text="b is gone."),)),
    UserMessage(id="u3", parts=(Text(text="See"), File(kind="image", source=Url(url="https://x.test/a.png")))),
)
OPENAI_BODY = (
    '{"model":"gpt-x","stream":true,"temperature":0.5,"tools":['
    '{"type":"function","function":{"name":"read","description":"Read a file.",'
    '"parameters":{"type":"object", "properties":{}}}},'
    '{"type":"function","function":{"name":"list","description":"List files.","parameters":{"type":"object"}}}'
    '],"messages":['
    '{"role":"system","content":"Be brief."},'
    '{"role":"developer","content":"In English."},'
    '{"role":"user","content":"Read a and b."},'
    '{"role":"assistant","content":"I look.","tool_calls":['
    '{"id":"c1","type":"function","function":{"name":"read","arguments":"{\\"path\\": \\"a\\"}"}},'
    '{"id":"c2","type":"function","function":{"name":"read","arguments":"{\\"path\\": \\"b\\"}"}}]},'
    '{"role":"tool","tool_call_id":"c1","content":"A"},'
    '{"role":"tool","tool_call_id":"c2","content":"Error: gone\\nno b"},'
    '{"role":"user","content":"And?"},'
    '{"role":"assistant","content":"a is A,"},'
    '{"role":"assistant","content":"b is gone."},'
    '{"role":"user","content":[{"type":"text","text":"See"},'
    '{"type":"image_url","image_url":{"url":"https://x.test/a.png"}}]}'
    "]}"
)
ANTHROPIC_BODY = (
    '{"model":"claude-x","max_tokens":99,"stream":true,"tools":['
    '{"name":"read","description":"Read a file.","input_schema":{"type":"object", "properties":{}}},'
    '{"name":"list","description":"List files.","input_schema":{"type":"object"}}'
    '],"system":['
    '{"type":"text","text":"Be brief."},'
    '{"type":"text","text":"In English."}'
    '],"messages":['
    '{"role":"user","content":[{"type":"text","text":"Read a and b."}]},'
    '{"role":"assistant","content":[{"type":"text","text":"I look."},'
    '{"type":"tool_use","id":"c1","name":"read","input":{"path": "a"}},'
    '{"type":"tool_use","id":"c2","name":"read","input":{"path": "b"}}]},'
    '{"role":"user","content":['
    '{"type":"tool_result","tool_use_id":"c1","content":"A"},'
    '{"type":"tool_result","tool_use_id":"c2","content":"Error: gone\\nno b","is_error":true},'
    '{"type":"text","text":"And?"}]},'
    '{"role":"assistant","content":[{"type":"text","text":"a is A,"},{"type":"text","text":"b is gone."}]},'
    '{"role":"user","content":[{"type":"text","text":"See"},'
    '{"type":"image","source":{"type":"url","url":"https://x.test/a.png"}}]}'
    "]}"
)


def body(log: Sequence[Message], target: Target, tools: tuple[ToolOffer, ...] = (), **options: str | float) -> str:
    return assemble(Facts(log=log, target=target, tools=tools, options=options))[0].body.decode()


def test_a_page_in_openai_form_byte_for_byte():
    assert body(LOG, OPENAI, (READ, LIST), temperature=0.5, stream=True) == OPENAI_BODY


def test_a_page_in_anthropic_form_byte_for_byte():
    assert body(LOG, ANTHROPIC, (READ, LIST), stream=True, max_tokens=99) == ANTHROPIC_BODY


@TARGETS
def test_nothing_said_is_an_empty_conversation(target: Target):
    assert body((), target) == '{"model":"' + target.model + '","messages":[]}'


def test_instructions_stand_without_a_conversation():
    assert body((system("Be brief."),), OPENAI) == (
        '{"model":"gpt-x","messages":[{"role":"system","content":"Be brief."}]}'
    )
    assert body((system("Be brief."),), ANTHROPIC) == (
        '{"model":"claude-x","system":[{"type":"text","text":"Be brief."}],"messages":[]}'
    )


def test_R1_options_are_encoded_in_the_order_of_their_names_and_keep_their_values():
    facts = Facts(log=(), target=OPENAI, options={"z": {"b": 1, "a": [None]}, "a": "☂", "m": 1.0})
    assert assemble(facts)[0].body.decode() == (
        '{"model":"gpt-x","a":"☂","m":1.0,"z":{"b":1,"a":[null]},"messages":[]}'
    )


@pytest.mark.parametrize("name", ["model", "messages", "tools", "system"])
def test_an_option_cannot_stand_for_what_the_page_sets_itself(name: str):
    with pytest.raises(SettingsError) as caught_error:
        assemble(Facts(log=(), target=OPENAI, options={name: "x"}))
    assert str(caught_error.value) == f"Setting options.{name} is 'x'; a page sets this field itself."


@TARGETS
def test_segments_joined_are_the_body_and_the_digest_is_over_their_hashes(target: Target):
    page, _ = assemble(Facts(log=LOG, target=target, tools=(READ, LIST)))
    assert b"".join(segment.data for segment in page.segments) == page.body
    assert [segment.sha256 for segment in page.segments] == [sha256(s.data).digest() for s in page.segments]
    assert page.digest == sha256(b"".join(sha256(s.data).digest() for s in page.segments)).hexdigest()


def segments_of(log: Sequence[Message], target: Target) -> set[Segment]:
    return set(assemble(Facts(log=log, target=target, tools=(READ,)))[0].segments)


@TARGETS
def test_a_messages_segment_is_the_same_wherever_it_stands(target: Target):
    here = user("u9", "the same words")
    places = (
        (here,),
        (system("s"), here),
        (user("u", "a"), here),
        (*LOG, here),
        (here, *LOG),
        (*LOG[:8], here, LOG[8]),
    )
    data = {
        "openai": '{"role":"user","content":"the same words"}',
        # Its last brace is left to the punctuation, where a cache breakpoint may stand.
        "anthropic": '{"type":"text","text":"the same words"',
    }[target.wire]
    assert all(build_segment(data.encode()) in segments_of(log, target) for log in places)


def describe(log: Sequence[Message], target: Target, tools: tuple[ToolOffer, ...] = ()) -> tuple[str, list[Row]]:
    fold = FoldSettings(reads=replace(READS, tools=("read",), keep=1))
    facts = Facts(log=log, target=target, tools=tools, fold=fold, now=NOW, counter=CharacterCounter())
    page, manifest = assemble(facts)
    return page.body.decode(), [dict(row) for row in manifest.rows()]


def row(source: str, text: str, tokens: int = 0, role: str | None = None, **changes: object) -> Row:
    """A row of a part whose bytes are `text`, kept unless `changes` say otherwise."""
    if not role:
        changes = {"reason": "how every request ends" if text.endswith("]}") else "the model and its options"} | changes
    row: Row = {
        "kind": "message" if role else "envelope",
        "source": source,
        "role": role,
        "decision": "kept",
        "rule": None,
        "reason": "as in the conversation",
        "tokens": {"before": tokens, "after": tokens},
        "span": text,
    }
    return row | changes


def expected(*rows: Row) -> tuple[str, list[Row]]:
    """The body and the rows, where each row's text is replaced by its span."""
    texts = [str(row["span"]) for row in rows]
    ends = list(accumulate(len(text.encode()) for text in texts))
    spans = [[end - len(text.encode()), end] if text else None for text, end in zip(texts, ends, strict=True)]
    return "".join(texts), [row | {"span": span} for row, span in zip(rows, spans, strict=True)]


def change(decision: str, rule: str, reason: str, before: int, after: int) -> Row:
    return {"decision": decision, "rule": rule, "reason": reason, "tokens": {"before": before, "after": after}}


DESCRIBED: tuple[Message, ...] = (
    user("u1", "go"),
    AssistantMessage(id="a1", parts=(call("c1", "a"), call("lost", "b"))),
    result("t1", "c1", "long ago"),
    AssistantMessage(id="a2", parts=(call("c2", "a"),)),
    result("t2", "c2", "now"),
    ReasoningMessage(id="r1", text="hm"),
    result("t3", "nobody", "?"),
)
PLACEHOLDER = "[该文件的历史读取内容已压缩,请参看最新读取结果]"
OLD_READ = "a: read 2 counted from the newest, 1 stay"
RECEIPT: Row = {
    "rule": "R2",
    "part": None,
    "tool": "read",
    "paths": ("a",),
    "tokens": {"before": 12, "after": 4 + len(PLACEHOLDER)},
    "newer": ("t2",),
    "recall": {"tool": "read", "path": "a", "n": 2},
    "reason": OLD_READ,
}


def openai_call(id: str) -> str:
    function = '{"name":"read","arguments":"{\\"path\\": \\"a\\"}"}'
    return (
        ',{"role":"assistant","content":null,"tool_calls":[{"id":"'
        + id
        + '","type":"function","function":'
        + function
        + "}]}"
    )


def test_X1_a_manifest_tells_of_every_part_in_openai_form():
    tool = '{"type":"function","function":{"name":"list","description":"List files.","parameters":{"type":"object"}}}'
    one_call = 4 + len("read") + len('{"path": "a"}')
    assert describe(DESCRIBED, OPENAI, (LIST,)) == expected(
        row("envelope", '{"model":"gpt-x"', 16),
        row("list", ',"tools":[' + tool, len(tool), kind="tool", reason="the model may call it"),
        row("u1", '],"messages":[{"role":"user","content":"go"}', 6, "user"),
        row("a1", openai_call("c1"), role="assistant")
        | change("repaired", "R10", "1 of 2 calls never got a result", 2 * one_call - 4, one_call),
        row(
            "t1",
            ',{"role":"tool","tool_call_id":"c1","content":"' + PLACEHOLDER + '"}',
            role="tool",
            receipts=[RECEIPT],
        )
        | change("folded", "R2", OLD_READ, 12, 4 + len(PLACEHOLDER)),
        row("a2", openai_call("c2"), one_call, "assistant"),
        row("t2", ',{"role":"tool","tool_call_id":"c2","content":"now"}', 7, "tool"),
        row("r1", "", role="reasoning") | change("dropped", "fit", "shown to people, never to models", 6, 0),
        row("t3", "", role="tool") | change("dropped", "R10", "no call before it waits for this result", 5, 0),
        row("envelope", "]}", 2),
    )


def test_two_steps_on_one_message_tell_both_reasons():
    state = Opaque(provider="google", model="g", place="field", name="thought", data="1")
    log = (user("u", "a"), AssistantMessage(id="a", parts=(state, Text(text="b"), call("c", "x"))))
    _, manifest = assemble(Facts(log=log, target=OPENAI))
    part = next(part for part in manifest.parts if part.source == "a")
    assert (part.decision, part.rule) == ("repaired", "fit")
    assert part.reason == ("1 of 1 calls never got a result; thought of g left out: it means nothing to another model")


def count(log: Sequence[Message], last: Calibration | None) -> TokenCount:
    return assemble(Facts(log=log, target=OPENAI, counter=CharacterCounter(), last=last))[1].tokens


def test_a_count_is_an_estimate_until_the_provider_reported_this_very_page():
    page, manifest = assemble(Facts(log=LOG, target=OPENAI, counter=CharacterCounter()))
    own_count = manifest.tokens_after
    assert manifest.tokens == TokenCount(tokens=own_count, estimated=True)
    calibration = Calibration(digest=page.digest, own_count=own_count, reported_count=1000)
    assert count(LOG, calibration) == TokenCount(tokens=1000, estimated=False)
    assert count((*LOG, user("u", "a" * 96)), calibration) == TokenCount(
        tokens=1000 + round(100 * 1000 / own_count), estimated=True
    )


def digests(wire: WireName) -> list[str]:
    """The pages of a log as it grew, by digest."""
    log = [replace(message, time=NOW + timedelta(minutes=place)) for place, message in enumerate(LOG)]
    facts = Facts(
        log=log, target=Target(wire=wire, model="m"), tools=(READ, LIST), options={name: name for name in "zyxabc"}
    )
    return [assemble(replace(facts, log=log[:length]))[0].digest for length in range(len(log) + 1)]


@pytest.mark.full
def test_R1_the_same_facts_give_the_same_bytes_in_another_process():
    script = "from tests.page.test_page import digests; print(*digests('openai'), *digests('anthropic'))"
    run = subprocess.run(
        [sys.executable, "-c", script],
        cwd=ROOT,
        env=os.environ | {"PYTHONHASHSEED": "4242"},
        capture_output=True,
        text=True,
        check=True,
    )
    assert run.stdout.split() == [*digests("openai"), *digests("anthropic")]
