"""Every route of a real server, with what its own description says can be sent and what it says can not. No route is
left out, and none of what is generated; ids that exist and good messages are put into half of it, to get further in.
"""

from collections import Counter
from collections.abc import Generator, Mapping
from dataclasses import dataclass
from typing import cast
from urllib.parse import parse_qsl, urlsplit

import pytest
import requests
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from recto.api.accounts import delete_me
from recto.api.files.attachments import ATTACHMENTS
from recto.api.files.datasets import DATASETS
from recto.api.route import Route
from recto.api.runs.routes import resume_run
from recto.api.server import ROUTES
from recto.api.threads.rollback import get_changes, restore_files, roll_back_thread, undo_rollback
from recto.conversation.json import Json, dump
from recto.files.signing import FILES
from recto.ids import new_id
from recto.testing.process import ServerProcess
from tests.api.copilotkit_client import wish
from tests.api.described import operations
from tests.api.forms import FORM, file, form_of
from tests.api.generated import Case, Generated, assert_as_described, cases_of, generated
from tests.api.scripted_server import ALICE, BOB, KEYS
from tests.api.wrong_inputs import assert_problem
from tests.support.client import RUNS, ask, bearer, read_events, request

pytestmark = pytest.mark.full

USERS = {"alice": ALICE, "bob": BOB}
THREADS = "/api/v1/agent/threads"
NOTES = file("notes.txt", b"buy milk")
# By the profile of the tier: `make fuzz` sends thousands. The route that takes most has most.
EXAMPLES, MOST = settings().max_examples, settings().max_examples * 2
# Longer than any answer takes: a stream that does not end fails.
SECONDS = 20.0
REPEATABLE = settings(
    max_examples=EXAMPLES,
    derandomize=True,
    deadline=None,
    database=None,
    suppress_health_check=(HealthCheck.too_slow, HealthCheck.filter_too_much, HealthCheck.data_too_large),
)
BY_ID = (resume_run, roll_back_thread, undo_rollback, get_changes, restore_files)


@dataclass(frozen=True, kw_only=True)
class Home:
    """A run that has ended, its thread, a file and a dataset: of one user. `url_query` is that of the file's url."""

    thread: str
    run: str
    attachment: str
    url_query: Mapping[str, str]
    dataset: str


@dataclass(frozen=True, kw_only=True)
class Fuzzed:
    """A server and its description."""

    url: str
    methods: Mapping[str, Mapping[str, Generated]]
    session: requests.Session

    def settle(self) -> dict[str, Home]:
        """Something new of each user, for one exploration."""
        return {user: self._home(token) for user, token in USERS.items()}

    def _home(self, token: str) -> Home:
        body = ask("What is 12*7?")
        assert request(self.url, "POST", RUNS, body, token=token).status == 202
        upload_row = request(self.url, "POST", ATTACHMENTS, form_of(NOTES), token=token, content_type=FORM).json
        (entry,) = cast("list[Mapping[str, Json]]", upload_row["attachments"])
        home = Home(
            thread=str(body["threadId"]),
            run=str(body["runId"]),
            attachment=str(entry["id"]),
            url_query=dict(parse_qsl(urlsplit(str(entry["url"])).query)),
            dataset=str(request(self.url, "POST", DATASETS, {"name": "Mine"}, token=token).json["id"]),
        )
        assert list(read_events(self.url, home.run, token=token))
        return home


@pytest.fixture(scope="module")
def fuzzed(tmp_path_factory: pytest.TempPathFactory) -> Generator[Fuzzed]:
    free = dict.fromkeys(("RECTO_USER_RUNS", "RECTO_USER_REQUESTS", "RECTO_THREAD_QUEUE", "RECTO_QUEUE"), "0")
    free |= {"RECTO_SUGGESTION_PAUSE_SECONDS": "0", "RECTO_USER_SUGGESTIONS": "0"}
    settings = {"RECTO_MODEL": "demo", "RECTO_API_KEYS": KEYS, "RECTO_OPERATORS": "alice", "RECTO_AGENT": "chat"}
    with ServerProcess.serve(tmp_path_factory.mktemp("fuzzed"), {**settings, **free}) as server:
        methods = generated(request(server.url, "GET", "/openapi.json").json)
        with requests.Session() as session:
            yield Fuzzed(url=server.url, methods=methods, session=session)
        assert "Traceback" not in server.output


@pytest.mark.parametrize("route", ROUTES, ids=lambda route: f"{route.method} {route.path}")
def test_whatever_is_sent_is_answered_as_described(fuzzed: Fuzzed, route: Route):
    homes, statuses = fuzzed.settle(), Counter[int]()
    accepted = ["application/json", "text/event-stream"] if route.streams else ["application/json"]

    @settings(REPEATABLE, max_examples=MOST if route.path == RUNS else EXAMPLES)
    @given(
        case=cases_of(fuzzed.methods[route.path][route.method]),
        user=st.sampled_from(sorted(USERS)),
        owner=st.sampled_from([None, *sorted(USERS)]),
        accept=st.sampled_from(accepted),
    )
    def explore(case: Case, user: str, owner: str | None, accept: str) -> None:
        if owner is not None:
            lead_home(case, route, homes[owner])
        headers = {**bearer(USERS[user]), "Accept": accept}
        answer = case.call(fuzzed.url, fuzzed.session, headers=headers, timeout=SECONDS)
        assert_as_described(case, answer)
        statuses[answer.status_code] += 1

    explore()
    # Not only the door was tried. Users are deleted elsewhere: here the others need what they have. Nothing waits, and
    # nobody guesses the id of a message.
    assert min(statuses) < 300 or route.handler in BY_ID or route.handler is delete_me


def lead_home(case: Case, route: Route, home: Home) -> None:
    """Put what exists into the places for it, so that what else is sent is looked at."""
    fields = {THREADS: home.thread, ATTACHMENTS: home.attachment, FILES: home.attachment, DATASETS: home.dataset}
    id = next((id for path, id in fields.items() if route.path.startswith(path)), home.run)
    ids = {"id": id, "n": "1", "other": "1", "name": str(NOTES.filename), "agent": "chat", "thread": home.thread}
    for name in case.path_parameters.keys() & ids.keys():
        case.path_parameters[name] = ids[name]
    if route.path.startswith(FILES):
        case.query = dict(home.url_query)
    for name, value in (("threadId", home.thread), ("agentId", "chat")):
        if name in case.query:
            case.query[name] = value
    body = case.body
    if route.path.endswith("/suggest") and isinstance(body, dict):
        case.body = {**cast("dict[str, Json]", body), **wish()}
    elif route.path.endswith(("/runs", "/run", "/connect", "/ag-ui", "/ag-ui/{agent}")) and isinstance(body, dict):
        message = {"id": "m", "role": "user", "content": "What is 12*7?"}
        # Nothing waits for an answer there, and what is generated for one route may be a run of another's already.
        row: Json = {"threadId": home.thread, "runId": new_id(), "messages": [message], "resume": None}
        case.body = {**cast("dict[str, Json]", body), **row}


TAKING = [route for route in ROUTES if route.body]


@pytest.mark.parametrize("route", TAKING, ids=lambda route: f"{route.method} {route.path}")
def test_bytes_that_are_no_good_body_are_refused_as_a_problem(fuzzed: Fuzzed, route: Route):
    home = fuzzed.settle()["alice"]
    path = route.path.replace("{id}", home.thread).replace("{thread}", home.thread).replace("{agent}", "chat")
    whole = dump(ask("What is 12*7?", thread=home.thread))

    @REPEATABLE
    @given(
        start=st.integers(0, len(whole)),
        end=st.integers(0, len(whole)),
        between=st.binary() | st.text().map(str.encode),
    )
    def explore(start: int, end: int, between: bytes) -> None:
        reply = request(fuzzed.url, route.method, path, whole[:start] + between + whole[end:], token=ALICE)
        assert reply.status < 500
        if reply.status >= 400:
            assert_problem(reply)

    explore()


def test_the_description_has_every_route_and_no_other(fuzzed: Fuzzed):
    described = {operation.name for operation in operations(fuzzed.url)}
    assert described == {f"{route.method} {route.path}" for route in ROUTES}


def test_every_run_that_was_taken_came_to_its_end(fuzzed: Fuzzed):
    for token in USERS.values():
        response = request(fuzzed.url, "GET", f"{THREADS}?limit=100", token=token).json["threads"]
        for thread in cast("list[dict[str, Json]]", response):
            runs = request(fuzzed.url, "GET", f"{THREADS}/{thread['id']}/runs?limit=100", token=token).json["runs"]
            for run in cast("list[dict[str, Json]]", runs):
                assert list(read_events(fuzzed.url, str(run["taskId"]), token=token))[-1].event["type"] in {
                    "RUN_FINISHED",
                    "RUN_ERROR",
                }
