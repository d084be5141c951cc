"""Tool results that fold rules consider, found by tool call and never by content (R6)."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from operator import attrgetter
from typing import NamedTuple, TypeAlias

from recto.conversation.json import Json, load_object
from recto.conversation.memo import MemoHolder, memoise, memoise_prefix
from recto.conversation.messages import Message, Text, ToolCall, ToolMessage
from recto.page.fold.fold_settings import FoldKey
from recto.page.fold.paths import Project, normalise
from recto.page.fold.rules import FoldRule, is_error_text
from recto.page.text.tokens import tokens_of

BEFORE_ALL = datetime.min.replace(tzinfo=UTC)
NO_PARTS: Mapping[str, tuple[int, ...]] = {}
# The group of all results, for rules that do not count by file.
TOGETHER: tuple[str | None, ...] = (None,)
NO_CALL = "no tool call before it has its id"
NO_PATH = "the arguments of its call name no file"
ByFile: TypeAlias = Mapping[str | None, "Series"]


class Observation(NamedTuple):
    """A tool result and the call it answers. Sorts from old to new: by time, then by place in the log (R7).

    `files` are the files it shows, or (None,) if its rule does not count by file. `by_part` means that each file has
    its own part.
    """

    time: datetime
    place: int
    call: ToolCall
    message: ToolMessage
    files: tuple[str | None, ...] = TOGETHER
    by_part: bool = False


@dataclass(frozen=True, kw_only=True, eq=False)
class Series(MemoHolder):
    """Results that a rule counts together, of one file or all, from old to new. Adding results makes a new object."""

    results: tuple[Observation, ...] = ()


class LeftAlone(NamedTuple):
    """A result that no rule can fold, because its call is missing or names no file (R6)."""

    place: int
    message: ToolMessage
    reason: str


@dataclass(frozen=True, kw_only=True)
class Observations:
    """Successful results by rule and file, each from old to new, and results that no rule can fold.

    `newest` is the newest time in the conversation. `count`, `time` and `calls` are the state to continue with more
    messages.
    """

    by_rule: Mapping[str, ByFile] = field(default_factory=dict[str, ByFile])
    left_alone: tuple[LeftAlone, ...] = ()
    newest: datetime = BEFORE_ALL
    count: int = 0
    time: datetime = BEFORE_ALL
    calls: Mapping[str, ToolCall] = field(default_factory=dict[str, ToolCall])


def find_observations(messages: Sequence[Message], key: FoldKey) -> Observations:
    """Return every successful result in a conversation that a rule considers."""
    return memoise_prefix(messages, _observe_more, key)


def observe_once(messages: Sequence[Message], key: FoldKey) -> Observations:
    """Return the same as `find_observations` without caching, for a key that is used once."""
    return _observe_more(None, messages, key)


def match_rule(observation: Observation, rule: FoldRule, key: FoldKey) -> Observation | None:
    """Return a result with its files: those of its parts if the parts name files, else those of its call.

    A failed result has no files. Return None if the rule counts by file but the call names none.
    """
    paths = read_paths(observation.call, rule.path_args, key.settings.project) if rule.path_args else TOGETHER
    if not paths:
        return None
    if rule.failed(observation.message):
        return Observation(*observation[:4], ())
    if not rule.path_args or not _has_paths(observation.message):
        return Observation(*observation[:4], paths)
    by_file = parts_by_file(observation.message, key)
    return Observation(*observation[:4], tuple(by_file), by_part=bool(by_file))


def _has_paths(message: ToolMessage) -> bool:
    return any(isinstance(part, Text) and part.path for part in message.parts)


def parts_by_file(message: ToolMessage, key: FoldKey) -> Mapping[str, tuple[int, ...]]:
    """Return the indexes of a batch result's parts by file, without parts that report an error (R5)."""
    if not _has_paths(message):
        return NO_PARTS
    indexes: dict[str, tuple[int, ...]] = {}
    for index, part in enumerate(message.parts):
        if isinstance(part, Text) and part.path and not is_error_text(part.text):
            path = normalise(part.path, key.settings.project)
            indexes[path] = (*indexes.get(path, ()), index)
    return indexes or NO_PARTS


def read_paths(call: ToolCall, names: tuple[str, ...], project: Project) -> tuple[str, ...]:
    """Return the distinct files a read call names, in order; empty if its arguments name none (R4-R6)."""
    arguments = load_object(call.arguments)
    if arguments is None:
        return ()
    for name in names:
        value = arguments.get(name)
        paths = [path for path in ((value,) if isinstance(value, str) else _strings(value)) if path.strip()]
        if paths:
            return tuple(dict.fromkeys([normalise(path, project) for path in paths]))
    return ()


def _observe_more(previous: Observations | None, messages: Sequence[Message], key: FoldKey) -> Observations:
    previous = previous or Observations()
    calls, time = dict(previous.calls), previous.time
    new: list[Observation] = []
    left_alone = list(previous.left_alone)
    for place, message in enumerate(messages, start=previous.count):
        time = message.time or time
        if message.role == "assistant":
            for call in message.tool_calls:
                calls[call.id] = call
        elif message.role == "tool":
            call = calls.get(message.tool_call_id)
            if call is None:
                left_alone.append(LeftAlone(place, message, NO_CALL))
            elif call.name in key.tools:
                new.append(Observation(time, place, call, message))
    by_rule = dict[str, ByFile]()
    for rule in key.settings.rules:
        by_file = dict(previous.by_rule.get(rule.name, {}))
        additions = defaultdict[str | None, list[Observation]](list)
        for observation in new:
            if observation.call.name in rule.tools:
                result = match_rule(observation, rule, key)
                if result is None:
                    left_alone.append(LeftAlone(observation.place, observation.message, NO_PATH))
                for path in result.files if result else ():
                    additions[path].append(result or observation)
        for path, results in additions.items():
            earlier = by_file[path].results if path in by_file else ()
            by_file[path] = Series(results=tuple(sorted((*earlier, *results))))
        by_rule[rule.name] = by_file
    return Observations(
        by_rule=by_rule,
        left_alone=tuple(sorted(left_alone, key=attrgetter("place"))),
        newest=max([previous.newest, *[message.time for message in messages if message.time]]),
        count=previous.count + len(messages),
        time=time,
        calls=calls,
    )


def _strings(value: Json) -> Iterator[str]:
    match value:
        case str():
            yield value
        case list():
            for item in value:
                if not isinstance(item, list):
                    yield from _strings(item)
        case {"path": str(path)}:
            yield path
        case _:
            return


class FoldedMessage(NamedTuple):
    """A replaced result, and the tokens before and after."""

    message: ToolMessage
    tokens: tuple[int, int]


def fold_to_placeholder(message: ToolMessage, placeholder: str, key: FoldKey) -> FoldedMessage:
    """Return a result with its content replaced by a placeholder."""
    return memoise(message, _with_placeholder, placeholder, key)


def _with_placeholder(message: ToolMessage, placeholder: str, key: FoldKey) -> FoldedMessage:
    replacement = ToolMessage(
        id=message.id,
        seq=message.seq,
        time=message.time,
        tool_call_id=message.tool_call_id,
        tool_name=message.tool_name,
        parts=(Text(text=placeholder),),
        error=message.error,
        encrypted_value=message.encrypted_value,
    )
    return FoldedMessage(replacement, (tokens_of(message, key.counter), tokens_of(replacement, key.counter)))


def label(message: ToolMessage) -> str:
    """Return the id of a result, or the id of its call."""
    return message.id or message.tool_call_id
