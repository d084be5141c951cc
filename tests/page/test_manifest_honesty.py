"""Whatever the log and the facts: spans tile, every message is listed once, a page is what a fresh one would be."""

import json
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recto.conversation.log import Compacted, Entry, view
from recto.conversation.messages import DeveloperMessage, Text, ToolOffer, UserMessage
from recto.errors import WireError
from recto.page.assemble import assemble
from recto.page.body import Page
from recto.page.facts import Facts, ToolCalling, Turn
from recto.page.manifest import Manifest, Part
from recto.page.prompt.system_prompt import Case, Prompt
from recto.page.text.tokens import tokens_of
from recto.page.wire.base import Target
from recto.page.wire.formats import WIRES
from tests.page.entry_strategies import entry_logs
from tests.page.page_rules import gaps

NOON = datetime(2026, 5, 14, 12, tzinfo=UTC)
TOOL = ToolOffer(name="look", description="Looks.", parameters='{"type":"object"}')
PROMPT = Prompt(identity="You are X.", cases=(Case(id="1", name="one", content="word " * 30),))


@st.composite
def facts_of(draw: st.DrawFn, log: Sequence[Entry]) -> Facts:
    calling: ToolCalling = draw(st.sampled_from(["native", "prompt"]))
    return Facts(
        log=log,
        target=Target(wire=draw(st.sampled_from(tuple(WIRES))), model=draw(st.sampled_from(["", "m"]))),
        prompt=draw(st.sampled_from([None, PROMPT])),
        budget=draw(st.sampled_from([None, 20])),
        history=draw(st.sampled_from([None, 0, 2, 5])),
        tools=draw(st.sampled_from([(), (TOOL,)])),
        tool_calling=calling,
        turn=draw(st.sampled_from([None, Turn(response_id="rx", admitted_at=NOON)])),
        quote=draw(st.sampled_from(["", "Quoted."])),
    )


def check_honest(facts: Facts, page: Page, manifest: Manifest) -> None:
    assert isinstance(json.loads(page.body), dict)
    assert list(gaps(page, manifest)) == []
    for part, span in zip(manifest.parts, manifest.spans, strict=True):
        assert (span is None) == (part.decision == "dropped" or part.kind == "prompt"), part
    messages = view(facts.log).messages
    names = [message.id or f"messages[{n}]" for n, message in enumerate(messages)]
    items = [name for part in manifest.parts if part.kind == "message" for name in names_of(part, names)]
    assert sorted(items) == sorted(names)
    gap_parts = [part for part in manifest.parts if part.upto is not None]
    left_out = {name for gap in gap_parts for name in names_of(gap, names)}
    count = sum(
        tokens_of(message, facts.counter) for name, message in zip(names, messages, strict=True) if name in left_out
    )
    assert count == sum(gap.tokens_before for gap in gap_parts)


def names_of(part: Part, names: Sequence[str]) -> Sequence[str]:
    """The messages a part stands for."""
    place = names.index(part.source)
    assert part.upto is None or names[place + part.count - 1] == part.upto
    return names[place : place + part.count]


@given(st.data())
def test_X1_manifests_are_honest_for_any_log_and_any_facts(data: st.DataObject):
    facts = data.draw(facts_of(data.draw(entry_logs())))
    check_honest(facts, *assemble(facts))


@given(st.data())
def test_R1_a_page_of_a_log_that_grew_is_the_page_of_a_fresh_one(data: st.DataObject):
    log = data.draw(entry_logs())
    facts = data.draw(facts_of(log))
    for end in range(1, len(log) + 1):
        warm = assemble(replace(facts, log=log[:end]))
        cold = assemble(replace(facts, log=[_forgetful(entry) for entry in log[:end]]))
        assert warm[0].body == cold[0].body
        assert warm[1].rows() == cold[1].rows()


def _forgetful(entry: Entry) -> Entry:
    bare = replace(entry)  # a new value remembers nothing
    assert bare.memo == {}
    return bare


def test_X1_hoisted_instructions_do_not_pose_as_the_summary():
    log = (
        UserMessage(id="u1", parts=(Text(text="a"),)),
        Compacted(id="c", upto="u1", summary="SUM"),
        UserMessage(id="u2", parts=(Text(text="q"),)),
        DeveloperMessage(id="d", text="DEV"),
        UserMessage(id="u3", parts=(Text(text="n"),)),
    )
    page, manifest = assemble(Facts(log=log, target=Target(wire="anthropic")))
    texts_by_id = {
        part.source: page.body[slice(*span)] for part, span in zip(manifest.parts, manifest.spans, strict=True) if span
    }
    kinds = {part.source: part.kind for part in manifest.parts}
    assert (kinds["c"], kinds["d"]) == ("summary", "message")
    assert b"SUM" in texts_by_id["c"]
    assert b"DEV" in texts_by_id["d"]


@pytest.mark.parametrize("parameters", ["{oops", "[]", "", "null"])
def test_a_tool_whose_schema_is_no_json_object_is_refused_by_name(parameters: str):
    tool = ToolOffer(name="look", description="", parameters=parameters)
    with pytest.raises(WireError, match=r"^tools\.look\.parameters: must be a JSON Schema"):
        assemble(Facts(log=(), tools=(tool,)))


def test_S1_tools_in_the_prompt_count_in_its_budget():
    tools = tuple(ToolOffer(name=f"t{n}", description="word " * 50, parameters="{}") for n in range(3))
    facts = Facts(log=(), prompt=PROMPT, tools=tools, tool_calling="prompt", budget=100)
    system = assemble(facts)[1].parts[1]
    assert system.kind == "system"
    assert "over the budget of 100: identity, SOP and tools are never cut" in system.reason
    roomy = assemble(Facts(log=(), prompt=PROMPT, tools=tools, tool_calling="prompt", budget=300))[1]
    assert [part.decision for part in roomy.parts if part.kind == "prompt"] == ["dropped"]
    assert roomy.parts[1].tokens_after <= 300 + 4
