"""Fixture: a server with a scripted model for the terminals of a module."""

from collections.abc import Generator

import pytest

from tests.terminal.chat_world import ChatWorld, run_chat_world


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Generator[ChatWorld]:
    with run_chat_world(tmp_path_factory.mktemp("chat")) as world:
        yield world
