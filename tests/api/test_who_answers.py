"""C4: who answers: the agent that is named, else the thread's, else the server's, in the language of the words."""

from collections.abc import AsyncGenerator, Mapping
from pathlib import Path
from typing import cast

import pytest
import pytest_asyncio

from recto.conversation.json import Json
from recto.ids import new_id
from tests.flow.in_process import CHAT, STREAM, InProcess, events_of, in_process
from tests.support.client import RUNS, ask

pytestmark = pytest.mark.asyncio(loop_scope="module")

AG_UI, KIT = "/api/v1/agent/ag-ui", "/api/v1/copilotkit/agent"


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def server(tmp_path_factory: pytest.TempPathFactory) -> AsyncGenerator[InProcess]:
    with pytest.MonkeyPatch.context() as patch:
        async with in_process(tmp_path_factory.mktemp("default"), patch, agent=None) as server:
            yield server


async def answering(server: InProcess, path: str, body: object, **headers: str) -> str:
    """The agent of a run, once it has ended well."""
    header_fields = {name.replace("_", "-"): value for name, value in headers.items()}
    reply = await server.send("POST", path, body, headers={**STREAM, **header_fields})
    events = [received.event for received in events_of(reply)]
    assert events, reply.body
    assert events[-1]["type"] == "RUN_FINISHED", reply.body
    return str((await server.send("GET", f"{RUNS}/{events[0]['runId']}")).json["agent"])


@pytest.mark.parametrize(
    ("path", "agent"),
    [
        (RUNS, "chat"),
        (AG_UI, "chat"),
        (f"{AG_UI}/docs", "docs"),
        (f"{KIT}/default/run", "chat"),
        (f"{KIT}/helper/run", "helper"),
    ],
)
async def test_C4_every_way_to_run_has_the_agent_it_names_else_chat(server: InProcess, path: str, agent: str):
    assert await answering(server, path, ask("hi")) == agent
    if agent == "chat":
        assert await answering(server, path, ask("hi", forwardedProps={"agent": "vibe"})) == "vibe"
    rejection = await server.send("POST", path, ask("hi", forwardedProps={"agent": "nobody"}), headers=STREAM)
    assert rejection.status == (422 if agent == "chat" else 200)


@pytest.mark.parametrize(
    ("words", "accept", "agent"),
    [("你好", "en", "vibe"), ("hello", "zh", "vibe-en"), ("42", "en-GB", "vibe-en"), ("42", "", "vibe")],
)
async def test_C4_vibe_answers_on_chat_in_the_language_of_the_words_else_of_the_browser(
    server: InProcess, words: str, accept: str, agent: str
):
    thread = new_id()
    body = {"message": words, "conversation_id": thread}
    assert await answering(server, CHAT, body, accept_language=accept) == agent
    # The thread's goes on, whatever is said in it and wherever it is asked.
    assert await answering(server, CHAT, {"message": "hello 你好 everybody", "conversation_id": thread}) == agent
    assert await answering(server, RUNS, ask("你好", thread=thread), accept_language="en") == agent
    assert await answering(server, RUNS, ask("hi", thread=thread, forwardedProps={"agent": "docs"})) == "docs"
    assert await answering(server, CHAT, {"message": "hi", "conversation_id": thread}) == "docs"


async def test_C4_the_agent_of_the_server_answers_everywhere_in_the_language_of_the_words(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    async with in_process(tmp_path, monkeypatch, agent="coder") as server:
        for path, body in ((RUNS, ask("你好")), (AG_UI, ask("你好")), (CHAT, {"message": "你好"})):
            assert await answering(server, path, body) == "coder-zh"
        assert await answering(server, RUNS, ask("hello")) == "coder"
        looked = await server.send(
            "POST", f"/api/v1/agent/threads/{new_id()}/preview", {"messages": ask("你好")["messages"]}
        )
        assert looked.json["agent"] == "coder-zh", looked.body


async def test_C4_P11_the_list_of_agents_says_who_answers_where_nobody_is_named_and_has_their_forms(server: InProcess):
    agent_rows = (await server.send("GET", "/api/v1/agent/agents")).json["agents"]
    agents = {str(one["name"]): one for one in cast("list[Mapping[str, Json]]", agent_rows)}
    assert [name for name, one in agents.items() if one["default"]] == ["chat"]
    (form,) = cast("list[Mapping[str, Json]]", agents["vibe-en"]["forms"])
    assert [form["name"]] == agents["vibe-en"]["clientTools"] == ["collect_birth_info"]
    schema = cast("Mapping[str, Mapping[str, Json]]", form["parameters"])
    assert {"date", "time", "place", "gender", "cancelled"} <= schema["properties"].keys()
    assert (agents["vibe-en"]["variantOf"], agents["chat"]["forms"]) == ("vibe", [])
