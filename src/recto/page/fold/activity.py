"""Tool activity of a conversation (X2): when each result was last read, edited or quoted, counted in model calls."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import NamedTuple

from recto.conversation.json import Json, load_object
from recto.conversation.memo import memoise_prefix
from recto.conversation.messages import Message, Text, ToolCall, ToolMessage
from recto.page.fold.fold_settings import CostSettings, FoldKey
from recto.page.fold.observations import BEFORE_ALL, Observation, match_rule, read_paths
from recto.page.fold.paths import Project, normalise
from recto.page.fold.rules import is_failure


class Moment(NamedTuple):
    """A point in a conversation: the number of model calls and user messages before it."""

    calls: int
    users: int


class SeenResult(NamedTuple):
    """A tool result that may be folded.

    `files` are the files of a read. `shows` is True for a read that did not fail, `is_part` for a read of a part of a
    file.
    """

    time: datetime
    place: int
    message: ToolMessage
    tool: str
    files: tuple[str | None, ...] = ()
    shows: bool = False
    is_part: bool = False


class CallPlace(NamedTuple):
    """A tool call and the place of its message."""

    call: ToolCall
    place: int


@dataclass(frozen=True, kw_only=True)
class Activity:
    """Results of a conversation in order, and their last use.

    `last_uses` maps the place of each result to its last use: when it came, when an edit quoted it, or when its file
    was read or edited. `files` maps each file to its last use. `reads` maps each file to the places of its reads,
    `edits` to the place of its last edit. `quoting` counts edits that quoted an earlier result; `near` counts those of
    them that came soon after a use of their file. `last_call` is the place of the newest assistant message. `time`,
    `count` and `calls` are the state to continue with more messages.
    """

    now: Moment = Moment(0, 0)
    results: tuple[SeenResult, ...] = ()
    last_uses: Mapping[int, Moment] = field(default_factory=dict[int, Moment])
    edits: Mapping[str | None, int] = field(default_factory=dict[str | None, int])
    reads: Mapping[str | None, tuple[int, ...]] = field(default_factory=dict[str | None, tuple[int, ...]])
    files: Mapping[str | None, Moment] = field(default_factory=dict[str | None, Moment])
    quoting: int = 0
    near: int = 0
    last_call: int = 0
    time: datetime = BEFORE_ALL
    count: int = 0
    calls: Mapping[str, CallPlace] = field(default_factory=dict[str, CallPlace])

    def idle(self, place: int, turn_calls: int) -> float:
        """Return the number of model calls since the last use of a result.

        Each user message counts as the calls of an average turn, at most `turn_calls`.
        """
        since = self.last_uses[place]
        turn = min(turn_calls, self.now.calls / self.now.users) if self.now.users else 0
        return self.now.calls - since.calls + (self.now.users - since.users) * turn


def find_activity(messages: Sequence[Message], key: FoldKey) -> Activity:
    """Return the activity of a conversation, extending the cached activity of its beginning."""
    return memoise_prefix(messages, _go_on, key)


def _go_on(previous: Activity | None, messages: Sequence[Message], key: FoldKey) -> Activity:
    builder = _ActivityBuilder(previous or Activity(), key)
    for place, message in enumerate(messages, start=previous.count if previous else 0):
        builder.add(place, message)
    return builder.build(count=len(messages) + (previous.count if previous else 0))


class _ActivityBuilder:
    """Mutable state while messages are processed. Does not change the previous activity."""

    def __init__(self, previous: Activity, key: FoldKey) -> None:
        self._key, self._cost = key, key.settings.cost or CostSettings()
        self._now, self._time, self._last_call = previous.now, previous.time, previous.last_call
        self._results, self._calls = list(previous.results), dict(previous.calls)
        self._last_uses, self._files = dict(previous.last_uses), dict(previous.files)
        self._edits, self._reads_of = dict(previous.edits), dict(previous.reads)
        self._quoting, self._near = previous.quoting, previous.near
        rules = key.settings.rules
        # Count failed reads too, as recall does with folding by cost.
        self._reads = {
            tool: replace(rule, failed=never_fails) for rule in rules if rule.path_args for tool in rule.tools
        }
        self._path_args = tuple(dict.fromkeys(name for rule in rules for name in rule.path_args))
        others = [tool for rule in rules if not rule.path_args for tool in rule.tools]
        self._others = frozenset((*others, *self._cost.edits, *self._cost.more))
        self._failed = {tool: rule.failed for rule in rules for tool in rule.tools}

    def build(self, count: int) -> Activity:
        return Activity(
            now=self._now,
            results=tuple(self._results),
            last_uses=self._last_uses,
            edits=self._edits,
            reads=self._reads_of,
            files=self._files,
            quoting=self._quoting,
            near=self._near,
            last_call=self._last_call,
            time=self._time,
            count=count,
            calls=self._calls,
        )

    def add(self, place: int, message: Message) -> None:
        self._time = message.time or self._time
        match message.role:
            case "user":
                self._now = self._now._replace(users=self._now.users + 1)
            case "assistant":
                self._now = self._now._replace(calls=self._now.calls + 1)
                self._last_call = place
                self._calls |= {call.id: CallPlace(call, place) for call in message.tool_calls}
            case "tool":
                if caller := self._calls.get(message.tool_call_id):
                    self._add_result(place, message, caller)
            case _:
                pass

    def _add_result(self, place: int, message: ToolMessage, caller: CallPlace) -> None:
        tool = caller.call.name
        has_failed = self._failed.get(tool, is_failure)(message)
        if tool in self._reads:
            self._add_read(Observation(self._time, place, caller.call, message), shows=not has_failed)
        elif tool in self._others:
            self._add(SeenResult(self._time, place, message, tool))
            if tool in self._cost.edits and not has_failed:
                edit = read_edit(caller.call, self._cost.quotes, self._path_args, self._key.settings.project)
                places = list(self._find_quoted(edit.lines, caller.place))
                if places:
                    self._quoting += 1
                    uses = [self._files[file] for file in edit.files if file in self._files]
                    self._near += any(self._now.calls - use.calls <= self._cost.window for use in uses)
                    self._last_uses |= dict.fromkeys(places, self._now)
                self._touch(edit.files)
                self._edits |= dict.fromkeys(edit.files, place)

    def _add(self, result: SeenResult) -> None:
        self._results.append(result)
        self._last_uses[result.place] = self._now

    def _add_read(self, observation: Observation, *, shows: bool) -> None:
        call, place = observation.call, observation.place
        match = match_rule(observation, self._reads[call.name], self._key)
        if match is None or not match.files:
            return  # R6: the files of this read are unknown, so the result may still be needed.
        arguments = load_object(call.arguments) or {}
        is_part = any(arguments.get(name) is not None for name in self._cost.parts)
        if shows:
            self._touch(match.files)
            self._reads_of |= {file: (*self._reads_of.get(file, ()), place) for file in match.files}
        self._add(SeenResult(observation.time, place, observation.message, call.name, match.files, shows, is_part))

    def _find_quoted(self, lines: tuple[str, ...], before: int) -> Iterator[int]:
        """Yield the places of results before `before` that contain all lines.

        The lines are sorted longest first, because long lines are rare.
        """
        if not lines:
            return
        for result in self._results:
            if result.place < before:
                texts = [part.text for part in result.message.parts if isinstance(part, Text)]
                text = texts[0] if len(texts) == 1 else "\n".join(texts)
                if all(line in text for line in lines):
                    yield result.place

    def _touch(self, files: Sequence[str | None]) -> None:
        """Update the last use of files and of the results of their reads."""
        self._files |= dict.fromkeys(files, self._now)
        for file in files:
            self._last_uses |= dict.fromkeys(self._reads_of.get(file, ()), self._now)


def never_fails(_: ToolMessage) -> bool:
    """Return False. Replaces the failure check of a rule so that failed results count like others."""
    return False


PATCH_BEGINS = "*** Begin Patch"
PATCH_FILES = ("*** Update File: ", "*** Add File: ", "*** Delete File: ", "*** Move to: ")
# Prefixes of patch lines that the file contained before the patch: removed lines and context.
OLD_LINES = ("-", " ")


class EditCall(NamedTuple):
    """The files an edit changes, and the stripped lines it expects in them, longest first."""

    files: tuple[str, ...]
    lines: tuple[str, ...]


def read_edit(call: ToolCall, quotes: Sequence[str], path_args: tuple[str, ...], project: Project) -> EditCall:
    """Read the files and expected lines of an edit call; empty if its arguments are unreadable."""
    arguments = load_object(call.arguments)
    if arguments is None:
        return EditCall((), ())
    patches = [text for text in strings_in(arguments) if PATCH_BEGINS in text]
    patch_paths = [
        normalise(path, project)
        for patch in patches
        for path in (
            line.removeprefix(begins).strip()
            for line in patch.splitlines()
            for begins in PATCH_FILES
            if line.startswith(begins)
        )
    ]
    files = (*read_paths(call, path_args, project), *patch_paths)
    texts = [
        *_find_texts(arguments, frozenset(quotes)),
        *["\n".join(line[1:] for line in patch.splitlines() if line.startswith(OLD_LINES)) for patch in patches],
    ]
    lines = {line for text in texts if PATCH_BEGINS not in text for line in lines_of(text)}
    return EditCall(tuple(dict.fromkeys(files)), tuple(sorted(lines, key=lambda line: (-len(line), line))))


def lines_of(text: str) -> list[str]:
    """Return the nonblank lines of a text, stripped."""
    return [line for line in map(str.strip, text.splitlines()) if line]


def _find_texts(value: Json, names: frozenset[str]) -> Iterator[str]:
    """Yield texts under one of these names at any depth."""
    match value:
        case dict():
            for name, item in value.items():
                if isinstance(item, str):
                    yield from (item,) if name in names else ()
                else:
                    yield from _find_texts(item, names)
        case list():
            for item in value:
                yield from _find_texts(item, names)
        case _:
            return


def strings_in(value: Json) -> Iterator[str]:
    """Yield all texts in a value at any depth."""
    match value:
        case str():
            yield value
        case dict():
            for item in value.values():
                yield from strings_in(item)
        case list():
            for item in value:
                yield from strings_in(item)
        case _:
            return
