"""Whole runs with tools that live elsewhere: servers of MCP and a shop with an OpenAPI file, beside a real server."""

import subprocess
import sys
from base64 import b64encode
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import cast

import pytest

from recto.conversation.json import Json, dump
from recto.conversation.messages import AssistantMessage
from recto.testing.client import RUNS, Reader, ask, request, run, start
from recto.testing.model_server import Answer, Call, Request
from recto.testing.process import ServerProcess
from tests.api.forms import file
from tests.end_to_end.files import MODELS, FileWorld, Talk, Turn, part, words
from tests.end_to_end.harness import Harness
from tests.files.heads import PNG
from tests.house import ROOT
from tests.tools.external.a_shop import FILE, KEY, Shop, shop
from tests.tools.external.elsewhere import IS_CONFINED, NEW, listening
from tests.waiting import wait_for

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


def tool_then_words(asked: Request) -> Answer:
    """The model: what a user says as `call NAME ARGUMENTS` is called, and what came of it is said."""
    messages = cast("list[Mapping[str, Json]]", asked.page["messages"])
    last = messages[-1]
    if last["role"] == "tool":
        return Answer(text=f"It said: {last['content']}")
    said = str(last["content"]).rpartition("call ")[2]
    name, _, arguments = said.partition(" ")
    return Answer(calls=(Call(name=name, arguments=arguments or "{}", id=f"c{asked.number}"),))


@pytest.fixture(scope="module")
def opened() -> Iterator[Shop]:
    with shop() as one:
        yield one


@pytest.fixture(scope="module")
def far() -> Iterator[str]:
    with listening(TOKEN) as (url, _):
        yield url


class Elsewhere(Harness):
    """A harness whose agent has tools elsewhere; `marks` is where its server may write."""

    def write(self, url: str, shop: str) -> Path:
        marks = self.agents.parent / "marks"
        marks.mkdir()
        known = {"python": sys.executable, "module": NEW, "root": ROOT, "marks": marks, "url": url, "shop": shop}
        text = AGENT.format(**known, sandbox=str(IS_CONFINED).lower())
        for agent in (self.agent, self.agents / "other"):
            agent.mkdir(exist_ok=True)
            (agent / "AGENT.md").write_text(text, encoding="utf-8")
            (agent / "shop.yaml").write_text(FILE, encoding="utf-8")
        return marks

    def serve_them(self) -> ServerProcess:
        return self.serve(log_level="debug", secret_files=TOKEN, secret_shop=KEY)


@pytest.fixture
def harness(tmp_path: Path, far: str, opened: Shop) -> Iterator[Elsewhere]:
    with Elsewhere(tmp_path, tool_then_words) as made:
        made.write(far, opened.url)
        yield made


def said(url: str, text: str, agent: str = "helper") -> str:
    props: Json = {"agent": agent}
    events = run(url, ask(text, forwardedProps=props))
    assert events[-1].event["type"] == "RUN_FINISHED", events[-1]
    return "".join([str(one.event["delta"]) for one in events if one.event["type"] == "TEXT_MESSAGE_CONTENT"])


def test_runs_use_tools_elsewhere_a_dead_server_slows_nothing_and_no_secret_is_anywhere(harness: Elsewhere):
    with harness.serve_them() as server:
        assert said(server.url, 'call files__echo {"text": "hi"}') == "It said: hi"
        assert said(server.url, 'call far__echo {"text": "there"}') == "It said: there"
        assert said(server.url, 'call shop__getItem {"id": "1"}') == 'It said: {"ok":true}'
        # The same servers for another agent are other sessions.
        assert said(server.url, 'call files__echo {"text": "two"}', "other") == "It said: two"
        assert "(hidden)" in said(server.url, "call files__environment")
        assert "no way: why" in said(server.url, 'call files__fail {"text": "why"}')
        first = harness.model.requests[0].page
        offered = cast("list[Mapping[str, Mapping[str, Json]]]", first["tools"])
        assert {"files__echo", "far__echo", "shop__getItem"} <= {str(one["function"]["name"]) for one in offered}
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
    stored = b"".join([path.read_bytes() for path in harness.data.rglob("*") if path.is_file()])
    everything = b"".join([output.encode(), events, threads, stored, *harness.received])
    for secret in (TOKEN, KEY):
        assert secret.encode() not in everything
    assert "MCP server dead: 127.0.0.1 cannot be reached" in output


def test_a_cancelled_run_cancels_the_call_and_its_progress_is_shown(harness: Elsewhere):
    mark = harness.agents.parent / "marks" / "mark"
    with harness.serve_them() as server:
        arguments = dump({"mark": str(mark)}).decode()
        task = start(server.url, ask(f"call files__slow {arguments}"))
        reader = Reader(lambda: server.url, task)
        shown = reader.wait_for(lambda one: one.event["type"] == "ACTIVITY_SNAPSHOT")
        assert "step" in shown.body.decode()
        request(server.url, "POST", f"{RUNS}/{task}/cancel")
        reader.wait()
        wait_for(lambda: mark.exists() and mark.read_text(encoding="utf-8") == "cancelled", "the call to be cancelled")
        assert said(server.url, 'call files__echo {"text": "on"}') == "It said: on"


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory, far: str) -> Iterator[FileWorld]:
    more = f'mcp: {{far: {{url: "{far}", headers: {{Authorization: "Bearer secret:FILES"}}, internal: true}}}}'
    made = FileWorld(tmp_path_factory.mktemp("reaching"), secret_files=TOKEN)
    # A wire whose results can have pictures.
    made.write_agent("reaching", more=more, model=MODELS["anthropic"])
    with made:
        yield made


def calling(tool: str, id: str, **arguments: object) -> Answer:
    return Answer(calls=(Call(name=tool, arguments=dump(arguments).decode(), id=id),))


def results(turn: Turn) -> list[str]:
    return [str(one.event["content"]) for one in turn.events if one.event["type"] == "TOOL_CALL_RESULT"]


def test_F8_ids_of_files_arrive_as_urls_and_the_log_keeps_the_ids(world: FileWorld):
    talk = Talk(agent="reaching")
    world.say(talk, [words("Here."), part(world.upload(file("notes.txt", b"Buy milk."))[0])])
    id = f"{world.response_id(talk.thread)}-0"
    turn = world.say(talk, "Look.", calling("far__echo", "c1", text=id))
    assert world.get(results(turn)[0]).body == b"Buy milk."
    replies = [entry for entry in world.log(talk.thread) if isinstance(entry, AssistantMessage)]
    written = [call.arguments for reply in replies for call in reply.tool_calls]
    assert written == [dump({"text": id}).decode()]


def test_a_tool_that_a_server_has_from_now_on_is_in_the_next_page_and_a_picture_in_a_result_is_one(
    world: FileWorld,
):
    grown = calling("far__grow", "c1", name="late")
    # The tools are listed anew while the run goes on.
    meanwhile = [calling("far__echo", f"m{number}", text=str(number)) for number in range(6)]
    late, picture = calling("far__late", "c2", text="hi"), calling("far__picture", "c3")
    turn = world.say(Talk(agent="reaching"), "Grow.", grown, *meanwhile, late, picture)
    assert results(turn)[:8] == ["late is there", *map(str, range(6)), "hi"]
    offered = ["far__late" in dump(made.page["tools"]).decode() for made in turn.requests]
    assert (offered[0], offered[7]) == (False, True)
    assert b64encode(PNG).decode() in dump(turn.requests[-1].page["messages"]).decode()


def test_C1_check_and_explain_try_them(harness: Elsewhere):
    folder = harness.data.parent
    environment = {"RECTO_SECRET_FILES": TOKEN, "RECTO_SECRET_SHOP": KEY, "PATH": "/usr/bin:/bin"}

    def typed(*arguments: str, **more: str) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-m", "recto", "agents", *arguments]
        settings = {**environment, **more}
        return subprocess.run(command, env=settings, capture_output=True, text=True, cwd=folder, check=False)

    done = typed("check", str(harness.agents))
    assert done.returncode == 1
    assert f"{harness.agent}/AGENT.md:12: dead: 127.0.0.1 cannot be reached." in done.stderr
    assert "files__echo, files__fail, files__environment, files__slow, far__echo, shop__getItem" in done.stdout
    assert TOKEN not in done.stdout + done.stderr
    assert typed("check", "--offline", str(harness.agents)).returncode == 0
    missing = typed("check", str(harness.agents), RECTO_SECRET_FILES="")
    told = "AGENT.md:4: files: Setting secret:FILES is '(not set)'; set RECTO_SECRET_FILES for the server."
    assert told in missing.stderr
    checked = subprocess.run(
        [sys.executable, "-m", "recto", "serve", "--check", "--agents", str(harness.agents)],
        env=environment,
        capture_output=True,
        text=True,
        cwd=folder,
        check=True,
    )
    assert "RECTO_SECRET_FILES = (set, not shown)\n" in checked.stdout
    assert "tools elsewhere: helper: files, far, dead, shop; other: files, far, dead, shop\n" in checked.stdout
    assert TOKEN not in checked.stdout + checked.stderr
    shown = typed("explain", "helper", "--agents", str(harness.agents))
    assert "far__echo (" in shown.stdout
    assert "missing tools of dead: 127.0.0.1 cannot be reached" in shown.stdout
