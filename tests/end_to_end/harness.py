"""A harness for whole runs: a recording model, a data folder, an agent with tools, and real servers on them.

When it is struck, every model call that was received is looked up in the store: its bytes and the manifest's spans
must be the same.
"""

import asyncio
import http.client
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Self, cast

from sqlalchemy import select

from recto.conversation.json import Json, load, load_object
from recto.conversation.log import Entry
from recto.conversation.messages import AssistantMessage, Text, ToolMessage, UserMessage, texts_of
from recto.store.database.opening import check_url, open_database
from recto.store.log.entry_codec import entry_kind
from recto.store.ports import StoredCall
from recto.store.schema import RUNS
from recto.store.store import Store, open_store
from recto.testing.model_server import Answer, Call, ModelServer, Request, Script
from recto.testing.process import ServerProcess, free_port
from tests.support.client import Reader, ReceivedEvent, start

TOOLS = '''
import asyncio
import threading
from pathlib import Path

from recto import tool

FOLDER = Path(__file__).parent
WRITTEN = threading.Condition()


@tool
def note(text: str) -> str:
    """Write a line down."""
    with WRITTEN, (FOLDER / "notes.txt").open("a") as notes:
        notes.write(text + "\\n")
        WRITTEN.notify_all()
    return f"noted {text}"


@tool(safe_to_repeat=True)
def look(text: str) -> str:
    """Look at a line again; looking twice does no harm."""
    with (FOLDER / "looks.txt").open("a") as looks:
        looks.write(text + "\\n")
    return f"saw {text}"


@tool
def follow(text: str) -> str:
    """Wait until somebody has written a line down."""
    with WRITTEN:
        notes = FOLDER / "notes.txt"
        WRITTEN.wait_for(lambda: notes.exists() and text in notes.read_text().splitlines())
    return f"followed {text}"


@tool
async def wait() -> str:
    """Wait until the run is ended."""
    (FOLDER / "waiting.txt").touch()
    await asyncio.Event().wait()
    note("waited")
    return "waited"


@tool(confirm=True)
def send(text: str) -> str:
    """Send a line to everybody."""
    return note(text)
'''
# Seconds between two pieces of an answer: what comes together is told together.
BETWEEN = 0.004
KILLED = -9
CLOCK = re.compile(r"# Current time\n[^\n]+")


class Harness:
    """A scripted model, a data folder, and the agent `agents/helper`."""

    def __init__(self, folder: Path, script: Script) -> None:
        self.model = ModelServer(script)
        self.data = folder / "data"
        self.agents = folder / "agents"
        self.agent = self.agents / "helper"
        self.port = free_port()
        self.database = ""

    def __enter__(self) -> Self:
        self.agent.mkdir(parents=True)
        (self.agent / "AGENT.md").write_text("You are a careful helper.\n", encoding="utf-8")
        (self.agent / "tools.py").write_text(TOOLS, encoding="utf-8")
        self.model.__enter__()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None) -> None:
        try:
            if kind is None and (self.database or (self.data / "recto.db").exists()):
                assert_calls_were_stored_as_sent(self.database or f"sqlite:///{self.data / 'recto.db'}", self.received)
        finally:
            self.model.__exit__(kind, error, _)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    @property
    def received(self) -> list[bytes]:
        return [request.body for request in self.model.requests]

    @property
    def notes(self) -> list[str]:
        """Return the lines that the tool `note` wrote."""
        file = self.agent / "notes.txt"
        return file.read_text().splitlines() if file.exists() else []

    def environment(self, **settings: object) -> dict[str, str]:
        environment = {
            "model": "compatible:scripted",
            "model_url": self.model.url,
            "agent": "helper",
            "agents": self.agents,
        }
        if self.database:
            environment["database_url"] = self.database
        return {f"RECTO_{name.upper()}": str(value) for name, value in (environment | settings).items()}

    def serve(self, **settings: object) -> ServerProcess:
        command = ["recto", "serve", "--port", str(self.port), "--data", str(self.data)]
        return ServerProcess(command, self.environment(**settings))

    def serve_beside(self, data: Path, **settings: object) -> ServerProcess:
        """Return a second server with its own port and folder."""
        return ServerProcess.serve(data, self.environment(**settings))

    def crash(self, point: str, times: int, **settings: object) -> ServerProcess:
        """Return a server that dies at a point."""
        arguments = [point, str(times), str(self.port), str(self.data), str(self.agents)]
        return ServerProcess(["tests.support.crash_server", *arguments], self.environment(**settings))

    def killed(self, body: Mapping[str, Json], point: str, times: int = 1) -> Reader:
        """Send a run to a server that dies at a point. Return a reader of the run."""
        reader = Reader(lambda: self.url, str(body["runId"]))
        with self.crash(point, times) as server:
            try_to_start(self.url, body)
            assert server.wait() == KILLED
        return reader

    def log(self, thread: str) -> Sequence[Entry]:
        return read_log(self.database or f"sqlite:///{self.data / 'recto.db'}", thread)


def read_log(database: str, thread: str) -> Sequence[Entry]:
    """Return the stored log of a thread."""

    async def read() -> Sequence[Entry]:
        store = await open_store(database)
        try:
            return await store.log.read_after(thread)
        finally:
            await store.close()

    return asyncio.run(read())


def try_to_start(url: str, body: Mapping[str, Json]) -> None:
    """Send a run once. The server may die before it answers and still have the run."""
    with suppress(OSError, http.client.HTTPException):
        start(url, body)


def a_note_then_an_answer(request: Request) -> Answer:
    """Call `note` if the message contains "note", then answer."""
    messages = cast("list[Mapping[str, Json]]", request.page.get("messages"))
    last = messages[-1]
    if last["role"] == "tool":
        return Answer(text=f"I have done it. ({last['content']})", delay=BETWEEN)
    if "note" in str(last["content"]):
        call = Call(name="note", arguments='{"text": "milk"}', id="c1")
        return Answer(text="Let me write it down.", calls=(call,), delay=BETWEEN)
    return Answer(text="You are welcome, as always.", delay=BETWEEN)


def story(log: Sequence[Entry]) -> list[tuple[str, str]]:
    """Return a log as kinds and texts, which are equal in all runs."""
    return [(entry_kind(entry), _words(entry)) for entry in log]


def _words(entry: Entry) -> str:
    match entry:
        case UserMessage() | AssistantMessage() | ToolMessage():
            return "|".join(texts_of(entry))
        case _:
            return ""


def without_clock(body: bytes) -> Json:
    """Return a page without the time of its turn."""
    return load(CLOCK.sub("# Current time", body.decode().replace("\\n", "\n")).replace("\n", "\\n"))


def stream_texts(events: Sequence[ReceivedEvent]) -> dict[str, list[str]]:
    """Return the words, calls and results of a stream, without discarded messages."""
    texts: dict[str, str] = {}
    parents: dict[str, str] = {}
    results: dict[str, str] = {}
    for received in events:
        match received.event:
            case {"type": "TEXT_MESSAGE_CONTENT", "messageId": str(id), "delta": str(delta)}:
                texts[id] = texts.get(id, "") + delta
            case {"type": "TOOL_CALL_START", "toolCallId": str(call), "parentMessageId": str(id), "toolCallName": name}:
                texts[f"{id}/{call}"], parents[call] = f"{name} ", id
            case {"type": "TOOL_CALL_ARGS", "toolCallId": str(call), "delta": str(delta)}:
                texts[f"{parents[call]}/{call}"] += delta
            case {"type": "TOOL_CALL_RESULT", "toolCallId": str(call), "content": str(content)}:
                results[call] = content
            case {"type": "CUSTOM", "name": "recto.discarded", "value": {"messageId": str(id)}}:
                texts = {key: text for key, text in texts.items() if key.split("/")[0] != id}
                results = {call: content for call, content in results.items() if parents.get(call) != id}
            case _:
                pass
    words = [text for key, text in texts.items() if "/" not in key]
    return {
        "words": words,
        "calls": [text for key, text in texts.items() if "/" in key],
        "results": [*results.values()],
    }


def log_texts(log: Sequence[Entry]) -> dict[str, list[str]]:
    """Return the words, calls and results of a log."""
    replies = [entry for entry in log if isinstance(entry, AssistantMessage)]
    results = [entry for entry in log if isinstance(entry, ToolMessage)]
    return {
        "words": [part.text for reply in replies for part in reply.parts if isinstance(part, Text)],
        "calls": [f"{call.name} {call.arguments}" for reply in replies for call in reply.tool_calls],
        "results": ["".join(texts_of(result)) for result in results],
    }


def assert_calls_were_stored_as_sent(database: str, received: Sequence[bytes]) -> None:
    """Check that each received body is a stored call, and that the spans of its manifest tile it."""
    calls = asyncio.run(_calls(database))
    unknown = Counter(received) - Counter(call.body for call in calls)
    assert not unknown, f"sent but not stored: {unknown}"
    for call in calls:
        parts = cast("list[dict[str, list[int]]]", (load_object(call.manifest) or {})["parts"])
        spans = [part["span"] for part in parts if part["span"]]
        ends = [0, *[span[1] for span in spans]]
        assert [span[0] for span in spans] == ends[:-1]
        assert ends[-1] == len(call.body)


async def _calls(url: str) -> list[StoredCall]:
    database = await open_database(check_url(url))
    store = Store(database)
    try:
        ids = await database.read(lambda connection: list(connection.execute(select(RUNS.c.id)).scalars()))
        return [call for id in ids for call in await store.calls.list_full(id)]
    finally:
        await store.close()
