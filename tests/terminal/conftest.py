"""A server and its scripted model for the terminals of a module."""

from collections.abc import Generator

import pytest

from tests.terminal.chatting import Chatting, chatting


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Generator[Chatting]:
    with chatting(tmp_path_factory.mktemp("chat")) as made:
        yield made
