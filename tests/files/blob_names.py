"""Blob names in the product's format, the same in every test run."""

import itertools
from collections.abc import Callable


def blob_name(number: int) -> str:
    """Return a blob name with the format of ids."""
    return f"0196cd3b-5a6f-7cc3-9f2c-{number:012x}"


def make_counter(first: int) -> Callable[[], str]:
    numbers = itertools.count(first)
    return lambda: blob_name(next(numbers))


A, B, C, NONE = (blob_name(number) for number in (0xA, 0xB, 0xC, 0xF))
