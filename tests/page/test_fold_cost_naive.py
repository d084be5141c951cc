"""X2: a second, naive implementation folds the same results; steps are for good, and the same for the same log."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recto.conversation.log import Entry, FoldStep
from recto.conversation.messages import AssistantMessage
from recto.page.assemble import assemble
from recto.page.facts import Facts
from recto.page.fold.fold_by_cost import plan_step
from recto.page.fold.fold_settings import fold_key
from recto.page.manifest import Manifest
from recto.page.text.tokens import count_messages
from recto.page.wire.base import Target
from tests.page.cost_sessions import CostSession, make_session
from tests.page.counters import WordCounter
from tests.page.naive_cost import naive_step

SEEDS = st.integers(0, 1_000_000)
START = datetime(2026, 11, 1, tzinfo=UTC)


@given(seed=SEEDS)
def test_X2_a_naive_implementation_folds_the_same_results(seed: int):
    session, counter = make_session(seed), WordCounter()
    key, folded_ids = fold_key(session.fold, counter), set[str]()
    for _ in range(40):
        session.go_on()
        if session.chance.random() < 0.3:
            continue
        cold = session.chance.random() < 0.1
        count_messages(session.messages, counter)
        step = plan_step(tuple(session.messages), key, folded_ids, session.prices, cold="gap" if cold else "")
        expected = naive_step(session.messages, session.settings, folded_ids, session.prices, cold=cold)
        assert (step and (set(step.results), step.tokens_freed, step.rewritten)) == expected
        folded_ids |= set(step.results) if step else set()


def facts_of(session: CostSession, log: tuple[Entry, ...]) -> Facts:
    now = START + timedelta(seconds=len(log))
    target = Target(model="m")
    return Facts(log=log, target=target, fold=session.fold, cache_prices=session.prices, now=now, counter=WordCounter())


def folded_in(manifest: Manifest) -> dict[str, str]:
    """What is folded in a page, and what it says of the step."""
    return {part.source: part.reason for part in manifest.parts if part.decision == "folded"}


@pytest.mark.full
@given(seed=SEEDS)
def test_X2_steps_are_for_good_deterministic_and_the_same_after_a_crash_behind_the_step(seed: int):
    session, log, before = make_session(seed), tuple[Entry, ...](), dict[str, str]()
    for _ in range(25):
        count = len(session.messages)
        session.go_on()
        log += tuple(replace(one, time=START + timedelta(seconds=len(log))) for one in session.messages[count:])
        facts = facts_of(session, log)
        page, manifest = assemble(facts)
        again, _ = assemble(replace(facts, log=tuple(replace(entry) for entry in log)))
        assert again.body == page.body
        now = folded_in(manifest)
        # What was repaired away for a moment is no part of the page; all else stays folded, for the same reason.
        assert {source: now[source] for source in before if source in now} == {
            source: reason for source, reason in before.items() if source in now
        }
        assert before.keys() - now.keys() <= {part.source for part in manifest.parts if part.decision == "dropped"}
        if manifest.step:
            log += (replace(manifest.step, id=f"s{len(log)}", time=facts.now),)
            retried, second_manifest = assemble(facts_of(session, log))
            assert (retried.body, second_manifest.step) == (page.body, None)
        before = now


@pytest.mark.full
def test_X2_the_sessions_of_these_tests_have_steps_of_each_cause_and_calls_between_them():
    causes, calls = dict[str, int](), 0
    for seed in range(20):
        session, log = make_session(seed), tuple[Entry, ...]()
        for _ in range(40):
            count = len(session.messages)
            session.go_on()
            log += tuple(session.messages[count:])
            step = assemble(facts_of(session, log))[1].step
            if step:
                log += (replace(step, id=f"s{len(log)}"),)
                causes[step.cause] = causes.get(step.cause, 0) + 1
        calls += sum(isinstance(entry, AssistantMessage) for entry in log)
        assert all(step.results for step in log if isinstance(step, FoldStep))
    assert causes.keys() >= {"pays", "no_cache"}
    assert calls > sum(causes.values())
