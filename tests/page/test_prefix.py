"""A page begins with the whole of the one before, or the cause has a name (DESIGN "Prompt prefix")."""

from collections.abc import Sequence
from datetime import UTC, datetime

import pytest

from recto.conversation.log import Compacted, Entry, RolledBack, SkillChanged
from recto.conversation.messages import File, Key, Text, ToolOffer, UserMessage
from recto.page.assemble import assemble
from recto.page.body import Page
from recto.page.facts import Facts, Turn
from recto.page.manifest import Manifest
from recto.page.prefix import Break, SentPage, prefix_break
from recto.page.prompt.reminder import Dataset
from recto.page.prompt.system_prompt import Prompt
from recto.page.wire.base import Target, WireName
from recto.page.wire.formats import WIRES
from tests.page.talk import answer, question, reads

NOON = datetime(2026, 5, 14, 12, tzinfo=UTC)


def page(log: Sequence[Entry], wire: WireName = "openai", **facts: object) -> tuple[Page, Manifest]:
    return assemble(Facts(log=log, target=Target(wire=wire, model="m"), **facts))  # pyright: ignore[reportArgumentType] - each test gives facts of the right type


def cause(before: tuple[Page, Manifest], after: tuple[Page, Manifest]) -> str | None:
    first_break = prefix_break(SentPage.of(*before), SentPage.of(*after))
    return first_break.cause if first_break else None


@pytest.mark.parametrize("wire", WIRES)
def test_the_break_says_where_and_how_much_is_kept(wire: WireName):
    log = (question("u0"), *(entry for n in range(5) for entry in reads(str(n), f"content {n}")))
    before, after = page(log, wire), page((*log, *reads("5", "content")), wire)
    first_break = prefix_break(SentPage.of(*before), SentPage.of(*after))
    assert first_break is not None
    assert first_break == Break(cause="fold_step", source="t0", bytes_kept=first_break.bytes_kept)
    prefix = before[0].body[: first_break.bytes_kept]
    assert prefix == after[0].body[: first_break.bytes_kept]
    assert b"t0" not in prefix


@pytest.mark.parametrize("wire", WIRES)
def test_each_cause_has_its_name(wire: WireName):
    talk: tuple[Entry, ...] = (question("u0"), answer("r0"), question("u1"))
    longer = (*talk, answer("r1"), question("u2"))
    turn = Turn(response_id="r1", admitted_at=NOON)
    tool = ToolOffer(name="t", description="d", parameters="{}")
    plain = page(talk, wire)
    lean, expert = page(talk, wire, prompt=Prompt(identity="A")), Prompt(identity="B")
    assert cause(lean, page(talk, wire, prompt=expert)) == "prompt_changed"
    assert cause(lean, page((*talk, SkillChanged(id="s", skill="bazi")), wire, prompt=expert)) == "skill_changed"
    prompted = page(talk, wire, prompt=expert, tool_calling="prompt")
    assert cause(prompted, page(talk, wire, prompt=expert, tool_calling="prompt", tools=(tool,))) == "prompt_changed"
    assert cause(plain, page(talk, wire, tools=(tool,))) == "tools_changed"
    assert cause(plain, page(talk, wire, options={"stream": True})) == "settings_changed"
    assert cause(page(talk, wire, quote="one"), page(talk, wire, quote="two")) == "documents_changed"
    assert cause(page(talk, wire, turn=turn), page(longer, wire, turn=turn)) == "turn_closed"
    assert cause(page(talk, wire, history=2), page(longer, wire, history=2)) == "window_slid"
    assert cause(page(longer, wire), page((*longer, RolledBack(id="b", to="u1"), question("u3")), wire)) == "rollback"
    other = Turn(response_id="r1", admitted_at=NOON, datasets=(Dataset(id="d", name="kb"),))
    assert cause(page(talk, wire, turn=turn), page(talk, wire, turn=other)) == "reminder_changed"
    compacted = (*longer, Compacted(id="k", upto="r1", summary="so far"))
    assert cause(page(longer, wire), page(compacted, wire)) == "compaction"
    back = (*compacted, RolledBack(id="b", to="u0"), question("u4"))
    assert cause(page(compacted, wire), page(back, wire)) == "rollback"
    failed = (*talk, answer("x"))
    assert cause(page(failed, wire), page((*talk, answer("y")), wire)) == "retry"


def test_an_answer_that_came_late_is_a_repair():
    requested, result_message = reads("1", "content")
    before = page((question("u0"), requested, question("u1")))
    after = page((question("u0"), requested, question("u1"), result_message))
    assert cause(before, after) == "repaired"


def test_P10_the_same_url_for_a_day_keeps_the_prefix_over_past_files():
    first = UserMessage(id="u0", parts=(Text(text="look"), File(kind="document", source=Key(key="k"), name="a.pdf")))
    log: tuple[Entry, ...] = (first, answer("r0"), question("u1"))
    turn, urls = Turn(response_id="r1"), {"k": "https://files.example/a"}
    before = page(log, turn=turn, urls=urls)
    after = page((*log, *reads("1", "content")), turn=turn, urls=urls)
    assert prefix_break(SentPage.of(*before), SentPage.of(*after)) is None
    assert cause(before, page(log, turn=turn, urls={"k": "https://files.example/b"})) == "reminder_changed"
