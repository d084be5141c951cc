"""The pool of parser processes (D7): a failing process costs one document."""

import asyncio
import os
import shutil
import signal
import tracemalloc
from collections.abc import AsyncIterator, Callable
from contextlib import aclosing
from pathlib import Path

import pytest
import pytest_asyncio

from recto.config.file_settings import MEBIBYTE, ParseLimits, PoolSettings
from recto.conversation.document import Element
from recto.errors import FileRefused
from recto.files.parsing.formats.plain_text import THREAD_BYTES
from recto.files.parsing.parser_pool import CLOSED, Parsers
from recto.files.parsing.ports import DocumentEnd, DocumentStart, FoundElements, Task
from tests.files.loop_clock import LoopClock
from tests.files.parsing.a_pool import (
    bad_pool,
    children,
    frames_of,
    in_pieces,
    innermost,
    lives,
    newest_child,
    open_files,
    refusal_of,
    state_of,
    text_from,
    until,
)
from tests.waiting import settle

pytestmark = pytest.mark.full

LONG = ParseLimits(seconds=60)


@pytest.fixture
async def clock(monkeypatch: pytest.MonkeyPatch) -> LoopClock:
    return LoopClock(monkeypatch)


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def parsers() -> AsyncIterator[Parsers]:
    """Return a real pool for all tests of this module."""
    pool = Parsers(PoolSettings(children=2))
    yield pool
    await pool.close()


@pytest_asyncio.fixture(loop_scope="function")
async def strange() -> AsyncIterator[Parsers]:
    """Return a pool whose process does what the name of its document says."""
    pool = bad_pool("named")
    yield pool
    await pool.close()


@pytest.fixture
def started() -> Callable[[], set[int]]:
    """Return a function that lists the processes started since the test began."""
    before = children()
    return lambda: children() - before


@pytest.mark.asyncio(loop_scope="module")
async def test_D7_a_document_is_read_in_a_child(parsers: Parsers, started: Callable[[], set[int]]):
    frames = await frames_of(parsers, "a.ipynb", "你好 hello".encode())
    assert frames == [
        DocumentStart(),
        FoundElements(elements=(Element(kind="text", text="你好 hello"),)),
        DocumentEnd(),
    ]
    (child,) = started()
    assert await text_from(parsers, "b.ipynb", b"hello") == "hello"
    assert started() == {child}


@pytest.mark.asyncio(loop_scope="module")
async def test_D7_a_child_has_limits_of_its_own_and_nothing_of_our_environment(parsers: Parsers):
    await frames_of(parsers, "a.ipynb", b"hello", limits=ParseLimits(memory_bytes=1_024 * MEBIBYTE))
    child = innermost(newest_child())
    limits = Path(f"/proc/{child}/limits").read_text()
    soft = {line[:25].strip(): line[25:].split()[0] for line in limits.splitlines()}
    assert soft["Max data size"] == str((1_024 - 64) * MEBIBYTE)
    assert soft["Max address space"] == str((1_024 + 512) * MEBIBYTE)
    assert (soft["Max core file size"], soft["Max file size"], soft["Max open files"]) == ("0", "0", "128")
    assert int(soft["Max cpu time"]) < 1_000
    names = {entry.split(b"=")[0] for entry in Path(f"/proc/{child}/environ").read_bytes().split(b"\0")}
    assert b"MALLOC_ARENA_MAX" in names
    assert not {name for name in names if name.startswith((b"PYTEST", b"RECTO", b"HYPOTHESIS"))}
    assert list(Path(f"/proc/{child}/cwd").iterdir()) == []


@pytest.mark.asyncio(loop_scope="module")
async def test_D7_a_document_that_takes_too_much_memory_is_refused_and_the_next_is_read(parsers: Parsers):
    little = ParseLimits(memory_bytes=256 * MEBIBYTE)
    error = await refusal_of(parsers, "a.ipynb", "好".encode("gb18030") * 50_000_000, limits=little)
    assert (error.code, str(error)) == (
        "memory",
        "it takes more memory to read than a document may. Ask the user for a part of it, or for another format.",
    )
    assert await text_from(parsers, "a.ipynb", b"hello") == "hello"


async def test_D7_a_child_that_takes_more_memory_than_it_may_is_ended():
    pool = bad_pool("swells", "96")
    error = await refusal_of(pool, "a.ipynb", limits=ParseLimits(memory_bytes=64 * MEBIBYTE))
    await pool.close()
    assert error.code == "memory"


async def test_D7_a_document_that_waits_for_a_child_is_on_disk(strange: Parsers):
    async def pieces() -> AsyncIterator[bytes]:
        for _ in range(64):
            yield b"x" * MEBIBYTE

    task = Task(format="ipynb", name="good", limits=LONG)
    tracemalloc.start()
    try:
        frames = [frame async for frame in strange.parse("a", task, pieces())]
        _, most = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert isinstance(frames[-1], DocumentEnd)
    assert most < 8 * MEBIBYTE


async def test_D7_a_file_that_is_too_large_is_refused_before_a_child_is_asked(
    strange: Parsers, started: Callable[[], set[int]]
):
    error = await refusal_of(strange, "good", b"12345", limits=ParseLimits(file_bytes=4))
    assert (error.code, started()) == ("too_large", set())
    assert str(error).startswith("it has more than 4 bytes")


@pytest.mark.parametrize(
    ("way", "code", "logged"),
    [
        *(
            (way, "crashed", "process failed")
            for way in ("garbage", "no_json", "huge_frame", "half_a_frame", "wrong_order")
        ),
        *(("dies", "crashed", "process failed: ChildGone"), ("is_killed", "memory", "")),
        ("out_of_memory", "memory", "memory allocation of"),
    ],
)
async def test_D7_a_child_that_breaks_costs_one_document_and_is_logged(
    strange: Parsers, caplog: pytest.LogCaptureFixture, way: str, code: str, logged: str
):
    caplog.set_level("DEBUG", "recto.files")
    error = await refusal_of(strange, way)
    assert (error.code, " Ask the user " in str(error)) == (code, True)
    assert logged in caplog.text
    assert (await text_from(strange, "good")).isdigit()


async def test_D7_a_child_that_says_nothing_without_end_is_stopped(strange: Parsers):
    error = await refusal_of(strange, "endless", limits=ParseLimits(characters=1_000, seconds=30))
    assert error.code == "crashed"


async def test_D7_a_document_without_end_is_cut_with_a_note_and_its_child_is_stopped(strange: Parsers):
    text = await text_from(strange, "long_text", limits=ParseLimits(characters=250_000))
    note = "\n\n[only the first 250,000 characters were read]"
    assert (len(text.removesuffix(note)), text.endswith(note)) == (250_000, True)
    assert (await text_from(strange, "good")).isdigit()


async def test_D7_at_the_deadline_the_child_is_killed_and_a_text_says_so(strange: Parsers, clock: LoopClock):
    pid = int(await text_from(strange, "good"))
    answer = strange.parse("a", Task(format="pdf", name="hangs", limits=LONG), in_pieces(b""))
    assert await anext(answer) == DocumentStart()
    # Time without a waiting reader does not count.
    clock.advance(LONG.seconds + 1)
    assert await anext(answer) == FoundElements(elements=(Element(kind="text", text="begun"),))
    asyncio.get_running_loop().call_soon(clock.advance, LONG.seconds + 1)
    with pytest.raises(FileRefused) as error:
        await anext(answer)
    assert (error.value.code, str(error.value)) == (
        "too_long",
        "it took longer than 60 seconds to read, so it was stopped. "
        "Ask the user for a part of it, or for another format.",
    )
    await until(lambda: not lives(pid))
    assert int(await text_from(strange, "good")) != pid


async def test_D7_a_document_that_comes_bit_by_bit_has_no_more_time(strange: Parsers):
    assert (await refusal_of(strange, "bit_by_bit", limits=ParseLimits(seconds=0.1))).code == "too_long"


@pytest.mark.parametrize("way", ["starts_others", "starts_others_and_dies"])
async def test_D7_what_a_child_started_ends_with_it(strange: Parsers, clock: LoopClock, way: str):
    frames = strange.parse("a", Task(format="pdf", name=way, limits=LONG), in_pieces(b""))
    await anext(frames)
    first_frame = await anext(frames)
    assert isinstance(first_frame, FoundElements)
    if way == "starts_others":
        asyncio.get_running_loop().call_soon(clock.advance, LONG.seconds + 1)
    with pytest.raises(FileRefused, match=r"stopped|crashed"):
        await anext(frames)
    await until(lambda: not lives(int(first_frame.elements[0].text)))


async def test_D7_a_child_goes_on_no_further_than_somebody_reads(tmp_path: Path):
    pool, count = bad_pool("counts", str(tmp_path / "count")), tmp_path / "count"
    async with aclosing(pool.parse("a", Task(format="pdf", name="a"), in_pieces(b""))) as frames:
        await anext(frames)
        await anext(frames)
        # It sleeps while it writes to a full pipe.
        await until(lambda: state_of(newest_child()) == "S")
        assert int(count.read_text()) < 100
        assert len([frame async for frame in frames]) == 400
    await pool.close()


async def test_D7_who_is_cancelled_leaves_no_child_at_work(strange: Parsers):
    pid = int(await text_from(strange, "good"))
    reading = asyncio.create_task(frames_of(strange, "hangs", limits=LONG))
    await settle(1)
    waiting = asyncio.create_task(frames_of(strange, "hangs", limits=LONG))
    await settle(1)
    for task in (waiting, reading):
        task.cancel()
    await asyncio.wait([waiting, reading])
    assert (waiting.cancelled(), reading.cancelled()) == (True, True)
    await until(lambda: not lives(pid))
    assert int(await text_from(strange, "good")) != pid


@pytest.mark.parametrize("way", ["missing", "never_starts", "never_ready"])
async def test_D7_children_that_cannot_be_started_are_told_of_in_words(way: str, started: Callable[[], set[int]]):
    settings = PoolSettings(start_seconds=0.1, sandbox="")
    pool = Parsers(settings, command=["/no/such/program"]) if way == "missing" else bad_pool(way, settings=settings)
    error = await refusal_of(pool, "a.ipynb")
    await pool.close()
    assert (error.code, started(), str(error)) == (
        "not_started",
        set(),
        "the program that reads files could not be started. Tell the user that the server needs repair.",
    )


async def test_D7_a_child_that_takes_no_document_is_told_of_in_words(tmp_path: Path, clock: LoopClock):
    pool = bad_pool("never_reads", str(tmp_path / "has_bytes"))
    refusing = asyncio.create_task(refusal_of(pool, "a.ipynb", b"x" * 1_000_000))
    await until((tmp_path / "has_bytes").exists)
    clock.advance(PoolSettings().start_seconds)
    assert (await refusing).code == "crashed"
    await pool.close()


async def test_D7_a_child_that_dies_while_it_is_idle_costs_no_document_even_if_its_folder_was_tidied_away():
    pool = Parsers(PoolSettings(sandbox=""))
    assert await text_from(pool, "a.ipynb", b"hello") == "hello"
    child = newest_child()
    folder = Path(f"/proc/{child}/cwd").readlink().parent
    assert folder.name.startswith("recto-parsing-")
    shutil.rmtree(folder)
    os.kill(child, signal.SIGKILL)
    await until(lambda: not lives(child))
    assert await text_from(pool, "a.ipynb", b"hello") == "hello"
    await pool.close()


async def test_D7_a_child_that_leaves_or_has_read_some_documents_is_replaced():
    pool = bad_pool("named", settings=PoolSettings(documents=2, sandbox=""))
    pids = [await text_from(pool, name) for name in ("leaves", "good", "good", "good", "good", "good")]
    folder = Path(f"/proc/{pids[-1]}/cwd").resolve().parent
    await until(lambda: len(list(folder.iterdir())) == 1)
    await pool.close()
    assert [pids.count(pid) for pid in dict.fromkeys(pids)] == [1, 2, 2, 1]


@pytest.mark.parametrize("owners", ["a", "ab"])
async def test_D7_users_whose_documents_hang_hold_up_nobody_else(owners: str):
    pool = bad_pool("named", settings=PoolSettings(children=2, slow_seconds=0.05, sandbox=""))
    hanging = [
        asyncio.create_task(frames_of(pool, "hangs", owner=owner, limits=LONG)) for owner in owners for _ in range(5)
    ]
    await settle()
    assert (await text_from(pool, "good", owner="c")).isdigit()
    assert not any(task.done() for task in hanging)
    await pool.close()
    done = await asyncio.gather(*hanging, return_exceptions=True)
    assert {(type(error), str(error)) for error in done} == {(FileRefused, CLOSED)}


async def test_D7_a_storage_that_is_slow_holds_no_child():
    pool = bad_pool("named", settings=PoolSettings(children=1, sandbox=""))

    async def never() -> AsyncIterator[bytes]:
        yield b"begun"
        await asyncio.Event().wait()

    async def read() -> None:
        async for _ in pool.parse("a", Task(format="pdf", name="good"), never()):
            pass

    waiting = asyncio.create_task(read())
    await settle()
    assert (await text_from(pool, "good")).isdigit()
    waiting.cancel()
    await pool.close()


async def test_D7_documents_that_wait_have_room_for_so_many_bytes_and_one_user_for_half_of_them(
    started: Callable[[], set[int]],
):
    pool = bad_pool("named", settings=PoolSettings(children=1, waiting_bytes=100, sandbox=""))
    for _ in range(2):
        assert (await text_from(pool, "good", b"x" * 1_000)).isdigit()
    hanging = [asyncio.create_task(frames_of(pool, "hangs", b"x" * 30, limits=LONG))]
    await until(lambda: len(started()) == 1)
    hanging.append(asyncio.create_task(frames_of(pool, "hangs", b"x" * 20, owner="c", limits=LONG)))
    await settle()
    assert (await refusal_of(pool, "good", b"x" * 30)).code == "busy"
    assert (await refusal_of(pool, "good", b"x" * 60, owner="b")).code == "busy"
    await pool.close()
    assert [type(error) for error in await asyncio.gather(*hanging, return_exceptions=True)] == [FileRefused] * 2


async def test_D7_spare_children_end_after_a_while_but_for_one(started: Callable[[], set[int]], clock: LoopClock):
    pool = bad_pool("named", settings=PoolSettings(children=3, sandbox=""))
    await asyncio.gather(*[text_from(pool, "good", owner=owner) for owner in "abc"])
    assert len(started()) > 1
    clock.advance(PoolSettings().idle_seconds)
    await until(lambda: len(started()) == 1)
    assert int(await text_from(pool, "good")) in started()
    await pool.close()
    assert started() == set()


async def test_D7_a_pool_leaves_no_process_no_file_and_nobody_waiting_behind(started: Callable[[], set[int]]):
    before = open_files()
    pool = bad_pool("named", settings=PoolSettings(children=2, sandbox=""))
    for name in ("good", "chatty", "long_text"):
        await frames_of(pool, name, limits=ParseLimits(characters=10))
    assert (await refusal_of(pool, "dies")).code == "crashed"
    hanging = [asyncio.create_task(frames_of(pool, "hangs", owner=owner, limits=LONG)) for owner in "abc"]
    await settle()
    folders = [Path(f"/proc/{pid}/cwd").resolve() for pid in started()]
    await pool.close()
    await pool.close()
    errors = await asyncio.gather(*hanging, return_exceptions=True)
    assert {str(error) for error in errors} == {CLOSED}
    assert (started(), open_files()) == (set(), before)
    assert not [folder for folder in folders if folder.parent.exists()]
    assert (await refusal_of(pool, "good")).code == "busy"


async def test_D7_a_small_plain_text_needs_no_process():
    pool = Parsers(PoolSettings(sandbox=""), command=("/nowhere/at-all",))
    assert await text_from(pool, "a.txt", "你好".encode("gb18030")) == "你好"
    assert "| 1 | 2 |" in await text_from(pool, "a.csv", b"a,b\n1,2\n")
    little = await text_from(pool, "a.py", b"0123456789", limits=ParseLimits(characters=4))
    assert little == "0123\n\n[only the first 4 characters were read]"
    assert (await refusal_of(pool, "a.txt", b"\0\1\2" * 99)).code == "not_text"
    # Larger texts, other formats, and other formats under the name of a text.
    for name, data in (("a.txt", b"x" * (THREAD_BYTES + 1)), ("a.html", b"x"), ("a.txt", b"%PDF-1.7")):
        assert (await refusal_of(pool, name, data)).code == "not_started"
    await pool.close()
