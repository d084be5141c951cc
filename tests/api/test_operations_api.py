"""What whoever runs a server sees over HTTP: metrics, prices, version, the description; and what retention leaves."""

import logging
import re
from collections.abc import Generator, Mapping, Sequence
from html import unescape
from importlib.metadata import version
from pathlib import Path
from typing import cast

import pytest
from ag_ui.core import Event
from prometheus_client.parser import text_string_to_metric_families
from pydantic import TypeAdapter

from recto.api import server as operations_routes
from recto.conversation.json import Json
from recto.models.ports import Usage
from recto.testing.model_server import Answer, Call, ModelServer, Request, failure
from recto.testing.process import ServerProcess
from tests.api.local_api import local_api
from tests.flow.in_process import in_process
from tests.support.client import RUNS, ask, read_events, request, run, start
from tests.waiting import wait_for

pytestmark = pytest.mark.full

PRICES = """
currency = "EUR"
as_of = 2026-05-14
[[prices]]
models = ["compatible:priced"]
input = 3
output = 10
cached = 0.5
"""
READER = """---
fold:
  reads: {tools: [read_page], path_args: [path], keep: 2}
---
You read.
"""
TOOLS = '''
from recto import tool


@tool(safe_to_repeat=True)
def read_page(path: str) -> str:
    """Read a page."""
    return "a word and another " * 50
'''
READS = 4
USAGE = Usage(input=1_000, output=200, cached=600)
REPLY_PRICE = 400 * 3 + 600 * 0.5 + 200 * 10
Labels = tuple[tuple[str, str], ...]
Row = Mapping[str, Json]


@pytest.fixture(scope="module")
def url(tmp_path_factory: pytest.TempPathFactory) -> Generator[str]:
    with ServerProcess.serve(tmp_path_factory.mktemp("operated"), {}) as server:
        yield server.url


def scripted(model_request: Request) -> Answer:
    """Reads a page four times, fails, hangs or answers, as it is told."""
    messages = cast("list[Row]", model_request.page["messages"])
    words = str([message["content"] for message in messages if message["role"] == "user"])
    if "fail" in words:
        return failure(401, "no")
    if "hang" in words:
        return Answer(hang=True)
    done = sum(1 for message in messages if message["role"] == "tool")
    if "read" in words and done < READS:
        return Answer(calls=(Call(name="read_page", arguments='{"path": "a.md"}', id=f"c{done}"),), usage=USAGE)
    return Answer(text="Here you are.", usage=USAGE)


def settings(folder: Path, model: ModelServer) -> dict[str, str]:
    (folder / "prices.toml").write_text(PRICES, encoding="utf-8")
    (folder / "agents" / "reader").mkdir(parents=True)
    (folder / "agents" / "reader" / "AGENT.md").write_text(READER, encoding="utf-8")
    (folder / "agents" / "reader" / "tools.py").write_text(TOOLS, encoding="utf-8")
    return {
        "RECTO_MODEL": "compatible:priced",
        "RECTO_MODEL_URL": model.url,
        "RECTO_AGENTS": str(folder / "agents"),
        "RECTO_AGENT": "reader",
        "RECTO_PRICES": str(folder / "prices.toml"),
    }


def samples(body: str) -> dict[tuple[str, Labels], float]:
    """Every sample of the metrics, by name and labels."""
    return {
        (sample.name, tuple(sorted(sample.labels.items()))): sample.value
        for family in text_string_to_metric_families(body)
        for sample in family.samples
    }


def labels(**values: str) -> Labels:
    return tuple(sorted(values.items()))


def calls_of(url: str, task: str) -> list[Row]:
    rows = cast("list[Row]", request(url, "GET", f"{RUNS}/{task}/calls").json["calls"])
    return [request(url, "GET", f"{RUNS}/{task}/calls/{row['n']}").json for row in rows]


def saved_of(call: Row) -> int:
    parts = cast("list[Row]", cast("Row", call["manifest"])["parts"])
    receipts = [receipt for part in parts for receipt in cast("list[Row]", part.get("receipts", ()))]
    tokens = [cast("Mapping[str, int]", receipt["tokens"]) for receipt in receipts]
    return sum(count["before"] - count["after"] for count in tokens)


def test_R11_P8_metrics_and_prices_are_exactly_what_the_runs_did(tmp_path: Path):
    with ModelServer(scripted) as model, ServerProcess.serve(tmp_path / "data", settings(tmp_path, model)) as server:
        for words in ("hello", "hello again", "please fail"):
            run(server.url, ask(words))
        read = ask("read it")
        run(server.url, read)
        calls = calls_of(server.url, str(read["runId"]))
        usage = cast("Row", request(server.url, "GET", f"{RUNS}/{read['runId']}").json["usage"])
        savings = request(server.url, "GET", "/api/v1/agent/savings").json
        stuck = start(server.url, ask("hang"))
        model.wait_requests(2 + 1 + READS + 1 + 1)
        request(server.url, "POST", f"{RUNS}/{stuck}/cancel")
        list(read_events(server.url, stuck))
        reply = request(server.url, "GET", "/metrics")
    assert reply.headers["content-type"].startswith("text/plain; version=")
    metrics = samples(reply.body.decode())
    model_name, replies = "compatible:priced", 2 + READS + 1
    expected = {
        ("recto_runs_total", labels(agent="reader", outcome="done")): 3,
        ("recto_runs_total", labels(agent="reader", outcome="model_failed")): 1,
        ("recto_runs_total", labels(agent="reader", outcome="cancelled")): 1,
        ("recto_run_seconds_count", labels(agent="reader")): 5,
        ("recto_queue_seconds_count", labels()): 5,
        ("recto_model_calls_total", labels(model=model_name, result="replied")): replies,
        ("recto_model_calls_total", labels(model=model_name, result="failed")): 1,
        ("recto_first_token_seconds_count", labels(model=model_name)): replies,
        ("recto_tokens_total", labels(model=model_name, kind="input")): replies * USAGE.input,
        ("recto_tokens_total", labels(model=model_name, kind="output")): replies * USAGE.output,
        ("recto_tokens_total", labels(model=model_name, kind="cached")): replies * USAGE.cached,
        ("recto_errors_total", labels(kind="ModelRefused")): 1,
    }
    savings_by_id = [saved_of(call) for call in calls]
    assert [count > 0 for count in savings_by_id] == [False, False, False, True, True]
    assert {name: metrics[name] for name in expected} == expected
    price = metrics["recto_price_total", labels(model=model_name, currency="EUR")]
    assert price == pytest.approx(replies * REPLY_PRICE / 1_000_000)
    assert_priced(calls, usage)
    assert not [name for name in metrics if "user" in str(name) or "local" in str(name)]
    assert_saved(metrics, savings, sum(savings_by_id))


def assert_priced(calls: Sequence[Row], usage: Row) -> None:
    """A run and its calls have their price."""
    assert [call["price"] for call in calls] == [REPLY_PRICE * 1_000] * (READS + 1)
    assert (usage["inputTokens"], usage["currency"]) == (USAGE.input * (READS + 1), "EUR")
    assert float(str(usage["price"])) == pytest.approx(REPLY_PRICE * (READS + 1) / 1_000_000)


def assert_saved(metrics: Mapping[tuple[str, Labels], float], savings: Row, saved_tokens: int) -> None:
    """What the metrics and the route say of savings: folding kept `saved_tokens` out of pages, in two calls."""
    # Three reads are one too many in the fourth call, four are two too many in the fifth.
    assert metrics["recto_folds_total", labels(rule="R2", tool="read_page", agent="reader")] == 3
    assert metrics["recto_fold_tokens_saved_total", labels(rule="R2", tool="read_page", agent="reader")] == saved_tokens
    assert metrics["recto_prefix_breaks_total", labels(cause="fold_step", agent="reader")] == 2
    # What is folded would have been read from the cache; what stands behind the read that is folded is written again.
    again = metrics["recto_prefix_break_tokens_total", labels(cause="fold_step", agent="reader")]
    money = labels(rule="R2", agent="reader", currency="EUR")
    assert metrics["recto_fold_price_saved_total", money] == pytest.approx(saved_tokens * 0.5 / 1_000_000)
    assert metrics["recto_fold_price_spent_total", money] == pytest.approx(again * (3 - 0.5) / 1_000_000)
    (rule,), (broken,) = cast("list[Row]", savings["rules"]), cast("list[Row]", savings["breaks"])
    rule_labels = {"agent": "reader", "rule": "R2", "ruleName": "newer reads", "ruleLink": "docs/rules.md#r2"}
    cost = {"cost": again * 2_500}
    assert rule == {**rule_labels, "calls": 2, "tokens": saved_tokens, "saved": saved_tokens * 500, **cost}
    assert broken == {"agent": "reader", "cause": "fold_step", "breaks": 2, "tokens": again, **cost}
    assert savings["currency"] == "EUR"


async def test_R11_each_fold_and_each_read_that_is_left_alone_is_in_the_log_of_the_server(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
):
    folds = "fold: {reads: {tools: [read_page], path_args: [path], keep: 2}}"
    paths = ("", "a.md", "b.md", "a.md", "a.md")
    calls = [Call(name="read_page", arguments=f'{{"path": "{path}"}}', id=f"c{n}") for n, path in enumerate(paths)]
    caplog.set_level(logging.DEBUG, "recto.page")
    async with in_process(tmp_path, monkeypatch, settings=folds, tools=TOOLS) as server:
        events = await server.run("read it", *[Answer(calls=(call,)) for call in calls])
        last = (await server.send("GET", f"{RUNS}/{events[0].event['runId']}/calls/6")).json
    lines = [one for one in caplog.records if one.name == "recto.page"]
    debug = [one.getMessage() for one in lines if one.levelno == logging.DEBUG]
    info = [one.getMessage().partition(" tokens, ")[2] for one in lines if one.levelno == logging.INFO]
    left_alone = "left alone c0: the arguments of its call name no file"
    assert debug == [*[left_alone] * 4, "folded read_page a.md: 1", left_alone]
    assert saved_of(last) > 0
    assert info == [*["0 results folded, 0 tokens saved"] * 5, f"1 results folded, {saved_of(last)} tokens saved"]


def test_P7_after_its_days_a_run_is_told_as_a_snapshot_and_its_end(tmp_path: Path):
    settings = {"RECTO_EVENT_DAYS": "0.000001", "RECTO_CLEANING_SECONDS": "0.05", "RECTO_LOG_LEVEL": "info"}
    settings |= {"RECTO_AGENT": "chat"}
    with ServerProcess.serve(tmp_path, settings) as server:
        body = ask("What is 12 * 7?")
        events = run(server.url, body)
        name = str(body["runId"])
        wait_for(lambda: len(list(read_events(server.url, name))) == 3, "the events to be cleaned up")
        again = list(read_events(server.url, name))
        later = list(read_events(server.url, name, after=events[-1].number))
        wait_for(lambda: "cleaned up" in server.output, "its line in the log")
        history = request(server.url, "GET", f"/api/v1/agent/history?threadId={body['threadId']}").json
    assert [received.event["type"] for received in again] == ["RUN_STARTED", "MESSAGES_SNAPSHOT", "RUN_FINISHED"]
    for received in again:
        TypeAdapter[object](Event).validate_json(received.body)
    messages = cast("Sequence[Row]", again[1].event["messages"])
    assert [message["role"] for message in messages] == ["user", "assistant", "tool", "assistant"]
    assert (again[-1].number, later) == (events[-1].number, [])
    assert len(cast("list[Row]", history["messages"])) == 3


async def test_R11_C3_why_it_is_not_ready_is_told_to_the_log_once_and_to_no_stranger(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
):
    async with local_api(tmp_path, operations_routes.ROUTES) as api:
        api.storage.is_down = True
        answers = [await api.ask("GET", "/readyz")]
        api.storage.is_down = False
        assert (await api.ask("GET", "/readyz")).json == {"status": "ready"}
        api.change(problem=lambda: "no host 10.9.8.7:5432")
        answers += [await api.ask("GET", "/readyz") for _ in range(3)]
        api.change(problem=lambda: None)
        assert (await api.ask("GET", "/readyz")).status == 200
    down, elsewhere = caplog.messages
    assert down.startswith("The server is not ready: The storage of files cannot be used: it was told to fail.")
    assert elsewhere == "The server is not ready: no host 10.9.8.7:5432"
    for answer in answers:
        assert (answer.status, answer.json["code"]) == (503, "not_ready")
        assert (
            answer.json["detail"] == "The server cannot admit or execute runs at present. See its log for the reason."
        )


def test_X1_version_tells_what_answers(url: str):
    assert request(url, "GET", "/version", token=None).json == {
        "name": "recto",
        "version": version("recto"),
        "protocols": ["1.0", "0.0"],
    }


def test_P1_docs_load_nothing_and_show_every_route_with_an_example_of_each_json_body_and_answer(url: str):
    reply = request(url, "GET", "/docs", token=None)
    described = request(url, "GET", "/openapi.json", token=None).json
    page, missing = reply.body.decode(), list[str]()
    words = unescape(re.sub(r"<[^>]*>", "\n", page))
    for path, methods in cast("Mapping[str, Mapping[str, Row]]", described["paths"]).items():
        for method, route in methods.items():
            assert re.search(rf"^{method.upper()}\n+{re.escape(path)}$", words, re.MULTILINE), (method, path)
            answers = cast("Mapping[str, Row]", route["responses"]).values()
            contents = [body.get("content") or {} for body in (cast("Row", route.get("requestBody") or {}), *answers)]
            media = [cast("Row", content).get("application/json") for content in contents]
            missing += [f"{method} {path}" for one in media if one and "example" not in cast("Row", one)]
    assert not missing
    assert '"taskId":' in words
    assert "HTTPValidationError" not in str(described)
    assert re.findall(r'\s(?:href|src|action)="([^"]*)"', page) == ["/openapi.json"]
    assert not re.search(r"<(script|img|link|iframe|object|form|base)\b|<[^>]*\s(on\w+|style)=", page)
    policy = r"default-src 'none'; .*; frame-ancestors 'none'; style-src 'sha256-[A-Za-z0-9+/=]{44}'"
    assert re.fullmatch(policy, reply.headers["content-security-policy"])
