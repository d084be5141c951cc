"""D2, D4, D5, D7, F5: documents in conversations over HTTP: real parsers, read by a tool or carried by every page."""

import re
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import cast

import pytest

from recto.conversation.json import Json, dump, load, load_object
from recto.testing.client import RUNS
from recto.testing.model_server import Answer, Call
from tests.api.forms import Field, file
from tests.end_to_end.files import ATTACHMENTS, BOB, MODELS, FileWorld, Talk, Turn, a_run, part, rows, words
from tests.files.heads import PNG
from tests.files.parsing.reading import joined
from tests.house import ROOT

pytestmark = pytest.mark.full

DOCUMENTS = ROOT / "tests" / "documents"
LOOPING = (
    b"%PDF-1.4\n1 0 obj<</Type/Catalog/Pages 2 0 R>>endobj\n"
    b"2 0 obj<</Type/Pages/Count 9999/Kids[2 0 R 2 0 R]>>endobj\ntrailer<</Root 1 0 R>>\n"
)
QUOTES = ("将 <Quote></Quote> 中的内容", "Take what is in <Quote></Quote>")
BLOCK = re.compile(r"File: (\S+)\n<Content>\n(.*?)\n</Content>", re.DOTALL)
# D4's own example: what is uploaded in each of four rounds, and what is read then.
ROUNDS: list[tuple[list[str], list[str]]] = [
    (["a1.txt", "a2.txt", "a3.txt", "photo.png"], ["a1.txt", "a2.txt", "a3.txt"]),
    ([], ["a1.txt", "a2.txt", "a3.txt"]),
    (["c1.txt", "c2.txt"], ["c1.txt", "c2.txt", "a1.txt", "a2.txt", "a3.txt"]),
    (["d1.txt"], ["d1.txt", "c1.txt", "c2.txt", "a1.txt", "a2.txt"]),
]


class Elsewhere(SimpleHTTPRequestHandler):
    """A server of somebody else's, with one document."""

    def do_GET(self) -> None:
        self.send_response(200 if self.path == "/report.csv" else 404)
        self.end_headers()
        self.wfile.write("城市,数\n北京,7\n".encode())

    def log_message(self, format: str, *args: object) -> None:
        """Say nothing."""


@pytest.fixture(scope="module")
def elsewhere() -> Iterator[str]:
    with ThreadingHTTPServer(("127.0.0.1", 0), Elsewhere) as server:
        Thread(target=server.serve_forever, daemon=True).start()
        yield f"127.0.0.1:{server.server_port}"
        server.shutdown()


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory, elsewhere: str) -> Iterator[FileWorld]:
    made = FileWorld(tmp_path_factory.mktemp("documents"), parse_seconds=6, fetch_networks="127.0.0.0/8")
    made.write_agent("fetching", files=f', urls: ["{elsewhere}"]')
    for wire in ("openai", "anthropic"):
        made.write_agent(f"always-{wire}", model=MODELS[wire], most=5, locale="zh", files=", mode: always")
    made.write_agent("short", files=", mode: always, quote_tokens: 300")
    made.write_agent("all-at-once", most=5, tools="read_documents")
    made.write_agent("own-words", more="quote: The house rules, <Quote> and all.")
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


def activities(turn: Turn) -> list[Mapping[str, Json]]:
    shown = [sent.event for sent in turn.events if sent.event["type"] == "ACTIVITY_SNAPSHOT"]
    return [load_object(dump(event["content"])) or {} for event in shown]


def parts_of(world: FileWorld, turn: Turn, kind: str) -> list[Mapping[str, Json]]:
    run = str(turn.body["runId"])
    call = world.ask("GET", f"/api/v1/agent/runs/{run}/calls/1").json
    manifest = cast("Mapping[str, Json]", call["manifest"])
    return [one for one in rows(manifest["parts"]) if one["kind"] == kind]


# Always


@pytest.mark.parametrize("wire", ["openai", "anthropic"])
def test_D4_the_four_rounds_where_every_page_carries_the_documents(world: FileWorld, wire: str):
    talk = Talk(agent=f"always-{wire}")
    for names, read in ROUNDS:
        turn = world.say(talk, [words("So?"), *attached(world, names)])
        assert len(turn.requests) == 1
        blocks = BLOCK.findall(quote_of(turn) or "")
        assert blocks == [(name, f"This is {name}.") for name in read]


def test_D2_the_documents_are_a_system_message_of_their_own_between_the_prompt_and_the_history(world: FileWorld):
    talk = Talk(agent="always-openai")
    world.say(talk, [words("Here."), *attached(world, ["a.txt", "b.txt"])])
    page = world.say(talk, "And?").pages[0]
    assert [message["role"] for message in page[:3]] == ["system", "system", "user"]
    assert page[1]["content"] == (
        "将 <Quote></Quote> 中的内容作为本次对话的参考:\n<Quote>\n"
        "File: a.txt\n<Content>\nThis is a.txt.\n</Content>\n******\n"
        "File: b.txt\n<Content>\nThis is b.txt.\n</Content>\n"
        "</Quote>"
    )


def test_D2_an_agent_may_give_its_own_text(world: FileWorld):
    talk = Talk(agent="own-words")
    turn = world.say(talk, [words("So?"), *attached(world, ["a.txt"])])
    shown = quote_of(turn)
    assert shown is not None
    assert "The house rules" in shown
    assert "This is a.txt." not in shown
    assert shown.count("<Quote>") == 2


def test_D2_what_does_not_fit_is_cut_and_said_to_be_in_the_text_and_the_manifest(world: FileWorld):
    talk = Talk(agent="short")
    (long,) = world.upload(file("long.txt", b"".join(b"Line %d of a long text.\n" % n for n in range(2_000))))
    turn = world.say(talk, [words("So?"), part(long)])
    shown = quote_of(turn) or ""
    assert "; read_files has the rest]\n</Content>" in shown
    assert "read_files" in str(turn.requests[0].page["tools"])
    (row,) = parts_of(world, turn, "quote")
    assert (row["decision"], row["rule"]) == ("cut", "D2")
    tokens = cast("Mapping[str, int]", row["tokens"])
    # A message costs a few tokens beside its text.
    assert tokens["after"] <= 310 < tokens["before"]
    assert "long.txt" in str(row["reason"])


def test_D2_a_long_document_is_waited_for_and_its_progress_is_told(world: FileWorld):
    talk = Talk(agent="always-openai")
    longer = joined(*[(DOCUMENTS / "long.pdf").read_bytes()] * 6)
    (long,) = world.upload(file("long.pdf", longer))
    turn = world.say(talk, [words("So?"), part(long)])
    shown = activities(turn)
    assert shown[0]["label"] == "long.pdf"
    assert (shown[0]["total"], shown[0]["unit"], shown[0]["status"]) == (1_800, "pages", "running")
    assert shown[-1]["status"] == "ended"
    assert len({str(sent.event["messageId"]) for sent in turn.events if sent.event["type"] == "ACTIVITY_SNAPSHOT"}) == 1
    assert "[page 1]" in (quote_of(turn) or "")


# With a tool


def test_D4_the_four_rounds_where_the_model_asks_for_all_documents(world: FileWorld):
    talk, offered = Talk(agent="all-at-once"), ""
    for names, read in ROUNDS:
        asking = Answer(calls=(Call(name="read_documents", arguments="{}", id="c1"),))
        turn = world.say(talk, [words("So?"), *attached(world, names)], asking)
        assert BLOCK.findall(result(turn)) == [(name, f"This is {name}.") for name in read]
        assert quote_of(turn) is None
        offered = str(turn.requests[0].page["tools"])
    assert "解析对话中所有上传的文档，并返回对应文档内容" in offered


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


def test_F5_the_first_page_of_a_long_document_is_there_before_its_last(world: FileWorld):
    # Its own bytes, so that nobody has read it before.
    data = joined(*[(DOCUMENTS / "long.pdf").read_bytes()] * 4)
    talk, (row,) = Talk(), world.upload(file("another.pdf", data))
    world.say(talk, [words("Here."), part(row)])
    id = f"{world.response_id(talk.thread)}-0"
    first = content(world.say(talk, "Read.", reading(id, limit=100)))
    assert first.startswith("[characters 1-")
    assert "page 1 of 1200 (the rest is still being read)" in first
    last = content(world.say(talk, "Read.", reading(id, pages="1200")))
    assert "page 1200 of 1200" in last
    # The last page is there a moment before the reading has ended.
    until(lambda: "still being read" not in content(world.say(talk, "Read.", reading(id, limit=100))))


def test_D9_elements_come_as_data(world: FileWorld):
    talk, (row,) = Talk(), world.upload(document("book.xlsx"))
    world.say(talk, [words("Here."), part(row)])
    shown = content(world.say(talk, "Read.", reading(f"{world.response_id(talk.thread)}-0", format="elements")))
    assert '"kind":"table"' in shown
    assert '"rows":[[' in shown


# From elsewhere


def foreign(address: str, path: str) -> Json:
    return {"type": "document", "source": {"type": "url", "value": f"http://{address}{path}"}}


def test_D7_a_document_from_a_host_the_agent_names_is_fetched_and_read(world: FileWorld, elsewhere: str):
    talk = Talk(agent="fetching")
    turn = world.say(talk, [words("Here."), foreign(elsewhere, "/report.csv")])
    assert "<name>report.csv</name>" in str(turn.pages[0])
    assert elsewhere not in str(world.users(talk.thread)[0])
    shown = content(world.say(talk, "Read.", reading(f"{world.response_id(talk.thread)}-0")))
    assert shown == "| 城市 | 数 |\n| --- | --- |\n| 北京 | 7 |"


# What could hurt


def test_D7_a_document_that_hangs_costs_one_error_and_nobody_else_waits_for_it(world: FileWorld):
    mine, theirs = Talk(), Talk(token=BOB)
    (looping,) = world.upload(file("looping.pdf", LOOPING))
    (plain,) = world.upload(file("plain.txt", b"Read me."), token=BOB)
    world.say(mine, [words("Here."), part(looping)])
    world.say(theirs, [words("Here."), part(plain)])
    shown = content(world.say(mine, "Read.", reading(f"{world.response_id(mine.thread)}-0")))
    assert shown.startswith("Error: ")
    assert "damaged" in shown
    assert content(world.say(theirs, "Read.", reading(f"{world.response_id(theirs.thread)}-0"))) == "Read me."


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
    rows_of_csv = b"".join(b"%d,some words in a cell,%d\n" % (number, number * 7) for number in range(500_000))
    (large,) = world.upload(file("large.csv", rows_of_csv))
    body = a_run(Talk(agent="always-openai"), [words("So?"), part(large)])
    assert world.post(body).status == 202
    run, thread = str(body["runId"]), str(body["threadId"])
    until(lambda: any(b"ACTIVITY_SNAPSHOT" in event for event in told_of(world, run)))
    assert len(world.users(thread)) == 1
    world.restart(kill=True)
    until(lambda: world.ask("GET", f"{RUNS}/{run}").json["status"] == "finished")
    types = [str((load_object(event) or {})["type"]) for event in told_of(world, run)]
    assert (types[0], types.count("RUN_STARTED"), types[-1]) == ("RUN_STARTED", 1, "RUN_FINISHED")
    world.forget_all()


def told_of(world: FileWorld, run: str) -> list[bytes]:
    query = "SELECT body FROM events WHERE run IN (SELECT id FROM runs WHERE name = ?) ORDER BY number"
    return world.column(query, run)


def until(is_so: Callable[[], bool]) -> None:
    ends = time.monotonic() + 60
    while not is_so():
        assert time.monotonic() < ends
        time.sleep(0.02)
