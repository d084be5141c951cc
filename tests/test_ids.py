"""Ids: they sort by when they were made, and nobody makes one twice."""

import time
import uuid
from concurrent.futures import ThreadPoolExecutor

from recto.ids import new_id


def test_an_id_is_a_uuid_of_version_seven_in_its_usual_form():
    for new in (new_id() for _ in range(1000)):
        identifier = uuid.UUID(new)
        assert (identifier.version, identifier.variant, str(identifier)) == (7, uuid.RFC_4122, new)


def test_an_id_says_when_it_was_made():
    before = time.time_ns() // 1_000_000
    high_bits = uuid.UUID(new_id()).int >> 80
    assert before <= high_bits <= time.time_ns() // 1_000_000


def test_ids_are_unique_over_threads_and_sort_in_each():
    with ThreadPoolExecutor(8) as threads:
        batches = list(threads.map(make, [5000] * 8))
    assert len({new for batch in batches for new in batch}) == 40_000
    assert all(batch == sorted(batch) for batch in batches)


def test_ids_of_one_moment_cannot_be_guessed_from_one_another():
    tails = {new_id()[-8:] for _ in range(1000)}
    assert len(tails) > 990


def make(count: int) -> list[str]:
    return [new_id() for _ in range(count)]
