"""Servers of MCP over HTTP: a real one on a port, through the guarded way out."""

import asyncio
from pathlib import Path

import pytest

from recto.testing.process import free_port
from recto.tools.ports import Progress
from tests.tools.external.elsewhere import SECRET, at, call, kept, listening, names, services, words
from tests.waiting import wait_until

pytestmark = pytest.mark.full
TOKEN = "a-token-of-the-server"
HEADERS = {"Authorization": "Bearer secret:KEY"}


async def test_a_server_is_reached_with_its_secret_and_changes_are_followed(tmp_path: Path):
    with listening(TOKEN) as (url, _):
        async with kept(at(url, tmp_path, headers=HEADERS), services({"KEY": TOKEN})) as source:
            assert source.found.problem is None
            assert words(await call(source, "files__echo", {"text": TOKEN})) == "(hidden)"
            many = await asyncio.gather(*[call(source, "files__echo", {"text": str(one)}) for one in range(10)])
            assert [words(one) for one in many] == [str(one) for one in range(10)]
            await call(source, "files__grow", {"name": "late"})
            await wait_until(lambda: "files__late" in names(source))


async def test_a_wrong_secret_and_an_internal_address_are_told(tmp_path: Path):
    with listening(TOKEN) as (url, _):
        async with kept(at(url, tmp_path, headers=HEADERS), services({"KEY": SECRET})) as source:
            problem = "127.0.0.1 answers with status 401. Check the url, and the headers it wants"
            assert source.found.problem == problem
        async with kept(at(url, tmp_path, internal=False), services()) as source:
            problem = "127.0.0.1 is at an address that is not public. If it is meant to be, say internal: true"
            assert source.found.problem == problem


async def test_a_server_that_is_not_there_is_found_once_it_is_and_reached_again_after_a_call_was_lost(tmp_path: Path):
    port, mark, seen = free_port(), tmp_path / "mark", list[Progress]()
    async with kept(at(f"http://127.0.0.1:{port}/mcp", tmp_path), services()) as source:
        assert source.found.problem == "127.0.0.1 cannot be reached"
        with listening(port=port) as (_, process):
            await wait_until(lambda: source.found.problem is None)
            acting = asyncio.create_task(call(source, "files__slow", {"mark": str(mark)}, seen.append))
            await wait_until(lambda: seen)
            process.kill()
            lost = await acting
        assert (lost.error, "was lost while files__slow was at work" in words(lost)) == ("interrupted", True)
        with listening(port=port):
            assert words(await call(source, "files__echo", {"text": "again"})) == "again"
        assert not mark.exists()


async def test_a_cancelled_call_is_cancelled_there_and_progress_is_reported(tmp_path: Path):
    mark, seen = tmp_path / "mark", list[Progress]()
    with listening() as (url, _):
        async with kept(at(url, tmp_path), services()) as source:
            acting = asyncio.create_task(call(source, "files__slow", {"mark": str(mark)}, seen.append))
            await wait_until(lambda: seen)
            assert seen[0] == Progress(label="step 0", done=0, total=10, unit="")
            acting.cancel()
            await asyncio.gather(acting, return_exceptions=True)
            await wait_until(lambda: mark.exists() and mark.read_text(encoding="utf-8") == "cancelled")
            assert words(await call(source, "files__echo", {"text": "on"})) == "on"
