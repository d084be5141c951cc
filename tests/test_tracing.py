"""R11: spans of runs, model calls and tools reach a collector of OpenTelemetry, with the parents they have."""

import gzip
import os
import subprocess
import sys
import threading
from collections.abc import Callable, Generator, Iterable
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import cast

import pytest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import (
    ExportTraceServiceRequest,
    ExportTraceServiceResponse,
)
from opentelemetry.proto.common.v1.common_pb2 import AnyValue, KeyValue
from opentelemetry.proto.trace.v1.trace_pb2 import Span as SentSpan
from opentelemetry.proto.trace.v1.trace_pb2 import Status

from recto.config.run_settings import TraceSettings
from recto.conversation.input.run_input import add_traceparent, read_traceparent, stored_input
from recto.conversation.json import Json, dump
from recto.errors import SettingsError
from recto.testing.model_server import Answer, Call, ModelServer, Request, failure
from recto.testing.process import ServerProcess, free_port
from recto.tracing.otlp import open_tracer
from recto.tracing.spans import NO_SPAN, NO_TRACER
from tests.support.client import RUNS, ask, read_events, request, start
from tests.waiting import wait_for

SECRET = "the-words-nobody-else-may-read"
TRACE, SENDER = "0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331"
TRACEPARENT = f"00-{TRACE}-{SENDER}-01"
INTERNAL, CLIENT = 1, 3
BUSY: list[str] = []
TOOLS = '''
from recto import tool


@tool
def look(place: str) -> str:
    """Look somewhere."""
    if place == "nowhere":
        raise ValueError("there is no such place")
    return f"seen {place}"
'''


@dataclass(frozen=True, kw_only=True)
class ReceivedSpan:
    """A received span, with ids in hexadecimal."""

    name: str
    trace: str
    id: str
    parent: str
    kind: int
    failed: bool
    attributes: dict[str, Json]
    events: list[tuple[str, dict[str, Json]]]
    resource: dict[str, Json]
    start: int
    end: int


@dataclass(kw_only=True)
class Receiver:
    """The received spans. `raw` are the unpacked bodies."""

    url: str = ""
    raw: list[bytes] = field(default_factory=list[bytes])
    spans: list[ReceivedSpan] = field(default_factory=list[ReceivedSpan])

    def wait(self, is_enough: Callable[[list[ReceivedSpan]], bool]) -> list[ReceivedSpan]:
        """Return the spans once there are enough."""
        wait_for(lambda: is_enough(self.spans), "enough spans")
        return list(self.spans)

    def take(self, body: bytes) -> None:
        request = ExportTraceServiceRequest.FromString(body)
        self.raw.append(body)
        for group in request.resource_spans:
            resource = _attributes(group.resource.attributes)
            self.spans += [_span(span, resource) for scope in group.scope_spans for span in scope.spans]


def _span(span: SentSpan, resource: dict[str, Json]) -> ReceivedSpan:
    return ReceivedSpan(
        name=span.name,
        trace=span.trace_id.hex(),
        id=span.span_id.hex(),
        parent=span.parent_span_id.hex(),
        kind=span.kind,
        failed=span.status.code == Status.STATUS_CODE_ERROR,
        attributes=_attributes(span.attributes),
        events=[(event.name, _attributes(event.attributes)) for event in span.events],
        resource=resource,
        start=span.start_time_unix_nano,
        end=span.end_time_unix_nano,
    )


def _attributes(pairs: Iterable[KeyValue]) -> dict[str, Json]:
    return {pair.key: _value(pair.value) for pair in pairs}


def _value(value: AnyValue) -> Json:
    kind = value.WhichOneof("value")
    if kind == "array_value":
        return [_value(one) for one in value.array_value.values]
    value_found: Json = getattr(value, kind or "string_value")
    return value_found


@contextmanager
def otlp_receiver(*, status: int = 200) -> Generator[Receiver]:
    """Run a collector that answers with this status."""
    received = Receiver()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["content-length"]))
            body = gzip.decompress(body) if self.headers.get("content-encoding") == "gzip" else body
            if status == 200 and self.path == "/v1/traces":
                received.take(body)
            self.send_response(status)
            self.send_header("content-type", "application/x-protobuf")
            self.end_headers()
            self.wfile.write(ExportTraceServiceResponse().SerializeToString())

        def log_message(self, format: str, *args: object) -> None:
            """Write nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    received.url = f"http://127.0.0.1:{server.server_address[1]}"
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield received
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def script(model_request: Request) -> Answer:
    """Call `look` once, then answer. A "busy" message fails the first time."""
    messages = cast("list[dict[str, Json]]", model_request.page["messages"])
    words = str(messages[-1]["content"])
    if "busy" in words and not BUSY:
        BUSY.append(words)
        return failure(503, "not now", code="busy")
    if messages[-1]["role"] != "tool" and "look" in words:
        arguments = dump({"place": "nowhere" if "nowhere" in words else SECRET}).decode()
        return Answer(text="Let me look.", calls=(Call(name="look", arguments=arguments, id="c1"),))
    return Answer(text=f"Well. {SECRET}")


@dataclass(frozen=True, kw_only=True)
class Traced:
    url: str
    model: ModelServer
    receiver: Receiver

    def run(self, words: str, **headers: str) -> list[ReceivedSpan]:
        """Run to the end. Return its spans by start."""
        body = ask(words)
        reply = request(self.url, "POST", RUNS, body, **headers)
        assert reply.status == 202, reply.body
        task = str(reply.json["taskId"])
        list(read_events(self.url, task))
        spans = self.receiver.wait(lambda all_: any(one.attributes.get("recto.run.id") == task for one in all_))
        (run,) = [one for one in spans if one.attributes.get("recto.run.id") == task]
        return sorted([one for one in spans if one.trace == run.trace], key=lambda one: one.start)


def settings_of(folder: Path, model: ModelServer, **more: str) -> dict[str, str]:
    agent = folder / "agents" / "helper"
    agent.mkdir(parents=True)
    (agent / "AGENT.md").write_text("You help.\n")
    (agent / "tools.py").write_text(TOOLS)
    settings = {"RECTO_MODEL": "compatible:small", "RECTO_MODEL_URL": model.url, "RECTO_AGENTS": str(folder / "agents")}
    # Spans are sent soon, so that tests need not wait for them.
    return {**settings, "RECTO_AGENT": "helper", "RECTO_RETRY_SECONDS": "0.01", "OTEL_BSP_SCHEDULE_DELAY": "50", **more}


@pytest.fixture(scope="module")
def traced(tmp_path_factory: pytest.TempPathFactory) -> Generator[Traced]:
    folder = tmp_path_factory.mktemp("traced")
    with otlp_receiver() as receiver, ModelServer(script) as model:
        settings = settings_of(folder, model, RECTO_OTLP_ENDPOINT=receiver.url)
        with ServerProcess.serve(folder / "data", settings) as server:
            yield Traced(url=server.url, model=model, receiver=receiver)


def test_R11_a_run_has_a_span_with_its_model_calls_and_tools_below_it(traced: Traced):
    run, first, tool, second = traced.run("look", traceparent=TRACEPARENT)
    names = [one.name for one in (run, first, tool, second)]
    assert names == ["invoke_agent helper", "chat small", "execute_tool look", "chat small"]
    assert (run.trace, run.parent) == (TRACE, SENDER)
    assert {(one.parent, one.trace) for one in (first, tool, second)} == {(run.id, TRACE)}
    assert [one.kind for one in (run, first, tool, second)] == [INTERNAL, CLIENT, INTERNAL, CLIENT]
    assert run.start <= first.start <= first.end <= tool.start <= tool.end <= second.start <= second.end <= run.end
    assert not any(one.failed for one in (run, first, tool, second))


def test_R11_spans_have_the_names_of_the_convention_and_nothing_of_what_was_said(traced: Traced):
    run, first, tool, second = traced.run(f"look {SECRET}")
    assert run.resource["service.name"] == "recto"
    started = {"gen_ai.operation.name": "invoke_agent", "gen_ai.agent.name": "helper"}
    assert (started | {"recto.run.attempt": 1, "recto.run.outcome": "done"}).items() <= run.attributes.items()
    assert {"gen_ai.conversation.id", "recto.run.name", "recto.queue.seconds"} <= run.attributes.keys()
    run_body = {
        "gen_ai.operation.name": "chat",
        "gen_ai.provider.name": "compatible",
        "gen_ai.request.model": "small",
        "gen_ai.request.stream": True,
        "gen_ai.response.finish_reasons": ["tool_calls"],
        "recto.call.number": 1,
        "recto.call.purpose": "reply",
        "recto.fold.results": 0,
        "recto.fold.tokens_saved": 0,
    }
    assert run_body.items() <= first.attributes.items()
    assert {"gen_ai.usage.input_tokens", "gen_ai.usage.output_tokens"} <= first.attributes.keys()
    assert cast("float", first.attributes["gen_ai.response.time_to_first_chunk"]) >= 0
    assert second.attributes["gen_ai.response.finish_reasons"] == ["stop"]
    acted = {"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": "look", "gen_ai.tool.type": "function"}
    assert acted.items() <= tool.attributes.items()
    both = [cast("int", one.attributes["gen_ai.usage.input_tokens"]) for one in (first, second)]
    assert run.attributes["gen_ai.usage.input_tokens"] == sum(both)
    assert not [body for body in traced.receiver.raw if SECRET.encode() in body]


def test_R11_a_model_call_that_failed_and_its_retry_are_seen(traced: Traced):
    run, failed, answered_run = traced.run("busy")
    assert [failed.failed, answered_run.failed, run.failed] == [True, False, False]
    assert failed.attributes["error.type"] == "ModelUnreachable"
    ((event, about),) = run.events
    assert event == "recto.retry"
    assert about["error.type"] == "ModelUnreachable"
    assert about["recto.retry.failures"] == 1
    # The pause before the next try is no part of the call.
    assert failed.end <= answered_run.start


def test_R11_a_tool_that_fails_is_seen_and_the_run_goes_on(traced: Traced):
    run, _, tool, _ = traced.run("look nowhere")
    assert (tool.failed, tool.attributes["error.type"], run.failed) == (True, "failed", False)


def test_R11_a_header_that_names_no_span_is_passed_over(traced: Traced):
    run, *_ = traced.run("hello", traceparent=f"00-{'0' * 32}-{SENDER}-01")
    assert run.parent == ""
    assert run.trace != "0" * 32
    for header in ("", "00-zz-1-01", TRACEPARENT + "\t; x", "ff" * 50, TRACEPARENT.upper(), 5):
        assert read_traceparent(header) is None


@pytest.mark.full
def test_R11_what_was_said_is_in_spans_where_a_setting_says_so(tmp_path: Path):
    with otlp_receiver() as receiver, ModelServer(script) as model:
        settings = settings_of(tmp_path, model, RECTO_TRACE_CONTENT="true", OTEL_EXPORTER_OTLP_ENDPOINT=receiver.url)
        with ServerProcess.serve(tmp_path / "data", settings | {"OTEL_SERVICE_NAME": "mine"}) as server:
            run, _, tool, last = Traced(url=server.url, model=model, receiver=receiver).run("look")
    assert run.resource["service.name"] == "mine"
    assert tool.attributes["gen_ai.tool.call.arguments"] == f'{{"place":"{SECRET}"}}'
    assert tool.attributes["gen_ai.tool.call.result"] == f"seen {SECRET}"
    assert '"content":"look"' in str(last.attributes["gen_ai.input.messages"])
    assert f"Well. {SECRET}" in str(last.attributes["gen_ai.output.messages"])


@pytest.mark.full
@pytest.mark.parametrize("is_there", [True, False], ids=["it refuses", "nobody is there"])
def test_R11_a_collector_that_takes_nothing_hurts_no_run_and_no_stop(tmp_path: Path, is_there: bool):
    with otlp_receiver(status=503) as receiver, ModelServer(script) as model:
        url = receiver.url if is_there else f"http://127.0.0.1:{free_port()}"
        with ServerProcess.serve(tmp_path / "data", settings_of(tmp_path, model, RECTO_OTLP_ENDPOINT=url)) as server:
            for _ in range(3):
                *_, end = read_events(server.url, start(server.url, ask("look")))
                assert end.event["type"] == "RUN_FINISHED"
            assert server.stop() == 0


@pytest.mark.full
def test_X4_R11_a_run_that_is_taken_over_stays_in_the_trace_of_who_asked_for_it(tmp_path: Path):
    with otlp_receiver() as receiver, ModelServer(script) as model:
        settings = settings_of(tmp_path, model, RECTO_OTLP_ENDPOINT=receiver.url, RECTO_RUNS="0")
        body = ask("look")
        with ServerProcess.serve(tmp_path / "data", settings) as server:
            # Nobody works here: the run waits in the store, and another process begins it.
            assert request(server.url, "POST", RUNS, body, traceparent=TRACEPARENT).status == 202
        with ServerProcess.serve(tmp_path / "data", settings | {"RECTO_RUNS": "5"}) as server:
            list(read_events(server.url, str(body["runId"])))
            (run,) = receiver.wait(lambda spans: any("invoke_agent" in one.name for one in spans))[-1:]
    assert (run.trace, run.parent) == (TRACE, SENDER)


@pytest.mark.full
def test_R11_without_an_address_nothing_of_it_is_loaded():
    code = "import sys, recto.app.run_server as server; from recto.config.run_settings import TraceSettings\n"
    code += "assert not server.open_tracer(TraceSettings(), {}).is_on\n"
    code += "sys.exit(any(name.startswith('opentelemetry') for name in sys.modules))"
    assert subprocess.run([sys.executable, "-c", code], check=False, env={**os.environ}).returncode == 0


def test_R11_packages_that_are_missing_are_told_in_one_line(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
):
    # What is None there cannot be imported: as if it were not installed.
    monkeypatch.setitem(sys.modules, "opentelemetry.sdk.trace", None)
    with pytest.raises(SettingsError, match=r"pip install 'recto\[otel\]'"):
        open_tracer(TraceSettings(endpoint="http://127.0.0.1:4318"), {})
    assert open_tracer(TraceSettings(), {"OTEL_EXPORTER_OTLP_ENDPOINT": "http://127.0.0.1:4318"}) is NO_TRACER
    (line,) = caplog.messages
    assert "pip install 'recto[otel]'" in line


@pytest.mark.parametrize(
    "environment", [{}, {"OTEL_SDK_DISABLED": "true", "OTEL_EXPORTER_OTLP_ENDPOINT": "http://127.0.0.1:1"}]
)
def test_R11_without_an_address_or_switched_off_there_are_no_spans(environment: dict[str, str]):
    assert open_tracer(TraceSettings(), environment) is NO_TRACER
    span = NO_TRACER.begin("x", {})
    assert span is NO_SPAN
    assert span.child("y", {}) is NO_SPAN


def test_R11_the_sender_is_kept_with_the_input_whatever_its_body_has():
    body = dump({"threadId": "t", "runId": "r", "messages": [], "traceparent": "mine"}) + b" \n"
    assert stored_input(body).traceparent is None
    assert stored_input(add_traceparent(body, TRACEPARENT)).traceparent == TRACEPARENT
