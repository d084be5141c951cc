"""The log: messages and markers, only ever added to; and what is in view of it after its markers (R12, R13, S4).

A marker changes what is seen, never what is stored. `view` works out what is seen from the entries, `seen_of` from
rollbacks and undos alone, as numbers, for whoever reads entries by their numbers. So rollback, undo and fork need no
code of their own anywhere else.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import compress, zip_longest
from typing import Literal, NamedTuple, TypeAlias, TypeVar, cast, get_args

from recto.conversation.json import Json, load
from recto.conversation.memo import cache_by_identity
from recto.conversation.messages import AssistantMessage, Logged, Message, UnreadMessages, UserMessage

# `core` is what a client calls having no skill.
NO_SKILL = (None, "", "core")
Finish: TypeAlias = Literal["length", "refused", "filtered"]


@dataclass(frozen=True, kw_only=True)
class SkillChanged(Logged):
    """From here on the thread works in this skill; None, or `core`, leaves it.

    One that comes with a request follows its user message, so that a rollback to that message takes it back (S4).
    `said` are the words of that message that took it up, where it was neither the model nor the request.
    """

    skill: str | None
    scenario: str | None = None
    said: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True)
class ToolStarted(Logged):
    """A tool is about to act for a call of this message. Written before it does, so that it is never started twice."""

    message: str
    call: str


@dataclass(frozen=True, kw_only=True)
class ConfirmAsked(Logged):
    """A person is asked whether a call of this message may be made; its own id is the interrupt's.

    `run` is the client's name for the run that asks, `seconds` how long there is an answer to be given.
    """

    message: str
    call: str
    run: str
    seconds: float


@dataclass(frozen=True, kw_only=True)
class ConfirmDecided(Logged):
    """What a person decided of an interrupt: `text` is what they said to it, `arguments` take the place of the call's.

    `run` is the run that brought it. An approval is good for that run alone: one that ended without acting is spent.
    """

    interrupt: str
    run: str
    approved: bool
    text: str = ""
    arguments: str | None = None


@dataclass(frozen=True, kw_only=True)
class FoldStep(Logged):
    """From here on these results are folded in pages for this model, for good (X2); they are called by their labels.

    `cause` is why it was made then. Each later call is sent `freed` tokens less; `rewritten` ones had to be written to
    the provider's cache again. `saves` a call and `costs` once are the price of that in billionths, by a list of
    prices; nothing where it has none.
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
    """A run was ended from outside while it wrote this message; what it wrote stays."""

    message: str
    reason: str


@dataclass(frozen=True, kw_only=True)
class ReplyEnded(Logged):
    """A reply that did not end by itself: cut at its length, refused by the model, or filtered by the provider."""

    message: str
    finish: Finish


@dataclass(frozen=True, kw_only=True)
class RolledBack(Logged):
    """This message and all that follows it are no longer seen. `cause` says who did it, where it was no person (P15).

    People roll back to what they said; a client whose list ends before an answer rolls back to that answer.
    """

    to: str
    cause: str | None = None


@dataclass(frozen=True, kw_only=True)
class Undone(Logged):
    """The last rollback is taken back, with what was said after it."""


@dataclass(frozen=True, kw_only=True)
class Compacted(Logged):
    """A summary stands for everything up to and including this message."""

    upto: str
    summary: str


@dataclass(frozen=True, kw_only=True)
class StateChanged(Logged):
    """From here on the thread and its clients share this state, which is JSON text; `null`: none.

    One that comes with a request follows its user message; one of a tool's follows its result.
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
# What can be turned back to: not what stands for messages that were not read.
MESSAGES: tuple[type[Message], ...] = tuple(kind for kind in get_args(Message) if kind is not UnreadMessages)
KINDS_OF_MESSAGES: frozenset[type[Entry]] = frozenset(get_args(Message))
ROLLBACK_MARKERS: frozenset[type[Entry]] = frozenset(get_args(RollbackMarker))


MarkerT = TypeVar("MarkerT", bound=Marker)


@dataclass(frozen=True, kw_only=True)
class View:
    """What is seen of a log: the messages and markers in force, and whether there is a rollback to take back."""

    entries: tuple[Entry, ...] = ()
    can_undo: bool = False

    @cached_property
    def messages(self) -> tuple[Message, ...]:
        """The conversation, in order."""
        return messages_of(self.entries)

    @cached_property
    def markers(self) -> tuple[Marker, ...]:
        """The markers in force, in order."""
        if MARKERS.isdisjoint(self._kinds):
            return ()
        are_markers = map(MARKERS.__contains__, map(type, self.entries))
        return cast("tuple[Marker, ...]", tuple(compress(self.entries, are_markers)))

    @cached_property
    def _kinds(self) -> frozenset[type[Entry]]:
        # Of a long log most questions are answered by these, without a look at its entries.
        return frozenset(map(type, self.entries))

    def newest_first(self, kind: type[MarkerT]) -> Iterator[MarkerT]:
        """The markers of a kind that are in force."""
        if kind in self._kinds:
            found = (entry for entry in reversed(self.markers) if type(entry) is kind)
            yield from cast("Iterator[MarkerT]", found)

    @cached_property
    def skill(self) -> SkillChanged | None:
        """The skill the thread works in; None where it never had one or left it."""
        last = next(self.newest_first(SkillChanged), None)
        return last if last and last.skill not in NO_SKILL else None

    @cached_property
    def state(self) -> Json:
        """The state that is shared with clients; None where there is none."""
        last = next(self.newest_first(StateChanged), None)
        return load(last.value) if last else None

    @cached_property
    def compaction(self) -> Compacted | None:
        """The newest summary whose messages are all still in view."""
        return next((entry for entry in self.newest_first(Compacted) if self.place_of(entry.upto) >= 0), None)

    @cached_property
    def compacted(self) -> int:
        """How many messages it stands for."""
        return self.place_of(self.compaction.upto) + 1 if self.compaction else 0

    def place_of(self, id: str) -> int:
        """The place of a message among the messages; -1 where it is not in view."""
        # From the end: what is asked for is mostly near it.
        backwards = range(len(self.messages) - 1, -1, -1)
        return next((place for place in backwards if self.messages[place].id == id), -1)

    @cached_property
    def finishes(self) -> Mapping[str, Finish]:
        """How replies ended that did not end by themselves, by message id."""
        return {entry.message: entry.finish for entry in reversed([*self.newest_first(ReplyEnded)])}

    @cached_property
    def reply(self) -> AssistantMessage | None:
        """The newest message of the assistant's."""
        return next((message for message in reversed(self.messages) if isinstance(message, AssistantMessage)), None)

    @cached_property
    def turn_start(self) -> int:
        """The place of the current turn's user message among the messages; their number, where there is none."""
        kinds = list(map(type, reversed(self.messages)))
        return len(kinds) - 1 - kinds.index(UserMessage) if UserMessage in kinds else len(kinds)


def messages_of(entries: Sequence[Entry]) -> tuple[Message, ...]:
    """The messages among some entries."""
    if MARKERS.isdisjoint(map(type, entries)):
        return cast("tuple[Message, ...]", tuple(entries))
    are_messages = map(KINDS_OF_MESSAGES.__contains__, map(type, entries))
    return cast("tuple[Message, ...]", tuple(compress(entries, are_messages)))


def view(log: Sequence[Entry]) -> View:
    """What is seen of a log after all its markers. A rollback to what is not seen changes nothing."""
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


# A step of a run asks again and again, of a log or two; many runs take their steps in turn.
_view_of = cache_by_identity(32)(_view)


def _place_of(entries: Sequence[Entry], id: str, kinds: tuple[type[Entry], ...]) -> int | None:
    places = (place for place, entry in enumerate(entries) if entry.id == id)
    return next((place for place in places if isinstance(entries[place], kinds)), None)


def fork(log: Sequence[Entry], *, before: str | None = None) -> tuple[Entry, ...]:
    """The entries a new thread begins with: what is seen of this one, up to a user message where one is named."""
    entries = view(log).entries
    place = _place_of(entries, before, (UserMessage,)) if before is not None else None
    return entries[:place]


# What is in view, by numbers


@dataclass(frozen=True, kw_only=True)
class NumberRange:
    """Entries that follow each other and are all in view, by their numbers. `last` None: all that follow."""

    first: int
    last: int | None = None


@dataclass(frozen=True, kw_only=True)
class VisibleNumbers:
    """The numbers in view, as stretches in their order, and whether there is a rollback to take back."""

    ranges: tuple[NumberRange, ...] = (NumberRange(first=1),)
    can_undo: bool = False

    def __contains__(self, number: int) -> bool:
        place = bisect_right(self.ranges, number, key=_first) - 1
        if place < 0:
            return False
        last = self.ranges[place].last
        return last is None or number <= last

    def shared_until(self, other: VisibleNumbers) -> int:
        """A number before which both have the same."""
        pairs = zip_longest(self.ranges, other.ranges)
        ours, theirs = next(((a, b) for a, b in pairs if a != b), (None, None))
        if ours is None or theirs is None or ours.first != theirs.first:
            return min([stretch.first for stretch in (ours, theirs) if stretch], default=0)
        return min([stretch.last + 1 for stretch in (ours, theirs) if stretch.last is not None])

    def before(self, number: int) -> VisibleNumbers:
        """What of it stands before a number."""
        return VisibleNumbers(ranges=_listed(_cut(_linked(self.ranges), number - 1)))


def visible_numbers(turns: Sequence[RollbackMarker], messages: Mapping[str, int]) -> VisibleNumbers:
    """What is in view after these, the rollbacks and undos of a log in their order; `messages` are numbers by ids.

    The numbers are those of the entries `view` keeps, where a log is numbered from 1 without gaps.
    """
    now: _Link | None = _Link(1, None, None)
    hidden: list[_Link | None] = []
    for turn in turns:
        number = turn.seq or 0
        now = _cut(now, number - 1)
        match turn:
            case RolledBack(to=to):
                target = messages.get(to)
                if target is not None and _has(now, target):
                    hidden.append(now)
                    now = _cut(now, target - 1)
            case Undone():
                now = hidden.pop() if hidden else now
        now = _Link(number + 1, None, now)
    return VisibleNumbers(ranges=_listed(now), can_undo=bool(hidden))


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


def _listed(link: _Link | None) -> tuple[NumberRange, ...]:
    found: list[NumberRange] = []
    while link is not None:
        found.append(NumberRange(first=link.first, last=link.last))
        link = link.before
    return tuple(reversed(found))


def _linked(stretches: Sequence[NumberRange]) -> _Link | None:
    link: _Link | None = None
    for stretch in stretches:
        link = _Link(stretch.first, stretch.last, link)
    return link


def _first(stretch: NumberRange) -> int:
    return stretch.first
