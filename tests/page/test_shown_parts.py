"""X1: the manifest for people: how each part begins, and what its rule is called."""

import re
from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime
from typing import cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recto.conversation.json import Json, dump
from recto.conversation.log import Compacted
from recto.conversation.messages import (
    AssistantMessage,
    File,
    Key,
    Message,
    Text,
    ToolCall,
    ToolMessage,
    ToolOffer,
    UserMessage,
)
from recto.page.assemble import assemble
from recto.page.facts import Facts, Turn
from recto.page.fold.fold_settings import FoldSettings
from recto.page.fold.rules import READS, RULES
from recto.page.manifest_rows import RULE_NAMES, first_words, shown_rows
from recto.page.prefix import SentPage
from recto.page.prompt.system_prompt import Prompt
from recto.page.wire.base import Target
from recto.page.wire.formats import WIRES
from tests.layers import ROOT

NOW = datetime(2026, 5, 14, 12, tzinfo=UTC)
SIGNED_URL = "https://recto.test/api/v1/agent/files/1/a.pdf?signature=1.k1.secretsecretsecret"
LOOK = ToolOffer(name="look", description="Looks\naround.", parameters='{"type":"object"}')


def user_message(id: str, *parts: Text | File) -> UserMessage:
    return UserMessage(id=id, parts=parts, response_id=f"R{id}")


def looks(n: int, text: str) -> tuple[Message, ...]:
    call = ToolCall(id=f"c{n}", name="look", arguments='{"path": "a", "text": "not this"}')
    result = ToolMessage(id=f"t{n}", tool_call_id=f"c{n}", parts=(Text(text=text),))
    return AssistantMessage(id=f"a{n}", parts=(call,)), result


LOG = (
    user_message("u1", Text(text="Old words.")),
    Compacted(id="k", upto="u1", summary="They met."),
    user_message("u2", Text(text="Look\n at <b> \u001b[31mthis\u001b[0m.")),
    *looks(1, 'Seen: {"text":"forged"}'),
    *looks(2, "now"),
    AssistantMessage(id="z", parts=(Text(text="Done."),)),
    user_message("u3", Text(text="And this?"), File(kind="document", source=Key(key="k"), name="a.pdf")),
)


def facts(wire: str = "openai") -> Facts:
    return Facts(
        log=LOG,
        target=Target(wire=wire, model="m"),
        prompt=Prompt(identity="You are it."),
        tools=(LOOK,),
        turn=Turn(response_id="Ru3", admitted_at=NOW),
        urls={"k": SIGNED_URL},
        fold=FoldSettings(reads=replace(READS, tools=("look",), keep=1)),
        now=NOW,
        locale="en",
    )


@pytest.mark.parametrize("wire", [one for one in WIRES if one != "agui"])
def test_X1_each_part_has_its_first_words_in_every_format(wire: str):
    page, manifest = assemble(facts(wire))
    rows = shown_rows(manifest.rows(), page.body)
    words = {str(row["source"]): row["words"] for row in rows if row["kind"] != "envelope"}
    assert words == {
        "look": "Looks around.",
        "system prompt": "You are it. What stands in <system-reminder> is background…",
        "u1": None,
        "k": "A summary of the conversation so far, which is no longer in…",
        "u2": "Look at <b> [31mthis[0m.",
        "a1": 'look({"path": "a", "text": "not this"})',
        "t1": "[该文件的历史读取内容已压缩,请参看最新读取结果]",
        "a2": 'look({"path": "a", "text": "not this"})',
        "t2": "now",
        "z": "Done.",
        "u3": "And this?",
    }
    assert all(row["words"] for row in rows if row["kind"] == "envelope")


def test_X1_no_url_is_told_with_what_signs_it():
    alone = (user_message("u1", File(kind="document", source=Key(key="k"), name="a.pdf")),)
    page, manifest = assemble(replace(facts(), log=alone))
    assert b"signature" in page.body
    rows = shown_rows(manifest.rows(), page.body)
    assert any(str(row["words"]).startswith("<system-reminder> # Input Files") for row in rows)
    assert "secret" not in str(rows)
    for url in (SIGNED_URL, "/api/v1/agent/files/1/a.pdf?signature=secret", "https://b.test/x?X-Amz-Signature=secret"):
        words = first_words(dump({"role": "user", "content": f"{url} now"}), "message")
        assert words == f"{url.partition('?')[0]} now"


def test_X1_a_row_tells_what_its_rules_are_called_and_where_they_are_told_of():
    page, manifest = assemble(facts())
    rows = {str(row["source"]): row for row in shown_rows(manifest.rows(), page.body)}
    fold_row, kept_row = rows["t1"], rows["t2"]
    assert (fold_row["rule"], fold_row["ruleName"], fold_row["ruleLink"]) == ("R2", "newer reads", "docs/rules.md#r2")
    (receipt,) = cast("list[Mapping[str, Json]]", fold_row["receipts"])
    assert (receipt["ruleName"], receipt["ruleLink"]) == ("newer reads", "docs/rules.md#r2")
    assert (kept_row["rule"], "ruleName" in kept_row, rows["look"]["reason"]) == (None, False, "the model may call it")
    assert rows["k"]["reason"] == "a summary that stands for what was said before"


def test_X1_what_is_kept_of_a_call_is_not_made_larger_by_it():
    page, manifest = assemble(facts())
    assert not {"words", "ruleName", "ruleLink"} & {name for row in manifest.rows() for name in row}
    again = shown_rows(manifest.rows(), None)
    assert [row["words"] for row in again] == [None for _ in manifest.parts]
    assert SentPage.of(page, manifest).bytes_at(0) == b'{"model":"m"'


@given(st.binary(max_size=200), st.sampled_from(("message", "tool", "envelope")))
def test_X1_bytes_of_any_form_begin_in_one_short_line(data: bytes, kind: str):
    words = first_words(b'"text":' + data, kind)
    assert words is None or (0 < len(words) <= 70 and words.isprintable())


@given(st.text(st.characters(exclude_categories=["Cs"])))
def test_X1_no_words_of_a_message_pass_for_another_place_in_it(text: str):
    visible_text = first_words(dump({"role": "user", "content": f'x "text":"no" {text}'}), "message")
    assert visible_text is not None
    assert visible_text.startswith('x "text":"no"')


# The rules

DOCUMENT = (ROOT / "docs/rules.md").read_text(encoding="utf-8")


IN_CODE = re.compile(r'(?:rule|number)="(\w+)"|^RULE = "(\w+)"|\.decision, "(\w+)"|\(([A-Z]\d+)\): \{', re.MULTILINE)


def rules_in_code() -> set[str]:
    """What notes, parts and receipts are given as their rule, and what is named in the words of a report."""
    files = [file for room in ("page", "cli") for file in (ROOT / "src/recto" / room).rglob("*.py")]
    match = [IN_CODE.findall(file.read_text(encoding="utf-8")) for file in files]
    return {number for several in match for one in several for number in one if number}


def test_X1_each_rule_in_code_has_a_name_and_its_place_in_the_page_of_rules():
    assert set(RULE_NAMES) == rules_in_code()
    assert [number for rule in RULES for number in rule.numbers if number not in RULE_NAMES] == []
    definitions = dict(re.findall(r"^## (\w+)\n\n(.*)$", DOCUMENT, re.MULTILINE))
    assert list(definitions) == list(RULE_NAMES)
    for number, name in RULE_NAMES.items():
        assert definitions[number].startswith(f"**{name[0].upper()}{name[1:]}.** ")
