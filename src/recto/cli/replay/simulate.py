"""Simulation of the provider's prompt cache under a policy.

A prefix is counted in whole messages. The cache is assumed to hold the previous page and nothing else.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from recto.cli.replay.policies import PageChanges
from recto.cli.replay.stretches import CallStretch
from recto.page.text.tokens import OFFLINE, TokenCounter, tokens_of


@dataclass(frozen=True, kw_only=True)
class PlayedCall:
    """Tokens of a page, cached tokens, and True if it does not extend the previous page."""

    input: int
    cached: int
    breaks: bool


def play(stretch: CallStretch, steps: Iterable[PageChanges], counter: TokenCounter = OFFLINE) -> Iterator[PlayedCall]:
    """Simulate each call of a stretch, with the changes of a policy."""
    sizes: list[int] = []
    size = 0
    for call, changes in zip(stretch.calls, steps, strict=True):
        count, prefix_size = len(sizes), size
        new = stretch.tokens[count : call.place]
        sizes += new
        size += sum(new)
        for place, message in changes.items():
            tokens = tokens_of(message, counter)
            size += tokens - sizes[place]
            sizes[place] = tokens
        first = min(changes, default=count)
        breaks = first < count
        prefix = stretch.before + (sum(sizes[:first]) if breaks else prefix_size)
        yield PlayedCall(input=stretch.before + size, cached=0 if call.is_cold else prefix, breaks=breaks)
