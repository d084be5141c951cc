"""Two pages side by side (X1): every part in one row, the first byte that differs, its cause and what it costs."""

from collections.abc import Sequence
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recto.conversation.json import dump, load_object
from recto.conversation.log import Entry, RolledBack
from recto.conversation.messages import AssistantMessage, Message, Text, UserMessage
from recto.errors import WireError
from recto.page.assemble import assemble
from recto.page.difference import Difference, DifferenceRow, difference
from recto.page.facts import Facts
from recto.page.manifest import read_manifest
from recto.page.prefix import SentPage, first_difference
from recto.page.prompt.system_prompt import Prompt
from recto.page.wire.base import Target, WireName
from recto.page.wire.formats import WIRES
from tests.page.log_strategies import FOLD, logs
from tests.page.talk import answer, question, reads

wires = st.sampled_from(tuple(WIRES))


def make_page(log: Sequence[Entry], wire: WireName = "openai", **facts: object) -> SentPage:
    """A page as a store gives it back: its manifest went through JSON."""
    page_facts = Facts(log=log, target=Target(wire=wire, model="m"), **facts)  # pyright: ignore[reportArgumentType] - each test gives facts of the right type
    page, manifest = assemble(page_facts)
    manifest_bytes = dump({"parts": manifest.rows(), "tokens": manifest.tokens.tokens, "skill": manifest.skill})
    return SentPage(body=page.body, manifest=read_manifest(load_object(manifest_bytes) or {}), model="m")


def talk(turns: int) -> tuple[Entry, ...]:
    return tuple([entry for n in range(turns) for entry in (question(f"u{n}"), answer(f"a{n}"))])


def describe(changes: Difference) -> list[tuple[str, str]]:
    """Each row: what happened, to which part or how many."""
    old, new = changes.before.manifest.parts, changes.after.manifest.parts
    return [
        (row.change, str(len(row.after)) if row.change == "same" else (new if row.after else old)[place_of(row)].source)
        for row in changes.rows
    ]


def place_of(row: DifferenceRow) -> int:
    return (row.after or row.before).start


def test_a_first_page_without_a_user_message_is_compared():
    answer, question = AssistantMessage(id="m0", parts=(Text(text="a"),)), UserMessage(id="m0", parts=(Text(text="b"),))
    changes = difference(make_page((answer,), "openai"), make_page((question,), "openai"))
    assert [row.change for row in changes.rows if row.change != "same"] == ["changed"]


@given(logs(), logs(), wires, wires)
def test_every_part_of_both_pages_is_in_exactly_one_row_and_the_rows_make_the_later_page(
    one: tuple[Message, ...], two: tuple[Message, ...], first: WireName, second: WireName
):
    before, after = (
        make_page(one, first, fold=replace(FOLD)),
        make_page((*one, *two), second, fold=replace(FOLD), history=3),
    )
    rows = difference(before, after).rows
    assert sorted(place for row in rows for place in row.before) == list(range(len(before.manifest.parts)))
    assert [place for row in rows for place in row.after] == list(range(len(after.manifest.parts)))
    joined_bytes = b"".join(
        [
            bytes_of(before, row.before) if row.after and row.change == "same" else bytes_of(after, row.after)
            for row in rows
        ]
    )
    assert joined_bytes == after.body
    for row in rows:
        assert (row.change == "gone", row.change == "added") == (not row.after, not row.before)
        assert bool(row.fields) == (row.change == "changed")


def bytes_of(page: SentPage, places: range) -> bytes:
    spans = [page.manifest.spans[place] for place in places]
    return b"".join([page.body[span[0] : span[1]] for span in spans if span])


@given(st.binary(max_size=12), st.binary(max_size=6), st.binary(max_size=6))
def test_the_first_differing_byte_is_what_a_comparison_byte_by_byte_finds(head: bytes, one: bytes, two: bytes):
    old, new = head + one, head + two
    shortest = min(len(old), len(new))
    naive = next((n for n in range(shortest) if old[n] != new[n]), shortest if old != new else None)
    assert first_difference(old, new) == naive


@given(logs(), wires)
def test_a_page_beside_itself_is_one_row_and_a_manifest_comes_back_from_its_rows(
    log: tuple[Message, ...], wire: WireName
):
    # Only calls of a server are stored, and every message of its log has an id.
    log = tuple(replace(message, id=message.id or f"m{place}") for place, message in enumerate(log))
    _, manifest = assemble(Facts(log=log, target=Target(wire=wire, model="m"), fold=replace(FOLD)))
    body = load_object(dump({"parts": manifest.rows(), "tokens": manifest.tokens.tokens, "skill": None})) or {}
    again = read_manifest(body)
    assert (again.parts, again.spans, again.rows()) == (manifest.parts, manifest.spans, manifest.rows())
    page = make_page(log, wire, fold=replace(FOLD))
    changes = difference(page, page)
    assert [(row.change, len(row.after)) for row in changes.rows] == [("same", len(page.manifest.parts))]
    assert (changes.offset, changes.broken, changes.tokens_again) == (None, None, 0)


@pytest.mark.parametrize("wire", WIRES)
def test_what_was_said_since_is_added_and_breaks_nothing(wire: WireName):
    before, after = make_page(talk(2), wire), make_page((*talk(2), question("u2")), wire)
    changes = difference(before, after)
    envelope = ("same", "1")
    assert describe(changes) == [("same", "5"), ("added", "u2"), envelope]
    assert changes.broken is None
    assert changes.offset is not None
    places = before.place_at(changes.offset), after.place_at(changes.offset)
    assert places == (5, 5)
    assert (before.manifest.parts[5].kind, after.manifest.parts[5].source) == ("envelope", "u2")


def test_R2_a_fold_step_tells_what_changed_and_what_has_to_be_read_again():
    log = (question("u"), *[entry for n in range(5) for entry in reads(str(n), "content " * 40)])
    before, after = make_page(log), make_page((*log, *reads("5", "content " * 40)))
    changes = difference(before, after)
    assert describe(changes) == [
        ("same", "3"),
        ("changed", "t0"),
        ("same", "8"),
        ("added", "a5"),
        ("added", "t5"),
        ("same", "1"),
    ]
    (changed,) = [row for row in changes.rows if row.change == "changed"]
    assert changed.fields == ("decision", "rule", "reason", "receipts", "tokens", "content")
    assert changes.broken
    assert (changes.broken.cause, changes.broken.source) == ("fold_step", "t0")
    again = after.manifest.parts[4:12]
    assert [part.source for part in again] == [f"{kind}{n}" for n in range(1, 5) for kind in "at"]
    assert changes.tokens_again == sum(part.tokens_after for part in again)


def test_S2_messages_that_a_window_left_behind_say_where_they_are():
    before, after = make_page((*talk(2), question("u2")), history=4), make_page((*talk(4), question("u4")), history=4)
    changes, past_all = (
        difference(before, after),
        difference(before, make_page((*talk(40), question("u40")), history=2)),
    )
    assert changes.broken
    assert past_all.broken
    assert {changes.broken.cause, past_all.broken.cause} == {"window_slid"}
    dropped = {row.before.start: row.instead for row in changes.rows if row.change == "gone"}
    gap = next(part for part in after.manifest.parts if part.upto)
    assert set(dropped.values()) == {gap}
    assert (gap.source, gap.upto, gap.rule) == ("u0", "a1", "S2")


def test_R12_a_rollback_is_one_whatever_was_said_since():
    before = make_page((*talk(3), question("u3")))
    after = make_page(
        (*talk(3), question("u3"), RolledBack(id="b", to="u1"), question("v1"), answer("w1"), question("v2"))
    )
    changes = difference(before, after)
    assert changes.broken
    assert (changes.broken.cause, changes.broken.source) == ("rollback", "u1")
    assert [row.instead for row in changes.rows if row.change == "gone"] == [None] * 5


def test_another_model_has_a_cache_of_its_own_even_for_the_same_bytes_and_another_purpose_is_told():
    page = make_page(talk(2))
    changes = difference(page, replace(page, model="other"))
    assert changes.broken
    assert (changes.broken.cause, changes.broken.bytes_kept, changes.offset) == ("model_changed", 0, None)
    assert changes.tokens_again == sum(part.tokens_after for part in page.manifest.parts[:-1])
    other_page = difference(page, replace(make_page((question("x"),)), purpose="summary"))
    assert other_page.broken
    assert other_page.broken.cause == "purpose_changed"


def test_S3_another_prompt_costs_all_that_stands_behind_it():
    log = (*talk(2), question("u2"))
    before, after = make_page(log, prompt=Prompt(identity="A")), make_page(log, prompt=Prompt(identity="B"))
    changes = difference(before, after)
    assert changes.broken
    assert changes.broken.cause == "prompt_changed"
    assert changes.tokens_again == sum(part.tokens_after for part in after.manifest.parts[2:-1])


@pytest.mark.parametrize("body", [{}, {"parts": [{"kind": "tools"}], "tokens": 1}, {"parts": 3, "tokens": 1}])
def test_what_is_no_manifest_is_refused(body: dict[str, object]):
    with pytest.raises(WireError, match="manifest"):
        read_manifest(body)  # pyright: ignore[reportArgumentType] - as it may stand in a database
