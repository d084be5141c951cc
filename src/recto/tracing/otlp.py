"""Export of spans with OpenTelemetry, whose packages are imported only if tracing is on.

A thread sends the spans in batches. A slow or missing collector loses spans and never delays a run.
"""

from __future__ import annotations

import asyncio
import logging
import threading
from collections.abc import Mapping
from importlib.metadata import version
from typing import TYPE_CHECKING

from recto.config.run_settings import TraceSettings
from recto.errors import SettingsError
from recto.tracing.span_names import ERROR_TYPE
from recto.tracing.spans import NO_TRACER, SpanAttributes, SpanValue, Tracer, TraceSpan

if TYPE_CHECKING:
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.trace import Span as OtelSpan
    from opentelemetry.trace import Tracer as OtelTracer

LOGGER = logging.getLogger("recto.tracing")
NAME = "recto"
# Environment variables with the address of a collector. OpenTelemetry reads these and its other variables itself.
ENDPOINTS = ("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "OTEL_EXPORTER_OTLP_ENDPOINT")
PATH = "/v1/traces"
MISSING = "spans need packages that are not installed: pip install 'recto[otel]'"
# The time that a stopping server waits for its last spans.
CLOSING_SECONDS = 3.0


def open_tracer(settings: TraceSettings, environment: Mapping[str, str]) -> Tracer:
    """Return a tracer that exports spans if an address is set, else one that does nothing.

    Missing packages are an error if the address is in Recto's own setting. An address in the environment may be meant
    for other programs, so missing packages are only logged.
    """
    is_off = environment.get("OTEL_SDK_DISABLED", "").strip().lower() == "true"
    endpoint = settings.endpoint or next((value for name in ENDPOINTS if (value := environment.get(name))), None)
    if is_off or not endpoint:
        return NO_TRACER
    try:
        return _make(settings)
    except ImportError as error:
        if settings.endpoint:
            raise SettingsError(name="otlp_endpoint", value=settings.endpoint, allowed=MISSING) from error
        LOGGER.warning("The environment has an address for spans, but %s.", MISSING)
        return NO_TRACER


def _make(settings: TraceSettings) -> Tracer:
    from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
    from opentelemetry.sdk.resources import Resource
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.sdk.trace.export import BatchSpanProcessor

    endpoint = f"{settings.endpoint.rstrip('/')}{PATH}" if settings.endpoint else None
    # Variables such as OTEL_SERVICE_NAME take precedence.
    detected = Resource.create()
    defaults = {"service.name": NAME, "service.version": version(NAME)}
    is_unnamed = str(detected.attributes.get("service.name", "")).startswith("unknown_service")
    resource = detected.merge(Resource(defaults)) if is_unnamed else Resource(defaults).merge(detected)
    provider = TracerProvider(resource=resource, shutdown_on_exit=False)
    provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter(endpoint=endpoint)))
    return OtlpTracer(provider, has_content=settings.content)


class OtlpTracer(Tracer):
    """A tracer that exports its spans."""

    def __init__(self, provider: TracerProvider, *, has_content: bool) -> None:
        self._provider = provider
        self._tracer: OtelTracer = provider.get_tracer(NAME, version(NAME))
        self._has_content = has_content

    @property
    def is_on(self) -> bool:
        """True: spans are exported."""
        return True

    def begin(self, name: str, attributes: SpanAttributes, parent: str | None = None) -> TraceSpan:
        """Begin a span below that of a `traceparent`. Without a valid one, the span starts a new trace."""
        from opentelemetry.context import Context
        from opentelemetry.trace import SpanKind
        from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

        above = TraceContextTextMapPropagator().extract({"traceparent": parent} if parent else {}, Context())
        span = self._tracer.start_span(name, above, SpanKind.INTERNAL, _encode_known(attributes))
        return OtlpSpan(self._tracer, span, has_content=self._has_content)

    async def close(self) -> None:
        """Send the last spans in a daemon thread, because a collector may be slow to fail."""
        closing = threading.Thread(target=self._provider.shutdown, name="spans", daemon=True)
        closing.start()
        await asyncio.to_thread(closing.join, CLOSING_SECONDS)


class OtlpSpan(TraceSpan):
    """A span that is exported."""

    def __init__(self, tracer: OtelTracer, span: OtelSpan, *, has_content: bool) -> None:
        self._tracer = tracer
        self._span = span
        self._has_content = has_content

    @property
    def has_content(self) -> bool:
        """True if the span may contain texts of messages."""
        return self._has_content

    def child(self, name: str, attributes: SpanAttributes, *, goes_out: bool = False) -> TraceSpan:
        """Begin a span within this one."""
        from opentelemetry.context import Context
        from opentelemetry.trace import SpanKind, set_span_in_context

        kind = SpanKind.CLIENT if goes_out else SpanKind.INTERNAL
        span = self._tracer.start_span(
            name, set_span_in_context(self._span, Context()), kind, _encode_known(attributes)
        )
        return OtlpSpan(self._tracer, span, has_content=self._has_content)

    def set(self, attributes: SpanAttributes) -> None:
        """Add attributes."""
        if self._span.is_recording():
            self._span.set_attributes(_encode_known(attributes))

    def note(self, event: str, attributes: SpanAttributes) -> None:
        """Add an event at the current time."""
        if self._span.is_recording():
            self._span.add_event(event, _encode_known(attributes))

    def fail(self, kind: str) -> None:
        """Mark the span as failed with this kind of error."""
        from opentelemetry.trace import StatusCode

        if self._span.is_recording():
            self._span.set_attribute(ERROR_TYPE, kind)
            self._span.set_status(StatusCode.ERROR, kind)

    def end(self) -> None:
        """End the span."""
        if self._span.is_recording():
            self._span.end()


def _encode_known(attributes: SpanAttributes) -> dict[str, SpanValue]:
    return {name: value for name, value in attributes.items() if value is not None}
