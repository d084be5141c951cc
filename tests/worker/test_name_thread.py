"""Threads named by a model: one more call after the first answer; a user's title stays; failure changes nothing."""

import threading
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import cast

import pytest

from recto.conversation.json import Json
from recto.conversation.messages import AssistantMessage, SystemMessage, Text, UserMessage
from recto.models.ports import Usage
from recto.testing.client import RUNS, Reader, ask, request, run, start
from recto.testing.model_server import Answer, ModelServer, Request, failure
from recto.testing.process import ServerProcess
from recto.worker.model.name_thread import ASK, SHOWN, title_request

pytestmark = pytest.mark.full

AGENT = "---\ntitles: model\n---\nYou help.\n"
PRICES = 'currency = "EUR"\nas_of = 2026-05-14\n[[prices]]\nmodels = ["*"]\ninput = 1\noutput = 1\n'
Row = Mapping[str, Json]


class Here:
    """A server whose agent has titles made by the model. `gate` holds titles back where the words say so."""

    def __init__(self) -> None:
        self.gate = threading.Event()
        self.server: ServerProcess | None = None
        self.model = ModelServer(self._answer)

    def _answer(self, asked: Request) -> Answer:
        first, last = cast("list[Row]", asked.page["messages"])[:: len(cast("list[Row]", asked.page["messages"])) - 1]
        if first["content"] != ASK["en"]:
            return Answer(text="Of course.", usage=Usage(input=100, output=10))
        if "no title" in str(last["content"]):
            return failure(500, "no title today")
        hold = self.gate if "slowly" in str(last["content"]) else None
        return Answer(text='"A week in May."\n', usage=Usage(input=20, output=5), hold=hold)

    @property
    def url(self) -> str:
        return self.server.url if self.server else ""

    def thread(self, body: Row) -> Row:
        return request(self.url, "GET", f"/api/v1/agent/threads/{body['threadId']}").json

    def calls(self, body: Row) -> list[Row]:
        return cast("list[Row]", request(self.url, "GET", f"{RUNS}/{body['runId']}/calls").json["calls"])

    def usage(self, body: Row) -> Row:
        return cast("Row", request(self.url, "GET", f"{RUNS}/{body['runId']}").json["usage"])


@pytest.fixture(scope="module")
def here(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Here]:
    folder, found = tmp_path_factory.mktemp("titles"), Here()
    (folder / "agents" / "helper").mkdir(parents=True)
    (folder / "agents" / "helper" / "AGENT.md").write_text(AGENT, encoding="utf-8")
    (folder / "prices.toml").write_text(PRICES, encoding="utf-8")
    with found.model:
        settings = {
            "RECTO_MODEL": "compatible:x",
            "RECTO_MODEL_URL": found.model.url,
            "RECTO_AGENTS": str(folder / "agents"),
            "RECTO_AGENT": "helper",
            "RECTO_PRICES": str(folder / "prices.toml"),
        }
        with ServerProcess.serve(Path(folder / "data"), settings) as server:
            found.server = server
            yield found


def test_P17_the_first_run_of_a_thread_makes_one_more_call_which_names_it(here: Here):
    body = ask("Plan my week")
    assert run(here.url, body)[-1].event["type"] == "RUN_FINISHED"
    assert here.thread(body)["title"] == "A week in May"
    assert [(call["purpose"], call["error"]) for call in here.calls(body)] == [("reply", None), ("title", None)]
    # Both calls are on the run's account.
    usage = here.usage(body)
    assert (usage["inputTokens"], usage["outputTokens"], usage["price"]) == (120, 15, "0.000135")


def test_P17_later_runs_of_the_thread_do_not_name_it_again(here: Here):
    body = ask("Plan my week")
    run(here.url, body)
    later = ask("And the next", thread=str(body["threadId"]))
    run(here.url, later)
    assert [call["purpose"] for call in here.calls(later)] == ["reply"]


def test_P17_a_title_the_user_gave_meanwhile_stays(here: Here):
    body = ask("Plan my week, slowly")
    reader = Reader(lambda: here.url, start(here.url, body))
    reader.wait_for(lambda sent: sent.event["type"] == "TEXT_MESSAGE_END")
    path = f"/api/v1/agent/threads/{body['threadId']}"
    assert request(here.url, "PATCH", path, {"title": "Mine"}).status == 200
    here.gate.set()
    assert reader.wait()[-1].event["type"] == "RUN_FINISHED"
    assert [call["purpose"] for call in here.calls(body)] == ["reply", "title"]
    assert here.thread(body)["title"] == "Mine"


def test_P17_a_title_that_fails_changes_nothing_and_the_run_finishes(here: Here):
    body = ask("I want no title")
    before = request(here.url, "GET", "/metrics").body.decode()
    assert run(here.url, body)[-1].event["type"] == "RUN_FINISHED"
    row = request(here.url, "GET", f"{RUNS}/{body['runId']}").json
    assert (row["status"], row["error"]) == ("finished", None)
    assert here.thread(body)["title"] == "I want no title"
    (_, title) = here.calls(body)
    assert title["purpose"] == "title"
    assert "no title today" in str(title["error"])
    # What is known of the price of the answer stays known.
    assert (here.usage(body)["price"], here.usage(body)["inputTokens"]) == ("0.00011", 100)
    failed = 'recto_model_calls_total{model="compatible:x",result="failed"} 1.0'
    assert failed not in before
    assert failed in request(here.url, "GET", "/metrics").body.decode()


def test_P17_a_run_cancelled_while_its_thread_is_named_ends_and_its_call_is_recorded(here: Here):
    here.gate.clear()
    body = ask("Plan my week, slowly")
    reader = Reader(lambda: here.url, start(here.url, body))
    reader.wait_for(lambda sent: sent.event["type"] == "TEXT_MESSAGE_END")
    assert request(here.url, "POST", f"{RUNS}/{body['runId']}/cancel").status == 200
    reader.wait()
    calls = here.calls(body)
    assert all(call["ended"] for call in calls)
    assert here.thread(body)["title"] == "Plan my week, slowly"


@pytest.mark.parametrize(("locale", "language"), [("en", "en"), ("zh", "zh")])
def test_P17_the_model_is_asked_in_the_agents_language_with_the_first_words_and_the_last_answer(
    locale: str, language: str
):
    log = (
        UserMessage(id="u", parts=(Text(text="first" + "x" * SHOWN),)),
        AssistantMessage(id="a", parts=(Text(text="let me see"),)),
        AssistantMessage(id="b", parts=(Text(text="the answer"),)),
    )
    system, said = title_request(log, locale)
    assert isinstance(system, SystemMessage)
    assert system.text == ASK[language]
    assert isinstance(said, UserMessage)
    (part,) = said.parts
    assert isinstance(part, Text)
    assert part.text.endswith("the answer")
    assert "let me see" not in part.text
    assert part.text.count("x") == SHOWN - len("first")
