"""What is in view of a log, told from its turns back alone (R12): numbers, not entries, so that no log need be read."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple, TypeAlias

from recto.page.log import RolledBack, Undone

TurnBack: TypeAlias = RolledBack | Undone


@dataclass(frozen=True, kw_only=True)
class Stretch:
    """Entries that follow each other and are all in view, by their numbers. `last` None: all that follow."""

    first: int
    last: int | None = None


@dataclass(frozen=True, kw_only=True)
class Seen:
    """The numbers in view, as stretches in their order."""

    stretches: tuple[Stretch, ...] = (Stretch(first=1),)

    def __contains__(self, number: int) -> bool:
        place = bisect_right(self.stretches, number, key=_first) - 1
        if place < 0:
            return False
        last = self.stretches[place].last
        return last is None or number <= last

    def before(self, number: int) -> Seen:
        """What of it stands before a number."""
        return Seen(stretches=_listed(_cut(_linked(self.stretches), number - 1)))


def seen_of(turns: Sequence[TurnBack], users: Mapping[str, int]) -> Seen:
    """What is in view after these, the rollbacks and undos of a log in their order; `users` numbers user messages.

    The numbers are those of the entries `view` keeps, where a log is numbered from 1 without gaps.
    """
    now: _Link | None = _Link(1, None, None)
    hidden: list[_Link | None] = []
    for turn in turns:
        number = turn.seq or 0
        now = _cut(now, number - 1)
        match turn:
            case RolledBack(to=to):
                target = users.get(to)
                if target is not None and _has(now, target):
                    hidden.append(now)
                    now = _cut(now, target - 1)
            case Undone():
                now = hidden.pop() if hidden else now
        now = _Link(number + 1, None, now)
    return Seen(stretches=_listed(now))


class _Link(NamedTuple):
    """The newest stretch and those before it. What was in view before a rollback shares them with what is after."""

    first: int
    last: int | None
    before: _Link | None


def _cut(link: _Link | None, last: int) -> _Link | None:
    """What stands up to a number."""
    while link is not None and link.first > last:
        link = link.before
    if link is None:
        return None
    return link if link.last is not None and link.last <= last else link._replace(last=last)


def _has(link: _Link | None, number: int) -> bool:
    while link is not None and link.first > number:
        link = link.before
    return link is not None and (link.last is None or number <= link.last)


def _listed(link: _Link | None) -> tuple[Stretch, ...]:
    found: list[Stretch] = []
    while link is not None:
        found.append(Stretch(first=link.first, last=link.last))
        link = link.before
    return tuple(reversed(found))


def _linked(stretches: Sequence[Stretch]) -> _Link | None:
    link: _Link | None = None
    for stretch in stretches:
        link = _Link(stretch.first, stretch.last, link)
    return link


def _first(stretch: Stretch) -> int:
    return stretch.first
