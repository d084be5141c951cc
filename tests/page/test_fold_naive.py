"""A second, naive implementation of R2-R9 folds random conversations to the same messages."""

from collections import Counter
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

import recto
from recto.page.fold.fold import Folded
from recto.page.fold.paths import Project
from recto.page.fold.rules import READS, SEARCH, TERMINAL
from tests.page import naive
from tests.page.counters import WordCounter
from tests.page.random_conversations import Case, make_case

pytestmark = pytest.mark.full

CHUNKS, CHUNK = 10, 500
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def fold(case: Case) -> Folded:
    options = case.options
    settings = recto.FoldSettings(
        reads=replace(READS, keep=options.keep_reads),
        terminal=replace(TERMINAL, keep=options.keep_commands, max_age=timedelta(minutes=options.command_minutes)),
        search=SEARCH if options.search else None,
        project=Project(root=options.root, case_sensitive=options.case_sensitive),
    )
    now = None if options.now is None else EPOCH + timedelta(milliseconds=options.now)
    return recto.fold(recto.decode(case.rows), settings=settings, now=now, counter=WordCounter())


@pytest.mark.parametrize("chunk", range(CHUNKS))
def test_R2_to_R9_naively_done_come_to_the_same_on_5000_random_conversations(chunk: int):
    for seed in range(chunk * CHUNK, (chunk + 1) * CHUNK):
        case = make_case(seed)
        assert fold(case).messages == recto.decode(naive.fold(case)), f"make_case({seed})"


def test_random_conversations_have_something_of_everything_to_fold():
    found = Counter[tuple[str, bool, bool]]()
    left_alone = Counter[str]()
    for seed in range(200):
        folded = fold(make_case(seed))
        found.update((one.rule, one.part is not None, len(one.paths) > 1) for one in folded.receipts)
        left_alone.update(one.reason for one in folded.left_alone)
    one_file, whole_batch, part_of_batch = ("R2", False, False), ("R5", False, True), ("R5", True, False)
    command, search = ("R8", False, False), ("R9", False, False)
    assert set(found) == {one_file, whole_batch, part_of_batch, command, search}
    assert min(found.values()) >= 10
    assert len(left_alone) == 2
