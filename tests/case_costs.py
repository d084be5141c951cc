"""A pytest hook that fails a test of the fast tier if it takes too much CPU time. Load does not change CPU time."""

import os
import resource
import time
from collections.abc import Generator

import pytest

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
