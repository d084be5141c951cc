"""A collector of spans on 127.0.0.1 that speaks OTLP over HTTP, as protobuf."""

import gzip
import threading
from collections.abc import Callable, Generator, Iterable
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import (
    ExportTraceServiceRequest,
    ExportTraceServiceResponse,
)
from opentelemetry.proto.common.v1.common_pb2 import AnyValue, KeyValue
from opentelemetry.proto.trace.v1.trace_pb2 import Span as SentSpan
from opentelemetry.proto.trace.v1.trace_pb2 import Status

from recto.conversation.json import Json
from tests.waiting import wait_for


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
