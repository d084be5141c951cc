"""P5 over real HTTP, for every route the server describes: what is somebody else's is not there, and who may only look
changes nothing. A route these tables do not know fails here, so a new one is covered or named.
"""

from collections.abc import Generator, Iterator, Mapping
from dataclasses import dataclass
from typing import cast
from urllib.parse import urlsplit

import pytest

from recto.conversation.json import Json
from recto.ids import new_id
from recto.testing.model_server import Answer, Call
from tests.api.copilotkit_client import wish
from tests.api.described import Operation, operations
from tests.api.forms import FORM, Field, file, form_of
from tests.api.scripted_server import ALICE, BOB, KEYS, LOOKER, Scripted, scripted_server
from tests.api.wrong_inputs import assert_problem, assert_refused
from tests.support.client import RUNS, HttpReply, ask, request

pytestmark = pytest.mark.full

# A word of alice's, in everything she says and hears. Nobody else is ever sent it.
MARK = "Zinnober4711"
AGENT = "/api/v1/agent"
# Somebody who has nothing at all.
CAROL = "carol-key-of-our-tests"
# Differ from answer to answer, whoever asks.
CLOCKS = frozenset({"date"})
# The one of alice's files.
FILE = f"{MARK}.txt"
SIGNED_ROUTE = f"GET {AGENT}/files/{{id}}/{{name}}"
PROFILE = "/api/v1/profile"
# Only operators may: to others, everybody's is the same.
TIER = "PUT /api/v1/users/{user}/tier"
# A thread that is nowhere is a new one, as it is to a run; somebody else's is not.
PREVIEW = f"POST {AGENT}/threads/{{id}}/preview"
# It asks since when, and nothing of alice's was ever changed.
CHANGES = f"GET {AGENT}/threads/{{id}}/files/changes"
# It asks since which day; elsewhere that is a message.
SAVINGS = f"{AGENT}/savings"
PICK: dict[str, Json] = {"name": f"pick_{MARK}", "description": MARK, "parameters": {"type": "object"}}

# Places of a path where everybody may have anything.
EVERYBODYS = ("ag-ui/{agent}", "agent/{agent}")
KIT = "/api/v1/copilotkit"


@dataclass(frozen=True, kw_only=True)
class Belongings:
    """What alice has: runs by their state, threads, a file and a dataset, and the words for ids in queries and bodies.

    `signed_url` is what stands behind the `?` of her file's url.
    """

    server: Scripted
    runs: Mapping[str, str]
    threads: Mapping[str, str]
    attachment: str
    signed_url: str
    dataset: str
    message: str
    cursor: str

    @property
    def url(self) -> str:
        return self.server.url

    @property
    def under_way(self) -> set[str]:
        return {id for state, id in self.runs.items() if state.startswith(("running", "queued"))}

    def ids(self, place: str) -> list[str]:
        """All of alice's ids that go into a place of a path."""
        fields = {
            "runs/{id}": list(self.runs.values()),
            "threads/{id}": list(self.threads.values()),
            "calls/{n}": ["1"],
            "diff/{other}": ["1"],
            "attachments/{id}": [self.attachment],
            "files/{id}": [self.attachment],
            "{id}/{name}": [FILE],
            "datasets/{id}": [self.dataset],
            "users/{user}": ["alice"],
            "ag-ui/{agent}": ["chat"],
            "agent/{agent}": ["chat"],
            "stop/{thread}": [self.threads["running"]],
            "threads/{thread}": list(self.threads.values()),
        }
        assert place in fields, (
            f"No id is known for {place}. Name one in Belongings.ids, in tests/api/test_ownership.py."
        )
        return fields[place]

    def query(self, name: str, operation: Operation) -> str:
        """A value of alice's for a query, or one that everybody may send."""
        fields = {
            "?threadId": self.threads["finished"],
            "?cursor": self.cursor,
            "?search": MARK,
            "?confirm": "alice",
            "?before": "9999-12-31",
            "?tz": "UTC",
            "?limit": "10",
            "?after": "1",
            "?since": "2000-01-01" if operation.path == SAVINGS else self.message,
            "?until": "9999-12-31",
            "?join": "1",
            "?protocolVersion": "1.0",
            "?raw": "1",
            "?details": "1",
            "?as": "har",
            "?run": self.runs["finished"],
            "?agent": "chat",
            "?agentId": "chat",
            "?includeArchived": "true",
        }
        assert name in fields, f"No value is known for {name}. Name one in Belongings.query, in {__file__}."
        return f"{name[1:]}={fields[name]}"

    def header(self, name: str) -> tuple[str, str]:
        settings = {"last-event-id:": "1"}
        assert name in settings, f"No value is known for {name}. Name one in Belongings.header, in {__file__}."
        return name.rstrip(":").replace("-", "_"), settings[name]

    def body(self, operation: Operation) -> Json | bytes:
        """A good body of an operation, with alice's ids where it takes any. One of bytes is a form."""
        if operation.name == f"POST {AGENT}/attachments":
            return form_of(file("not-alices.txt", b"not alice's"))
        values_by_field: dict[str, Json] = {
            f"POST {RUNS}": ask("hello", thread=self.threads["finished"]),
            f"POST {AGENT}/ag-ui": ask("hello", thread=self.threads["finished"]),
            f"POST {AGENT}/ag-ui/{{agent}}": ask("hello", thread=self.threads["waiting"]),
            f"POST {KIT}/agent/{{agent}}/run": ask("hello", thread=self.threads["finished"]),
            f"POST {KIT}/agent/{{agent}}/connect": ask("hello", thread=self.threads["running"]),
            f"POST {KIT}/agent/{{agent}}/stop/{{thread}}": {"runId": "a-running-run"},
            f"POST {KIT}/agent/{{agent}}/suggest": wish(),
            f"PATCH {KIT}/threads/{{thread}}": {"agentId": "chat", "name": "taken over", "archived": True},
            f"POST {KIT}": {"method": "resource/request", "params": {"path": "/threads", "httpMethod": "GET"}},
            f"POST {RUNS}/{{id}}/resume": {"resume": [{"interruptId": new_id(), "status": "cancelled"}]},
            "POST /api/v1/chat": {"message": "hello", "conversation_id": self.threads["finished"]},
            f"PATCH {AGENT}/threads/{{id}}": {"title": "taken over"},
            f"POST {AGENT}/threads/{{id}}/fork": {"before": self.message, "title": "taken over"},
            f"POST {AGENT}/threads/{{id}}/rollback": {"messageId": self.message},
            f"POST {AGENT}/threads/{{id}}/files/restore": {"messageId": self.message},
            f"POST {AGENT}/threads/{{id}}/compact": {"runId": new_id()},
            PREVIEW: {"messages": ask("hello")["messages"]},
            f"POST {AGENT}/datasets": {"name": "not alice's"},
            f"PATCH {AGENT}/datasets/{{id}}": {"name": "taken over", "sharedWith": ["bob"]},
            f"PATCH {PROFILE}": {"life_context": {"note": "taken over"}, "skill_data": {"notes": None}},
            TIER: {"tier": "taken-over"},
        }
        if not operation.has_body:
            return None
        assert operation.name in values_by_field, f"No body is known for {operation.name}. Name one in Belongings.body."
        return values_by_field[operation.name]

    def export(self) -> bytes:
        return request(self.url, "GET", f"{AGENT}/me/export", token=ALICE).body

    def secrets(self) -> list[str]:
        """What no answer to bob may hold."""
        return [MARK, *self.runs.values(), *self.threads.values(), self.message, self.attachment, self.dataset]


@pytest.fixture(scope="module")
def alices(tmp_path_factory: pytest.TempPathFactory) -> Generator[Belongings]:
    settings = {"RECTO_API_KEYS": f"{KEYS},carol:{CAROL}", "RECTO_OPERATORS": "alice", "RECTO_AGENT": "chat"}
    with scripted_server(tmp_path_factory.mktemp("owned"), settings) as server:
        yield settle_in(server)


def settle_in(server: Scripted) -> Belongings:
    """Alice at home: a run that is finished, one that waits for her, one in a fork, one under way, one behind it."""
    finished = play(server, ask(f"calculate {MARK}", run="a-finished-run"), CALCULATE, Answer(text=f"{MARK} is 42"))
    waiting = play(server, ask(f"pick {MARK}", run="a-waiting-run", tools=[PICK]), PICKED)
    thread = str(finished["threadId"])
    message = str(server.rows(f"/history?threadId={thread}", "messages")[0]["id"])
    fork = request(server.url, "POST", f"{AGENT}/threads/{thread}/fork", {"title": f"again {MARK}"}, token=ALICE)
    forked = play(server, ask(f"and {MARK}?", thread=str(fork.json["id"]), run="a-forked-run"), Answer(text=MARK))
    waiting_run = ask(f"hold {MARK}", run="a-running-run")
    running, _ = server.begin(waiting_run)
    queued = server.post(ask(f"later {MARK}", thread=str(waiting_run["threadId"]), run="a-queued-run")).json
    tasks_by_state = {"finished": finished, "waiting": waiting, "forked": forked, "queued": queued}
    tasks = {**{state: str(task_row["taskId"]) for state, task_row in tasks_by_state.items()}, "running": running}
    by_name = {f"{state} by name": f"a-{state}-run" for state in tasks}
    threads = {"finished": thread, "waiting": str(waiting["threadId"]), "forked": str(fork.json["id"])}
    cursor = str(server.get("/threads?limit=1")["next"])
    upload_row = upload(server, file(FILE, MARK.encode()))
    dataset = request(server.url, "POST", f"{AGENT}/datasets", {"name": MARK, "sharedWith": ["carla"]}, token=ALICE)
    profile: dict[str, Json] = {"life_context": {"note": MARK}, "skill_data": {"notes": [MARK]}}
    assert request(server.url, "PATCH", PROFILE, profile, token=ALICE).status == 200
    return Belongings(
        server=server,
        runs={**tasks, **by_name},
        threads={**threads, "running": str(waiting_run["threadId"])},
        attachment=str(upload_row["id"]),
        signed_url=urlsplit(str(upload_row["url"])).query,
        dataset=str(dataset.json["id"]),
        message=message,
        cursor=cursor,
    )


def upload(server: Scripted, one: Field) -> Mapping[str, Json]:
    """Store a file of alice's."""
    reply = request(server.url, "POST", f"{AGENT}/attachments", form_of(one), token=ALICE, content_type=FORM)
    (entry,) = cast("list[Mapping[str, Json]]", reply.json["attachments"])
    return entry


CALCULATE = Answer(text=MARK, calls=(Call(name="calculator", arguments='{"expression": "6*7"}', id=f"c-{MARK}"),))
PICKED = Answer(text=MARK, calls=(Call(name=f"pick_{MARK}", arguments="{}", id=f"p-{MARK}"),))


def play(server: Scripted, body: Mapping[str, Json], *answers: Answer) -> Mapping[str, Json]:
    server.answers[:] = answers
    admission = server.post(body)
    assert admission.status == 202, admission.body
    server.reader(str(admission.json["taskId"])).wait()
    assert server.answers == []
    return admission.json


def fill_paths(alices: Belongings, operation: Operation) -> Iterator[dict[str, str]]:
    """The places of a path, with every id of alice's in turn."""
    for first in alices.ids(operation.places[0]) if operation.places else ():
        rest = {place: alices.ids(place)[0] for place in operation.places[1:]}
        yield {operation.places[0]: first, **rest}
    if not operation.places:
        yield {}


def send(alices: Belongings, operation: Operation, path: str, token: str | None) -> HttpReply:
    headers, body = dict(alices.header(name) for name in operation.headers), alices.body(operation)
    media = {"content_type": FORM} if isinstance(body, bytes) else {}
    return request(alices.url, operation.method, path, body, token=token, **headers, **media)


def summarise(reply: HttpReply) -> tuple[int, dict[str, str], str]:
    """All of an answer that could tell one thing from another."""
    headers = {name: value for name, value in reply.headers.items() if name not in CLOCKS}
    return reply.status, headers, reply.body.decode()


def queries(alices: Belongings, operation: Operation) -> list[str]:
    """No query, each of them alone, and all together."""
    each = [alices.query(name, operation) for name in operation.queries]
    none = [] if operation.name == CHANGES else [""]
    return [*none, *each, *(["&".join(each)] if len(each) > 1 else [])]


def test_P5_what_is_alices_is_to_bob_as_if_it_were_nowhere(alices: Belongings):
    before = alices.export()
    count = 0
    for operation in operations(alices.url):
        is_hers = operation.places and operation.places[0] not in EVERYBODYS and operation.name != PREVIEW
        for values in fill_paths(alices, operation) if is_hers else ():
            mine = values[operation.places[0]]
            # An id nobody has, as long and of the same form.
            other = new_id() if mine.count("-") == 4 else mine[::-1]
            for query in queries(alices, operation):
                nowhere = {**values, operation.places[0]: other}
                foreign = send(alices, operation, operation.at(values, query), BOB)
                absent = send(alices, operation, operation.at(nowhere, query), BOB)
                problem = summarise(foreign)
                assert (problem[0], problem[1], problem[2].replace(mine, other)) == summarise(absent), operation.at(
                    values, query
                )
                assert foreign.status == (403 if operation.name == TIER else 404), f"{operation.name}: {foreign.body!r}"
                assert_problem(foreign)
                assert MARK not in str(problem)
                count += 1
    assert count > 100
    assert alices.export() == before


@pytest.mark.parametrize("token", [BOB, CAROL], ids=["bob", "carol"])
def test_P5_no_answer_to_others_holds_anything_of_alices(alices: Belongings, token: str):
    before = alices.export()
    play_as_bob(alices)
    for operation in operations(alices.url):
        for query in queries(alices, operation) if not operation.places else ():
            reply = send(alices, operation, operation.at({}, query), token)
            leaks = [secret for secret in alices.secrets() if secret in str(summarise(reply))]
            # A refusal may name what it was asked for.
            allowed = {alices.threads["finished"]} if reply.status == 404 else set[str]()
            assert set(leaks) <= allowed, f"{operation.name}?{query}: {reply.body!r}"
    assert alices.export() == before
    # Metrics are for operators, and name nobody.
    rejection = request(alices.url, "GET", "/metrics", token=token)
    assert (rejection.status, rejection.json["code"]) == (403, "not_an_operator")
    metrics = request(alices.url, "GET", "/metrics", token=ALICE).body.decode()
    assert [secret for secret in alices.secrets() if secret in metrics] == []


def test_P5_a_run_or_a_preview_in_alices_thread_is_not_for_bob(alices: Belongings):
    for thread in alices.threads.values():
        for accept in ("application/json", "text/event-stream"):
            for body in (ask("hello", thread=thread), ask("hello", thread=thread.upper())):
                reply = request(alices.url, "POST", RUNS, body, token=BOB, accept=accept)
                assert_refused(reply, 404, f"There is no thread '{thread}'.", "not_found")
                assert request(alices.url, "GET", f"{RUNS}/{body['runId']}", token=BOB).status == 404
        for received in ({"messages": ask("hello")["messages"]}, {}):
            reply = request(alices.url, "POST", f"{AGENT}/threads/{thread.upper()}/preview?raw=1", received, token=BOB)
            assert_refused(reply, 404, f"There is no thread '{thread}'.", "not_found")


def test_P5_a_run_of_bobs_may_have_the_name_of_one_of_alices_and_each_finds_their_own(alices: Belongings):
    for name in (alices.runs["finished"], alices.runs["finished by name"]):
        hers = alices.server.get(f"/runs/{name}")
        bobs = request(alices.url, "POST", RUNS, ask("I am bob", run=name), token=BOB)
        assert (bobs.status, bobs.json["taskId"] != hers["taskId"]) == (202, True)
        response = request(alices.url, "GET", f"{RUNS}/{name}", token=BOB)
        assert (response.json["taskId"], MARK in str(response.body)) == (bobs.json["taskId"], False)
        assert alices.server.get(f"/runs/{name}") == hers


def test_P5_bob_can_not_answer_a_call_of_alices(alices: Belongings):
    thread = play_as_bob(alices)
    result = {"id": "r", "role": "tool", "toolCallId": f"p-{MARK}", "content": "FORGED"}
    body = ask("hello again", thread=thread, parentRunId=alices.runs["waiting"])
    body = {**body, "messages": [*cast("list[Json]", body["messages"]), result]}
    task = str(alices.server.post(body, BOB).json["taskId"])
    alices.server.reader(task, BOB).wait()
    assert b"FORGED" not in alices.server.model.requests[-1].body
    waiting = alices.server.rows(f"/threads/{alices.threads['waiting']}", "pendingCalls")
    assert [call["id"] for call in waiting] == [f"p-{MARK}"]


def play_as_bob(alices: Belongings) -> str:
    """A thread of bob's, with a run that has ended."""
    admission = alices.server.post(ask("I am bob"), BOB).json
    alices.server.reader(str(admission["taskId"]), BOB).wait()
    return str(admission["threadId"])


@pytest.mark.parametrize("token", [None, "a-key-nobody-ever-had"])
def test_C3_without_a_good_credential_only_what_is_open_answers(alices: Belongings, token: str | None):
    before = alices.export()
    is_open: set[str] = set()
    for operation in operations(alices.url):
        values = next(fill_paths(alices, operation))
        reply = send(alices, operation, operation.at(values), token)
        assert MARK not in str(summarise(reply))
        if operation.is_open:
            # What is open to whoever has a signature is to others as if it were nowhere.
            assert reply.status == (404 if operation.name == SIGNED_ROUTE else 200), operation.name
            is_open.add(operation.name)
        else:
            assert (reply.status, reply.headers["www-authenticate"]) == (401, "Bearer"), operation.name
            assert_problem(reply)
            assert alices.runs["finished"] not in reply.body.decode()
    assert is_open == {"GET /healthz", "GET /readyz", "GET /version", SIGNED_ROUTE}
    assert alices.export() == before


def test_who_may_only_look_sees_all_and_changes_nothing(alices: Belongings):
    before = alices.export()
    for operation in operations(alices.url):
        for values in fill_paths(alices, operation):
            # A stream of what is under way has no end, and what waits has no calls yet.
            if operation.method == "GET" and alices.under_way & set(values.values()):
                continue
            query = {SIGNED_ROUTE: alices.signed_url, CHANGES: f"since={alices.message}"}.get(operation.name, "")
            reply = send(alices, operation, operation.at(values, query), LOOKER)
            if operation.method == "GET":
                expected = 404 if operation.name == CHANGES else 200
                assert reply.status == expected, f"{operation.name} {values}: {reply.body!r}"
            else:
                words = f"This credential may only read, not {operation.method}. Use one that may write."
                assert_refused(reply, 403, words, "read_only")
    assert request(alices.url, "GET", f"{AGENT}/me/export", token=LOOKER).body == before == alices.export()
