"""Threads named by a model: one more call after the first answer; a user's title stays; failure changes nothing."""

import asyncio
from collections.abc import AsyncGenerator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from threading import Event
from typing import cast

import pytest

from recto.conversation.json import Json
from recto.conversation.messages import AssistantMessage, SystemMessage, Text, UserMessage
from recto.models.ports import Usage
from recto.testing.model_server import Answer, Request, failure
from recto.worker.model.side_calls import TITLE_CHARACTERS, TITLE_PROMPT, build_title_request
from tests.flow.in_process import InProcess, in_process, messages_of
from tests.support.client import RUNS, ask

PRICES = 'currency = "EUR"\nas_of = 2026-05-14\n[[prices]]\nmodels = ["*"]\ninput = 1\noutput = 1\n'
THREADS = "/api/v1/agent/threads"
Row = Mapping[str, Json]


@dataclass(frozen=True, kw_only=True)
class Titled:
    """A server with an agent whose model writes titles. `gate` holds back titles of messages with "slowly"."""

    server: InProcess
    gate: Event = field(default_factory=Event)

    def answer(self, model_request: Request) -> Answer:
        first, *_, last = messages_of(model_request.page)
        if first["content"] != TITLE_PROMPT["en"]:
            return Answer(text="Of course.", usage=Usage(input=100, output=10))
        if "no title" in str(last["content"]):
            return failure(500, "no title today")
        hold = self.gate if "slowly" in str(last["content"]) else None
        return Answer(text='"A week in May."\n', usage=Usage(input=20, output=5), hold=hold)

    async def get(self, path: str) -> Row:
        return (await self.server.send("GET", path)).json

    async def run(self, words: str, thread: str = "") -> tuple[str, str]:
        """Run to the end. Return the URLs of the run and of its thread."""
        event = (await self.server.run(words, thread=thread))[-1].event
        assert event["type"] == "RUN_FINISHED"
        return f"{RUNS}/{event['runId']}", f"{THREADS}/{event['threadId']}"

    async def begin(self, words: str) -> tuple[str, str]:
        """Start a run and wait for the request of its title."""
        body = ask(words)
        assert (await self.server.send("POST", RUNS, body)).status == 202
        model_request = await asyncio.to_thread(self.server.model.wait_requests, 2)
        assert await asyncio.to_thread(model_request[1].wait_held)
        return f"{RUNS}/{body['runId']}", f"{THREADS}/{body['threadId']}"

    async def wait(self, run: str) -> Row:
        """Read the run's events to the end. Return its row."""
        await self.server.send("GET", f"{run}/events")
        return await self.get(run)

    async def calls(self, run: str) -> list[Row]:
        return list(cast("Sequence[Row]", (await self.get(f"{run}/calls"))["calls"]))


@pytest.fixture
async def titled(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncGenerator[Titled]:
    prices = tmp_path / "prices.toml"
    prices.write_text(PRICES, encoding="utf-8")
    async with in_process(tmp_path, monkeypatch, settings="titles: model", prices=prices) as server:
        titled = Titled(server=server)
        server.scripts.append(titled.answer)
        yield titled
        titled.gate.set()


async def test_P17_the_first_run_of_a_thread_makes_one_more_call_which_names_it(titled: Titled):
    run, thread = await titled.run("Plan my week")
    assert (await titled.get(thread))["title"] == "A week in May"
    assert [(call["purpose"], call["error"]) for call in await titled.calls(run)] == [("reply", None), ("title", None)]
    # Both calls are on the run's account.
    usage = cast("Row", (await titled.get(run))["usage"])
    assert (usage["inputTokens"], usage["outputTokens"], usage["price"]) == (120, 15, "0.000135")
    later, _ = await titled.run("And the next", thread=thread.rpartition("/")[2])
    assert [call["purpose"] for call in await titled.calls(later)] == ["reply"]


async def test_P17_a_title_the_user_gave_meanwhile_stays(titled: Titled):
    run, thread = await titled.begin("Plan my week, slowly")
    assert (await titled.server.send("PATCH", thread, {"title": "Mine"})).status == 200
    titled.gate.set()
    assert (await titled.wait(run))["status"] == "finished"
    assert [call["purpose"] for call in await titled.calls(run)] == ["reply", "title"]
    assert (await titled.get(thread))["title"] == "Mine"


async def test_P17_a_title_that_fails_changes_nothing_and_the_run_finishes(titled: Titled):
    run, thread = await titled.run("I want no title")
    row = await titled.get(run)
    assert (row["status"], row["error"]) == ("finished", None)
    assert (await titled.get(thread))["title"] == "I want no title"
    (_, title) = await titled.calls(run)
    assert title["purpose"] == "title"
    assert "no title today" in str(title["error"])
    # What is known of the price of the answer stays known.
    usage = cast("Row", row["usage"])
    assert (usage["price"], usage["inputTokens"]) == ("0.00011", 100)
    metrics = (await titled.server.send("GET", "/metrics")).body.decode()
    assert 'recto_model_calls_total{model="compatible:scripted",result="failed"} 1.0' in metrics


async def test_P17_a_run_cancelled_while_its_thread_is_named_ends_and_its_call_is_recorded(titled: Titled):
    run, thread = await titled.begin("Plan my week, slowly")
    assert (await titled.server.send("POST", f"{run}/cancel")).status == 200
    assert (await titled.wait(run))["ended"]
    assert all(call["ended"] for call in await titled.calls(run))
    assert (await titled.get(thread))["title"] == "Plan my week, slowly"


@pytest.mark.parametrize("locale", ["en", "zh"])
def test_P17_the_model_is_asked_in_the_agents_language_with_the_first_words_and_the_last_answer(locale: str):
    log = (
        UserMessage(id="u", parts=(Text(text="first" + "x" * TITLE_CHARACTERS),)),
        AssistantMessage(id="a", parts=(Text(text="let me see"),)),
        AssistantMessage(id="b", parts=(Text(text="the answer"),)),
    )
    system, instruction = build_title_request(log, locale)
    assert isinstance(system, SystemMessage)
    assert system.text == TITLE_PROMPT[locale]
    assert isinstance(instruction, UserMessage)
    (part,) = instruction.parts
    assert isinstance(part, Text)
    assert part.text.endswith("the answer")
    assert "let me see" not in part.text
    assert part.text.count("x") == TITLE_CHARACTERS - len("first")
