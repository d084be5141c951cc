"""Hypothesis profiles: `ci` repeats the same examples on every run, `fuzz` looks for new ones (make fuzz).

Stock clients read every event stream that a test has read.
"""

import os

import pytest
from hypothesis import settings

from tests.clients.read_streams import pytest_configure, pytest_sessionfinish, pytest_terminal_summary

__all__ = ["pytest_configure", "pytest_sessionfinish", "pytest_terminal_summary"]

# What every store does is in no file that begins with `test_`. Before anything imports it.
pytest.register_assert_rewrite("tests.store.suite")

settings.register_profile("ci", derandomize=True, deadline=None, max_examples=60)
settings.register_profile("fuzz", derandomize=False, deadline=None, max_examples=2000)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "ci"))
