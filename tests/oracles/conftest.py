"""The providers' own SDKs as judges. They take seconds to import, so every test here is of the full tier.

Tests import an SDK inside of functions: collecting them costs nothing.
"""

from pathlib import Path

import pytest

FOLDER = Path(__file__).parent


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if item.path.is_relative_to(FOLDER):
            item.add_marker("full")
