"""MCP servers as real processes: over standard streams, sandboxed if that works, and over HTTP."""

import asyncio
import sys
from base64 import b64encode
from dataclasses import replace
from pathlib import Path

import pytest

from recto.conversation.messages import Data, File
from recto.testing.process import free_port
from recto.tools.external.live_tools import LiveTools
from recto.tools.external.mcp_server import McpServer
from recto.tools.external.sandbox import NO_SANDBOX, Sandbox
from recto.tools.external.services import HIDDEN
from recto.tools.load_tools import make_built_in_tools
from recto.tools.ports import Progress
from recto.tools.registry import Registry
from tests.files.heads import PNG
from tests.tools.external.external_sources import (
    IS_CONFINED,
    OLD,
    QUICK,
    SECRET,
    at,
    call,
    keep_running,
    listening,
    names,
    services,
    started,
    words,
)
from tests.waiting import wait_until

OLD_SERVER = (sys.executable, str(OLD))


async def test_an_older_server_that_writes_other_lines_too_is_understood_and_its_changes_are_followed(tmp_path: Path):
    async with keep_running(started(tmp_path, *OLD_SERVER), services()) as source:
        assert names(source) == ["files__hello"]
        assert source.state.warnings[0].startswith("its tool 'wrong' is left out: it has an argument 'a b'; providers")
        assert words(await call(source, "files__hello")) == "hello"
        await wait_until(lambda: "files__more" in names(source))
        version = source.state.version
        assert words(await call(source, "files__more")) == "more"
        # Now it has that one twice.
        await wait_until(lambda: source.state.version > version)
        assert names(source) == ["files__hello", "files__more"]


@pytest.mark.full
async def test_results_of_all_kinds_and_errors_come_as_parts(tmp_path: Path):
    async with keep_running(started(tmp_path, resources=True), services()) as source:
        assert "files__odd_name_of_tool" in names(source)
        assert words(await call(source, "files__echo", {"text": "hi"})) == "hi"
        assert words(await call(source, "files__add", {"a": 1, "b": 2})).split() == ["{", '"sum":', "3", "}"]
        picture_result = await call(source, "files__picture")
        picture = File(kind="image", source=Data(base64=b64encode(PNG).decode()), mime_type="image/png")
        assert picture_result.parts[1] == picture
        assert words(picture_result).splitlines()[:2] == ["Look:", "file:///a.bin"]
        assert words(picture_result).endswith("(A file of type application/zip, 4 bytes, which cannot be shown here.)")
        failed = await call(source, "files__fail", {"text": "today"})
        assert (failed.error, "no way: today" in words(failed)) == ("error", True)
        assert (await call(source, "files__add", {"a": "one"})).error == "invalid_arguments"
        text = words(await call(source, "files__list_resources"))
        assert "- notes://today: today; text/plain; What is to be done today." in text
        assert words(await call(source, "files__read_resource", {"uri": "notes://today"})) == "notes://today\nBuy milk."
        assert (await call(source, "files__read_resource", {"uri": "notes://photo"})).parts == (picture,)
        assert (await call(source, "files__read_resource", {"uri": "notes://never"})).error == "error"
        # All at once, over the one session.
        many = await asyncio.gather(*[call(source, "files__echo", {"text": str(one)}) for one in range(20)])
        assert [words(one) for one in many] == [str(one) for one in range(20)]


@pytest.mark.full
async def test_only_named_tools_are_taken_and_unknown_names_are_told(tmp_path: Path):
    async with keep_running(started(tmp_path, tools=("echo", "ecco")), services(), "files__echo") as source:
        assert len(names(source)) == 1
        # The agent has a tool of that name itself.
        assert names(source)[0].startswith("files__echo_")
        assert words(await call(source, names(source)[0], {"text": "hi"})) == "hi"
        assert source.state.warnings[0].startswith("it has no tool 'ecco'; did you mean echo?")


@pytest.mark.full
async def test_its_environment_has_what_is_named_and_secrets_are_hidden_when_they_come_back(tmp_path: Path):
    settings = started(tmp_path)
    settings = replace(settings, env={**settings.env, "TOKEN": "secret:KEY"})
    async with keep_running(settings, services({"KEY": SECRET})) as source:
        text = words(await call(source, "files__environment"))
        assert f'"TOKEN": "{HIDDEN}"' in text
        assert "HOSTNAME" not in text
        assert "RECTO" not in text
        assert words(await call(source, "files__echo", {"text": f"it is {SECRET}"})) == f"it is {HIDDEN}"
        assert SECRET not in words(await call(source, "files__fail", {"text": SECRET}))


@pytest.mark.full
async def test_a_server_in_the_sandbox_has_no_network_reads_little_and_writes_where_it_may(tmp_path: Path):
    if not IS_CONFINED:
        async with keep_running(started(tmp_path, sandbox=True), services()) as source:
            assert source.state.problem == NO_SANDBOX
        return
    listener = await asyncio.start_server(lambda _reader, writer: writer.close(), "127.0.0.1", 0)
    port = listener.sockets[0].getsockname()[1]
    data, agent, other = tmp_path / "data", tmp_path / "agent", tmp_path / "other.txt"
    data.mkdir()
    agent.mkdir()
    other.write_text("private", encoding="utf-8")
    async with keep_running(started(agent, writable=(str(data),)), services()) as source:
        assert words(await call(source, "files__reach", {"port": port})).startswith("not reached")
        for path, became in ((data / "a", "written"), (agent / "a", "not written: OSError"), (Path("/usr/a"), "not")):
            assert words(await call(source, "files__write", {"path": str(path)})).startswith(became)
        assert words(await call(source, "files__read", {"path": str(other)})) == "not read: FileNotFoundError"
        assert (data / "a").read_text(encoding="utf-8") == "here"
    async with keep_running(started(agent, network=True), services()) as source:
        assert words(await call(source, "files__reach", {"port": port})) == "reached"
    listener.close()


async def test_where_there_is_no_sandbox_nothing_is_started_unless_the_settings_say_so(tmp_path: Path):
    for program in (None, "/bin/false"):
        by = replace(services(), sandbox=Sandbox(program=program, scratch_bytes=1_000))
        async with keep_running(started(tmp_path, *OLD_SERVER, sandbox=True), by) as source:
            assert source.state.problem == NO_SANDBOX
    async with keep_running(started(tmp_path, *OLD_SERVER, sandbox=False), by) as source:
        assert words(await call(source, "files__hello")) == "hello"


@pytest.mark.parametrize(
    ("command", "problem"),
    [
        (("no-such-program",), "there is no program 'no-such-program'. Install it, or give its whole path"),
        ((sys.executable, "-c", "raise SystemExit('No token')"), "it ended with code 1; it last said: No token"),
    ],
)
async def test_a_server_that_does_not_start_says_why(tmp_path: Path, command: tuple[str, ...], problem: str):
    async with keep_running(started(tmp_path, *command), services()) as source:
        assert source.state.problem == problem
        assert (await call(source, "files__echo")).error == "unknown_tool"


@pytest.mark.full
async def test_a_call_that_a_crash_broke_off_is_told_and_not_made_again_and_the_server_comes_back(tmp_path: Path):
    mark = tmp_path / "data" / "mark"
    mark.parent.mkdir()
    async with keep_running(started(tmp_path, writable=(str(mark.parent),)), services()) as source:
        failure = await call(source, "files__die", {"mark": str(mark)})
        assert failure.error == "interrupted"
        assert words(failure).startswith("The connection to files was lost while files__die was at work")
        assert mark.read_text(encoding="utf-8") == "1"
        assert words(await call(source, "files__die", {"mark": str(mark)})) == "call 2"
        # One that only reads is made again by itself.
        mark.unlink()
        assert words(await call(source, "files__die_reading", {"mark": str(mark)})) == "call 2"


async def test_a_call_has_its_seconds(tmp_path: Path):
    async with keep_running(started(tmp_path, *OLD_SERVER, seconds=0.1), services()) as source:
        slow = await call(source, "files__hello", {"answer": "never"})
        assert (slow.error, words(slow)[:37]) == ("timeout", "files__hello took longer than 0.1 sec")


@pytest.mark.full
async def test_a_message_has_its_bytes(tmp_path: Path):
    async with keep_running(started(tmp_path), services(settings=replace(QUICK, message_bytes=300_000))) as source:
        long = await call(source, "files__huge", {"characters": 100_000})
        assert 49_000 < len(words(long)) <= 50_000
        failure = await call(source, "files__huge", {"characters": 300_000})
        assert failure.error in ("interrupted", "timeout")
        await wait_until(lambda: source.state.problem is None)
        assert words(await call(source, "files__echo", {"text": "on"})) == "on"


async def test_a_registry_is_another_one_once_a_server_has_changed_its_tools(tmp_path: Path):
    own = Registry(make_built_in_tools())
    async with keep_running(started(tmp_path, *OLD_SERVER), services()) as source:
        tools = LiveTools({"a": own, "b": own}, {"a": [source]})
        before = tools["a"]
        assert (tools["b"] is own, tools["a"] is before, tools.unavailable("a")) == (True, True, ())
        assert {*before} == {*own, "files__hello"}
        await call(source, "files__hello")
        await wait_until(lambda: "files__more" in tools["a"])
        assert "files__more" not in before
    with_dead = LiveTools({"a": own}, {"a": [McpServer(started(tmp_path), frozenset(), services())]})
    assert with_dead["a"].missing == with_dead.unavailable("a") == ("files",)


async def test_P15_tools_elsewhere_ask_a_person_and_a_name_that_none_has_is_told(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
):
    own = Registry(make_built_in_tools())
    async with keep_running(started(tmp_path, *OLD_SERVER), services()) as source:
        tools = LiveTools({"a": own}, {"a": [source]}, {"a": ("files__hello", "files__helo")})
        assert [*tools["a"].approval_schemas()] == ["files__hello"]
        assert tools.unconfirmed("a") == ("files__helo",)
    assert "confirm names 'files__helo', but there is no such tool" in caplog.text


async def test_without_the_package_a_line_says_what_to_install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setitem(sys.modules, "mcp.client", None)
    async with keep_running(started(tmp_path, *OLD_SERVER), services()) as source:
        assert source.state.problem == "it needs a package that is not installed: pip install 'recto[mcp]'"


# Over HTTP, through the guarded way out


TOKEN = "a-token-of-the-server"
HEADERS = {"Authorization": "Bearer secret:KEY"}


@pytest.mark.full
async def test_a_server_is_reached_with_its_secret_and_changes_are_followed(tmp_path: Path):
    with listening(TOKEN) as (url, _):
        async with keep_running(at(url, tmp_path, headers=HEADERS), services({"KEY": TOKEN})) as source:
            assert source.state.problem is None
            assert words(await call(source, "files__echo", {"text": TOKEN})) == "(hidden)"
            many = await asyncio.gather(*[call(source, "files__echo", {"text": str(one)}) for one in range(10)])
            assert [words(one) for one in many] == [str(one) for one in range(10)]
            await call(source, "files__grow", {"name": "late"})
            await wait_until(lambda: "files__late" in names(source))


@pytest.mark.full
async def test_a_wrong_secret_and_an_internal_address_are_told(tmp_path: Path):
    with listening(TOKEN) as (url, _):
        async with keep_running(at(url, tmp_path, headers=HEADERS), services({"KEY": SECRET})) as source:
            problem = "127.0.0.1 answers with status 401. Check the url, and the headers it wants"
            assert source.state.problem == problem
        async with keep_running(at(url, tmp_path, internal=False), services()) as source:
            problem = "127.0.0.1 is at an address that is not public. If it is meant to be, say internal: true"
            assert source.state.problem == problem


@pytest.mark.full
async def test_a_server_that_is_not_there_is_found_once_it_is_and_reached_again_after_a_call_was_lost(tmp_path: Path):
    port, mark, reports = free_port(), tmp_path / "mark", list[Progress]()
    async with keep_running(at(f"http://127.0.0.1:{port}/mcp", tmp_path), services()) as source:
        assert source.state.problem == "127.0.0.1 cannot be reached"
        with listening(port=port) as (_, process):
            await wait_until(lambda: source.state.problem is None)
            acting = asyncio.create_task(call(source, "files__slow", {"mark": str(mark)}, reports.append))
            await wait_until(lambda: reports)
            process.kill()
            failure = await acting
        assert (failure.error, "was lost while files__slow was at work" in words(failure)) == ("interrupted", True)
        with listening(port=port):
            assert words(await call(source, "files__echo", {"text": "again"})) == "again"
        assert not mark.exists()


@pytest.mark.full
async def test_a_cancelled_call_is_cancelled_there_and_progress_is_reported(tmp_path: Path):
    mark, reports = tmp_path / "mark", list[Progress]()
    with listening() as (url, _):
        async with keep_running(at(url, tmp_path), services()) as source:
            acting = asyncio.create_task(call(source, "files__slow", {"mark": str(mark)}, reports.append))
            await wait_until(lambda: reports)
            assert reports[0] == Progress(label="step 0", done=0, total=10, unit="")
            acting.cancel()
            await asyncio.gather(acting, return_exceptions=True)
            await wait_until(lambda: mark.exists() and mark.read_text(encoding="utf-8") == "cancelled")
            assert words(await call(source, "files__echo", {"text": "on"})) == "on"
