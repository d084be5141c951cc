"""What a server has in memory of somebody who was deleted: nothing."""

import gc
import logging
from base64 import b64encode
from collections.abc import Iterator
from pathlib import Path
from types import FrameType

import pytest

from recto.conversation.json import Json, dump
from recto.ids import new_id
from recto.testing import answer_bytes
from recto.testing.model_answers import Answer, Call
from recto.testing.model_server import Request
from tests.flow.in_process import STREAM, InProcess, in_process
from tests.support.client import RUNS
from tests.waiting import wait_until

ME = "/api/v1/agent/me"
SETTINGS = "file_input: {documents: true, mode: always}\nfold: {reads: {tools: [note], path_args: [text]}}"


@pytest.mark.full
@pytest.mark.parametrize("is_deleted_here", [True, False])
async def test_P17_nothing_is_in_memory_of_who_was_deleted_here_or_by_another_process(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, *, is_deleted_here: bool
):
    marker, cleaning = make_marker(), 3_600 if is_deleted_here else 0.05
    caplog.set_level(logging.INFO, "recto.engine")
    async with in_process(tmp_path, monkeypatch, settings=SETTINGS, cleaning_seconds=cleaning) as server:
        await say_all(server, marker)
        assert list(found_in_memory(marker))
        if is_deleted_here:
            assert (await server.send("DELETE", f"{ME}?confirm=local")).status == 200
        else:
            await server.backend.store.users.delete("local")
            await wait_until(lambda: "cleaned up 1 threads in memory" in caplog.text)
        assert list(found_in_memory(marker)) == []


def make_marker() -> str:
    """Words that are nowhere else, in no constant either."""
    return "".join(reversed("xqzj-neerg-"))[1:] + new_id()[-6:]


async def say_all(server: InProcess, marker: str) -> None:
    """Have the marker wherever a user's words go: said, called, answered, attached, in tools and in context."""
    thread = new_id()
    schema: Json = {"type": "object", "properties": {"a": {"type": "string", "description": f"s {marker}"}}}
    source: Json = {"type": "data", "value": b64encode(f"d {marker}".encode()).decode(), "mimeType": "text/plain"}
    messages: Json = [
        {"type": "text", "text": f"Say {marker}"},
        {"type": "document", "source": source, "metadata": {"filename": f"{marker}.txt"}},
    ]
    for turn in range(2):
        arguments = dump({"text": f"{marker}/{turn}"}).decode()
        server.answers += [Answer(calls=(Call(name="note", arguments=arguments),)), Answer(text=f"a {marker}")]
        body: Json = {
            "threadId": thread,
            "runId": new_id(),
            "messages": [{"id": new_id(), "role": "user", "content": messages}],
            "tools": [{"name": "show", "description": f"t {marker}", "parameters": schema}],
            "context": [{"description": f"c {marker}", "value": f"v {marker}"}],
            "forwardedProps": {"title": f"p {marker}"},
        }
        reply = await server.send("POST", RUNS, body, headers=STREAM)
        assert (reply.status, b"RUN_FINISHED" in reply.body) == (200, True), reply.body
    assert len([model_request for model_request in server.model.requests if marker.encode() in model_request.body]) == 4
    # The model knows them, too; but it is none of ours.
    for render in vars(answer_bytes).values():
        getattr(render, "cache_clear", list)()


def found_in_memory(marker: str) -> Iterator[str]:
    """Where there are words with the marker in them, by what holds them; but for what is at work just now."""
    gc.collect()
    # What was there when the server began is looked at too.
    gc.unfreeze()
    waiting = gc.get_objects()
    ids = {id(waiting), *map(id, waiting)}
    while waiting:
        holder = waiting.pop()
        is_ours = not isinstance(holder, FrameType) and not isinstance(holder, Answer | Call | Request)
        for referent in gc.get_referents(holder) if is_ours else ():
            if id(referent) in ids or referent is marker:
                continue
            ids.add(id(referent))
            if isinstance(referent, str | bytes | bytearray):
                text = referent if isinstance(referent, str) else referent.decode(errors="replace")
                yield from [f"{type(holder).__name__}: {text[:99]!r}"] if marker in text else []
            else:
                waiting.append(referent)
