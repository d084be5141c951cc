"""Step 7: a page from the log, and a manifest that says of every part why it is there."""

from collections.abc import Mapping, Sequence
from typing import cast

from recto.conversation.json import Json
from recto.ids import new_id
from recto.testing.model_server import Answer
from tests.flow.in_process import InProcess, messages_of
from tests.support.client import RUNS


async def test_R1_the_next_page_begins_with_what_was_said_before(server: InProcess):
    thread = new_id()
    await server.run("first", Answer(text="One."), thread=thread)
    await server.run("second", Answer(text="Two."), thread=thread)
    spoken_rows = [(row["role"], str(row["content"]).rpartition("\n")[2]) for row in messages_of(server.pages[1])]
    assert spoken_rows[1:] == [("user", "first"), ("assistant", "One."), ("user", "second")]


async def test_X1_the_manifest_has_a_reason_for_each_part_and_spans_that_tile_the_body(server: InProcess):
    events = await server.run("hello")
    call = (await server.send("GET", f"{RUNS}/{events[0].event['runId']}/calls/1")).json
    manifest = cast("Mapping[str, Json]", call["manifest"])
    parts = cast("Sequence[Mapping[str, Json]]", manifest["parts"])
    assert {str(part["decision"]) for part in parts} <= {"kept", "injected"}
    assert all(part["reason"] for part in parts)
    spans = [cast("list[int]", part["span"]) for part in parts if part["span"]]
    assert [begin for begin, _ in spans] == [0, *(end for _, end in spans[:-1])]
    assert spans[-1][1] == len(server.model.requests[0].body)
