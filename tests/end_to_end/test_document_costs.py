"""D7: what documents cost a server in memory and standstill, however they are made: bounded, with room for noise."""

import threading
import zlib
from collections.abc import Callable, Iterator, Sequence
from itertools import count

import pytest

from recto.conversation.json import Json
from tests.api.forms import file
from tests.costs import MEBIBYTE, costs_of, standstill_limit
from tests.end_to_end.files import FileWorld, Talk, Turn, part, reading, words
from tests.files.parsing import hostile

pytestmark = pytest.mark.full

# What a server may take for a document, and a child.
SERVER_BYTES, CHILD_BYTES = 64 * MEBIBYTE, 512 * MEBIBYTE
NUMBERS = count()


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[FileWorld]:
    world = FileWorld(tmp_path_factory.mktemp("costs"), parse_seconds=20)
    world.write_agent("always", files=", mode: always")
    with world:
        # What is loaded at the first document, and stays.
        always(world, documents(txt=[b"warm"]))
        read(world, documents(txt=[b"warm too"]))
        yield world


def documents(**contents: Sequence[bytes]) -> list[tuple[str, bytes]]:
    return [(f"{place}.{ending}", data) for ending, all in contents.items() for place, data in enumerate(all)]


def attach(world: FileWorld, documents: Sequence[tuple[str, bytes]]) -> list[Json]:
    return [part(row) for one in documents for row in world.upload(file(*one))]


def always(world: FileWorld, documents: Sequence[tuple[str, bytes]]) -> Turn:
    return world.say(Talk(agent="always"), [words("So?"), *attach(world, documents)])


def read(world: FileWorld, documents: Sequence[tuple[str, bytes]]) -> str:
    """Return the result of `read_files` for documents."""
    talk = Talk()
    world.say(talk, [words("Here."), *attach(world, documents)])
    r = world.response_id(talk.thread)
    (content,) = world.say(talk, "Read.", reading(*[f"{r}-{place}" for place in range(len(documents))])).results
    return content


def at_once(*tasks: Callable[[], object]) -> None:
    threads = [threading.Thread(target=task) for task in tasks]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def test_D7_files_of_blanks_in_every_page_cost_little_also_for_several_at_once(world: FileWorld):
    def eight() -> object:
        return always(world, documents(txt=[b" " * (5 * MEBIBYTE - next(NUMBERS)) for _ in range(8)]))

    costs = costs_of(world, lambda: at_once(*[eight] * 4))
    # Who sent which page is not known of those at once.
    world.forget_all()
    # Thirty-two documents, and four uploads on their way.
    assert costs.peak < 2 * SERVER_BYTES
    assert costs.child < CHILD_BYTES
    assert costs.standstill < standstill_limit()


def packed_pdf(mebibytes: int) -> bytes:
    """Return a small PDF that unpacks to many megabytes of commands."""
    once = zlib.compress(zlib.compress(b"0 0 m " * (16 * MEBIBYTE // 6), 9), 9)
    page = hostile.PAGE.format(f"/Contents[{'4 0 R ' * (mebibytes // 16)}]")
    return hostile.pdf(hostile.CATALOG, hostile.PAGES, page, hostile.stream("/Filter[/FlateDecode/FlateDecode]", once))


def large_texts() -> list[tuple[str, bytes]]:
    text = f"{next(NUMBERS)} some words and 好\n".encode() * (16 * MEBIBYTE // 24)
    return documents(txt=[b"%d" % place + text for place in range(8)])


def small_elements() -> list[tuple[str, bytes]]:
    rows = b"a,b\n" * (400_000 - next(NUMBERS))
    return documents(csv=[rows, rows[:-4]], md=[rows[:4] + b"- a\n" * 1_000_000])


def packed() -> list[tuple[str, bytes]]:
    """Return a document that takes too much memory to read, and a good one."""
    return [(f"packed{next(NUMBERS)}.pdf", packed_pdf(700)), ("good.txt", b"good words")]


ATTACKS = {
    "large texts": (large_texts, ["some words"]),
    "a million small elements": (small_elements, ["| a | b |"]),
    "packed pages": (packed, ["it takes more memory to read than a document may", "good words"]),
}


@pytest.mark.parametrize("attack", ATTACKS)
def test_D7_no_document_costs_more_than_a_server_and_its_child_may_take(world: FileWorld, attack: str):
    make, expected = ATTACKS[attack]

    def send() -> None:
        content = read(world, make())
        assert [text in content for text in expected] == [True] * len(expected)

    costs = costs_of(world, send)
    assert costs.peak < SERVER_BYTES
    assert costs.child < CHILD_BYTES
    assert costs.standstill < standstill_limit()
