"""The prefix rule: a page begins with the whole of the one before, or the cause has a name.

A provider's prompt cache is worth money only while this holds, so every break of it is reported.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal, TypeAlias

from recto.page.body import Page
from recto.page.manifest import Manifest, Part

Cause: TypeAlias = Literal[
    "settings_changed",
    "tools_changed",
    "skill_changed",
    "prompt_changed",
    "documents_changed",
    "compaction",
    "window_slid",
    "fold_step",
    "turn_closed",
    "reminder_changed",
    "repaired",
    "rollback",
    "retry",
]


@dataclass(frozen=True, kw_only=True)
class Break:
    """Why a page does not begin with the one before, and the part of the older page where they part ways."""

    cause: Cause
    source: str
    bytes_kept: int


def prefix_break(before: tuple[Page, Manifest], after: tuple[Page, Manifest]) -> Break | None:
    """The first break of the prefix between two pages of one thread, or None. The closing brackets do not count."""
    old, new = before[0].segments[:-1], after[0].segments
    place = next((i for i, (a, b) in enumerate(zip(old, new, strict=False)) if a != b), min(len(old), len(new)))
    if place == len(old):
        return None
    lost, come = _part_at(before[1], place), _part_at(after[1], place)
    kept = sum(len(segment.data) for segment in old[:place])
    return Break(cause=_cause(lost, come, before, after), source=lost.source, bytes_kept=kept)


def _part_at(manifest: Manifest, segment: int) -> Part:
    """The part a segment belongs to: the envelope is one segment, everything else punctuation and itself."""
    shown = [part for part, size in zip(manifest.parts, manifest.sizes, strict=True) if size]
    return shown[min((segment + 1) // 2, len(shown) - 1)]


def _cause(lost: Part, come: Part, before: tuple[Page, Manifest], after: tuple[Page, Manifest]) -> Cause:
    old, new = before[1], after[1]
    kinds = {lost.kind, come.kind}
    if "tool" in kinds or "system" in kinds:
        if old.skill != new.skill:
            return "skill_changed"
        return "prompt_changed" if _system(*before) != _system(*after) else "tools_changed"
    if lost.kind == "envelope":
        return "settings_changed"
    if "quote" in kinds:
        return "documents_changed"
    if any(user not in _found(old, new) for user in _users(old)):
        return "rollback"
    return "compaction" if "summary" in kinds else _cause_between_messages(lost, come, old, new)


def _cause_between_messages(lost: Part, come: Part, old: Manifest, new: Manifest) -> Cause:
    now = _found(old, new).get(lost.source)
    if now is None:
        return "retry"
    if now.decision == "dropped":
        return "window_slid" if now.rule == "S2" else "compaction" if now.rule == "R13" else "repaired"
    if now.source == come.source and now.decision == "folded" and now.receipts != lost.receipts:
        return "fold_step"
    if now.source == come.source and now.role == "user":
        return "turn_closed" if lost.source == _users(old)[-1] != _users(new)[-1] else "reminder_changed"
    return "repaired"


def _users(manifest: Manifest) -> list[str]:
    return [part.source for part in manifest.parts if part.role == "user" and part.kind == "message"]


def _found(old: Manifest, new: Manifest) -> Mapping[str, Part]:
    """What became of the messages of a page in the next, by their ids; what a rollback hides is in neither."""
    found = {part.source: part for part in new.parts if part.kind == "message"}
    order = {part.source: place for place, part in enumerate(old.parts) if part.kind == "message"}
    for gap in [part for part in new.parts if part.upto in order]:
        among = range(order.get(gap.source, 0), order[gap.upto or ""] + 1)
        found |= {id: gap for id, place in order.items() if place in among}
    return found


def _system(page: Page, manifest: Manifest) -> tuple[bytes, ...]:
    shown = [part for part, size in zip(manifest.parts, manifest.sizes, strict=True) if size]
    return tuple(page.segments[2 * place].sha256 for place, part in enumerate(shown) if part.kind == "system")
