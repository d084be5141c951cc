"""Fixtures: a shared server, and both kinds of client."""

from collections.abc import Generator

import pytest

from tests.client.scripted_server import KINDS, Kind, ScriptedServer, run_scripted_server


@pytest.fixture(scope="session")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Generator[ScriptedServer]:
    with run_scripted_server(tmp_path_factory.mktemp("served")) as server:
        yield server


@pytest.fixture
def served(shared: ScriptedServer) -> Generator[ScriptedServer]:
    """Return the shared server without answers or holds of the previous test."""
    shared.answers.clear()
    yield shared
    shared.go.set()


@pytest.fixture(params=KINDS)
def kind(request: pytest.FixtureRequest) -> Kind:
    return request.param
