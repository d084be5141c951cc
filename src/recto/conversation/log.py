"""The append-only log of messages and markers, and its view after the markers are applied (R12, R13, S4).

Markers change the view, never the stored entries. `view` computes the view from the entries. `visible_numbers` computes
the sequence numbers of the view from rollbacks and undos alone, for code that reads single entries.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import compress, zip_longest
from operator import attrgetter
from typing import Literal, NamedTuple, TypeAlias, TypeVar, cast, get_args

from recto.conversation.json import Json, load
from recto.conversation.memo import cache_by_identity
from recto.conversation.messages import AssistantMessage, Logged, Message, UnreadMessages, UserMessage

# Clients send `core` for no skill.
NO_SKILL = (None, "", "core")
Finish: TypeAlias = Literal["length", "refused", "filtered"]


@dataclass(frozen=True, kw_only=True)
class SkillChanged(Logged):
    """A change of the thread's skill. None or `core` ends the active skill.

    A change in a request follows its user message, so that a rollback to that message undoes it (S4). `said` are the
    trigger words in that message, if they activated the skill.
    """

    skill: str | None
    scenario: str | None = None
    said: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True)
class ToolStarted(Logged):
    """The start of a tool for a call of this message. Logged before the tool runs, so that no call runs twice."""

    message: str
    call: str


@dataclass(frozen=True, kw_only=True)
class ConfirmAsked(Logged):
    """A request for approval of a call. Its id is the id of the interrupt.

    `run` is the client's name of the run that asks; `seconds` is the time limit of the answer.
    """

    message: str
    call: str
    run: str
    seconds: float


@dataclass(frozen=True, kw_only=True)
class ConfirmDecided(Logged):
    """A person's decision on an interrupt. `text` is their message; `arguments` replace those of the call.

    `run` is the run that delivered the decision. An approval is valid for that run only: if the run ends before the
    call starts, a person must approve the call again.
    """

    interrupt: str
    run: str
    approved: bool
    text: str = ""
    arguments: str | None = None


@dataclass(frozen=True, kw_only=True)
class FoldStep(Logged):
    """A fold step: from here on, pages for this model show these results folded (X2). `results` are their labels.

    `cause` is the reason for the step. Each later call has `freed` tokens less; `rewritten` tokens were written to the
    provider's cache again. `saves` is the saving per call and `costs` the one-time cost, in billionths, or 0 without
    list prices.
    """

    results: tuple[str, ...]
    model: str = ""
    cause: str = ""
    freed: int = 0
    rewritten: int = 0
    saves: int = 0
    costs: int = 0


@dataclass(frozen=True, kw_only=True)
class Interrupted(Logged):
    """A reply that was cut off because its run was stopped. The written part stays."""

    message: str
    reason: str


@dataclass(frozen=True, kw_only=True)
class ReplyEnded(Logged):
    """An abnormal end of a reply: cut at the length limit, refused by the model, or filtered by the provider."""

    message: str
    finish: Finish


@dataclass(frozen=True, kw_only=True)
class RolledBack(Logged):
    """A rollback: this message and all that follow it leave the view. `cause` is the actor if not a person (P15).

    People roll back to a user message. A client whose list ends before an answer rolls back to that answer.
    """

    to: str
    cause: str | None = None


@dataclass(frozen=True, kw_only=True)
class Undone(Logged):
    """An undo of the last rollback. Messages after the rollback leave the view."""


@dataclass(frozen=True, kw_only=True)
class Compacted(Logged):
    """A summary that replaces all messages up to and including this one."""

    upto: str
    summary: str


@dataclass(frozen=True, kw_only=True)
class StateChanged(Logged):
    """A new state shared by the thread and its clients, as JSON text; `null` means none.

    It follows the user message of its request or the result of its tool.
    """

    value: str


RollbackMarker: TypeAlias = RolledBack | Undone
Marker: TypeAlias = (
    SkillChanged
    | ToolStarted
    | ConfirmAsked
    | ConfirmDecided
    | FoldStep
    | Interrupted
    | ReplyEnded
    | RolledBack
    | Undone
    | Compacted
    | StateChanged
)
Entry: TypeAlias = Message | Marker
MARKERS: frozenset[type[Entry]] = frozenset(get_args(Marker))
# Possible targets of a rollback: every message except the placeholder for unread ones.
MESSAGES: tuple[type[Message], ...] = tuple(kind for kind in get_args(Message) if kind is not UnreadMessages)
KINDS_OF_MESSAGES: frozenset[type[Entry]] = frozenset(get_args(Message))
ROLLBACK_MARKERS: frozenset[type[Entry]] = frozenset(get_args(RollbackMarker))


MarkerT = TypeVar("MarkerT", bound=Marker)


@dataclass(frozen=True, kw_only=True)
class View:
    """The visible entries of a log, and whether there is a rollback to undo."""

    entries: tuple[Entry, ...] = ()
    can_undo: bool = False

    @cached_property
    def messages(self) -> tuple[Message, ...]:
        """The conversation, in order."""
        return messages_of(self.entries)

    @cached_property
    def markers(self) -> tuple[Marker, ...]:
        """The visible markers, in order."""
        if MARKERS.isdisjoint(self._kinds):
            return ()
        are_markers = map(MARKERS.__contains__, map(type, self.entries))
        return cast("tuple[Marker, ...]", tuple(compress(self.entries, are_markers)))

    @cached_property
    def _kinds(self) -> frozenset[type[Entry]]:
        # Most properties of a long log depend only on the kinds of its entries, so they need no scan of the entries.
        return frozenset(map(type, self.entries))

    def newest_first(self, kind: type[MarkerT]) -> Iterator[MarkerT]:
        """Yield the visible markers of a kind, newest first."""
        if kind in self._kinds:
            markers = (entry for entry in reversed(self.markers) if type(entry) is kind)
            yield from cast("Iterator[MarkerT]", markers)

    @cached_property
    def skill(self) -> SkillChanged | None:
        """The active skill, or None."""
        last = next(self.newest_first(SkillChanged), None)
        return last if last and last.skill not in NO_SKILL else None

    @cached_property
    def state(self) -> Json:
        """The state shared with clients, or None."""
        last = next(self.newest_first(StateChanged), None)
        return load(last.value) if last else None

    @cached_property
    def compaction(self) -> Compacted | None:
        """The newest summary whose messages are all visible."""
        return next((entry for entry in self.newest_first(Compacted) if self.place_of(entry.upto) >= 0), None)

    @cached_property
    def compacted(self) -> int:
        """The number of messages that the summary replaces."""
        return self.place_of(self.compaction.upto) + 1 if self.compaction else 0

    def place_of(self, id: str) -> int:
        """Return the place of a message in `messages`, or -1 if it is not visible."""
        # Search from the end: most callers look for a recent message.
        backwards = range(len(self.messages) - 1, -1, -1)
        return next((place for place in backwards if self.messages[place].id == id), -1)

    @cached_property
    def finishes(self) -> Mapping[str, Finish]:
        """The ends of replies that did not end normally, by message id."""
        return {entry.message: entry.finish for entry in reversed([*self.newest_first(ReplyEnded)])}

    @cached_property
    def reply(self) -> AssistantMessage | None:
        """The newest assistant message, or None."""
        return next((message for message in reversed(self.messages) if isinstance(message, AssistantMessage)), None)

    @cached_property
    def turn_start(self) -> int:
        """The place of the current turn's user message, or the number of messages if there is none."""
        kinds = list(map(type, reversed(self.messages)))
        return len(kinds) - 1 - kinds.index(UserMessage) if UserMessage in kinds else len(kinds)


def messages_of(entries: Sequence[Entry]) -> tuple[Message, ...]:
    """Return the messages among these entries."""
    if MARKERS.isdisjoint(map(type, entries)):
        return cast("tuple[Message, ...]", tuple(entries))
    are_messages = map(KINDS_OF_MESSAGES.__contains__, map(type, entries))
    return cast("tuple[Message, ...]", tuple(compress(entries, are_messages)))


def view(log: Sequence[Entry]) -> View:
    """Return the view of a log after all its markers. A rollback to an invisible message has no effect."""
    return _view_of(log) if isinstance(log, tuple) else _view(tuple(log))


def _view(log: tuple[Entry, ...]) -> View:
    if ROLLBACK_MARKERS.isdisjoint(map(type, log)):
        return View(entries=log)
    entries: list[Entry] = []
    hidden: list[tuple[Entry, ...]] = []
    for entry in log:
        match entry:
            case RolledBack(to=to):
                place = _place_of(entries, to, MESSAGES)
                if place is not None:
                    hidden.append(tuple(entries))
                    del entries[place:]
            case Undone():
                entries = list(hidden.pop()) if hidden else entries
            case _:
                entries.append(entry)
    return View(entries=tuple(entries), can_undo=bool(hidden))


# Cache several logs: each step of a run computes the view of one or two logs many times, and several runs alternate.
_view_of = cache_by_identity(32)(_view)


def _place_of(entries: Sequence[Entry], id: str, kinds: tuple[type[Entry], ...]) -> int | None:
    places = (place for place, entry in enumerate(entries) if entry.id == id)
    return next((place for place in places if isinstance(entries[place], kinds)), None)


def fork(log: Sequence[Entry], *, before: str | None = None) -> tuple[Entry, ...]:
    """Return the initial log of a fork: the visible entries of this log, up to but not including user message `before`
    if given.
    """
    entries = view(log).entries
    place = _place_of(entries, before, (UserMessage,)) if before is not None else None
    return entries[:place]


# The view as sequence numbers
@dataclass(frozen=True, kw_only=True)
class NumberRange:
    """Numbers of consecutive visible entries. If `last` is None, all later entries are visible too."""

    first: int
    last: int | None = None


@dataclass(frozen=True, kw_only=True)
class VisibleNumbers:
    """The numbers of the visible entries, as ordered ranges, and whether there is a rollback to undo."""

    ranges: tuple[NumberRange, ...] = (NumberRange(first=1),)
    can_undo: bool = False

    def __contains__(self, number: int) -> bool:
        place = bisect_right(self.ranges, number, key=attrgetter("first")) - 1
        if place < 0:
            return False
        last = self.ranges[place].last
        return last is None or number <= last

    def shared_until(self, other: VisibleNumbers) -> int:
        """Return a sequence number below which both have the same visible numbers."""
        pairs = zip_longest(self.ranges, other.ranges)
        ours, theirs = next(((a, b) for a, b in pairs if a != b), (None, None))
        if ours is None or theirs is None or ours.first != theirs.first:
            return min([one.first for one in (ours, theirs) if one], default=0)
        return min([one.last + 1 for one in (ours, theirs) if one.last is not None])

    def before(self, number: int) -> VisibleNumbers:
        """Return the visible numbers below this one."""
        link: _Link | None = None
        for one in self.ranges:
            link = _Link(one.first, one.last, link)
        return VisibleNumbers(ranges=_collect(_cut(link, number - 1)))


def visible_numbers(turns: Sequence[RollbackMarker], messages: Mapping[str, int]) -> VisibleNumbers:
    """Return the numbers of the entries that `view` keeps, for a log numbered from 1 without gaps.

    `turns` are its rollbacks and undos in order; `messages` maps ids to numbers.
    """
    now: _Link | None = _Link(1, None, None)
    hidden: list[_Link | None] = []
    for turn in turns:
        number = turn.seq or 0
        now = _cut(now, number - 1)
        match turn:
            case RolledBack(to=to):
                target = messages.get(to)
                # The target is visible if the ranges cut at its number end exactly there.
                if target is not None and (upto := _cut(now, target)) and upto.last == target:
                    hidden.append(now)
                    now = _cut(now, target - 1)
            case Undone():
                now = hidden.pop() if hidden else now
        now = _Link(number + 1, None, now)
    return VisibleNumbers(ranges=_collect(now), can_undo=bool(hidden))


class _Link(NamedTuple):
    """A range of visible numbers, linked to the ranges before it. The views before and after a rollback share links."""

    first: int
    last: int | None
    before: _Link | None


def _cut(link: _Link | None, last: int) -> _Link | None:
    """Return the ranges up to a number."""
    while link is not None and link.first > last:
        link = link.before
    if link is None:
        return None
    return link if link.last is not None and link.last <= last else link._replace(last=last)


def _collect(link: _Link | None) -> tuple[NumberRange, ...]:
    ranges: list[NumberRange] = []
    while link is not None:
        ranges.append(NumberRange(first=link.first, last=link.last))
        link = link.before
    return tuple(reversed(ranges))
