"""Hypothesis profiles by tier, the CPU limit of the fast tier, and stock clients that read every event stream."""

import os
import resource
import time
from collections.abc import Generator

import pytest
from hypothesis import settings

from tests.clients.read_streams import pytest_configure, pytest_sessionfinish, pytest_terminal_summary

__all__ = ["pytest_configure", "pytest_sessionfinish", "pytest_terminal_summary"]

# Files of the store's conformance suite do not begin with `test_`. Register them before anything imports them.
pytest.register_assert_rewrite("tests.store.suite")

# `fast` and `full` repeat the same examples on every run; `fuzz` looks for new ones (make fuzz).
settings.register_profile("fast", derandomize=True, deadline=None, max_examples=15)
settings.register_profile("full", derandomize=True, deadline=None, max_examples=60)
settings.register_profile("fuzz", derandomize=False, deadline=None, max_examples=2000)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "fast"))

# Most cases take a hundredth of this. Mark a test `full` where it needs more.
CPU_SECONDS = float(os.environ.get("TEST_CPU_SECONDS", "2.5"))


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Generator[None, None, None]:
    before = cpu_seconds()
    yield
    seconds = cpu_seconds() - before
    if seconds > CPU_SECONDS and item.get_closest_marker("full") is None:
        pytest.fail(
            f"This test took {seconds:.1f} s of CPU time; the fast tier allows {CPU_SECONDS} s. "
            "Test the behaviour at a lower level, use less input, or mark the test with @pytest.mark.full.",
            pytrace=False,
        )


def cpu_seconds() -> float:
    """Return the CPU time of this process and of its children that have ended."""
    children = resource.getrusage(resource.RUSAGE_CHILDREN)
    return time.process_time() + children.ru_utime + children.ru_stime
