"""Spans sent to a collector by OpenTelemetry. Its packages are imported when it is asked for, and not before.

They are handed over to a thread that sends them in batches. A collector that is slow or gone costs spans, never a run.
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
# Any of these says where spans go; OpenTelemetry itself reads them, and whatever else is set for it.
ENDPOINTS = ("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "OTEL_EXPORTER_OTLP_ENDPOINT")
PATH = "/v1/traces"
MISSING = "spans need packages that are not installed: pip install 'recto[otel]'"
# How long a server that stops waits for its last spans to be sent.
CLOSING_SECONDS = 3.0


def open_tracer(settings: TraceSettings, environment: Mapping[str, str]) -> Tracer:
    """What records spans, if there is an address to send them to.

    Packages that are missing stop a server whose own setting asks for spans. An address in the environment may be there
    for others: then it is told, and there are none.
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
        LOGGER.warning("There is an address for spans in the environment, but %s.", MISSING)
        return NO_TRACER


def _make(settings: TraceSettings) -> Tracer:
    from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
    from opentelemetry.sdk.resources import Resource
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.sdk.trace.export import BatchSpanProcessor

    endpoint = f"{settings.endpoint.rstrip('/')}{PATH}" if settings.endpoint else None
    # What the environment says of the resource, such as OTEL_SERVICE_NAME, wins over these.
    detected = Resource.create()
    defaults = {"service.name": NAME, "service.version": version(NAME)}
    is_unnamed = str(detected.attributes.get("service.name", "")).startswith("unknown_service")
    resource = detected.merge(Resource(defaults)) if is_unnamed else Resource(defaults).merge(detected)
    provider = TracerProvider(resource=resource, shutdown_on_exit=False)
    provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter(endpoint=endpoint)))
    return OtlpTracer(provider, has_content=settings.content)


class OtlpTracer(Tracer):
    """Begins spans that are recorded."""

    def __init__(self, provider: TracerProvider, *, has_content: bool) -> None:
        self._provider = provider
        self._tracer: OtelTracer = provider.get_tracer(NAME, version(NAME))
        self._has_content = has_content

    @property
    def is_on(self) -> bool:
        """Somebody records them."""
        return True

    def begin(self, name: str, attributes: SpanAttributes, parent: str | None = None) -> TraceSpan:
        """A span below the one of a `traceparent`; without one, or with one that is none, the first of its trace."""
        from opentelemetry.context import Context
        from opentelemetry.trace import SpanKind
        from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

        above = TraceContextTextMapPropagator().extract({"traceparent": parent} if parent else {}, Context())
        span = self._tracer.start_span(name, above, SpanKind.INTERNAL, _encode_known(attributes))
        return OtlpSpan(self._tracer, span, has_content=self._has_content)

    async def close(self) -> None:
        """In a thread nobody has to wait for: a collector may take its time to refuse."""
        closing = threading.Thread(target=self._provider.shutdown, name="spans", daemon=True)
        closing.start()
        await asyncio.to_thread(closing.join, CLOSING_SECONDS)


class OtlpSpan(TraceSpan):
    """A span that is recorded."""

    def __init__(self, tracer: OtelTracer, span: OtelSpan, *, has_content: bool) -> None:
        self._tracer = tracer
        self._span = span
        self._has_content = has_content

    @property
    def has_content(self) -> bool:
        """Whether what was said may be in it."""
        return self._has_content

    def child(self, name: str, attributes: SpanAttributes, *, goes_out: bool = False) -> TraceSpan:
        """A span within this one."""
        from opentelemetry.context import Context
        from opentelemetry.trace import SpanKind, set_span_in_context

        kind = SpanKind.CLIENT if goes_out else SpanKind.INTERNAL
        span = self._tracer.start_span(
            name, set_span_in_context(self._span, Context()), kind, _encode_known(attributes)
        )
        return OtlpSpan(self._tracer, span, has_content=self._has_content)

    def set(self, attributes: SpanAttributes) -> None:
        """Add what is known by now."""
        if self._span.is_recording():
            self._span.set_attributes(_encode_known(attributes))

    def note(self, event: str, attributes: SpanAttributes) -> None:
        """Something happened at this moment."""
        if self._span.is_recording():
            self._span.add_event(event, _encode_known(attributes))

    def fail(self, kind: str) -> None:
        """It went wrong."""
        from opentelemetry.trace import StatusCode

        if self._span.is_recording():
            self._span.set_attribute(ERROR_TYPE, kind)
            self._span.set_status(StatusCode.ERROR, kind)

    def end(self) -> None:
        """It is over."""
        if self._span.is_recording():
            self._span.end()


def _encode_known(attributes: SpanAttributes) -> dict[str, SpanValue]:
    return {name: value for name, value in attributes.items() if value is not None}
