"""DESIGN "The flow", R13, X4: what a run does next, for every state a log and a run's row can be in."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recto.conversation.log import (
    Compacted,
    Entry,
    Finish,
    Interrupted,
    ReplyEnded,
    RolledBack,
    SkillChanged,
    ToolStarted,
    Undone,
    view,
)
from recto.conversation.messages import AssistantMessage, ReasoningMessage, SystemMessage, ToolCall, ToolMessage
from recto.conversation.next_step import (
    CallModel,
    Compact,
    Finished,
    Outcome,
    Run,
    RunTools,
    Step,
    WaitForClient,
    next_step,
)
from tests.page.entry_strategies import entry_logs
from tests.page.talk import asks, call, result, says, user

Log = tuple[Entry, ...]

NOW = datetime(2026, 5, 14, 12, tzinfo=UTC)
RUN = Run(client_tools=frozenset({"ask"}), repeatable=frozenset({"look"}))

u1, a1 = user("u1"), says("a1")
charge, charge_again = call("c1", "charge"), call("c2", "charge")
look, ask, ask_again = call("c3", "look"), call("c4", "ask"), call("c5", "ask")
summary = Compacted(id="k", upto="u1", summary="s")
DONE, NOTHING = Finished(outcome="done"), Finished(outcome="nothing_to_compact")
FAILED, TOO_LONG = Finished(outcome="model_failed"), Finished(outcome="too_long")


def started(one: ToolCall, message: str = "a") -> ToolStarted:
    return ToolStarted(id=f"start-{one.id}", message=message, call=one.id)


def answer(one: ToolCall) -> ToolMessage:
    return result(f"r-{one.id}", one.id)


def reply_end(message: str, finish: Finish) -> ReplyEnded:
    return ReplyEnded(id=f"end-{message}", message=message, finish=finish)


def ask_calls(*calls: ToolCall) -> Log:
    return (u1, asks("a", *calls))


# The ordinary way


@pytest.mark.parametrize(
    ("log", "step"),
    [
        pytest.param((u1,), CallModel(), id="a question"),
        pytest.param((u1, SkillChanged(skill="bazi"), ReasoningMessage(text="hm")), CallModel(), id="no reply yet"),
        pytest.param((u1, a1), DONE, id="an answer"),
        pytest.param((u1, a1, ReasoningMessage(text="hm")), DONE, id="an answer and a thought"),
        pytest.param((u1, AssistantMessage(id="a")), DONE, id="an empty answer"),
        pytest.param(ask_calls(charge), RunTools(start=(charge,)), id="a call"),
        pytest.param((*ask_calls(charge), started(charge), answer(charge)), CallModel(), id="a tool that ended"),
        pytest.param((*ask_calls(charge, look), answer(charge)), RunTools(start=(look,)), id="one of two results"),
        pytest.param((*ask_calls(charge, look), answer(look), answer(charge)), CallModel(), id="results out of order"),
    ],
)
def test_a_turn_goes_from_question_to_calls_to_results_to_an_answer(log: Log, step: Step):
    assert next_step(log, RUN) == step


@pytest.mark.parametrize(
    ("log", "step"),
    [
        pytest.param((), DONE, id="nothing"),
        pytest.param((SystemMessage(text="Be kind."),), CallModel(), id="a system prompt"),
        pytest.param((asks("a", charge),), RunTools(start=(charge,)), id="a call"),
        pytest.param((u1, a1, RolledBack(to="u1")), DONE, id="everything was rolled back"),
    ],
)
def test_a_log_without_a_question_is_one_turn_and_ends_like_any_other(log: Log, step: Step):
    assert next_step(log, RUN) == step


# Tools that were started (X4)


@pytest.mark.parametrize(
    ("log", "step"),
    [
        pytest.param((*ask_calls(charge), started(charge)), RunTools(interrupted=(charge,)), id="it is settled"),
        pytest.param((*ask_calls(look), started(look)), RunTools(start=(look,)), id="it may be repeated"),
        # both, one may be repeated
        ((*ask_calls(charge, look), started(charge), started(look)), RunTools(start=(look,), interrupted=(charge,))),
        # its own turn was rolled back and that undone
        ((*ask_calls(charge), started(charge), RolledBack(to="u1"), Undone()), RunTools(interrupted=(charge,))),
        pytest.param(
            (*ask_calls(charge), user("u2"), RolledBack(to="u2"), started(charge), Undone(), RolledBack(to="u2")),
            RunTools(interrupted=(charge,)),
            id="it was started after a rollback that was undone",
        ),
    ],
)
def test_X4_a_tool_that_was_started_and_lost_is_never_started_again(log: Log, step: Step):
    assert next_step(log, RUN) == step


def test_X4_a_call_id_used_before_says_nothing_of_a_new_call():
    next_turn = (*ask_calls(charge), started(charge), user("u2"), asks("new", charge))
    assert next_step(next_turn, RUN) == RunTools(start=(charge,))
    assert next_step((*next_turn, started(charge, "new")), RUN) == RunTools(interrupted=(charge,))
    first = (*ask_calls(charge), started(charge), answer(charge))
    assert next_step((*first, asks("b", charge)), RUN) == RunTools(start=(charge,))


# The client's tools


@pytest.mark.parametrize(
    ("log", "step"),
    [
        pytest.param(ask_calls(ask), WaitForClient(calls=(ask,)), id="one"),
        pytest.param(
            (*ask_calls(ask, ask_again), answer(ask)), WaitForClient(calls=(ask_again,)), id="one of two came"
        ),
        pytest.param((*ask_calls(ask), started(ask)), WaitForClient(calls=(ask,)), id="it is never ours to settle"),
        pytest.param(ask_calls(ask, charge), RunTools(start=(charge,)), id="ours come first"),
        pytest.param((*ask_calls(ask, charge), started(charge)), RunTools(interrupted=(charge,)), id="ours was lost"),
        pytest.param((*ask_calls(ask), user("u2")), CallModel(), id="the user went on without answering"),
    ],
)
def test_the_clients_calls_wait_for_the_client_once_ours_are_settled(log: Log, step: Step):
    assert next_step(log, RUN) == step


# Replies that did not end by themselves


@pytest.mark.parametrize(
    ("finish", "outcome"), [("length", "length"), ("refused", "refused"), ("filtered", "filtered")]
)
def test_words_that_did_not_end_by_themselves_end_the_run_and_say_why(finish: Finish, outcome: Outcome):
    assert next_step((u1, a1, reply_end("a1", finish)), RUN) == Finished(outcome=outcome)


@pytest.mark.parametrize("finish", ["refused", "filtered"])
@pytest.mark.parametrize(
    "log", [pytest.param(ask_calls(charge, look), id="asked"), pytest.param(ask_calls(ask), id="asked of the client")]
)
def test_calls_of_a_refused_or_filtered_reply_are_not_run(log: Log, finish: Literal["refused", "filtered"]):
    assert next_step((*log, reply_end("a", finish)), RUN) == Finished(outcome=finish)


CUT = reply_end("a", "length")
STOPPED = Interrupted(id="stop", message="a", reason="cancelled")
STOPPED_A1 = Interrupted(id="stop", message=a1.id, reason="the worker died")


@pytest.mark.parametrize("mark", [CUT, STOPPED], ids=["cut at its length", "interrupted"])
@pytest.mark.parametrize(
    ("calls", "done", "step"),
    [
        pytest.param((charge,), (), RunTools(cut_off=(charge,)), id="the only call"),
        pytest.param((ask,), (), RunTools(cut_off=(ask,)), id="the client's call"),
        # the last of two, and the first is run
        ((charge, look), (), RunTools(start=(charge,), cut_off=(look,))),
        # once it is settled the first may be lost
        ((charge, look), (answer(look), started(charge)), RunTools(interrupted=(charge,))),
        pytest.param((charge,), (answer(charge),), CallModel(), id="once all are settled the model is called"),
    ],
)
def test_half_a_call_is_never_run(mark: Entry, calls: tuple[ToolCall, ...], done: Log, step: Step):
    assert next_step((*ask_calls(*calls), mark, *done), RUN) == step


def test_P3_no_client_is_asked_for_anything_by_a_reply_that_was_broken_off():
    assert next_step((*ask_calls(ask, charge), STOPPED), RUN) == RunTools(cut_off=(ask, charge))
    assert next_step((*ask_calls(ask, charge, look), STOPPED), RUN) == RunTools(start=(charge,), cut_off=(ask, look))


def test_P3_whose_call_it_is_was_settled_when_it_was_made_and_names_count_only_where_it_was_not():
    ours, theirs, form = replace(ask, runner="server"), replace(ask, runner="client"), replace(ask, runner="form")
    assert next_step(ask_calls(ours), RUN) == RunTools(start=(ours,))
    assert next_step(ask_calls(theirs), Run()) == WaitForClient(calls=(theirs,))
    assert next_step(ask_calls(form), Run()) == WaitForClient(calls=(form,))


# The end from outside


@pytest.mark.parametrize(
    "log", [(), (u1,), (u1, a1, STOPPED_A1), ask_calls(charge), (*ask_calls(charge), started(charge)), ask_calls(ask)]
)
@pytest.mark.parametrize(
    ("run", "outcome"),
    [
        pytest.param(Run(cancel=True), "cancelled", id="cancelled"),
        pytest.param(Run(now=NOW, deadline=NOW), "deadline", id="at the deadline"),
        pytest.param(Run(now=NOW, deadline=NOW - timedelta(seconds=1)), "deadline", id="after the deadline"),
        pytest.param(Run(cancel=True, now=NOW, deadline=NOW), "cancelled", id="both"),
    ],
)
def test_a_cancel_or_a_deadline_ends_a_run_wherever_it_is(log: Log, run: Run, outcome: Outcome):
    assert next_step(log, run) == Finished(outcome=outcome)


@pytest.mark.parametrize("run", [Run(cancel=True), Run(now=NOW, deadline=NOW)])
def test_what_is_complete_stays_complete(run: Run):
    assert next_step((u1, a1), run) == DONE
    assert next_step((u1, a1, reply_end(a1.id, "length")), run) == Finished(outcome="length")


@pytest.mark.parametrize(
    "run", [Run(now=NOW, deadline=NOW + timedelta(seconds=1)), Run(now=NOW), Run(deadline=NOW), Run()]
)
def test_before_the_deadline_a_run_goes_on(run: Run):
    assert next_step((u1,), run) == CallModel()


@pytest.mark.parametrize(
    ("log", "run", "step"),
    [
        pytest.param((u1,), Run(max_steps=1), CallModel(), id="the first"),
        # one too many
        ((*ask_calls(charge), answer(charge)), Run(max_steps=1), Finished(outcome="too_many_steps")),
        pytest.param(ask_calls(charge), Run(max_steps=1), RunTools(start=(charge,)), id="its tools still run"),
        pytest.param((*ask_calls(charge), answer(charge), user("u2")), Run(max_steps=1), CallModel(), id="a new turn"),
        pytest.param((u1,), Run(failures=3), FAILED, id="three failed calls"),
        pytest.param((u1,), Run(failures=1, max_failures=1), FAILED, id="as set"),
        pytest.param(ask_calls(charge), Run(failures=3), RunTools(start=(charge,)), id="tools run whatever failed"),
    ],
)
def test_a_turn_has_so_many_replies_and_a_call_so_many_tries(log: Log, run: Run, step: Step):
    assert next_step(log, run) == step


# Pages that do not fit (R13)


@pytest.mark.parametrize(
    ("log", "run", "step"),
    [
        pytest.param((u1,), Run(full=True), Compact(), id="full"),
        pytest.param((u1, summary), Run(full=True), CallModel(), id="full, but just compacted"),
        pytest.param((u1,), Run(full=True, can_compact=False), CallModel(), id="full, but compacting failed"),
        pytest.param((u1, summary, user("u2")), Run(full=True), Compact(), id="full again in the next turn"),
        pytest.param((u1, summary, started(charge)), Run(full=True), CallModel(), id="markers are nothing said"),
        pytest.param((u1,), Run(too_long=1), Compact(), id="the provider finds it too long"),
        pytest.param((u1, summary), Run(too_long=1), CallModel(), id="compacted: one retry"),
        pytest.param((u1, summary), Run(too_long=2), TOO_LONG, id="too long even so"),
        pytest.param((u1,), Run(too_long=1, can_compact=False), TOO_LONG, id="too long, compacting failed"),
    ],
)
def test_R13_a_page_that_does_not_fit_is_compacted_once_and_tried_once_more(log: Log, run: Run, step: Step):
    assert next_step(log, run) == step


ONLY = Run(compact=True)


@pytest.mark.parametrize(
    ("log", "run", "step"),
    [
        pytest.param((u1, a1), ONLY, Compact(), id="an answered turn"),
        pytest.param((), ONLY, Compact(), id="nothing was said"),
        pytest.param((u1, a1), replace(ONLY, calls=1), Compact(), id="a worker was lost while it asked"),
        pytest.param((u1, a1, summary), replace(ONLY, calls=1), DONE, id="compacted"),
        pytest.param((u1, a1, summary), ONLY, NOTHING, id="compacted by another"),
        pytest.param((u1, summary, a1), ONLY, Compact(), id="more was said since the last summary"),
        pytest.param((u1, a1), replace(ONLY, can_compact=False), NOTHING, id="too little to ask the model for"),
        # the model was asked, and wrote none
        ((u1, a1), replace(ONLY, can_compact=False, calls=3), Finished(outcome="compact_failed")),
        pytest.param((u1, a1), replace(ONLY, cancel=True), Finished(outcome="cancelled"), id="cancelled"),
        pytest.param((u1, a1, summary), replace(ONLY, calls=1, cancel=True), DONE, id="cancelled too late"),
        pytest.param((u1, a1), replace(ONLY, now=NOW, deadline=NOW), Finished(outcome="deadline"), id="out of time"),
    ],
)
def test_R13_a_run_that_is_to_compact_does_nothing_else(log: Log, run: Run, step: Step):
    assert next_step(log, run) == step


# Whatever the log

runs = st.builds(
    Run,
    cancel=st.just(False),
    failures=st.integers(0, 3),
    too_long=st.integers(0, 2),
    full=st.booleans(),
    can_compact=st.booleans(),
    client_tools=st.just(frozenset({"ask"})),
    repeatable=st.just(frozenset({"look"})),
    max_steps=st.integers(1, 5),
)


@given(entry_logs(), runs)
def test_X4_over_any_prefix_of_any_log_no_started_tool_is_started_again(log: Log, run: Run):
    for end in range(len(log) + 1):
        step = next_step(log[:end], run)
        replies = [entry.id for entry in view(log[:end]).messages if isinstance(entry, AssistantMessage)]
        started_calls = {(entry.message, entry.call) for entry in log[:end] if isinstance(entry, ToolStarted)}
        again = (
            [one for one in step.start if (replies[-1], one.id) in started_calls] if isinstance(step, RunTools) else []
        )
        assert {one.name for one in again} <= {"look"}


@given(entry_logs(), runs)
def test_X4_every_call_that_waits_is_in_exactly_one_place(log: Log, run: Run):
    step = next_step(log, run)
    if isinstance(step, RunTools):
        groups = (*step.start, *step.interrupted, *step.cut_off)
        assert groups
        assert len({one.id for one in groups}) == len(groups)
        assert "ask" not in {one.name for one in (*step.start, *step.interrupted)}
    elif isinstance(step, WaitForClient):
        assert {one.name for one in step.calls} == {"ask"}
    else:
        assert isinstance(step, (CallModel, Compact, Finished))


@given(entry_logs(), runs, st.integers(0, 3))
def test_R13_a_run_that_is_to_compact_never_asks_for_an_answer_whatever_the_log(log: Log, run: Run, calls: int):
    only = replace(run, compact=True, calls=calls)
    step = next_step(log, only)
    assert step == Compact() or isinstance(step, Finished)
    after = (*log, Compacted(id="new", upto=log[-1].id if log else "", summary="s"))
    assert next_step(after, replace(only, calls=calls + 1)) == DONE


def test_P11_calls_beyond_what_a_reply_may_have_are_neither_run_nor_waited_for():
    run = Run(client_tools=frozenset({"ask"}), max_calls=2)
    log = ask_calls(charge, ask, charge_again, ask_again)
    assert next_step(log, run) == RunTools(start=(charge,), too_many=(charge_again, ask_again))
    log_after = (*log, answer(charge), answer(charge_again), answer(ask_again))
    assert next_step(log_after, run) == WaitForClient(calls=(ask,))


def test_R15_what_works_on_files_waits_for_a_change_before_it_that_a_person_has_to_agree_to():
    run = replace(RUN, confirm=frozenset({"edit"}), changing=frozenset({"edit"}), reading=frozenset({"read"}))
    edit, read, read_first, other = call("c6", "edit"), call("c7", "read"), call("c8", "read"), call("c9", "charge")
    log: Log = (u1, asks("a", read_first, edit, read, other))
    assert next_step(log, run) == RunTools(start=(read_first, other))
    done = (*log, started(read_first), started(other), answer(read_first), answer(other))
    assert next_step(done, run) == WaitForClient(confirm=(edit,))
