"""Step 13: what was said, a day at a time; forks know what was seen, and nothing else."""

from collections.abc import Mapping, Sequence
from typing import cast

from recto.conversation.json import Json
from recto.ids import new_id
from recto.testing.model_server import Answer
from tests.flow.in_process import InProcess


async def test_P13_history_is_what_was_said(server: InProcess):
    thread = new_id()
    await server.run("hello", Answer(text="One."), thread=thread)
    day = (await server.send("GET", f"/api/v1/agent/history?threadId={thread}")).json
    rows = cast("Sequence[Mapping[str, Json]]", day["messages"])
    assert [row["role"] for row in rows] == ["user", "assistant"]


async def test_R12_a_fork_has_what_is_seen_and_goes_its_own_way(server: InProcess):
    thread = new_id()
    await server.run("hello", Answer(text="One."), thread=thread)
    fork_reply = await server.send("POST", f"/api/v1/agent/threads/{thread}/fork", {})
    assert fork_reply.status == 201
    fork = str(fork_reply.json["id"])
    await server.run("go on", Answer(text="Two."), thread=fork)
    assert (len(await server.log(thread)), len(await server.log(fork))) == (2, 4)
