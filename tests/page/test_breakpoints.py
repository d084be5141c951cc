"""Cache breakpoints of Anthropic pages (DESIGN "Prompt prefix"): where they stand, and that nothing else changes."""

from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from typing import cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recto.conversation.json import Json, load
from recto.conversation.log import Entry
from recto.conversation.messages import AssistantMessage, Opaque, Text, ToolCall, ToolMessage, ToolOffer, UserMessage
from recto.page.assemble import assemble
from recto.page.body import Page
from recto.page.facts import Facts, ToolCalling, Turn
from recto.page.manifest import Manifest
from recto.page.prefix import SentPage, prefix_break
from recto.page.prompt.system_prompt import Prompt
from recto.page.wire.base import Target, WireName
from tests.page.oracles import breaches
from tests.page.page_rules import gaps, orphans, parse

NOON = datetime(2026, 5, 14, 12, tzinfo=UTC)
TOOLS = tuple(ToolOffer(name=name, description="", parameters='{"type":"object"}') for name in ("look", "read"))
PROMPT = Prompt(identity="You are X.")
OPTIONS: Mapping[str, Json] = {"cache_control": {"type": "ephemeral"}, "max_tokens": 9, "stream": True}


def asks(number: int) -> UserMessage:
    return UserMessage(id=f"u{number}", response_id=f"r{number}", parts=(Text(text=f"question {number}"),))


def says(number: int) -> AssistantMessage:
    return AssistantMessage(id=f"r{number}", parts=(Text(text=f"answer {number}"),))


def looks(number: int) -> tuple[AssistantMessage, ToolMessage]:
    call = ToolCall(id=f"c{number}", name="look", arguments="{}")
    result = ToolMessage(id=f"t{number}", tool_call_id=f"c{number}", parts=(Text(text=f"seen {number}"),))
    return AssistantMessage(id=f"a{number}", parts=(call,)), result


TALK: tuple[Entry, ...] = (asks(0), says(0), asks(1))


def page(
    log: Sequence[Entry] = TALK,
    *,
    wire: WireName = "anthropic",
    prompt: Prompt | None = PROMPT,
    tools: tuple[ToolOffer, ...] = TOOLS,
    calling: ToolCalling = "native",
) -> tuple[Page, Manifest]:
    target, turn = Target(wire=wire, model="m"), Turn(response_id="r1", admitted_at=NOON)
    facts = Facts(
        log=log, target=target, prompt=prompt, tools=tools, tool_calling=calling, turn=turn, options=dict(OPTIONS)
    )
    return assemble(facts)


def marked(value: Json, where: str = "") -> Iterator[str]:
    """Where in a body there is a mark."""
    match value:
        case Mapping():
            yield from (f"{where}.{name}" for name in value if name == "cache_control")
            for name, inner in value.items():
                yield from marked(inner, f"{where}.{name}")
        case list():
            for place, inner in enumerate(value):
                yield from marked(inner, f"{where}[{place}]")
        case _:
            return


def marks(result: tuple[Page, Manifest]) -> list[str]:
    return [where.removeprefix(".").removesuffix(".cache_control") for where in marked(load(result[0].body))]


def test_breakpoints_stand_after_tools_after_system_and_before_the_turn():
    assert marks(page()) == ["cache_control", "tools[1]", "system[0]", "messages[1].content[0]"]


@pytest.mark.parametrize(
    ("tools", "prompt", "log", "where"),
    [
        ((), PROMPT, TALK, ["system[0]", "messages[1].content[0]"]),
        (TOOLS, None, TALK, ["tools[1]", "messages[1].content[0]"]),
        ((), None, TALK, ["messages[1].content[0]"]),
        (TOOLS, PROMPT, TALK[:1], ["tools[1]", "system[0]"]),
        ((), None, TALK[:1], []),
    ],
)
def test_what_is_not_there_has_no_breakpoint(
    tools: tuple[ToolOffer, ...], prompt: Prompt | None, log: Sequence[Entry], where: list[str]
):
    assert marks(page(log, tools=tools, prompt=prompt)) == ["cache_control", *where]


def test_other_wires_and_pages_without_an_admitted_turn_have_no_breakpoints():
    imported = [UserMessage(id="u", parts=(Text(text="hi"),)), says(0), UserMessage(id="v", parts=(Text(text="ho"),))]
    # The option that was given is the only mark.
    assert marks(page(wire="openai")) == marks(page(imported)) == ["cache_control"]


def test_no_breakpoint_is_put_on_thinking():
    thinking = Opaque(provider="anthropic", model="m", place="block", name="thinking", data='{"type":"thinking"}')
    reply = AssistantMessage(id="r0", parts=(Text(text="so"), thinking))
    assert marks(page((asks(0), reply, asks(1)))) == ["cache_control", "tools[1]", "system[0]"]


@pytest.mark.parametrize("calling", ["native", "prompt"])
def test_within_a_turn_no_breakpoint_moves_and_each_page_begins_with_the_one_before(calling: ToolCalling):
    log, before = TALK, page(calling=calling)
    for number in range(4):
        log = (*log, *looks(number))
        after = page(log, calling=calling)
        assert marks(after) == marks(before)
        assert prefix_break(SentPage.of(*before), SentPage.of(*after)) is None
        closing = len(before[0].segments[-1].data)
        assert after[0].body.startswith(before[0].body[:-closing])
        before = after


def test_between_turns_the_breakpoint_moves_where_the_closed_turn_breaks_the_prefix_anyway():
    before, after = page(), page((*TALK, says(1), asks(2)))
    first_break = prefix_break(SentPage.of(*before), SentPage.of(*after))
    assert first_break
    assert (first_break.cause, first_break.source) == ("turn_closed", "u1")
    prefix = before[0].body[: first_break.bytes_kept]
    assert after[0].body.startswith(prefix)
    assert prefix.endswith(b'"text":"answer 0"')
    assert marks(after)[-1] == "messages[3].content[0]"

    (answer,) = {one for one in before[0].segments if b"answer 0" in one.data}
    assert answer in after[0].segments
    assert answer.data == b'{"type":"text","text":"answer 0"'


@pytest.mark.full
@given(
    turns=st.integers(1, 4),
    calls=st.integers(0, 3),
    tools=st.sampled_from([(), TOOLS[:1], TOOLS]),
    prompt=st.sampled_from([None, PROMPT]),
)
def test_with_breakpoints_spans_tile_the_provider_accepts_the_body_and_there_are_at_most_four(
    turns: int, calls: int, tools: tuple[ToolOffer, ...], prompt: Prompt | None
):
    log: list[Entry] = []
    for number in range(turns):
        log += [asks(number), *(entry for n in range(calls) for entry in looks(10 * number + n))]
        log += [says(number)] if number < turns - 1 else []
    result = page(log, tools=tools, prompt=prompt)
    assert list(gaps(*result)) == []
    assert len(marks(result)) <= 4
    body = parse(result[0])
    assert breaches(body, "anthropic") == []
    assert orphans(body, "anthropic") == []
    bare = cast("Mapping[str, object]", _bare(load(result[0].body)))
    unmarked = page([_imported(entry) for entry in log], tools=tools, prompt=prompt)
    assert bare == _bare(load(unmarked[0].body))


def _imported(entry: Entry) -> Entry:
    return UserMessage(id=entry.id, parts=entry.parts) if isinstance(entry, UserMessage) else entry


def _bare(value: Json) -> Json:
    """A body without marks."""
    match value:
        case Mapping():
            return {name: _bare(inner) for name, inner in value.items() if name != "cache_control"}
        case list():
            return [_bare(inner) for inner in value]
        case _:
            return value
