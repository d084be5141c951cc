"""What a real server tells of a conversation that was had (P8, P13, P17, X1): one run, looked at from everywhere."""

from collections.abc import Generator, Mapping
from dataclasses import dataclass
from typing import cast

import pytest

from recto.conversation.json import Json, load
from recto.testing.client import ask, request, run
from recto.testing.process import ServerProcess

pytestmark = pytest.mark.full

AGENT = "/api/v1/agent"
WORDS = "What is 12*7?"


@dataclass(frozen=True, kw_only=True)
class Talk:
    """A server, and the thread and run of a conversation it had."""

    url: str
    thread: str
    run: str

    def get(self, path: str) -> Mapping[str, Json]:
        reply = request(self.url, "GET", f"{AGENT}{path}")
        assert reply.status == 200, reply.body
        return reply.json

    def rows(self, path: str, name: str) -> list[Mapping[str, Json]]:
        return list(cast("list[Mapping[str, Json]]", self.get(path)[name]))


@pytest.fixture(scope="module")
def talk(tmp_path_factory: pytest.TempPathFactory) -> Generator[Talk]:
    with ServerProcess.serve(tmp_path_factory.mktemp("talk"), {"RECTO_MODEL": "demo", "RECTO_AGENT": "chat"}) as server:
        body = ask(WORDS)
        run(server.url, body)
        yield Talk(url=server.url, thread=str(body["threadId"]), run=str(body["runId"]))


def test_X1_every_call_is_verified_and_its_bytes_are_its_page(talk: Talk):
    listed = talk.rows(f"/runs/{talk.run}/calls", "calls")
    assert [call["n"] for call in listed] == list(range(1, len(listed) + 1))
    assert len(listed) > 1
    for call in listed:
        seen = talk.get(f"/runs/{talk.run}/calls/{call['n']}")
        assert (seen["verified"], seen["damaged"]) == (True, [])
        raw = request(talk.url, "GET", f"{AGENT}/runs/{talk.run}/calls/{call['n']}?raw=1")
        assert (len(raw.body), load(raw.body)) == (seen["bytes"], seen["page"])
        assert {name: seen[name] for name in call} == call


def test_P13_the_day_of_the_conversation_is_its_history(talk: Talk):
    history = talk.get("/history")
    assert (history["threadId"], history["hasMore"]) == (talk.thread, False)
    messages = talk.rows(f"/history?threadId={talk.thread}&tz=Asia/Shanghai", "messages")
    assert (messages[0]["role"], messages[0]["content"]) == ("user", WORDS)
    assert (messages[-1]["role"], "84" in str(messages[-1]["content"])) == ("assistant", True)


def test_P17_the_thread_has_the_first_words_as_its_title_and_its_run(talk: Talk):
    thread = talk.get(f"/threads/{talk.thread}")
    assert (thread["title"], thread["activeRun"], thread["pendingCalls"]) == (WORDS, None, [])
    runs = talk.rows(f"/threads/{talk.thread}/runs", "runs")
    assert [(one["runId"], one["active"]) for one in runs] == [(talk.run, False)]
    assert talk.thread in [one["id"] for one in talk.rows("/threads?search=12*7", "threads")]


def test_P17_a_fork_goes_on_by_itself_and_is_deleted_alone(talk: Talk):
    fork = request(talk.url, "POST", f"{AGENT}/threads/{talk.thread}/fork", {"title": "Again"})
    assert fork.status == 201
    made = str(fork.json["id"])
    run(talk.url, {**ask("And 2*3?"), "threadId": made})
    assert len(talk.rows(f"/history?threadId={made}", "messages")) > len(
        talk.rows(f"/history?threadId={talk.thread}", "messages")
    )
    assert request(talk.url, "DELETE", f"{AGENT}/threads/{made}").json == {"id": made, "stopped": []}
    assert talk.get(f"/threads/{talk.thread}")["title"] == WORDS
