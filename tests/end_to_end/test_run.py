"""Whole runs through a real server and a scripted model."""

import asyncio
import threading
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import cast

import pytest

from recto.conversation.json import Json
from recto.models.ports import Usage
from recto.store.store import open_store
from recto.testing.model_server import Answer, Call, Request, failure
from recto.testing.process import ServerProcess
from tests.end_to_end.harness import Harness, log_texts, story, stream_texts
from tests.flow.in_process import in_process
from tests.store.suite.samples import OTHER_NODE, claim_names
from tests.support.client import RUNS, Reader, ReceivedEvent, ask, request, run, start
from tests.waiting import wait_for

# How the request for a summary begins.
SUMMARY = "You summarise a conversation"


class Scripts:
    """Scripts by words of a conversation, so that all tests share one server. The newest match wins."""

    def __init__(self) -> None:
        self.by_words: dict[str, Sequence[Answer]] = {}
        self.pages: dict[str, list[Mapping[str, Json]]] = {}

    def play(self, words: str, *answers: Answer) -> str:
        self.by_words[words] = answers
        return words

    def __call__(self, model_request: Request) -> Answer:
        messages = cast("list[dict[str, str]]", model_request.page["messages"])
        text = " ".join(str(message["content"]) for message in messages)
        words = next((words for words in reversed(self.by_words) if words in text), "")
        pages = self.pages.setdefault(words, [])
        pages.append(model_request.page)
        return self.by_words[words][min(len(pages), len(self.by_words[words])) - 1]


@pytest.fixture(scope="module")
def scripts() -> Scripts:
    return Scripts()


@pytest.fixture(scope="module")
def harness(tmp_path_factory: pytest.TempPathFactory, scripts: Scripts) -> Iterator[Harness]:
    folder = tmp_path_factory.mktemp("run")
    config = folder / "recto.toml"
    config.write_text("[limits]\nsteps = 6\nseconds = 300\ntool_seconds = 120\n", encoding="utf-8")
    with Harness(folder, scripts) as harness:
        command = ["recto", "serve", "--port", str(harness.port), "--data", str(harness.data), "--config", str(config)]
        with ServerProcess(command, harness.environment(retry_seconds=0.01)):
            yield harness


def note(text: str, id: str = "c1") -> Call:
    return Call(name="note", arguments=f'{{"text": "{text}"}}', id=id)


def last(events: Sequence[ReceivedEvent]) -> Mapping[str, Json]:
    return events[-1].event


def played(harness: Harness, words: str, thread: str = "") -> tuple[list[ReceivedEvent], list[tuple[str, str]]]:
    body = ask(words, thread=thread)
    events = run(harness.url, body)
    log = harness.log(str(body["threadId"]))
    assert stream_texts(events) == log_texts(log)
    return events, story(log)


def test_parallel_calls_run_at_once_and_the_model_sees_their_results_in_order(harness: Harness, scripts: Scripts):
    slow, fast = Call(name="follow", arguments='{"text": "fast"}', id="slow"), note("fast", "fast")
    words = scripts.play("in parallel", Answer(calls=(slow, fast)), Answer(text="Both."))
    _, log = played(harness, words)
    assert [text for kind, text in log if kind == "tool"] == ["noted fast", "followed fast"]
    messages = cast("list[Mapping[str, Json]]", scripts.pages[words][1]["messages"])
    assert [message["tool_call_id"] for message in messages if message["role"] == "tool"] == ["slow", "fast"]


def test_R13_a_page_that_is_too_long_is_compacted_once_and_sent_again(harness: Harness, scripts: Scripts):
    thread = str(ask("")["threadId"])
    scripts.play("long talk", Answer(text="words " * 1500))
    run(harness.url, ask("long talk", thread=thread))
    too_long = failure(400, "maximum context length", code="context_length_exceeded")
    scripts.play("shorter", too_long, Answer(text="Now it fits."))
    scripts.play(SUMMARY, Answer(text="They talked for long."))
    events = run(harness.url, ask("shorter", thread=thread))
    log = harness.log(thread)
    assert last(events)["type"] == "RUN_FINISHED"
    assert "compacted" in [kind for kind, _ in story(log)]
    assert story(log)[-1] == ("assistant", "Now it fits.")


def test_P8_cancel_ends_running_tools_and_the_model_is_told(harness: Harness, scripts: Scripts):
    call = Call(name="wait", id="long")
    words = scripts.play("stop the tool", Answer(calls=(call,)), Answer(text="Stopped."))
    body = ask(words)
    (harness.agent / "waiting.txt").unlink(missing_ok=True)
    start(harness.url, body)
    wait_for((harness.agent / "waiting.txt").exists, "the tool to begin")
    request(harness.url, "POST", f"{RUNS}/{body['runId']}/cancel")
    events = Reader(lambda: harness.url, str(body["runId"])).wait()
    assert last(events)["outcome"] == {"type": "cancelled"}
    run(harness.url, ask("stop the tool, I said", thread=str(body["threadId"])))
    messages = cast("list[Mapping[str, Json]]", scripts.pages[words][-1]["messages"])
    assert "was stopped because the run was ended" in str(messages)
    assert "waited" not in harness.notes


def test_a_call_repeated_without_effect_is_noticed_and_told(harness: Harness, scripts: Scripts):
    look = Answer(calls=(Call(name="look", arguments='{"text": "x"}', id="l"),))
    words = scripts.play("again and again", look, look, look, Answer(text="I see."))
    _, log = played(harness, words)
    results = [text for kind, text in log if kind == "tool"]
    assert results[0] == "saw x"
    assert "3 times" in results[2]


async def test_X4_a_server_that_stops_hands_back_what_is_at_work(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    async with in_process(tmp_path, monkeypatch, grace_seconds=0.01) as server:
        server.answers.append(Answer(hang=True))
        assert (await server.send("POST", RUNS, ask("hi", run="r1"))).status == 202
        await asyncio.to_thread(server.model.wait_requests, 1)
        clock = server.backend.clock
    store = await open_store(f"sqlite:///{tmp_path / 'data' / 'recto.db'}")
    # Long before its lease would have run out.
    assert await claim_names(store, OTHER_NODE, clock()) == ["r1"]
    await store.close()


@pytest.mark.full
def test_P8_a_reply_that_is_cancelled_counts_what_was_said_of_it(tmp_path: Path):
    go = threading.Event()

    answer = Answer(text="one two three four five six", hold=go, hold_after=4)
    with Harness(tmp_path, lambda _: answer) as harness, harness.serve():
        id = start(harness.url, ask("hold"))
        Reader(lambda: harness.url, id).wait_for(lambda received: b"TEXT_MESSAGE_CONTENT" in received.body)
        request(harness.url, "POST", f"{RUNS}/{id}/cancel")
        Reader(lambda: harness.url, id).wait()
        (call,) = cast("list[Mapping[str, Json]]", request(harness.url, "GET", f"{RUNS}/{id}/calls").json["calls"])
        usage = cast("Mapping[str, int]", request(harness.url, "GET", f"{RUNS}/{id}").json["usage"])
        metrics = request(harness.url, "GET", "/metrics").body.decode()
        go.set()
    estimate = cast("Mapping[str, int]", call["usage"])
    assert estimate["estimated"] is True
    assert usage["inputTokens"] == estimate["inputTokens"] > 10
    assert usage["outputTokens"] == estimate["outputTokens"] >= 3
    assert call["firstToken"]
    assert 'recto_model_calls_total{model="compatible:scripted",result="broken_off"} 1.0' in metrics


@pytest.mark.full
def test_R13_what_one_model_said_of_its_tokens_says_nothing_to_another(tmp_path: Path):
    def script(model_request: Request) -> Answer:
        return Answer(
            text="Well.", usage=Usage(input=127_000 if model_request.page["model"] == "scripted" else 10, output=1)
        )

    with Harness(tmp_path, script) as harness:
        other = harness.agents / "other"
        other.mkdir()
        (other / "AGENT.md").write_text("---\nmodel: compatible:small\n---\nYou are another.\n", encoding="utf-8")
        with harness.serve():
            first = ask("hello " * 800)
            run(harness.url, first)
            second = {**ask("and you?"), "threadId": first["threadId"], "forwardedProps": {"agent": "other"}}
            run(harness.url, second)
        assert [model_request.page["model"] for model_request in harness.model.requests] == ["scripted", "small"]
