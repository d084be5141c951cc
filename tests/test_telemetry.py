"""Folds are logged and counted for people who run Recto (R11); runs, calls, tokens, prices and failures too."""

import logging
import re
from pathlib import Path

import pytest
from prometheus_client import CollectorRegistry

from recto import Facts, Manifest, assemble, decode
from recto.errors import ModelBusy, ModelRefused
from recto.telemetry import PageTelemetry, Telemetry

GUIDE = Path(__file__).parent.parent / "docs" / "operations.md"


def read(number: int) -> list[dict[str, object]]:
    function = {"name": "filesystem-read", "arguments": '{"filePath": "src/a.ts"}'}
    call = {"id": f"c{number}", "type": "function", "function": function}
    asked: dict[str, object] = {"role": "assistant", "content": None, "tool_calls": [call]}
    return [asked, {"role": "tool", "tool_call_id": f"c{number}", "content": "word " * 100}]


def manifest_of(reads: int) -> Manifest:
    messages = [{"role": "user", "content": "Go on."}, *[message for n in range(reads) for message in read(n)]]
    return assemble(Facts(log=decode(messages)))[1]


def test_R11_folds_and_saved_tokens_are_counted_by_rule_and_tool():
    registry = CollectorRegistry()
    telemetry = PageTelemetry(registry)
    manifest = manifest_of(reads=7)
    telemetry.record(manifest)
    telemetry.record(manifest_of(reads=6))
    labels = {"rule": "R2", "tool": "filesystem-read"}
    saved = sum(receipt.tokens_before - receipt.tokens_after for receipt in manifest.receipts)
    assert registry.get_sample_value("recto_folds_total", labels) == 3
    assert registry.get_sample_value("recto_fold_tokens_saved_total", labels) == saved * 3 / 2


def test_R11_each_call_gets_an_info_line_and_each_file_a_debug_line(caplog: pytest.LogCaptureFixture):
    caplog.set_level(logging.DEBUG, logger="recto.page")
    manifest = manifest_of(reads=7)
    PageTelemetry(CollectorRegistry()).record(manifest)
    saved = sum(receipt.tokens_before - receipt.tokens_after for receipt in manifest.receipts)
    assert [(record.levelname, record.message) for record in caplog.records] == [
        ("DEBUG", "folded filesystem-read src/a.ts: 2"),
        ("INFO", f"page of {manifest.tokens_after} tokens, 2 results folded, {saved} tokens saved"),
    ]


def test_a_page_with_nothing_folded_is_told_too(caplog: pytest.LogCaptureFixture):
    caplog.set_level(logging.INFO, logger="recto.page")
    PageTelemetry(CollectorRegistry()).record(manifest_of(reads=1))
    (record,) = caplog.records
    assert record.message.endswith(" tokens, 0 results folded, 0 tokens saved")


def test_R11_runs_are_counted_by_agent_and_outcome_with_the_time_they_took_and_waited():
    registry = CollectorRegistry()
    telemetry = Telemetry(registry)
    telemetry.began(0.25)
    telemetry.ended("chat", "done", 2.0)
    telemetry.ended("chat", "cancelled", 1.0)
    value = registry.get_sample_value
    assert value("recto_runs_total", {"agent": "chat", "outcome": "done"}) == 1
    assert value("recto_runs_total", {"agent": "chat", "outcome": "cancelled"}) == 1
    assert value("recto_run_seconds_sum", {"agent": "chat"}) == 3.0
    assert value("recto_queue_seconds_sum") == 0.25


def test_R11_calls_are_counted_by_result_and_failures_by_their_kind():
    registry = CollectorRegistry()
    telemetry = Telemetry(registry)
    telemetry.called("m", {"input": 7, "cached": 3}, 0.5)
    telemetry.called("m", {}, None)
    telemetry.paid("m", "EUR", 0.5)
    for error in (ModelBusy(model="m", problem="wait"), ModelRefused(model="m", problem="no")):
        telemetry.failed("m", error)
    telemetry.went_wrong(ValueError("nobody foresaw it"))
    value = registry.get_sample_value
    assert value("recto_model_calls_total", {"model": "m", "result": "replied"}) == 2
    assert value("recto_model_calls_total", {"model": "m", "result": "failed"}) == 2
    assert value("recto_tokens_total", {"model": "m", "kind": "input"}) == 7
    assert value("recto_tokens_total", {"model": "m", "kind": "cached"}) == 3
    assert value("recto_first_token_seconds_count", {"model": "m"}) == 1
    assert value("recto_price_total", {"model": "m", "currency": "EUR"}) == 0.5
    for kind in ("ModelBusy", "ModelRefused", "ValueError"):
        assert value("recto_errors_total", {"kind": kind}) == 1


def test_R11_clocks_that_go_back_count_as_no_time():
    registry = CollectorRegistry()
    telemetry = Telemetry(registry)
    telemetry.began(-1.0)
    telemetry.ended("chat", "done", -1.0)
    telemetry.called("m", {}, -1.0)
    sums = [registry.get_sample_value("recto_queue_seconds_sum")]
    sums += [registry.get_sample_value("recto_run_seconds_sum", {"agent": "chat"})]
    sums += [registry.get_sample_value("recto_first_token_seconds_sum", {"model": "m"})]
    assert sums == [0, 0, 0]


def test_R11_the_guide_names_every_metric_and_no_other():
    registry = CollectorRegistry()
    Telemetry(registry)
    endings = {"counter": "_total", "histogram": ""}
    names = {family.name + endings[family.type] for family in registry.collect()}
    assert {*re.findall(r"^\| `(recto_\w+)", GUIDE.read_text(encoding="utf-8"), re.MULTILINE)} == names
