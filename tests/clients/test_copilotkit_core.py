"""CopilotKit's core in Node, over both of its transports: info, run, connect, stop, suggestions, threads."""

from collections.abc import Generator
from typing import Protocol, cast

import pytest

from recto.conversation.json import Json, dump
from recto.ids import new_id
from recto.testing.model_server import Answer
from tests.api.scripted_server import ALICE, PLAIN, Scripted
from tests.clients.agents import Row, rows, user
from tests.clients.node import NodeProcess
from tests.clients.scripts import LOST_ANSWER, call, model_page, script
from tests.support.client import bearer

pytestmark = pytest.mark.full
BASE = "/api/v1/copilotkit"


@pytest.fixture(scope="module")
def program() -> Generator[NodeProcess]:
    with NodeProcess("copilot_core.mjs") as node:
        yield node


class Core:
    """CopilotKit's core in one thread. It has the tool `paint`."""

    def __init__(
        self, node: NodeProcess, url: str, transport: str, thread: str = "", token: str | None = ALICE
    ) -> None:
        self._node = node
        self._name = new_id()
        self.thread = thread or new_id()
        headers = cast("dict[str, Json]", bearer(token))
        self.state = node.ask(
            "open", name=self._name, url=url, headers=headers, transport=transport, threadId=self.thread
        )

    def say(self, words: Json) -> Row:
        return self.ask("run", add=[user(words)])

    def ask(self, command: str, **rest: Json) -> Row:
        return self._node.ask(command, name=self._name, **rest)

    def begin(self, command: str, **rest: Json) -> int:
        return self._node.begin(command, name=self._name, **rest)

    def wait(self, number: int) -> Row:
        return self._node.wait(number)


class CoreMaker(Protocol):
    def __call__(self, thread: str = "", token: str | None = ALICE) -> Core: ...


@pytest.fixture(params=["rest", "single"])
def make(request: pytest.FixtureRequest, program: NodeProcess, server: Scripted) -> CoreMaker:
    def make_core(thread: str = "", token: str | None = ALICE) -> Core:
        return Core(program, f"{server.url}{BASE}", str(request.param), thread, token)

    return make_core


def read_texts(state: Row) -> list[str]:
    return [f"{row['role']}: {row['content']}" for row in rows(state["messages"]) if row.get("content")]


def test_P15_info_names_the_agents(make: CoreMaker):
    state = make().state
    assert state["status"] == "connected"
    assert {"default", "helper", "chat"} <= set(cast("list[str]", state["agents"]))
    assert state["errors"] == []


def test_P15_info_refused_is_told_in_words(make: CoreMaker):
    state = make(token="nobody's").state
    assert state["status"] == "error"
    assert any("credential" in str(error["message"]).lower() for error in rows(state["errors"]))


def test_P15_turns_with_tools_of_both_sides(make: CoreMaker, server: Scripted):
    calls = (call("weather", '{"city": "Bonn"}', "call_0"), call("paint", '{"colour": "red"}', "call_1"))
    script(server, Answer(calls=calls), Answer(text="Done."), Answer(text="You are welcome."))
    core = make()
    state = core.say("paint by the weather")
    assert read_texts(state)[-1] == "assistant: Done."
    assert state["executed"] == ["red"]
    assert sorted(model_page(server)[-2:]) == ["tool: Sunny in Bonn.", "tool: painted red"]
    state = core.say("thanks")
    assert read_texts(state)[-2:] == ["user: thanks", "assistant: You are welcome."]
    assert (state["executed"], state["errors"]) == ([], [])


def test_P15_a_reply_that_was_lost_is_neither_shown_nor_carried_out(make: CoreMaker, server: Scripted):
    script(server, LOST_ANSWER, Answer(text="Whole."))
    state = make().say("go")
    assert read_texts(state) == ["user: go", "assistant: Whole."]
    assert (state["executed"], state["errors"]) == ([], [])


def test_P15_a_run_is_joined_in_its_middle_and_stopped_from_there(make: CoreMaker, server: Scripted):
    first = make()
    run = first.begin("run", add=[user("hold this")])
    first.ask("saw", text="one two")
    other = make(first.thread)
    joined_run = other.begin("connect")
    assert read_texts(other.ask("saw", text="one two"))[0] == "user: hold this"
    other.ask("stop")
    assert server.model.requests[-1].wait_disconnected()
    assert read_texts(other.wait(joined_run))[:1] == ["user: hold this"]
    assert read_texts(first.wait(run))[-1].startswith("assistant: one two")
    assert read_texts(first.say("never mind"))[-1] == f"assistant: {PLAIN.text}"


def test_P15_suggestions_leave_nothing_behind(make: CoreMaker, server: Scripted):
    core = make()
    core.say("hello")
    before = server.get("/threads")
    ideas: Json = {"suggestions": [{"title": "More", "message": "Tell me more"}, {"title": "Less", "message": "Less"}]}
    script(server, Answer(calls=(call("copilotkitSuggest", dump(ideas).decode()),)))
    match = core.ask("suggest", instructions="Suggest what to say next.")
    assert [row["message"] for row in rows(match["suggestions"])] == ["Tell me more", "Less"]
    assert server.get("/threads") == before


def test_P15_threads_are_listed_renamed_and_deleted(make: CoreMaker):
    core = make()
    core.say("about lighthouses")
    thread_list = core.ask("threads")
    assert core.thread in [row["id"] for row in rows(thread_list["threads"])]
    renamed = core.ask("threads", act="rename", threadId=core.thread, title="Lighthouses")
    assert renamed["error"] is None
    assert {row["id"]: row["name"] for row in rows(make().ask("threads")["threads"])}[core.thread] == "Lighthouses"
    core.ask("threads", act="delete", threadId=core.thread)
    assert core.thread not in [row["id"] for row in rows(make().ask("threads")["threads"])]
