"""D2, D4, D5, D7, F5: documents in conversations over HTTP: real parsers, read by a tool or carried by every page."""

import re
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from recto.conversation.json import Json, dump, load, load_object
from recto.testing.client import RUNS
from recto.testing.model_server import Answer, Call
from tests.api.forms import Field, file
from tests.end_to_end.files import ATTACHMENTS, MODELS, FileWorld, Talk, Turn, a_run, part, rows, words
from tests.files.heads import PNG
from tests.house import ROOT
from tests.waiting import wait_for

pytestmark = pytest.mark.full

DOCUMENTS = ROOT / "tests" / "documents"
QUOTES = ("将 <Quote></Quote> 中的内容", "Take what is in <Quote></Quote>")
BLOCK = re.compile(r"File: (\S+)\n<Content>\n(.*?)\n</Content>", re.DOTALL)
# D4's own example: what is uploaded in each of four rounds, and what is read then.
ROUNDS: list[tuple[list[str], list[str]]] = [
    (["a1.txt", "a2.txt", "a3.txt", "photo.png"], ["a1.txt", "a2.txt", "a3.txt"]),
    ([], ["a1.txt", "a2.txt", "a3.txt"]),
    (["c1.txt", "c2.txt"], ["c1.txt", "c2.txt", "a1.txt", "a2.txt", "a3.txt"]),
    (["d1.txt"], ["d1.txt", "c1.txt", "c2.txt", "a1.txt", "a2.txt"]),
]


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[FileWorld]:
    made = FileWorld(tmp_path_factory.mktemp("documents"))
    for wire in ("openai", "anthropic"):
        made.write_agent(f"always-{wire}", model=MODELS[wire], most=5, locale="zh", files=", mode: always")
    with made:
        yield made


def attached(world: FileWorld, names: Sequence[str]) -> list[Json]:
    fields = [
        file(name, PNG + name.encode() if name.endswith(".png") else f"This is {name}.".encode()) for name in names
    ]
    return [part(row) for row in (world.upload(*fields) if fields else [])]


def document(name: str) -> Field:
    return file(name, (DOCUMENTS / name).read_bytes())


def reading(id: str, **rest: Json) -> Answer:
    return Answer(calls=(Call(name="read_files", arguments=dump({"ids": [id], **rest}).decode(), id="c1"),))


def result(turn: Turn) -> str:
    (shown,) = [str(sent.event["content"]) for sent in turn.events if sent.event["type"] == "TOOL_CALL_RESULT"]
    return shown


def content(turn: Turn) -> str:
    (row,) = rows(load(result(turn)))
    return str(row["content"])


def quote_of(turn: Turn) -> str | None:
    """The text of the quote in a turn's first page; None where there is none. It is its own message, or block."""
    page = turn.requests[0].page
    system = page.get("system")
    blocks = (
        rows(system) if isinstance(system, list) else [one for one in rows(page["messages"]) if one["role"] == "system"]
    )
    texts = [str(block.get("text") or block.get("content")) for block in blocks]
    (found,) = [text for text in texts if text.startswith(QUOTES)] or [None]
    return found


# Always


@pytest.mark.parametrize("wire", ["openai", "anthropic"])
def test_D4_the_four_rounds_where_every_page_carries_the_documents(world: FileWorld, wire: str):
    talk = Talk(agent=f"always-{wire}")
    for names, read in ROUNDS:
        turn = world.say(talk, [words("So?"), *attached(world, names)])
        assert len(turn.requests) == 1
        blocks = BLOCK.findall(quote_of(turn) or "")
        assert blocks == [(name, f"This is {name}.") for name in read]


# With a tool


@pytest.mark.parametrize(
    ("name", "held"),
    [
        ("letter.docx", "# "),
        ("book.xlsx", "[sheet 1"),
        ("deck.pptx", "[speaker notes]"),
        ("letter.pdf", "[page 1]"),
        ("text.gb18030.txt", ""),
    ],
)
def test_D6_a_real_document_is_read_over_http(world: FileWorld, name: str, held: str):
    talk, (row,) = Talk(), world.upload(document(name))
    world.say(talk, [words("Here."), part(row)])
    shown = content(world.say(talk, "Read.", reading(f"{world.response_id(talk.thread)}-0")))
    assert held in shown
    assert not shown.startswith("Error")
    assert re.search(r"[\u4e00-\u9fff]", shown)


# From elsewhere


# What could hurt


def test_D3_a_text_is_kept_for_all_threads_of_a_user_and_goes_with_its_file(world: FileWorld):
    data = b"Kept once for all threads."
    (row,) = world.upload(file("kept.txt", data))
    for _ in range(2):
        talk = Talk()
        world.say(talk, [words("Here."), part(row)])
        assert content(world.say(talk, "Read.", reading(f"{world.response_id(talk.thread)}-0"))) == data.decode()
    assert len(kept(world, data)) == 1
    assert world.ask("DELETE", f"{ATTACHMENTS}/{row['id']}").status == 200
    assert kept(world, data) == []


def kept(world: FileWorld, data: bytes) -> list[Path]:
    files = [path for path in (world.data / "parsed").rglob("*") if path.is_file()]
    return [path for path in files if path.read_bytes() == data]


def test_X4_a_server_killed_while_it_reads_documents_goes_on_and_tells_the_run_from_its_start(world: FileWorld):
    rows_of_csv = b"".join(b"%d,some words in a cell,%d\n" % (number, number * 7) for number in range(200_000))
    (large,) = world.upload(file("large.csv", rows_of_csv))
    body = a_run(Talk(agent="always-openai"), [words("So?"), part(large)])
    assert world.post(body).status == 202
    run, thread = str(body["runId"]), str(body["threadId"])
    wait_for(lambda: any(b"ACTIVITY_SNAPSHOT" in event for event in told_of(world, run)))
    assert len(world.users(thread)) == 1
    world.restart(kill=True)
    wait_for(lambda: world.ask("GET", f"{RUNS}/{run}").json["status"] == "finished")
    types = [str((load_object(event) or {})["type"]) for event in told_of(world, run)]
    assert (types[0], types.count("RUN_STARTED"), types[-1]) == ("RUN_STARTED", 1, "RUN_FINISHED")
    world.forget_all()


def told_of(world: FileWorld, run: str) -> list[bytes]:
    query = "SELECT body FROM events WHERE run IN (SELECT id FROM runs WHERE name = ?) ORDER BY number"
    return world.column(query, run)
