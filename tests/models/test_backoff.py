"""Delays before retries of model calls."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recto.config.run_settings import BackoffSettings
from recto.errors import SettingsError
from recto.models.faults import delay

CHANCE = st.floats(0, 1, exclude_max=True)


@given(st.integers(1, 10_000), CHANCE)
def test_our_own_wait_lies_between_half_and_all_of_the_doubled_base(failures: int, chance: float):
    longest = min(0.5 * 2 ** min(failures - 1, 60), 20.0)
    assert longest / 2 <= delay(failures, None, chance) <= longest


@given(st.floats(-10, 1e9), CHANCE)
def test_what_the_provider_asks_for_is_waited_up_to_a_cap(requested: float, chance: float):
    least = min(max(requested, 0.0), 60.0)
    assert least <= delay(1, requested, chance) <= least + 0.5


def test_the_wait_doubles_with_each_failure_until_the_cap():
    settings = BackoffSettings(base=1.0, cap=5.0)
    assert [delay(failures, None, 0.0, settings) for failures in (1, 2, 3, 4, 5)] == [0.5, 1.0, 2.0, 2.5, 2.5]


def test_a_wait_below_zero_is_no_setting():
    with pytest.raises(SettingsError, match=r"backoff\.cap"):
        BackoffSettings(cap=-1)
