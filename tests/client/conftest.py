"""The server that the tests of the client share, and both kinds of client."""

from collections.abc import Generator

import pytest

from tests.client.talking import KINDS, Kind, Talking, talking


@pytest.fixture(scope="session")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Generator[Talking]:
    with talking(tmp_path_factory.mktemp("served")) as server:
        yield server


@pytest.fixture
def served(shared: Talking) -> Generator[Talking]:
    """The server, with nothing left to say from the test before and nothing held."""
    shared.answers.clear()
    yield shared
    shared.go.set()


@pytest.fixture(params=KINDS)
def kind(request: pytest.FixtureRequest) -> Kind:
    return request.param
