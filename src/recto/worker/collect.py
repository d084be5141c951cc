"""A whole reply, for who has no reader to stream to."""

from __future__ import annotations

from contextlib import aclosing
from dataclasses import dataclass, field

from recto.errors import ModelError
from recto.models.deltas import cut_short
from recto.models.ports import Delta, Ended, Model, TextDelta


@dataclass(kw_only=True)
class Collected:
    """What came of one try."""

    words: list[str] = field(default_factory=list[str])
    ended: Ended | None = None
    error: ModelError | None = None

    @property
    def text(self) -> str:
        """The words, joined."""
        return "".join(self.words)

    def take(self, delta: Delta) -> None:
        """One more delta. Thoughts and calls are nobody's here."""
        if isinstance(delta, TextDelta):
            self.words.append(delta.text)
        elif isinstance(delta, Ended):
            self.ended = delta


async def collect(model: Model, body: bytes, most: int) -> Collected:
    """Send a page and wait for the whole reply, up to so many characters; a failure is part of the answer."""
    collected = Collected()
    try:
        async with aclosing(cut_short(model.stream(body), most)) as stream:
            async for delta in stream:
                collected.take(delta)
    except ModelError as error:
        collected.error = error
    return collected
