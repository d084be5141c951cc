"""A second, naive implementation of R2-R10 comes to the same messages and the same pages on random conversations."""

from collections import Counter
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

import recto
from recto.page.fold.fold import FoldResult
from recto.page.fold.paths import Project
from recto.page.fold.rules import READS, SEARCH, TERMINAL
from tests import naive_pages
from tests.naive_pages import PageSettings, check_page
from tests.page.conversations import Row
from tests.page.counters import WordCounter
from tests.page.random_conversations import Case, make_case

SEEDS = [range(200), *[pytest.param(range(at, at + 500), marks=pytest.mark.full) for at in range(200, 5_200, 500)]]
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def fold(case: Case) -> FoldResult:
    messages, settings = recto.decode(case.rows), settings_of(case)
    return recto.fold(messages, settings=settings, now=now_of(case), counter=WordCounter())


def settings_of(case: Case) -> recto.FoldSettings:
    options = case.options
    return recto.FoldSettings(
        reads=replace(READS, keep=options.keep_reads),
        terminal=replace(TERMINAL, keep=options.keep_commands, max_age=timedelta(minutes=options.command_minutes)),
        search=SEARCH if options.search else None,
        project=Project(root=options.root, case_sensitive=options.case_sensitive),
    )


def now_of(case: Case) -> datetime | None:
    return None if case.options.now is None else EPOCH + timedelta(milliseconds=case.options.now)


def naive_settings(case: Case) -> PageSettings:
    """The same settings, for the naive way."""
    options, plain = case.options, PageSettings()
    assert plain.reads
    assert plain.commands
    return PageSettings(
        reads=replace(plain.reads, keep=options.keep_reads),
        commands=replace(plain.commands, keep=options.keep_commands, minutes=options.command_minutes),
        searches=plain.searches if options.search else None,
        root=options.root,
        case_sensitive=options.case_sensitive,
    )


def naively_folded(case: Case) -> list[Row]:
    newest = max([naive_pages.own_time(row) for row in case.rows], default=0)
    now = newest if case.options.now is None else case.options.now
    return naive_pages.fold(case.rows, naive_settings(case), now)


@pytest.mark.parametrize("seeds", SEEDS, ids=str)
def test_R2_to_R9_naively_done_come_to_the_same_on_5000_random_conversations(seeds: range):
    for seed in seeds:
        case = make_case(seed)
        assert fold(case).messages == recto.decode(naively_folded(case)), f"make_case({seed})"


@given(seed=st.integers(0, 1_000_000))
def test_R1_to_R10_naively_done_come_to_the_same_page(seed: int):
    case = make_case(seed)
    facts = recto.Facts(log=recto.decode(case.rows), fold=settings_of(case), now=now_of(case), counter=WordCounter())
    page, _ = recto.assemble(facts)
    check_page(page.body, case.rows, naive_settings(case), case.options.now)


def test_random_conversations_have_something_of_everything_to_fold():
    counts = Counter[tuple[str, bool, bool]]()
    left_alone = Counter[str]()
    for seed in range(200):
        result = fold(make_case(seed))
        counts.update((one.rule, one.part is not None, len(one.paths) > 1) for one in result.receipts)
        left_alone.update(one.reason for one in result.left_alone)
    one_file, whole_batch, part_of_batch = ("R2", False, False), ("R5", False, True), ("R5", True, False)
    command, search = ("R8", False, False), ("R9", False, False)
    assert set(counts) == {one_file, whole_batch, part_of_batch, command, search}
    assert min(counts.values()) >= 10
    assert len(left_alone) == 2
