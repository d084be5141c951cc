"""Whole runs with tools that live elsewhere: servers of MCP and a shop with an OpenAPI file, beside a real server."""

import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import cast

import pytest

from recto.conversation.json import Json, dump
from recto.conversation.messages import AssistantMessage
from recto.testing.model_server import Answer, Call, Request
from recto.testing.process import ServerProcess
from tests.api.forms import file
from tests.cli.in_process import FAILED, recto
from tests.end_to_end.files import FileWorld, Talk, calling
from tests.end_to_end.harness import Harness
from tests.layers import ROOT
from tests.support.client import RUNS, ask, request, run
from tests.tools.external.external_sources import IS_CONFINED, NEW, listening
from tests.tools.external.shop_service import FILE, KEY, Shop, open_shop

pytestmark = pytest.mark.full
TOKEN = "a-token-nobody-may-see"
AGENT = """\
---
file_input: true
mcp:
  files:
    command: [{python}, -m, {module}]
    env: {{PYTHONPATH: {root}, TOKEN: "secret:FILES"}}
    readable: [{root}]
    writable: [{marks}]
    sandbox: {sandbox}
    tools: [echo, environment, fail, slow]
  far: {{url: "{url}", headers: {{Authorization: "Bearer secret:FILES"}}, internal: true, tools: [echo]}}
  dead: {{url: "http://127.0.0.1:1/mcp", internal: true}}
openapi:
  shop: {{file: shop.yaml, server: "{shop}", security: {{key: "secret:SHOP"}}, internal: true, operations: [getItem]}}
---
You are careful.
"""


def tool_then_words(model_request: Request) -> Answer:
    """Make the call in the message `call NAME ARGUMENTS`, then report its result."""
    messages = cast("list[Mapping[str, Json]]", model_request.page["messages"])
    last = messages[-1]
    if last["role"] == "tool":
        return Answer(text=f"It said: {last['content']}")
    words = str(last["content"]).rpartition("call ")[2]
    name, _, arguments = words.partition(" ")
    return Answer(calls=(Call(name=name, arguments=arguments or "{}", id=f"c{model_request.number}"),))


@pytest.fixture(scope="module")
def shop() -> Iterator[Shop]:
    with open_shop() as one:
        yield one


@pytest.fixture(scope="module")
def far() -> Iterator[str]:
    with listening(TOKEN) as (url, _):
        yield url


class Elsewhere(Harness):
    """A harness with external tools. Its MCP server may write to `marks`."""

    def write(self, url: str, shop: str) -> Path:
        marks = self.agents.parent / "marks"
        marks.mkdir()
        settings = {"python": sys.executable, "module": NEW, "root": ROOT, "marks": marks, "url": url, "shop": shop}
        text = AGENT.format(**settings, sandbox=str(IS_CONFINED).lower())
        for agent in (self.agent, self.agents / "other"):
            agent.mkdir(exist_ok=True)
            (agent / "AGENT.md").write_text(text, encoding="utf-8")
            (agent / "shop.yaml").write_text(FILE, encoding="utf-8")
        return marks

    def serve_them(self) -> ServerProcess:
        return self.serve(log_level="debug", secret_files=TOKEN, secret_shop=KEY)


@pytest.fixture
def harness(tmp_path: Path, far: str, shop: Shop) -> Iterator[Elsewhere]:
    with Elsewhere(tmp_path, tool_then_words) as harness_in_use:
        harness_in_use.write(far, shop.url)
        yield harness_in_use


def ask_agent(url: str, text: str, agent: str = "helper") -> str:
    props: Json = {"agent": agent}
    events = run(url, ask(text, forwardedProps=props))
    assert events[-1].event["type"] == "RUN_FINISHED", events[-1]
    return "".join([str(one.event["delta"]) for one in events if one.event["type"] == "TEXT_MESSAGE_CONTENT"])


def test_runs_use_tools_elsewhere_a_dead_server_slows_nothing_and_no_secret_is_anywhere(harness: Elsewhere):
    with harness.serve_them() as server:
        assert ask_agent(server.url, 'call files__echo {"text": "hi"}') == "It said: hi"
        assert ask_agent(server.url, 'call far__echo {"text": "there"}') == "It said: there"
        assert ask_agent(server.url, 'call shop__getItem {"id": "1"}') == 'It said: {"ok":true}'
        # The same servers for another agent are other sessions.
        assert ask_agent(server.url, 'call files__echo {"text": "two"}', "other") == "It said: two"
        assert "(hidden)" in ask_agent(server.url, "call files__environment")
        assert "no way: why" in ask_agent(server.url, 'call files__fail {"text": "why"}')
        first = harness.model.requests[0].page
        tools = cast("list[Mapping[str, Mapping[str, Json]]]", first["tools"])
        assert {"files__echo", "far__echo", "shop__getItem"} <= {str(one["function"]["name"]) for one in tools}
        assert "dead: not reached" in str(first["messages"])
        agents = request(server.url, "GET", "/api/v1/agent/agents").json["agents"]
        helper = next(one for one in cast("list[Mapping[str, Json]]", agents) if one["name"] == "helper")
        assert helper["unavailable"] == ["dead"]
        assert "files__echo" in cast("list[str]", helper["tools"])
        # A client's own tool cannot go by the name of one of these.
        mine: Json = [{"name": "files__echo", "description": "", "parameters": {"type": "object"}}]
        assert request(server.url, "POST", RUNS, ask("hi", tools=mine)).status == 422
        events = b"".join([one.body for one in run(server.url, ask("call files__environment"))])
        threads = request(server.url, "GET", "/api/v1/agent/threads").body
        assert server.stop() == 0
        output = server.output
    stored_bytes = b"".join([path.read_bytes() for path in harness.data.rglob("*") if path.is_file()])
    everything = b"".join([output.encode(), events, threads, stored_bytes, *harness.received])
    for secret in (TOKEN, KEY):
        assert secret.encode() not in everything
    assert "MCP server dead: 127.0.0.1 cannot be reached" in output


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory, far: str) -> Iterator[FileWorld]:
    more = f'mcp: {{far: {{url: "{far}", headers: {{Authorization: "Bearer secret:FILES"}}, internal: true}}}}'
    world = FileWorld(tmp_path_factory.mktemp("reaching"), secret_files=TOKEN)
    world.write_agent("reaching", more=more)
    with world:
        yield world


def test_F8_ids_of_files_arrive_as_urls_and_the_log_keeps_the_ids(world: FileWorld):
    talk = Talk(agent="reaching")
    id = f"{world.attach(talk, *world.upload(file('notes.txt', b'Buy milk.')))}-0"
    turn = world.say(talk, "Look.", calling("far__echo", text=id))
    assert world.get(turn.results[0]).body == b"Buy milk."
    replies = [entry for entry in world.log(talk.thread) if isinstance(entry, AssistantMessage)]
    arguments = [call.arguments for reply in replies for call in reply.tool_calls]
    assert arguments == [dump({"text": id}).decode()]


def test_C1_check_and_explain_try_them(harness: Elsewhere):
    folder, agents = harness.data.parent, str(harness.agents)
    secrets = {"RECTO_SECRET_FILES": TOKEN, "RECTO_SECRET_SHOP": KEY}
    done = recto(folder, "agents", "check", agents, **secrets)
    assert done.code == FAILED
    assert f"{harness.agent}/AGENT.md:12: dead: 127.0.0.1 cannot be reached." in done.err
    assert "files__echo, files__fail, files__environment, files__slow, far__echo, shop__getItem" in done.out
    assert recto(folder, "agents", "check", "--offline", agents, **secrets).code == 0
    missing = recto(folder, "agents", "check", agents, RECTO_SECRET_SHOP=KEY)
    expected_text = "AGENT.md:4: files: Setting secret:FILES is '(not set)'; set RECTO_SECRET_FILES for the server."
    assert expected_text in missing.err
    check = recto(folder, "serve", "--check", "--agents", agents, **secrets)
    assert "RECTO_SECRET_FILES = (set, not shown)\n" in check.out
    assert "external tools: helper: files, far, dead, shop; other: files, far, dead, shop\n" in check.out
    explanation = recto(folder, "agents", "explain", "helper", "--agents", agents, **secrets)
    assert "far__echo (" in explanation.out
    assert "missing tools of dead: 127.0.0.1 cannot be reached" in explanation.out
    assert [TOKEN in text for one in (done, missing, check, explanation) for text in (one.out, one.err)] == [False] * 8
