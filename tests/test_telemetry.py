"""Folds are logged and counted for people who run Recto (R11)."""

import logging

import pytest
from prometheus_client import CollectorRegistry

from recto import Facts, Manifest, assemble, decode
from recto.telemetry import PageTelemetry


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
