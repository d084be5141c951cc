"""Spans and a tracer that do nothing. The exporting versions in `otlp` have the same methods."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from types import TracebackType
from typing import Self, TypeAlias

from recto.tracing.span_names import BROKEN_OFF

SpanValue: TypeAlias = str | bool | int | float | Sequence[str]
# Attributes with the value None are left out.
SpanAttributes: TypeAlias = Mapping[str, SpanValue | None]


class TraceSpan:
    """A timed operation with attributes. It ends with its `with` block, or earlier with `end`."""

    @property
    def has_content(self) -> bool:
        """True if the span may contain texts of messages."""
        return False

    def child(self, name: str, attributes: SpanAttributes, *, goes_out: bool = False) -> TraceSpan:
        """Begin a span within this one. `goes_out` marks a request to another server."""
        del name, attributes, goes_out
        return self

    def set(self, attributes: SpanAttributes) -> None:
        """Add attributes."""

    def note(self, event: str, attributes: SpanAttributes) -> None:
        """Add an event at the current time."""

    def fail(self, kind: str) -> None:
        """Mark the span as failed with this kind of error."""

    def end(self) -> None:
        """End the span. Further calls do nothing."""

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, _error: BaseException | None, _where: TracebackType | None
    ) -> None:
        if kind is not None and issubclass(kind, asyncio.CancelledError):
            self.set({BROKEN_OFF: True})
        elif kind is not None:
            self.fail(kind.__name__)
        self.end()


class Tracer:
    """A source of spans for runs."""

    @property
    def is_on(self) -> bool:
        """True if spans are exported."""
        return False

    def begin(self, name: str, attributes: SpanAttributes, parent: str | None = None) -> TraceSpan:
        """Begin a span. `parent` is the `traceparent` of the request."""
        del name, attributes, parent
        return NO_SPAN

    async def close(self) -> None:
        """Send the remaining spans, within a time limit."""


NO_SPAN, NO_TRACER = TraceSpan(), Tracer()
