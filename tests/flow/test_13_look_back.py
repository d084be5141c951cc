"""Step 13: what was said, a day at a time; what was sent and will be; forks know what was seen, and nothing else."""

from collections.abc import Mapping, Sequence
from typing import cast

from recto.conversation.json import Json
from recto.ids import new_id
from recto.testing.client import RUNS
from recto.testing.model_server import Answer, Call
from tests.flow.in_process import InProcess


async def test_P13_history_is_what_was_said(server: InProcess):
    thread = new_id()
    await server.run("hello", Answer(text="One."), thread=thread)
    day = (await server.send("GET", f"/api/v1/agent/history?threadId={thread}")).json
    rows = cast("Sequence[Mapping[str, Json]]", day["messages"])
    assert [row["role"] for row in rows] == ["user", "assistant"]


async def test_X1_two_calls_are_compared_and_the_next_one_is_shown_before_it_is_sent(server: InProcess):
    thread = new_id()
    noting = Answer(calls=(Call(name="note", arguments='{"text": "x"}'),))
    events = await server.run("note it", noting, Answer(text="Done."), thread=thread)
    run = events[0].event["runId"]
    found = (await server.send("GET", f"{RUNS}/{run}/calls/1/diff/2")).json
    parts = cast("Sequence[Mapping[str, Json]]", found["parts"])
    assert ([part["change"] for part in parts], found["prefixBreak"]) == (["same", "added", "added", "same"], None)
    before = await server.log(thread)
    words = {"messages": [{"id": "m", "role": "user", "content": "And now?"}]}
    shown = (await server.send("POST", f"/api/v1/agent/threads/{thread}/preview", words)).json
    page = cast("Mapping[str, Sequence[Mapping[str, Json]]]", shown["page"])
    assert str(page["messages"][-1]["content"]).endswith("And now?")
    assert (len(server.pages), await server.log(thread)) == (2, before)


async def test_R12_a_fork_has_what_is_seen_and_goes_its_own_way(server: InProcess):
    thread = new_id()
    await server.run("hello", Answer(text="One."), thread=thread)
    made = await server.send("POST", f"/api/v1/agent/threads/{thread}/fork", {})
    assert made.status == 201
    fork = str(made.json["id"])
    await server.run("go on", Answer(text="Two."), thread=fork)
    assert (len(await server.log(thread)), len(await server.log(fork))) == (2, 4)
