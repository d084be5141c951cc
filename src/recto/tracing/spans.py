"""Spans, where nobody records them: all of it does nothing. What records them has the same methods."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from types import TracebackType
from typing import Self, TypeAlias

from recto.tracing.span_names import BROKEN_OFF

SpanValue: TypeAlias = str | bool | int | float | Sequence[str]
# What is None is not known, and left out.
Attributes: TypeAlias = Mapping[str, SpanValue | None]


class Span:
    """Something that takes time, and what is to be known of it. It ends once, at the latest with its block."""

    @property
    def has_content(self) -> bool:
        """Whether what was said may be in it."""
        return False

    def child(self, name: str, attributes: Attributes, *, goes_out: bool = False) -> Span:
        """A span within this one; `goes_out` where another server is asked."""
        del name, attributes, goes_out
        return self

    def set(self, attributes: Attributes) -> None:
        """Add what is known by now."""

    def note(self, event: str, attributes: Attributes) -> None:
        """Something happened at this moment."""

    def fail(self, kind: str) -> None:
        """It went wrong, in a way of this name."""

    def end(self) -> None:
        """It is over. Ending it again does nothing."""

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
    """Begins the spans of runs."""

    @property
    def is_on(self) -> bool:
        """Whether anybody records them."""
        return False

    def begin(self, name: str, attributes: Attributes, parent: str | None = None) -> Span:
        """A span; `parent` is a `traceparent` of whoever asked for it."""
        del name, attributes, parent
        return NO_SPAN

    async def close(self) -> None:
        """Send what was not sent yet, if that does not take long."""


NO_SPAN, NO_TRACER = Span(), Tracer()
