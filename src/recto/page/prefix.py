"""The prefix rule: a page begins with the whole previous page, or the break has a named cause.

A provider's prompt cache pays off only while the prefix holds, so every break is reported.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate
from typing import Literal, TypeAlias

from recto.page.body import Page
from recto.page.manifest import Manifest, Part

Cause: TypeAlias = Literal[
    "model_changed",
    "purpose_changed",
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
# Kinds of parts before the conversation. They change only with settings, tools or prompt.
ENVELOPE = "envelope"
BEFORE_TALK = frozenset({ENVELOPE, "tool", "system"})


@dataclass(frozen=True, kw_only=True)
class SentPage:
    """A page as sent: its bytes, manifest, model and purpose."""

    body: bytes
    manifest: Manifest
    model: str = ""
    purpose: str = "reply"

    @classmethod
    def of(cls, page: Page, manifest: Manifest) -> SentPage:
        """Return a newly built page as sent."""
        return cls(body=page.body, manifest=manifest)

    def bytes_at(self, place: int) -> bytes:
        """Return the bytes of the part at a place; empty if it was left out."""
        end = self._ends[place]
        return self.body[end - self.manifest.sizes[place] : end]

    def place_at(self, offset: int) -> int:
        """Return the place of the part that contains a byte, or the number of parts if there is no such byte."""
        return bisect_right(self._ends, offset)

    @cached_property
    def _ends(self) -> list[int]:
        return list(accumulate(self.manifest.sizes))


@dataclass(frozen=True, kw_only=True)
class AnsweredPage:
    """A page that a model answered, and the call that sent it.

    The segments of the page are shared with cached messages.
    """

    run: str
    number: int
    page: Page
    manifest: Manifest
    model: str

    @property
    def sent_page(self) -> SentPage:
        """The page as sent. Its bytes are joined on each access."""
        return SentPage(body=self.page.body, manifest=self.manifest, model=self.model)


@dataclass(frozen=True, kw_only=True)
class Break:
    """The cause of a prefix break, and the older page's part where the pages diverge."""

    cause: Cause
    source: str
    bytes_kept: int


def first_difference(old: bytes, new: bytes) -> int | None:
    """Return the offset of the first differing byte, or None if both are equal."""
    if old == new:
        return None
    # Bisect: comparing slices is far faster than a loop over bytes.
    low, high = 0, min(len(old), len(new))
    while low < high:
        middle = (low + high + 1) // 2
        if old[low:middle] == new[low:middle]:
            low = middle
        else:
            high = middle - 1
    return low


def prefix_break(before: SentPage, after: SentPage) -> Break | None:
    """Return the first prefix break between two pages of one thread, or None. Ignore the closing brackets."""
    if before.model != after.model:
        return Break(cause="model_changed", source=before.manifest.parts[0].source, bytes_kept=0)
    offset = first_difference(before.body, after.body)
    parts = before.manifest.parts
    if offset is None or before.place_at(offset) >= len(parts) - 1:
        return None
    part = parts[before.place_at(offset)]
    return Break(cause=_cause(before, after, offset), source=part.source, bytes_kept=offset)


def _cause(before: SentPage, after: SentPage, offset: int) -> Cause:
    if before.purpose != after.purpose:
        return "purpose_changed"
    old, new = before.manifest, after.manifest
    places = before.place_at(offset), min(after.place_at(offset), len(new.parts) - 1)
    old_part, new_part = old.parts[places[0]], new.parts[places[1]]
    # Ignore the envelope at the end of a page: only the one at the beginning contains the settings.
    kinds = {
        part.kind
        for part, place in zip((old_part, new_part), places, strict=True)
        if place == 0 or part.kind != ENVELOPE
    }
    if kinds & BEFORE_TALK:
        if old.skill != new.skill:
            return "skill_changed"
        if ENVELOPE in kinds:
            return "settings_changed"
        return "tools_changed" if "tool" in kinds else "prompt_changed"
    if "quote" in kinds:
        return "documents_changed"
    outcomes = what_became(old, new)
    users = _users(old)
    if any(user not in outcomes for user in users):
        return "rollback"
    return (
        "compaction"
        if "summary" in kinds
        else _cause_between_messages(old_part, new_part, outcomes, (users, _users(new)))
    )


def _cause_between_messages(
    old_part: Part, new_part: Part, outcomes: Mapping[str, Part], users: tuple[list[str], list[str]]
) -> Cause:
    now = outcomes.get(old_part.source)
    if now is None:
        return "retry"
    if now.decision == "dropped":
        return "window_slid" if now.rule == "S2" else "compaction" if now.rule == "R13" else "repaired"
    if now.source == new_part.source and now.decision == "folded" and now.receipts != old_part.receipts:
        return "fold_step"
    if now.source == new_part.source and now.role == "user":
        return "turn_closed" if [old_part.source] == users[0][-1:] != users[1][-1:] else "reminder_changed"
    return "repaired"


def _users(manifest: Manifest) -> list[str]:
    return [part.source for part in manifest.parts if part.role == "user" and part.kind == "message"]


def what_became(old: Manifest, new: Manifest) -> Mapping[str, Part]:
    """Map the message ids of an old page to their parts in a new one. Rolled-back messages have no part.

    A gap names only its first and last message. If the old page does not have one of these, the gap extends to the
    neighbouring part.
    """
    outcomes = {part.source: part for part in new.parts if part.kind == "message"}
    order = {part.source: place for place, part in enumerate(old.parts) if part.kind == "message"}
    ids = list(order)
    places = list(order.values())
    for at, gap in enumerate(new.parts):
        if gap.upto is None:
            continue
        start = order.get(gap.source, _neighbour(new.parts[:at][::-1], order, -1))
        end = order.get(gap.upto, _neighbour(new.parts[at + 1 :], order, len(old.parts)))
        among = ids[bisect_right(places, start - 1) : bisect_right(places, end)]
        outcomes |= {id: gap for id in among if id not in outcomes or outcomes[id].upto is not None}
    return outcomes


def _neighbour(parts: tuple[Part, ...], order: Mapping[str, int], otherwise: int) -> int:
    return next((order[part.source] for part in parts if part.source in order), otherwise)
