"""The server of each test of the flow: in this process, on a folder of its own."""

from collections.abc import AsyncGenerator
from pathlib import Path

import pytest

from tests.flow.in_process import InProcess, in_process


@pytest.fixture
async def server(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncGenerator[InProcess]:
    async with in_process(tmp_path, monkeypatch) as server:
        yield server
