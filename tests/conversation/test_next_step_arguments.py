"""P11: arguments no tool takes go back to the model, but not for ever."""

from collections.abc import Sequence
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recto.conversation.log import Entry, RolledBack
from recto.conversation.messages import ToolMessage
from recto.conversation.next_step import INVALID_ARGUMENTS, CallModel, Finished, Run, RunTools, Step, next_step
from tests.page.talk import asks, call, result, user

Turn = tuple[Entry, ...]

u1 = user("u1")
GIVEN_UP = Finished(outcome="bad_arguments")


def reply(number: int, *results: str) -> Turn:
    """A reply with a call for each result, and the results: good, bad, or failed otherwise."""
    calls = [f"c{number}-{place}" for place in range(len(results))]
    answers: list[ToolMessage] = []
    for place, (one, kind) in enumerate(zip(calls, results, strict=True)):
        error = {"good": None, "bad": INVALID_ARGUMENTS}.get(kind, kind)
        answers.append(replace(result(f"r{number}-{place}", one), error=error))
    return (asks(f"a{number}", *calls), *answers)


def turn(*replies: Sequence[str]) -> Turn:
    return (u1, *[entry for number, results in enumerate(replies) for entry in reply(number, *results)])


@pytest.mark.parametrize(
    ("log", "step"),
    [
        pytest.param(turn(["bad"], ["bad"], ["bad"]), CallModel(), id="three times"),
        pytest.param(turn(["bad"], ["bad"], ["bad"], ["bad"]), GIVEN_UP, id="the fourth ends the run"),
        pytest.param(turn(*[["bad", "bad"]] * 4), GIVEN_UP, id="four replies with two bad calls each"),
        pytest.param(turn(*[["bad", "good"]] * 6), CallModel(), id="partly good replies do not count"),
        pytest.param(turn(*[["bad"]] * 3, ["timeout"], ["bad"]), CallModel(), id="a tool that failed otherwise resets"),
    ],
)
def test_P11_bad_arguments_go_back_to_the_model_three_times_and_the_fourth_ends_the_run(log: Turn, step: Step):
    assert next_step(log, Run()) == step


@pytest.mark.parametrize("most", [0, 1, 7])
def test_P11_how_often_is_a_setting(most: int):
    run = Run(max_bad_arguments=most)
    assert next_step(turn(*[["bad"]] * most), run) == CallModel()
    assert next_step(turn(*[["bad"]] * (most + 1)), run) == GIVEN_UP


def test_P11_only_this_turn_and_what_is_in_view_count():
    assert next_step((*turn(*[["bad"]] * 4), user("u2")), Run()) == CallModel()
    assert next_step((*turn(*[["bad"]] * 3), user("u2"), *reply(9, "bad")), Run()) == CallModel()
    rolled_back = (*turn(*[["bad"]] * 4), RolledBack(id="b", to="u1"), user("u2"), *reply(9, "bad"))
    assert next_step(rolled_back, Run()) == CallModel()


def test_P11_a_waiting_call_a_cancel_and_the_number_of_steps_come_first():
    log = turn(*[["bad"]] * 4)
    assert next_step((*log, asks("a9", "c9")), Run()) == RunTools(start=(call("c9"),))
    assert next_step(log, Run(cancel=True)) == Finished(outcome="cancelled")
    assert next_step(log, Run(max_steps=4)) == Finished(outcome="too_many_steps")


@given(st.lists(st.lists(st.sampled_from(["good", "bad", "timeout"]), min_size=1, max_size=3), max_size=8))
def test_P11_only_the_replies_at_the_end_that_were_all_bad_count(replies: list[list[str]]):
    in_a_row = 0
    for results in reversed(replies):
        if set(results) != {"bad"}:
            break
        in_a_row += 1
    assert next_step(turn(*replies), Run()) == (GIVEN_UP if in_a_row > 3 else CallModel())
