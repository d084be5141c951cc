"""Joining of deltas that arrived together, because the later steps cost time per delta. Pure."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Iterable, Iterator
from contextlib import aclosing

from recto.models.ports import CallDelta, Delta, ReasoningDelta, ReplyEnd, TextDelta


def join_deltas(deltas: Iterable[Delta]) -> Iterator[Delta]:
    """Yield the same content in fewer deltas: join neighbours of the same kind."""
    last: Delta | None = None
    pieces: list[str] = []
    for delta in deltas:
        if type(delta) is TextDelta and type(last) is TextDelta:
            # Fast path: most deltas are text.
            pieces.append(delta.text)
            continue
        words = _words(delta)
        if last is not None and words is not None and _is_more_of(last, delta):
            pieces.append(words)
            continue
        if last is not None:
            yield _join(last, pieces)
        last, pieces = delta, [words] if words is not None else []
    if last is not None:
        yield _join(last, pieces)


async def cut_short(deltas: AsyncGenerator[Delta], most: int) -> AsyncGenerator[Delta]:
    """Yield deltas up to `most` characters. A longer reply ends there with the finish reason `length`."""
    async with aclosing(deltas):
        async for delta in deltas:
            words = _words(delta) or ""
            if len(words) > most:
                yield _with_words(delta, words[:most])
                yield ReplyEnd(finish="length")
                return
            most -= len(words)
            yield delta


def _words(delta: Delta) -> str | None:
    match delta:
        case TextDelta(text=text) | ReasoningDelta(text=text):
            return text
        case CallDelta(arguments=arguments):
            return arguments
        case _:
            return None


def _is_more_of(last: Delta, delta: Delta) -> bool:
    if isinstance(last, CallDelta) and isinstance(delta, CallDelta):
        return last.index == delta.index
    return type(last) is type(delta)


def _join(last: Delta, pieces: list[str]) -> Delta:
    return last if len(pieces) < 2 else _with_words(last, "".join(pieces))  # noqa: PLR2004 - one is what it was


def _with_words(delta: Delta, words: str) -> Delta:
    match delta:
        case TextDelta():
            return TextDelta(text=words)
        case ReasoningDelta():
            return ReasoningDelta(text=words)
        case CallDelta(index=index):
            return CallDelta(index=index, arguments=words)
        case _:
            return delta
