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
    """A tool result that may be folded. A read has `files`, and `shows` them, or a part of them, unless it failed."""

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

    `touched` maps the place of a result to the moment it came, was quoted, or its file was read or edited; `files` maps
    each file to its last use. `reads` are the places of reads by file, `edited` the place of its last edit. `quoting`
    counts edits that quoted an earlier result, `near` those soon after their file was touched. `last_call` is the place
    of the newest assistant message; `time`, `count` and `made` let a longer conversation continue from here.
    """

    now: Moment = Moment(0, 0)
    results: tuple[SeenResult, ...] = ()
    touched: Mapping[int, Moment] = field(default_factory=dict[int, Moment])
    edited: Mapping[str | None, int] = field(default_factory=dict[str | None, int])
    reads: Mapping[str | None, tuple[int, ...]] = field(default_factory=dict[str | None, tuple[int, ...]])
    files: Mapping[str | None, Moment] = field(default_factory=dict[str | None, Moment])
    quoting: int = 0
    near: int = 0
    last_call: int = 0
    time: datetime = BEFORE_ALL
    count: int = 0
    made: Mapping[str, CallPlace] = field(default_factory=dict[str, CallPlace])

    def idle(self, place: int, turn_calls: int) -> float:
        """Return for how many calls a result was unused. A user message counts as an average turn."""
        since = self.touched[place]
        turn = min(turn_calls, self.now.calls / self.now.users) if self.now.users else 0
        return self.now.calls - since.calls + (self.now.users - since.users) * turn


def find_activity(messages: Sequence[Message], key: FoldKey) -> Activity:
    """Return the activity of a conversation, extending the cached activity of its beginning."""
    return memoise_prefix(messages, _go_on, key)


def _go_on(known: Activity | None, messages: Sequence[Message], key: FoldKey) -> Activity:
    known = known or Activity()
    story = _Story(known, key)
    for place, message in enumerate(messages, start=known.count):
        story.take(place, message)
    return replace(story.activity(), count=known.count + len(messages))


class _Story:
    """Mutable state while messages are processed. The previous activity stays unchanged."""

    def __init__(self, known: Activity, key: FoldKey) -> None:
        self._known, self._key, self._cost = known, key, key.settings.cost or CostSettings()
        self._now, self._time, self._last_call = known.now, known.time, known.last_call
        self._results, self._made = list(known.results), dict(known.made)
        self._touched, self._files = dict(known.touched), dict(known.files)
        self._edited, self._reads_of = dict(known.edited), dict(known.reads)
        self._quoting, self._near = known.quoting, known.near
        rules = key.settings.rules
        # Recall counts failed reads too where both are folded.
        self._reads = {
            tool: replace(rule, failed=never_fails) for rule in rules if rule.path_args for tool in rule.tools
        }
        self._path_args = tuple(dict.fromkeys(name for rule in rules for name in rule.path_args))
        others = [tool for rule in rules if not rule.path_args for tool in rule.tools]
        self._others = frozenset((*others, *self._cost.edits, *self._cost.more))
        self._failed = {tool: rule.failed for rule in rules for tool in rule.tools}

    def activity(self) -> Activity:
        return Activity(
            now=self._now,
            results=tuple(self._results),
            touched=self._touched,
            edited=self._edited,
            reads=self._reads_of,
            files=self._files,
            quoting=self._quoting,
            near=self._near,
            last_call=self._last_call,
            time=self._time,
            made=self._made,
        )

    def take(self, place: int, message: Message) -> None:
        self._time = message.time or self._time
        match message.role:
            case "user":
                self._now = self._now._replace(users=self._now.users + 1)
            case "assistant":
                self._now = self._now._replace(calls=self._now.calls + 1)
                self._last_call = place
                self._made |= {call.id: CallPlace(call, place) for call in message.tool_calls}
            case "tool":
                if made := self._made.get(message.tool_call_id):
                    self._take_result(place, message, made)
            case _:
                pass

    def _take_result(self, place: int, message: ToolMessage, made: CallPlace) -> None:
        tool = made.call.name
        has_failed = self._failed.get(tool, is_failure)(message)
        if tool in self._reads:
            self._take_read(Observation(self._time, place, made.call, message), shows=not has_failed)
        elif tool in self._others:
            self._add(SeenResult(self._time, place, message, tool))
            if tool in self._cost.edits and not has_failed:
                self._take_edit(place, made)

    def _add(self, result: SeenResult) -> None:
        self._results.append(result)
        self._touched[result.place] = self._now

    def _take_read(self, seen: Observation, *, shows: bool) -> None:
        call, place = seen.call, seen.place
        found = match_rule(seen, self._reads[call.name], self._key)
        if found is None or not found.files:
            return  # R6: the files of this read are unknown, so it may still be needed.
        is_part = _asks_for_part(call, self._cost.parts)
        if shows:
            self._touch(found.files)
            self._reads_of |= {file: (*self._reads_of.get(file, ()), place) for file in found.files}
        self._add(SeenResult(seen.time, place, seen.message, call.name, found.files, shows, is_part))

    def _take_edit(self, place: int, made: CallPlace) -> None:
        edit = read_edit(made.call, self._cost.quotes, self._path_args, self._key.settings.project)
        quoted = list(self._quoted(edit.lines, made.place))
        if quoted:
            self._quoting += 1
            self._near += any(self._is_fresh(file) for file in edit.files)
            self._touched |= dict.fromkeys(quoted, self._now)
        self._touch(edit.files)
        self._edited |= dict.fromkeys(edit.files, place)

    def _quoted(self, lines: tuple[str, ...], before: int) -> Iterator[int]:
        """Yield the indexes of results that contain all lines, starting from the longest line, which is the rarest."""
        if not lines:
            return
        for result in self._results:
            if result.place < before:
                text = _text_of(result.message)
                if all(line in text for line in lines):
                    yield result.place

    def _is_fresh(self, file: str) -> bool:
        touched = self._files.get(file)
        return touched is not None and self._now.calls - touched.calls <= self._cost.window

    def _touch(self, files: Sequence[str | None]) -> None:
        """Mark files as used: earlier reads of them are still relevant."""
        self._files |= dict.fromkeys(files, self._now)
        for file in files:
            self._touched |= dict.fromkeys(self._reads_of.get(file, ()), self._now)


def never_fails(_: ToolMessage) -> bool:
    """A failure check for callers that treat failed results like others."""
    return False


def _text_of(message: ToolMessage) -> str:
    texts = [part.text for part in message.parts if isinstance(part, Text)]
    return texts[0] if len(texts) == 1 else "\n".join(texts)


def _asks_for_part(call: ToolCall, names: tuple[str, ...]) -> bool:
    arguments = load_object(call.arguments) or {}
    return any(arguments.get(name) is not None for name in names)


PATCH_BEGINS = "*** Begin Patch"
PATCH_FILES = ("*** Update File: ", "*** Add File: ", "*** Delete File: ", "*** Move to: ")
# Lines of a patch that were in the file before: removed lines and context.
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
    named = [normalise(path, project) for patch in patches for path in _patched(patch)]
    files = (*read_paths(call, path_args, project), *named)
    texts = [*_quoted(arguments, frozenset(quotes)), *["\n".join(_old_lines(patch)) for patch in patches]]
    lines = {line for text in texts if PATCH_BEGINS not in text for line in lines_of(text)}
    return EditCall(tuple(dict.fromkeys(files)), tuple(sorted(lines, key=lambda line: (-len(line), line))))


def lines_of(text: str) -> list[str]:
    """Return the nonblank lines of a text, stripped."""
    return [line for line in map(str.strip, text.splitlines()) if line]


def _quoted(value: Json, names: frozenset[str]) -> Iterator[str]:
    """Yield texts under one of these names at any depth."""
    match value:
        case dict():
            for name, item in value.items():
                if isinstance(item, str):
                    yield from (item,) if name in names else ()
                else:
                    yield from _quoted(item, names)
        case list():
            for item in value:
                yield from _quoted(item, names)
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


def _patched(patch: str) -> Iterator[str]:
    for line in patch.splitlines():
        for begins in PATCH_FILES:
            if line.startswith(begins):
                yield line.removeprefix(begins).strip()


def _old_lines(patch: str) -> Iterator[str]:
    return (line[1:] for line in patch.splitlines() if line.startswith(OLD_LINES))
