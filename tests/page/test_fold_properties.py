"""Whatever the log: folding is pure, stable, and touches only what it may. Caches change nothing but the time."""

import copy
from datetime import datetime, timedelta

from hypothesis import given
from hypothesis import strategies as st

import recto
from recto.conversation.messages import Message, Text, ToolMessage
from recto.page.fold.fold import FoldResult
from recto.page.fold.fold_settings import FoldSettings
from recto.page.text.tokens import tokens_of
from tests.page.counters import WordCounter
from tests.page.log_strategies import START, any_message, fold_settings, logs
from tests.page.page_rules import fresh

COUNTER = WordCounter()
nows = st.one_of(st.none(), st.integers(0, 60).map(lambda minute: START + timedelta(minutes=minute)))
anything = given(log=logs(repeats_ids=True), settings=fold_settings(), now=nows)

Log = tuple[Message, ...]


def fold(log: Log, settings: FoldSettings, now: datetime | None) -> FoldResult:
    return recto.fold(log, settings=settings, now=now, counter=COUNTER)


@anything
def test_R1_folding_never_changes_its_input(log: Log, settings: FoldSettings, now: datetime | None):
    before = copy.deepcopy(log)
    fold(log, settings, now)
    assert log == before


@anything
def test_R2_folding_twice_changes_nothing_more(log: Log, settings: FoldSettings, now: datetime | None):
    once = fold(log, settings, now).messages
    assert fold(once, settings, now).messages == once


@anything
def test_R2_folding_keeps_every_message_in_its_place(log: Log, settings: FoldSettings, now: datetime | None):
    result = fold(log, settings, now)
    assert list(result.draft.origins) == list(range(len(log)))
    for before, after in zip(log, result.messages, strict=True):
        assert before == after or (isinstance(before, ToolMessage) and isinstance(after, ToolMessage))
        assert (before.id, before.time, before.role) == (after.id, after.time, after.role)


@anything
def test_R3_folding_touches_only_good_results_of_its_tools(log: Log, settings: FoldSettings, now: datetime | None):
    tools = {tool for rule in settings.rules for tool in rule.tools}
    names_by_id: dict[str, str] = {}
    for before, after in zip(log, fold(log, settings, now).messages, strict=True):
        if before.role == "assistant":
            names_by_id |= {call.id: call.name for call in before.tool_calls}
        if before != after:
            assert isinstance(before, ToolMessage)
            assert isinstance(after, ToolMessage)
            assert names_by_id[before.tool_call_id] in tools
            assert before.error is None
            assert not [text for text in lost_texts(before, after) if text.strip().startswith("Error:")]


def lost_texts(before: ToolMessage, after: ToolMessage) -> list[str]:
    """The texts a fold replaced: those of the parts it changed, or the first words of a whole it replaced."""
    if any(isinstance(part, Text) and part.path for part in after.parts):
        pairs = zip(before.parts, after.parts, strict=True)
        return [part.text for part, other in pairs if part != other and isinstance(part, Text)]
    return [part.text for part in before.parts if isinstance(part, Text) and part.text.strip()][:1]


@anything
def test_R11_receipts_add_up_to_what_was_saved(log: Log, settings: FoldSettings, now: datetime | None):
    result = fold(log, settings, now)
    before = sum(tokens_of(message, COUNTER) for message in log)
    after = sum(tokens_of(message, COUNTER) for message in result.messages)
    saving = sum(receipt.tokens_before - receipt.tokens_after for receipt in result.receipts)
    assert saving == before - after


@anything
def test_X5_every_changed_message_has_a_receipt_and_no_other_has(
    log: Log, settings: FoldSettings, now: datetime | None
):
    result = fold(log, settings, now)
    changed = {place for place, message in enumerate(result.messages) if message != log[place]}
    assert changed <= set(result.draft.notes)
    assert all(note.receipts and note.decision == "folded" for note in result.draft.notes.values())
    for receipt in result.receipts:
        assert receipt.recall.n > (1 if receipt.paths else 0)


@anything
def test_R1_a_log_that_grew_message_by_message_folds_like_one_never_seen(
    log: Log, settings: FoldSettings, now: datetime | None
):
    for length in range(len(log)):
        fold(log[:length], settings, now)
    assert fold(log, settings, now) == fold(fresh(log), settings, now)


@given(
    log=logs(repeats_ids=True), tail=logs(most=4, repeats_ids=True), settings=fold_settings(), cut=st.integers(0, 20)
)
def test_R1_a_log_whose_end_was_replaced_folds_like_one_never_seen(
    log: Log, tail: Log, settings: FoldSettings, cut: int
):
    for length in range(len(log) + 1):
        fold(log[:length], settings, None)
    retried = (*log[: len(log) - cut], *tail)
    assert fold(retried, settings, None) == fold(fresh(retried), settings, None)
    assert fold(log, settings, None) == fold(fresh(log), settings, None)


@given(log=logs(repeats_ids=True), other=any_message, settings=fold_settings(), place=st.integers(0, 20))
def test_R1_a_log_with_another_message_in_its_middle_folds_like_one_never_seen(
    log: Log, other: Message, settings: FoldSettings, place: int
):
    fold(log, settings, None)
    changed = (*log[:place], other, *log[place + 1 :])
    assert fold(changed, settings, None) == fold(fresh(changed), settings, None)
    assert fold(log, settings, None) == fold(fresh(log), settings, None)


@given(log=logs(repeats_ids=True), one=fold_settings(), other=fold_settings())
def test_R1_folding_with_other_settings_in_between_changes_nothing(log: Log, one: FoldSettings, other: FoldSettings):
    first = fold(log, one, None)
    fold(log, other, None)
    assert fold(log, one, None) == first == fold(fresh(log), one, None)
