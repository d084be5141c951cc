"""R10: no call without its result and no result without its call reaches a model, and no words are lost."""

from collections.abc import Mapping, Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

import recto
from recto.conversation.messages import (
    ActivityMessage,
    AssistantMessage,
    AssistantPart,
    Data,
    DeveloperMessage,
    File,
    Message,
    Opaque,
    ReasoningMessage,
    SystemMessage,
    Text,
    ToolCall,
    ToolMessage,
    UserMessage,
)
from recto.page.draft import Draft
from recto.page.manifest import Note
from tests.page.log_strategies import any_message, logs
from tests.page.page_rules import fresh

Log = tuple[Message, ...]

NO_CALL = Note(decision="dropped", rule="R10", reason="no call before it waits for this result")
MOVED_NOTE = Note(decision="repaired", rule="R10", reason="moved up to its call, as providers demand")
ORDER_NOTE = Note(decision="repaired", rule="R10", reason="results put in the order of their calls")
MOVED_AND_ORDERED = Note(decision="repaired", rule="R10", reason=f"{MOVED_NOTE.reason}; {ORDER_NOTE.reason}")
SILENT = Note(decision="dropped", rule="R10", reason="nothing is said in it")
SIGNED_STATE = Opaque(provider="anthropic", model="m", place="block", name="thinking", data='{"signature": "s"}')
REFUSAL = Opaque(provider="openai", model=None, place="field", name="refusal", data='"I will not."')

hi = UserMessage(parts=(Text(text="hi"),))
go_on = UserMessage(parts=(Text(text="go on"),))
done = AssistantMessage(parts=(Text(text="Done."),))
reasoning = ReasoningMessage(text="hm")
progress = ActivityMessage(activity_type="PLAN", content="{}")


def call(id: str) -> ToolCall:
    return ToolCall(id=id, name="ls", arguments="{}")


def asks(*ids: str, text: str | None = None) -> AssistantMessage:
    parts: tuple[AssistantPart, ...] = () if text is None else (Text(text=text),)
    return AssistantMessage(parts=(*parts, *map(call, ids)))


def result(id: str, text: str = "out") -> ToolMessage:
    return ToolMessage(tool_call_id=id, parts=(Text(text=text),))


def lost_calls(count: int, total: int, then: str = "") -> Note:
    reason = f"{count} of {total} calls never got a result"
    return Note(decision="dropped" if then else "repaired", rule="R10", reason=reason + then)


def assert_repairs(log: Log, visible_log: Log, origins: Sequence[int], notes: Mapping[int, Note]) -> None:
    """The log becomes exactly that, and that stays as it is."""
    __tracebackhide__ = True
    draft = recto.repair(log)
    assert draft.messages == visible_log
    assert list(draft.origins) == list(origins)
    assert dict(draft.notes) == dict(notes)
    assert recto.repair(visible_log).messages == visible_log


def assert_untouched(*log: Message) -> None:
    __tracebackhide__ = True
    assert_repairs(log, log, range(len(log)), {})


# Calls without a result


def test_R10_a_whole_conversation_stays_as_it_is():
    system, developer = SystemMessage(text="Be brief."), DeveloperMessage(text="In English.")
    assert_untouched(system, developer, hi, asks("a", "b", text="I look."), result("a"), result("b"), done, go_on)
    assert_untouched()


def test_R10_an_unanswered_call_goes_and_its_text_stays():
    visible_message = AssistantMessage(parts=(Text(text="I look."),))
    assert_repairs(
        (hi, asks("a", text="I look."), go_on), (hi, visible_message, go_on), [0, 1, 2], {1: lost_calls(1, 1)}
    )


def test_R10_an_unanswered_call_without_text_takes_its_message_along():
    notes = {1: lost_calls(1, 1, "; nothing is said in it")}
    assert_repairs((hi, asks("a"), go_on), (hi, go_on), [0, 2], notes)
    assert_repairs((hi, asks("a", text=" \n"), go_on), (hi, go_on), [0, 2], notes)


# Results without a call


def test_R10_a_second_result_of_a_call_goes():
    log = (hi, asks("a"), result("a", "first"), result("a", "second"), done)
    assert_repairs(log, (hi, asks("a"), result("a", "first"), done), [0, 1, 2, 4], {3: NO_CALL})


# Order


@pytest.mark.parametrize("between", [go_on, SystemMessage(text="Be brief.")])
def test_R10_a_result_is_moved_up_to_its_call(between: Message):
    log = (hi, asks("a"), between, result("a"), done)
    assert_repairs(log, (hi, asks("a"), result("a"), between, done), [0, 1, 3, 2, 4], {3: MOVED_NOTE})


@pytest.mark.parametrize("between", [reasoning, progress])
def test_R10_what_only_people_see_may_stand_between_call_and_result(between: Message):
    assert_untouched(hi, asks("a", "b"), between, result("a"), between, result("b"), between, done)


# Results that came in another order than their calls


@pytest.mark.parametrize(
    ("came", "order", "notes_on"),
    [
        ("abc", [1, 2, 3], []),
        ("acb", [1, 3, 2], [2, 3]),
        ("cba", [3, 2, 1], [1, 3]),
        ("bca", [3, 1, 2], [1, 2, 3]),
        ("ca", [2, 1], [1, 2]),
        ("ac", [1, 2], []),
    ],
)
def test_R10_only_results_that_change_places_are_noted(came: str, order: list[int], notes_on: list[int]):
    log = (asks("a", "b", "c"), *map(result, came), done)
    calls_in_order = asks(*sorted(came))
    visible_rows = (calls_in_order, *[log[place] for place in order], done)
    missing = {0: lost_calls(1, 3)} if len(came) < 3 else {}
    assert_repairs(log, visible_rows, [0, *order, len(log) - 1], missing | dict.fromkeys(notes_on, ORDER_NOTE))


def test_R10_late_results_are_put_in_order_among_themselves_between_what_only_people_see():
    log = (asks("a", "b", "c"), result("a"), go_on, reasoning, result("c"), progress, result("b"))
    visible = (asks("a", "b", "c"), result("a"), result("b"), result("c"), go_on, reasoning, progress)
    assert_repairs(log, visible, [0, 1, 6, 4, 2, 3, 5], dict.fromkeys((4, 6), MOVED_AND_ORDERED))


def test_R10_of_two_calls_of_one_id_in_a_message_one_stays():
    log = (asks("a", "a"), result("a", "one"), result("a", "two"), done)
    assert_repairs(log, (asks("a"), result("a", "one"), done), [0, 1, 3], {0: lost_calls(1, 2), 2: NO_CALL})
    log = (asks("a", "a", text="I look."), done)
    visible_message = AssistantMessage(parts=(Text(text="I look."),))
    assert_repairs(log, (visible_message, done), [0, 1], {0: lost_calls(2, 2)})


# Messages that say nothing


@pytest.mark.parametrize(
    "parts", [(), (Text(text=""),), (Text(text=" \n\t"),), (SIGNED_STATE,), (SIGNED_STATE, Text(text=" "))]
)
def test_R10_an_assistant_message_that_says_nothing_goes(parts: tuple[AssistantPart, ...]):
    assert_repairs((hi, AssistantMessage(parts=parts), go_on), (hi, go_on), [0, 2], {1: SILENT})


@pytest.mark.parametrize(
    "parts", [(REFUSAL,), (SIGNED_STATE, Text(text="x")), (File(kind="image", source=Data(base64="")),)]
)
def test_R10_an_assistant_message_that_says_anything_stays(parts: tuple[AssistantPart, ...]):
    assert_untouched(hi, AssistantMessage(parts=parts), go_on)


def test_R10_thinking_stays_with_the_call_it_led_to_and_goes_with_it():
    assistant = AssistantMessage(parts=(SIGNED_STATE, call("a")))
    assert_untouched(hi, assistant, result("a"))
    assert_repairs((hi, assistant), (hi,), [0], {1: lost_calls(1, 1, "; nothing is said in it")})


def test_R10_silent_messages_of_others_stay():
    assert_untouched(UserMessage(), SystemMessage(text=""), asks("a"), ToolMessage(tool_call_id="a"), done)


# Whatever the log


@given(log=logs(repeats_ids=True))
def test_R10_after_repair_every_call_is_followed_at_once_by_exactly_its_results(log: Log):
    rows = [message for message in recto.repair(log).messages if message.role not in ("reasoning", "activity")]
    place = 0
    while place < len(rows):
        message = rows[place]
        assert message.role != "tool"
        expected = [one.id for one in message.tool_calls] if message.role == "assistant" else []
        answers = rows[place + 1 : place + 1 + len(expected)]
        answer_ids = [one.tool_call_id for one in answers if isinstance(one, ToolMessage)]
        assert answer_ids == expected
        assert len(set(expected)) == len(expected)
        place += 1 + len(expected)


@given(log=logs(repeats_ids=True), ids=st.lists(st.sampled_from("abcdef"), unique=True), data=st.data())
def test_R10_whichever_tool_was_faster_the_page_is_the_same(log: Log, ids: list[str], data: st.DataObject):
    ask, answers = asks(*ids), [result(id, f"of {id}") for id in ids]
    came = data.draw(st.permutations(answers))
    whole = (*log, ask, *came, done)
    for length in range(len(log), len(whole)):
        recto.repair(whole[:length])
    assert recto.repair(whole).messages == recto.repair((*log, ask, *answers, done)).messages
    ours = {place: note for place, note in recto.repair(whole).notes.items() if place > len(log)}
    swapped = [place for place, (one, other) in enumerate(zip(came, answers, strict=True)) if one != other]
    assert ours == {len(log) + 1 + place: ORDER_NOTE for place in swapped}


@given(log=logs(repeats_ids=True))
def test_R10_no_words_of_people_or_models_are_lost(log: Log):
    visible_message = recto.repair(log).messages
    kept_roles = ("user", "system", "developer", "reasoning", "activity")
    assert [one for one in visible_message if one.role in kept_roles] == [one for one in log if one.role in kept_roles]
    assert message_texts(visible_message) == message_texts(log)


def message_texts(log: Log) -> list[str]:
    """What the model said, in order."""
    parts = [part for message in log if isinstance(message, AssistantMessage) for part in message.parts]
    return [part.text for part in parts if isinstance(part, Text) and part.text.strip()]


@given(log=logs(repeats_ids=True))
def test_R10_a_result_right_behind_its_only_call_stays(log: Log):
    ask = AssistantMessage(parts=(ToolCall(id="only", name="ls", arguments="{}"),))
    pair = (ask, result("only"))
    visible_message = recto.repair((*log, *pair)).messages
    assert visible_message[-2:] == pair


@given(log=logs(repeats_ids=True))
def test_R10_repairing_what_was_repaired_changes_nothing(log: Log):
    visible_message = recto.repair(log).messages
    again = recto.repair(visible_message)
    assert again == Draft(messages=visible_message, origins=range(len(visible_message)), notes={})


@given(log=logs(repeats_ids=True))
def test_R10_places_and_notes_account_for_every_message(log: Log):
    draft = recto.repair(log)
    dropped = {place for place, note in draft.notes.items() if note.decision == "dropped"}
    assert sorted([*draft.origins, *dropped]) == list(range(len(log)))
    stayed = [one for one in draft.origins if draft.notes.get(one) not in (MOVED_NOTE, ORDER_NOTE, MOVED_AND_ORDERED)]
    assert stayed == sorted(stayed)
    for origin, message in zip(draft.origins, draft.messages, strict=True):
        assert message == log[origin] or draft.notes[origin].decision == "repaired"
        assert (message.id, message.time, message.role) == (log[origin].id, log[origin].time, log[origin].role)


@given(log=logs(repeats_ids=True), tail=logs(most=4, repeats_ids=True), other=any_message, cut=st.integers(0, 20))
def test_R10_a_log_that_grew_or_changed_is_repaired_like_one_never_seen(log: Log, tail: Log, other: Message, cut: int):
    for length in range(len(log) + 1):
        recto.repair(log[:length])
    assert recto.repair(log) == recto.repair(fresh(log))
    retried, changed = (*log[: len(log) - cut], *tail), (*log[:cut], other, *log[cut + 1 :])
    assert recto.repair(retried) == recto.repair(fresh(retried))
    assert recto.repair(changed) == recto.repair(fresh(changed))
    assert recto.repair(log) == recto.repair(fresh(log))
