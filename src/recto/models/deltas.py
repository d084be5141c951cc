"""Deltas that came together, joined into one: what follows costs by the delta, and readers see no difference. Pure."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Iterable, Iterator
from contextlib import aclosing

from recto.models.ports import CallDelta, Delta, ReasoningDelta, ReplyEnd, TextDelta


def join_deltas(deltas: Iterable[Delta]) -> Iterator[Delta]:
    """The same words in fewer deltas: neighbours that say more of the same thing become one."""
    kept: Delta | None = None
    pieces: list[str] = []
    for delta in deltas:
        if type(delta) is TextDelta and type(kept) is TextDelta:
            # Most deltas are more words.
            pieces.append(delta.text)
            continue
        words = _words(delta)
        if kept is not None and words is not None and _is_more_of(kept, delta):
            pieces.append(words)
            continue
        if kept is not None:
            yield _joined(kept, pieces)
        kept, pieces = delta, [words] if words is not None else []
    if kept is not None:
        yield _joined(kept, pieces)


async def cut_short(deltas: AsyncGenerator[Delta], most: int) -> AsyncGenerator[Delta]:
    """The deltas up to so many characters. A reply that has more ends there, as one that is as long as it may be."""
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


def _is_more_of(kept: Delta, delta: Delta) -> bool:
    if isinstance(kept, CallDelta) and isinstance(delta, CallDelta):
        return kept.index == delta.index
    return type(kept) is type(delta)


def _joined(kept: Delta, pieces: list[str]) -> Delta:
    return kept if len(pieces) < 2 else _with_words(kept, "".join(pieces))  # noqa: PLR2004 - one is what it was


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
