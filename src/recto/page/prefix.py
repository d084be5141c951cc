"""The prefix rule (DESIGN "Prompt prefix"): a page begins with the whole of the one before, or the cause has a name.

A provider's prompt cache is worth money only while this holds, so every break of it is told.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal, TypeAlias

from recto.page.manifest import Manifest, Part
from recto.page.setting import Page

Cause: TypeAlias = Literal[
    "settings_changed",
    "tools_changed",
    "skill_changed",
    "documents_changed",
    "compaction",
    "window_slid",
    "fold_step",
    "turn_closed",
    "repaired",
    "rollback",
    "retry",
]
BY_RULE: Mapping[str | None, Cause] = {"S2": "window_slid", "R13": "compaction", "R10": "repaired", "fit": "repaired"}


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
    kinds = {lost.kind, come.kind}
    if "tool" in kinds or "system" in kinds:
        return "skill_changed" if _system(*before) != _system(*after) else "tools_changed"
    if lost.kind == "envelope":
        return "settings_changed"
    if "summary" in kinds:
        return "compaction"
    if "quote" in kinds:
        return "documents_changed"
    return _cause_between_messages(lost, come, before[1], after[1])


def _cause_between_messages(lost: Part, come: Part, old: Manifest, new: Manifest) -> Cause:
    now = next((part for part in new.parts if part.source == lost.source and part.kind == "message"), None)
    if now is None:
        said = {part.source for part in new.parts}
        users = [part for part in old.parts if part.role == "user" and part.kind == "message"]
        return "rollback" if any(user.source not in said for user in users) else "retry"
    if now.decision == "dropped":
        return BY_RULE.get(now.rule, "repaired")
    if now.source != come.source:
        return "repaired"
    if now.decision == "folded" and now.receipts != lost.receipts:
        return "fold_step"
    return "turn_closed" if lost.rule == "F1" else "repaired"


def _system(page: Page, manifest: Manifest) -> tuple[bytes, ...]:
    shown = [part for part, size in zip(manifest.parts, manifest.sizes, strict=True) if size]
    return tuple(page.segments[2 * place].sha256 for place, part in enumerate(shown) if part.kind == "system")
