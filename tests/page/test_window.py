"""S1, S2: the newest messages of history, with calls and results together; the current turn whole."""

from hypothesis import example, given
from hypothesis import strategies as st

from recto.conversation.log import View
from recto.conversation.messages import ActivityMessage, DeveloperMessage, Message, ReasoningMessage, SystemMessage
from recto.page.assemble import window
from recto.page.draft import Draft
from recto.page.facts import EXECUTE, SELECT, Phase
from recto.page.manifest import Note
from tests.page.entry_strategies import answered_calls, talks
from tests.page.talk import asks, result, says, user

Talk = tuple[Message, ...]

now: Talk = (user("u9", "now"),)
# Three turns of words
TALK: Talk = tuple(one for turn in range(3) for one in (user(f"u{turn}"), says(f"a{turn}")))


def set_window(messages: Talk, limit: int | None) -> Draft:
    return window(messages, View(entries=messages).turn_start, limit)


def test_S2_a_window_of_five_written_out():
    messages = (*TALK, *now)
    assert set_window(messages, 5) == Draft(
        messages=(says("a0"), user("u1"), says("a1"), user("u2"), says("a2"), user("u9", "now")),
        origins=[1, 2, 3, 4, 5, 6],
        notes={0: Note(decision="dropped", rule="S2", reason="outside the newest 5 messages of history")},
    )


# Who counts

QUIET: Talk = (
    SystemMessage(id="s", text="Be kind."),
    DeveloperMessage(id="d", text="Be brief."),
    ReasoningMessage(id="t", text="hm"),
    ActivityMessage(id="p", activity_type="PLAN", content="{}"),
)


def test_S2_system_and_developer_messages_before_the_window_are_not_dropped():
    messages = (QUIET[0], user("u0"), *QUIET, says("a0"), *QUIET, *now)
    draft = set_window(messages, 0)
    assert draft.messages == (QUIET[0], *QUIET[:2], *QUIET[:2], *now)
    assert list(draft.notes) == [1, 4, 5, 6, 9, 10]


# Whatever the conversation

limits = st.integers(0, 6)


@given(talks(), limits)
@example((asks("a0", "c1", "c2"), result("r1", "c1"), result("r2", "c2"), *now), 1)
def test_S2_no_call_in_the_window_loses_its_result_nor_a_result_its_call(messages: Talk, limit: int):
    places = set(set_window(messages, limit).origins)
    for caller, answer in answered_calls(messages):
        assert (caller in places) == (answer in places)


@given(talks(), limits)
def test_S2_the_newest_are_in_and_beyond_them_only_groups_they_belong_to(messages: Talk, limit: int):
    start = View(entries=messages).turn_start
    kept_places = set(set_window(messages, limit).origins)
    counted_places = [place for place in range(start) if messages[place].role in {"user", "assistant", "tool"}]
    newest = set(counted_places[len(counted_places) - min(limit, len(counted_places)) :])
    certain = newest | set(range(start, len(messages)))
    assert certain <= kept_places
    pairs = answered_calls(messages)
    callers = certain | {caller for caller, answer in pairs if answer in certain}
    grouped = callers | {answer for caller, answer in pairs if caller in callers}
    assert kept_places.intersection(counted_places) == grouped.intersection(counted_places)


@given(talks(), limits | st.none())
def test_S2_order_is_kept_the_turn_is_whole_and_what_is_out_has_a_note(messages: Talk, limit: int | None):
    start = View(entries=messages).turn_start
    draft = set_window(messages, limit)
    assert list(draft.origins) == sorted(set(draft.origins))
    assert draft.messages == tuple(messages[place] for place in draft.origins)
    assert set(range(start, len(messages))) <= set(draft.origins)
    assert set(draft.notes) == set(range(len(messages))) - set(draft.origins)


@given(talks(), limits)
def test_S2_a_larger_window_never_keeps_less(messages: Talk, limit: int):
    assert set(set_window(messages, limit).origins) <= set(set_window(messages, limit + 1).origins)


def test_S1_the_limits_of_a_phase_have_the_defaults_of_the_spec():
    assert Phase(name="select", history=5, budget=2_000) == SELECT
    assert Phase(name="execute", history=10, budget=8_000) == EXECUTE
