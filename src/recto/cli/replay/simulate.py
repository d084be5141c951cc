"""What calls cost under a policy: how much of each page the provider has in its cache, and what breaks that.

A prefix is counted by whole messages. Refuses to guess what a provider's cache does besides: it is taken to hold the
page before, and nothing else.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from recto.cli.replay.policies import PageChanges
from recto.cli.replay.stretches import CallStretch
from recto.page.text.tokens import OFFLINE, TokenCounter, tokens_of


@dataclass(frozen=True, kw_only=True)
class PlayedCall:
    """The tokens of a page, how many of them are those the page before began with, and whether it went on from it."""

    input: int
    cached: int
    breaks: bool


def play(stretch: CallStretch, steps: Iterable[PageChanges], counter: TokenCounter = OFFLINE) -> Iterator[PlayedCall]:
    """Each call of a stretch, with the changes that a policy makes before it."""
    shown: list[int] = []
    size = 0
    for call, changes in zip(stretch.calls, steps, strict=True):
        known, held = len(shown), size
        new = stretch.tokens[known : call.place]
        shown += new
        size += sum(new)
        for place, message in changes.items():
            tokens = tokens_of(message, counter)
            size += tokens - shown[place]
            shown[place] = tokens
        first = min(changes, default=known)
        breaks = first < known
        prefix = stretch.before + (sum(shown[:first]) if breaks else held)
        yield PlayedCall(input=stretch.before + size, cached=0 if call.is_cold else prefix, breaks=breaks)
