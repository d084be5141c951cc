"""Which results a conversation no longer needs (R2-R9), from what it read, ran and searched."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from typing import NamedTuple

from recto.page.folding import AgeRule, Lens
from recto.page.messages import Text, ToolMessage, remember
from recto.page.sightings import BEFORE_ALL, Sighting, parts_by_file


class Stale(NamedTuple):
    """Why a result is not needed: `n` is its number counted from the newest, `keep` stay, `newest` stands for it.

    `path` is the file it is not needed for; a command or a search has none.
    """

    path: str | None
    n: int
    keep: int
    newest: str


def stale_reads(reads: Mapping[str, Sequence[Sighting]], lens: Lens) -> Iterator[tuple[Sighting, tuple[Stale, ...]]]:
    """Reads that newer reads stand for, each with the files for which they do (R2-R5)."""
    rule = lens.settings.reads
    if rule is None:
        return
    stale: dict[int, tuple[Sighting, list[Stale]]] = {}
    for path, seen in reads.items():
        keep = rule.keep_for(_size(seen[-1].message, path, lens)) if rule.keep_by_size else rule.keep
        newest = label(seen[-1].message)
        for n, sighting in _beyond(seen, keep):
            stale.setdefault(sighting.place, (sighting, []))[1].append(Stale(path, n, keep, newest))
    for sighting, files in stale.values():
        # R5: a batch result in one piece goes only when no file needs it; one with a part for each file goes by parts.
        if len(files) == len(sighting.files) or sighting.by_part:
            yield sighting, tuple(files)


def stale_results(
    seen: Sequence[Sighting], rule: AgeRule | None, now: datetime
) -> Iterator[tuple[Sighting, AgeRule, Stale]]:
    """Commands or searches that are neither among the newest nor young (R8, R9)."""
    if rule is None or not seen:
        return
    newest = label(seen[-1].message)
    for n, sighting in _beyond(seen, rule.keep):
        # A result with no time before it in the log has no age: it may be new.
        if sighting.time is not BEFORE_ALL and now - sighting.time > rule.max_age:
            yield sighting, rule, Stale(None, n, rule.keep, newest)


def label(message: ToolMessage) -> str:
    """What a result is called in receipts: its id, or that of its call."""
    return message.id or message.tool_call_id


def _beyond(seen: Sequence[Sighting], keep: int) -> Iterator[tuple[int, Sighting]]:
    """All but the newest `keep`, numbered from the newest."""
    return enumerate(reversed(seen[: max(0, len(seen) - keep)]), start=keep + 1)


def _size(message: ToolMessage, path: str, lens: Lens) -> int:
    indexes = remember(message, parts_by_file, lens).get(path)
    parts = message.parts if indexes is None else [message.parts[index] for index in indexes]
    return sum(len(part.text) for part in parts if isinstance(part, Text))
