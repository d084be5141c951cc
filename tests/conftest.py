"""Hypothesis profiles by tier, the CPU limit of the fast tier, and stock clients that read every event stream."""

import os

import pytest
from hypothesis import settings

from tests.case_costs import pytest_runtest_call
from tests.clients.read_streams import pytest_configure, pytest_sessionfinish, pytest_terminal_summary

__all__ = ["pytest_configure", "pytest_runtest_call", "pytest_sessionfinish", "pytest_terminal_summary"]

# Files of the store's conformance suite do not begin with `test_`. Register them before anything imports them.
pytest.register_assert_rewrite("tests.store.suite")

# `fast` and `full` repeat the same examples on every run; `fuzz` looks for new ones (make fuzz).
settings.register_profile("fast", derandomize=True, deadline=None, max_examples=15)
settings.register_profile("full", derandomize=True, deadline=None, max_examples=60)
settings.register_profile("fuzz", derandomize=False, deadline=None, max_examples=2000)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "fast"))
