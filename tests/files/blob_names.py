"""Names of blobs as the product makes them, the same in every test run."""

import itertools
from collections.abc import Callable


def blob_name(number: int) -> str:
    """A name of the shape that ids have."""
    return f"0196cd3b-5a6f-7cc3-9f2c-{number:012x}"


def make_counter(first: int) -> Callable[[], str]:
    numbers = itertools.count(first)
    return lambda: blob_name(next(numbers))


A, B, C, NONE = (blob_name(number) for number in (0xA, 0xB, 0xC, 0xF))
