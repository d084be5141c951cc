"""Folds are logged and counted for people who run Recto (R11); runs, calls, tokens, prices and failures too."""

import logging
import re
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import cast

import pytest
from prometheus_client import CollectorRegistry

from recto import Facts, Manifest, assemble, decode
from recto.conversation.json import Json, load_object
from recto.errors import ModelBusy, ModelRefused
from recto.page.savings import Saving
from recto.telemetry import PageTelemetry, Telemetry
from recto.testing.model_server import Answer, Call
from tests.flow.in_process import in_process

DOCS = Path(__file__).parent.parent / "docs"
GUIDE, BOARD = DOCS / "operations.md", DOCS / "grafana" / "recto.json"


def read(number: int) -> list[dict[str, object]]:
    function = {"name": "filesystem-read", "arguments": '{"filePath": "src/a.ts"}'}
    call = {"id": f"c{number}", "type": "function", "function": function}
    assistant_row: dict[str, object] = {"role": "assistant", "content": None, "tool_calls": [call]}
    return [assistant_row, {"role": "tool", "tool_call_id": f"c{number}", "content": "word " * 100}]


def manifest_of(reads: int) -> Manifest:
    messages = [{"role": "user", "content": "Go on."}, *[message for n in range(reads) for message in read(n)]]
    return assemble(Facts(log=decode(messages)))[1]


def test_R11_folds_and_saved_tokens_are_counted_by_rule_tool_and_agent():
    registry = CollectorRegistry()
    telemetry = PageTelemetry(registry)
    manifest = manifest_of(reads=7)
    telemetry.record_page(manifest, "coder")
    telemetry.record_page(manifest_of(reads=6), "coder")
    labels = {"rule": "R2", "tool": "filesystem-read", "agent": "coder"}
    saving = sum(receipt.tokens_before - receipt.tokens_after for receipt in manifest.receipts)
    assert registry.get_sample_value("recto_folds_total", labels) == 3
    assert registry.get_sample_value("recto_fold_tokens_saved_total", labels) == saving * 3 / 2


def test_R11_what_folding_saved_and_cost_is_counted_by_rule_and_agent_and_breaks_by_their_cause():
    registry = CollectorRegistry()
    telemetry = PageTelemetry(registry)
    telemetry.record_step("coder", "pays")
    fold = Saving(kind="fold", name="X2", tokens=5, benefit=3_000_000_000, cost=500_000_000)
    # What stands for a result may be longer than it; and prices may be known to nobody.
    others = (replace(fold, name="R8", benefit=-1, cost=0), replace(fold, name="R9", benefit=None, cost=None))
    broken = Saving(kind="break", name="fold_step", tokens=70, cost=500_000_000)
    telemetry.record_savings("coder", (fold, broken), "EUR")
    telemetry.record_savings("coder", (fold, broken, *others), "EUR")
    numbers = {
        (sample.name, sample.labels.get("rule") or sample.labels["cause"]): sample.value
        for family in registry.collect()
        for sample in family.samples
        if sample.labels.get("agent") == "coder" and sample.name.endswith("_total")
    }
    assert numbers == {
        ("recto_fold_price_saved_total", "X2"): 6,
        ("recto_fold_price_spent_total", "X2"): 1,
        **{(f"recto_fold_price_{kind}_total", rule): 0 for kind in ("saved", "spent") for rule in ("R8", "R9")},
        ("recto_fold_steps_total", "pays"): 1,
        ("recto_prefix_breaks_total", "fold_step"): 2,
        ("recto_prefix_break_tokens_total", "fold_step"): 140,
    }


def test_R11_each_call_gets_an_info_line_and_each_file_a_debug_line(caplog: pytest.LogCaptureFixture):
    caplog.set_level(logging.DEBUG, logger="recto.page")
    manifest = manifest_of(reads=7)
    PageTelemetry(CollectorRegistry()).record_page(manifest)
    saving = sum(receipt.tokens_before - receipt.tokens_after for receipt in manifest.receipts)
    assert [(record.levelname, record.message) for record in caplog.records] == [
        ("DEBUG", "folded filesystem-read src/a.ts: 2"),
        ("INFO", f"page of {manifest.tokens_after} tokens, 2 results folded, {saving} tokens saved"),
    ]


def test_R11_runs_are_counted_by_agent_and_outcome_with_the_time_they_took_and_waited():
    registry = CollectorRegistry()
    telemetry = Telemetry(registry)
    telemetry.record_run_start(0.25)
    telemetry.record_run_end("chat", "done", 2.0)
    telemetry.record_run_end("chat", "cancelled", 1.0)
    # Clocks that go back count as no time.
    telemetry.record_run_start(-1.0)
    telemetry.record_run_end("chat", "failed", -1.0)
    telemetry.record_call("m", {}, -1.0)
    value = registry.get_sample_value
    assert value("recto_runs_total", {"agent": "chat", "outcome": "done"}) == 1
    assert value("recto_runs_total", {"agent": "chat", "outcome": "cancelled"}) == 1
    assert value("recto_run_seconds_sum", {"agent": "chat"}) == 3.0
    assert value("recto_queue_seconds_sum") == 0.25
    assert value("recto_first_token_seconds_sum", {"model": "m"}) == 0


def test_R11_calls_are_counted_by_result_and_failures_by_their_kind():
    registry = CollectorRegistry()
    telemetry = Telemetry(registry)
    telemetry.record_call("m", {"input": 7, "cached": 3}, 0.5)
    telemetry.record_call("m", {}, None)
    telemetry.record_cost("m", "EUR", 0.5)
    for error in (ModelBusy(model="m", problem="wait"), ModelRefused(model="m", problem="no")):
        telemetry.record_failed_call("m", error)
    telemetry.record_error(ValueError("nobody foresaw it"))
    value = registry.get_sample_value
    assert value("recto_model_calls_total", {"model": "m", "result": "replied"}) == 2
    assert value("recto_model_calls_total", {"model": "m", "result": "failed"}) == 2
    assert value("recto_tokens_total", {"model": "m", "kind": "input"}) == 7
    assert value("recto_tokens_total", {"model": "m", "kind": "cached"}) == 3
    assert value("recto_first_token_seconds_count", {"model": "m"}) == 1
    assert value("recto_price_total", {"model": "m", "currency": "EUR"}) == 0.5
    for kind in ("ModelBusy", "ModelRefused", "ValueError"):
        assert value("recto_errors_total", {"kind": kind}) == 1


def test_R11_the_guide_names_every_metric_and_no_other():
    registry = CollectorRegistry()
    Telemetry(registry)
    endings = {"counter": "_total", "histogram": "", "gauge": ""}
    names = {family.name + endings[family.type] for family in registry.collect()}
    assert {*re.findall(r"^\| `(recto_\w+)", GUIDE.read_text(encoding="utf-8"), re.MULTILINE)} == names


def test_R11_tools_are_counted_by_name_and_result_and_names_that_models_make_up_are_one():
    registry = CollectorRegistry()
    telemetry = Telemetry(registry)
    for error in (None, None, "timeout", "its own words"):
        telemetry.record_tool_call("look", error)
    telemetry.record_tool_call(None, "unknown_tool")
    numbers = {
        (sample.labels["tool"], sample.labels["result"]): sample.value
        for family in registry.collect()
        for sample in family.samples
        if sample.name == "recto_tool_calls_total"
    }
    assert numbers == {
        ("look", "done"): 2,
        ("look", "timeout"): 1,
        ("look", "failed"): 1,
        ("unknown", "unknown_tool"): 1,
    }


def test_R11_what_is_open_is_asked_for_when_somebody_looks():
    registry, open_now = CollectorRegistry(), [1]
    Telemetry(registry).watch(streams=lambda: open_now[0], active=lambda: 2 * open_now[0])
    assert registry.get_sample_value("recto_open_streams") == 1
    open_now[0] = 3
    assert registry.get_sample_value("recto_open_streams") == 3
    assert registry.get_sample_value("recto_active_runs") == 6


def dashboard() -> Mapping[str, Json]:
    return load_object(BOARD.read_bytes()) or {}


def rows(value: Json) -> list[Mapping[str, Json]]:
    assert isinstance(value, list)
    return [cast("Mapping[str, Json]", one) for one in value]


def expressions() -> list[str]:
    """Return the queries of all panels."""
    return [str(target["expr"]) for panel in rows(dashboard()["panels"]) for target in rows(panel["targets"])]


def test_R11_the_dashboard_can_be_imported():
    board = dashboard()
    assert {"title", "uid", "schemaVersion", "panels", "templating", "time"} <= board.keys()
    assert "id" not in board, "one of another Grafana would be taken for it"
    variables = rows(cast("Mapping[str, Json]", board["templating"])["list"])
    assert {"name": "datasource", "type": "datasource", "query": "prometheus"}.items() <= variables[0].items()
    source = {"type": "prometheus", "uid": "${datasource}"}
    ids, cells_taken = list[Json](), set[tuple[int, int]]()
    for panel in rows(board["panels"]):
        ids.append(panel["id"])
        assert panel["type"] in ("timeseries", "stat")
        sources = [panel["datasource"], *[target["datasource"] for target in rows(panel["targets"])]]
        assert [one for one in sources if one != source] == []
        place = cast("Mapping[str, int]", panel["gridPos"])
        cells = {(place["x"] + x, place["y"] + y) for x in range(place["w"]) for y in range(place["h"])}
        assert place["x"] + place["w"] <= 24
        assert not cells & cells_taken
        cells_taken |= cells
    assert len(set(ids)) == len(ids)


async def test_R11_every_metric_of_the_dashboard_is_there_after_a_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    async with in_process(tmp_path, monkeypatch) as server:
        note = Answer(calls=(Call(name="note", arguments='{"text": "milk"}', id="c1"),))
        await server.run("note it", note, Answer(text="Done."))
        metrics_text = (await server.send("GET", "/metrics")).body.decode()
    types_by_name = dict(re.findall(r"^# TYPE (recto_\w+) (\w+)$", metrics_text, re.MULTILINE))
    metric_names = {name for text in expressions() for name in re.findall(r"recto_\w+", text)}
    assert {name.removesuffix("_bucket") for name in metric_names} <= types_by_name.keys()
    assert {name for name in metric_names if name.endswith("_bucket")} == {
        f"{name}_bucket" for name, kind in types_by_name.items() if kind == "histogram"
    }
    # And it leaves out none that the guide has.
    guide = {*re.findall(r"^\| `(recto_\w+)", GUIDE.read_text(encoding="utf-8"), re.MULTILINE)}
    assert guide == {name.removesuffix("_bucket") for name in metric_names}
    assert 'recto_tool_calls_total{result="done",tool="note"} 1.0' in metrics_text
    assert re.search(r"^recto_active_runs [01]\.0$", metrics_text, re.MULTILINE)
    assert "recto_open_streams 0.0" in metrics_text


def test_R11_the_dashboard_asks_by_labels_that_metrics_have():
    guide = re.findall(r"^\| `(recto_\w+)` \|([^|]*)\|", GUIDE.read_text(encoding="utf-8"), re.MULTILINE)
    labels = {name: {"le", "job", *re.findall(r"`(\w+)`", match)} for name, match in guide}
    for text in expressions():
        groups = [name.strip() for group in re.findall(r"by \(([^)]*)\)", text) for name in group.split(",")]
        label_names = re.findall(r"[{,] ?(\w+)=", text)
        for name in re.findall(r"recto_\w+", text):
            assert {*groups, *label_names} <= labels[name.removesuffix("_bucket")], text
