"""R12, R13, S4: what is seen of a log. Rollback, undo and fork hide and show; what is stored never changes."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recto.conversation.log import (
    Compacted,
    Entry,
    FoldStep,
    Interrupted,
    ReplyEnded,
    RolledBack,
    SkillChanged,
    ToolStarted,
    Undone,
    View,
    fork,
    view,
)
from recto.conversation.messages import SystemMessage, UserMessage
from tests.page.entry_strategies import entry_logs
from tests.page.talk import asks, result, says, user

Log = tuple[Entry, ...]

u1, a1 = user("u1", "first words"), says("a1", "first answer")
u2, a2 = user("u2", "second words"), asks("a2", "c1")
r2, b2 = result("r2", "c1"), says("b2", "second answer")
u3, a3 = user("u3", "third words"), says("a3", "third answer")
bazi, tarot, core = (SkillChanged(id=f"s-{skill}", skill=skill) for skill in ("bazi", "tarot", None))
start = ToolStarted(id="t2", message="a2", call="c1")
step = FoldStep(id="f2", results=("a1",))
stop = Interrupted(id="i2", message="b2", reason="cancelled")
cut = ReplyEnded(id="e2", message="b2", finish="length")
old_summary = Compacted(id="k1", upto="a1", summary="one")
new_summary = Compacted(id="k2", upto="r2", summary="one and two")
undo = Undone(id="undo")
TALK: Log = (u1, a1, u2, a2, start, r2, b2, u3, a3)


def back(to: str) -> RolledBack:
    return RolledBack(id=f"back-{to}", to=to)


# R12


@pytest.mark.parametrize(
    ("log", "log_view"),
    [
        pytest.param((u1, a1), View(entries=(u1, a1)), id="nothing is hidden without a rollback"),
        pytest.param((*TALK, back("u3")), View(entries=TALK[:-2], can_undo=True), id="the newest turn"),
        pytest.param((*TALK, back("u1")), View(can_undo=True), id="everything"),
        pytest.param(
            (u1, a1, u2, a2, start, bazi, r2, step, b2, cut, stop, old_summary, back("u2")),
            View(entries=(u1, a1), can_undo=True),
            id="markers go with their messages",
        ),
        # markers before the message stay
        ((u1, a1, bazi, old_summary, u2, b2, back("u2")), View(entries=(u1, a1, bazi, old_summary), can_undo=True)),
        # the thread goes on after it
        ((*TALK, back("u2"), u3, a3), View(entries=(u1, a1, u3, a3), can_undo=True)),
    ],
)
def test_R12_rollback_hides_a_user_message_and_all_that_follows(log: Log, log_view: View):
    assert view(log) == log_view


@pytest.mark.parametrize("to", ["nobody", "", "t2"], ids=["no such message", "no id", "a marker"])
def test_R12_rollback_to_what_is_no_message_changes_nothing(to: str):
    assert view((*TALK, back(to))) == View(entries=TALK)


@pytest.mark.parametrize("to", ["a1", "r2"])
def test_P15_a_rollback_may_keep_the_question_and_hide_its_answer(to: str):
    place = next(place for place, entry in enumerate(TALK) if entry.id == to)
    assert view((*TALK, back(to))) == View(entries=TALK[:place], can_undo=True)
    assert view((*TALK, back(to), undo)) == View(entries=TALK)


@pytest.mark.parametrize("to", ["u2", "u3"])
def test_R12_rollback_to_what_is_already_hidden_changes_nothing(to: str):
    log = (*TALK, back("u2"), back(to))
    assert view(log) == View(entries=(u1, a1), can_undo=True)
    assert view((*log, undo)) == View(entries=TALK)


@pytest.mark.parametrize(
    ("log", "log_view"),
    [
        pytest.param((*TALK, back("u2"), undo), View(entries=TALK), id="one rollback"),
        pytest.param((*TALK, back("nobody"), undo), View(entries=TALK), id="a rollback that hid nothing"),
        # the second of two
        ((*TALK, back("u3"), back("u2"), undo), View(entries=TALK[:-2], can_undo=True)),
        # with what was said after it
        ((u1, a1, u2, b2, back("u2"), u3, a3, undo), View(entries=(u1, a1, u2, b2))),
        # a rollback of what was said after a rollback
        ((u1, a1, u2, b2, back("u2"), u3, back("u3"), undo), View(entries=(u1, a1, u3), can_undo=True)),
    ],
)
def test_R12_undo_takes_the_last_rollback_back(log: Log, log_view: View):
    assert view(log) == log_view


# What a view says of itself


@pytest.mark.parametrize(
    ("log", "skill"),
    [
        pytest.param((u1, a1), None, id="never had one"),
        pytest.param((bazi, u1, tarot), tarot, id="the newest"),
        pytest.param((u1, bazi, a1, core), None, id="core is none"),
        pytest.param((u1, a1, u2, bazi, b2, back("u2")), None, id="rolled back past the activation"),
        pytest.param((u1, bazi, u2, tarot, back("u2")), bazi, id="rolled back past a switch"),
        pytest.param((u1, bazi, u2, tarot, back("u2"), undo), tarot, id="and undone"),
        pytest.param((u1, bazi, u2, back("u2"), tarot, undo), bazi, id="changed after the rollback, and undone"),
        pytest.param(fork((u1, a1, bazi, u2, tarot), before="u2"), bazi, id="in a fork from before a switch"),
    ],
)
def test_S4_the_skill_is_the_one_that_was_active_then(log: Log, skill: SkillChanged | None):
    assert view(log).skill == skill


@pytest.mark.parametrize(
    ("log", "compaction"),
    [
        pytest.param(TALK, None, id="none yet"),
        pytest.param((u1, a1, old_summary, u2, a2, r2, b2, new_summary), new_summary, id="the newest of two"),
        pytest.param((*TALK, new_summary, back("u3")), None, id="rolled back past the marker"),
        pytest.param((*TALK, new_summary, back("u2"), undo), new_summary, id="and undone"),
        # an older one again
        ((u1, a1, old_summary, u2, a2, r2, b2, u3, new_summary, back("u3")), old_summary),
        # a summary of what is hidden
        ((u1, a1, u2, back("u2"), Compacted(upto="u2", summary="s")), None),
        # a summary of what never was
        ((u1, a1, old_summary, Compacted(upto="gone", summary="s")), old_summary),
    ],
)
def test_R13_the_summary_in_force_is_the_newest_still_in_view(log: Log, compaction: Compacted | None):
    assert view(log).compaction == compaction


@pytest.mark.parametrize(
    ("log", "finishes"),
    [
        pytest.param((u2, a2, start, r2, b2, cut), {"b2": "length"}, id="seen"),
        pytest.param((u1, u2, a2, start, r2, b2, cut, back("u2")), {}, id="rolled back"),
        pytest.param((u1, u2, a2, start, r2, b2, cut, back("u2"), undo), {"b2": "length"}, id="undone"),
    ],
)
def test_R12_finishes_go_with_their_messages(log: Log, finishes: dict[str, str]):
    assert view(log).finishes == finishes


@pytest.mark.parametrize(
    ("log", "place"),
    [
        pytest.param((), 0, id="nothing was said"),
        pytest.param((says("a0"), SystemMessage(id="s0", text="Be kind.")), 2, id="no user spoke"),
        pytest.param((u1, a1, bazi, u2, a2, start, r2, b2), 2, id="the newest user message; markers do not count"),
        pytest.param((u1, a1, u2, b2, back("u2")), 0, id="the newest that is seen"),
    ],
)
def test_a_turn_starts_at_its_user_message(log: Log, place: int):
    assert view(log).turn_start == place


@pytest.mark.parametrize(
    ("log", "newest"),
    [
        pytest.param((u1,), None, id="nobody answered"),
        pytest.param((u1, a1, u2, a2, r2, b2, cut, u3), b2, id="the newest, whoever spoke since"),
        pytest.param((u1, a1, u2, a2, back("u2")), a1, id="the newest that is seen"),
    ],
)
def test_the_reply_of_a_view_is_the_newest_message_of_the_assistant(log: Log, newest: Entry | None):
    assert view(log).reply is newest


def test_the_messages_of_a_view_are_its_entries_without_markers():
    log = (bazi, u1, a1, old_summary, u2, a2, start, r2, step, b2, cut, stop)
    assert view(log).messages == (u1, a1, u2, a2, r2, b2)


# Forks


@pytest.mark.parametrize(
    ("log", "before", "entries"),
    [
        pytest.param((u1, bazi, a1, u2), None, (u1, bazi, a1, u2), id="whole, markers too"),
        pytest.param((u1, bazi, a1, u2, tarot, b2), "u2", (u1, bazi, a1), id="before a message"),
        pytest.param((bazi, u1, a1), "u1", (bazi,), id="before the first message"),
        pytest.param((u1, a1, u2, b2, back("u2"), u3), "u3", (u1, a1), id="before a message said after a rollback"),
    ],
)
def test_R12_a_fork_begins_with_what_is_seen(log: Log, before: str | None, entries: Log):
    assert fork(log, before=before) == entries


def test_R12_a_fork_has_no_rollback_of_its_parent_to_take_back():
    log = (u1, a1, u2, b2, back("u2"))
    assert view((*fork(log), undo)) == View(entries=(u1, a1))


def test_R13_a_fork_from_before_a_summary_is_without_it():
    log = (u1, a1, old_summary, u2, a2, r2, b2, u3, new_summary)
    assert view(fork(log)).compaction == new_summary
    assert view(fork(log, before="u3")).compaction == old_summary
    assert view(fork(log, before="u1")).compaction is None


# Whatever the log


@given(entry_logs(), st.data())
def test_R12_a_view_after_rollback_and_undo_is_the_view_before(log: Log, data: st.DataObject):
    log_view = view(log)
    ids = [entry.id for entry in log_view.entries if isinstance(entry, UserMessage)]
    # An undo needs a rollback that hid something: without one it takes back an older one.
    to = data.draw(st.sampled_from(ids)) if ids else None
    later = data.draw(entry_logs(4))
    later_entries = [entry for entry in later if not isinstance(entry, (RolledBack, Undone))]
    hidden: Log = (*log, RolledBack(to=to), *later_entries, Undone()) if to else log
    assert view(hidden) == log_view


@given(entry_logs())
def test_R12_undo_ends_where_there_is_nothing_more_to_take_back(log: Log):
    log_view = view((*log, *[Undone()] * len(log)))
    assert not log_view.can_undo
    assert view((*log, *[Undone()] * (len(log) + 1))) == log_view


@given(entry_logs())
def test_R12_a_fork_is_seen_as_its_parent(log: Log):
    log_view, forked = view(log), view(fork(log))
    assert forked.entries == log_view.entries
    assert (forked.skill, forked.compaction) == (log_view.skill, log_view.compaction)
    assert (forked.finishes, forked.turn_start) == (log_view.finishes, log_view.turn_start)
    assert fork(fork(log)) == fork(log)


@given(entry_logs())
def test_R12_a_fork_before_a_message_is_what_a_rollback_to_it_leaves(log: Log):
    users = [entry.id for entry in view(log).entries if isinstance(entry, UserMessage)]
    views_after = [view((*log, RolledBack(to=id))).entries for id in users]
    assert [fork(log, before=id) for id in users] == views_after
