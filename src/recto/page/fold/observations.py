"""What a conversation read, ran and searched, and whether that worked. Found by tool call, never by looks (R6)."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from operator import attrgetter
from typing import NamedTuple

from recto.conversation.json import Json, load_object
from recto.conversation.memo import grow, remember
from recto.conversation.messages import Message, Text, ToolCall, ToolMessage
from recto.page.fold.fold_settings import AgeRule, FoldKey
from recto.page.fold.paths import Project, normalise

ERROR_PREFIX = "Error:"
EXIT_CODE_NAMES = ("exitCode", "exit_code", "exitcode", "returncode")
BEFORE_ALL = datetime.min.replace(tzinfo=UTC)
NO_PARTS: Mapping[str, tuple[int, ...]] = {}
NO_CALL = "no tool call before it has its id"
NO_PATH = "the arguments of its call name no file"


class Observation(NamedTuple):
    """A tool result and the call it answers. Sorts from old to new: by time, then by place in the log (R7).

    `files` are those a read brought; `by_part` says that it brought each as a part of its own.
    """

    time: datetime
    place: int
    call: ToolCall
    message: ToolMessage
    files: tuple[str, ...] = ()
    by_part: bool = False


class LeftAlone(NamedTuple):
    """A result that might have been folded, had its call been readable (R6)."""

    place: int
    message: ToolMessage
    reason: str


@dataclass(frozen=True, kw_only=True)
class Observations:
    """Successful reads by file, commands and searches, each from old to new; and what could not be read.

    `newest` is the newest time in the conversation. `count`, `time` and `calls` are what a longer one goes on from.
    """

    reads: Mapping[str, Sequence[Observation]] = field(default_factory=dict[str, "list[Observation]"])
    commands: Sequence[Observation] = ()
    searches: Sequence[Observation] = ()
    left_alone: tuple[LeftAlone, ...] = ()
    newest: datetime = BEFORE_ALL
    count: int = 0
    time: datetime = BEFORE_ALL
    calls: Mapping[str, ToolCall] = field(default_factory=dict[str, ToolCall])


def find_observations(messages: Sequence[Message], key: FoldKey) -> Observations:
    """Every successful read, command and search of a conversation."""
    return grow(messages, _observe_more, key)


def files_read(message: ToolMessage, call: ToolCall, key: FoldKey) -> tuple[str, ...] | None:
    """The files a read result really brought: all its call names, or those its parts speak for; none on an error.

    None when the call names no file.
    """
    paths = remember(call, _read_paths, key)
    if not paths:
        return None
    if remember(message, is_failure):
        return ()
    if any(isinstance(part, Text) and part.path for part in message.parts):
        return tuple(remember(message, parts_by_file, key))
    return paths


def parts_by_file(message: ToolMessage, key: FoldKey) -> Mapping[str, tuple[int, ...]]:
    """The parts of a batch result by the file each speaks for, without those that report an error (R5)."""
    found: dict[str, tuple[int, ...]] = {}
    for index, part in enumerate(message.parts):
        if isinstance(part, Text) and part.path and not is_error_text(part.text):
            path = normalise(part.path, key.settings.project)
            found[path] = (*found.get(path, ()), index)
    return found or NO_PARTS


def read_paths(call: ToolCall, names: tuple[str, ...], project: Project) -> tuple[str, ...]:
    """The files a read call names, each once, in order; none when its arguments do not say (R4-R6)."""
    arguments = load_object(call.arguments)
    if arguments is None:
        return ()
    for name in names:
        given = [path for path in _strings(arguments.get(name)) if path.strip()]
        if given:
            return tuple(dict.fromkeys(normalise(path, project) for path in given))
    return ()


def is_failure(message: ToolMessage) -> bool:
    """An error result (R3): its status says so, or its text begins with `Error:`.

    A part of a batch read speaks only for its own file (R5).
    """
    if message.error is not None:
        return True
    first = next((part for part in message.parts if isinstance(part, Text) and part.text.strip()), None)
    return first is not None and not first.path and is_error_text(first.text)


def is_error_text(text: str) -> bool:
    """A text that reports an error (R3)."""
    return text.lstrip().startswith(ERROR_PREFIX)


def is_failed_command(message: ToolMessage) -> bool:
    """A command that failed (R8): an error result, something on stderr, or an exit code other than 0."""
    if is_failure(message):
        return True
    text = "".join(part.text for part in message.parts if isinstance(part, Text)).strip()
    report = load_object(text) if text.startswith("{") else None
    if report is None:
        return False
    inner = report.get("metadata")
    return any(_reports_failure(level) for level in (report, inner) if isinstance(level, dict))


def _observe_more(known: Observations | None, messages: Sequence[Message], key: FoldKey) -> Observations:
    known = known or Observations()
    calls, time = dict(known.calls), known.time
    new: list[Observation] = []
    left_alone = list(known.left_alone)
    for place, message in enumerate(messages, start=known.count):
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
    reads, unnamed = _sort_in_reads(known.reads, new, key)
    return Observations(
        reads=reads,
        commands=_sort_in(known.commands, new, key.settings.terminal, is_failed_command),
        searches=_sort_in(known.searches, new, key.settings.search, is_failure),
        left_alone=tuple(sorted((*left_alone, *unnamed), key=attrgetter("place"))),
        newest=max([known.newest, *(message.time or BEFORE_ALL for message in messages)]),
        count=known.count + len(messages),
        time=time,
        calls=calls,
    )


def _sort_in(
    known: Sequence[Observation],
    new: Sequence[Observation],
    rule: AgeRule | None,
    failed: Callable[[ToolMessage], bool],
) -> Sequence[Observation]:
    mine = [seen for seen in new if rule and seen.call.name in rule.tools and not remember(seen.message, failed)]
    return sorted((*known, *mine)) if mine else known


def _sort_in_reads(
    known: Mapping[str, Sequence[Observation]], new: Sequence[Observation], key: FoldKey
) -> tuple[Mapping[str, Sequence[Observation]], list[LeftAlone]]:
    rule, reads, unnamed = key.settings.reads, dict(known), list[LeftAlone]()
    more: dict[str, list[Observation]] = {}
    for seen in new:
        if rule and seen.call.name in rule.tools:
            files = files_read(seen.message, seen.call, key)
            if files is None:
                unnamed.append(LeftAlone(seen.place, seen.message, NO_PATH))
            if not files:
                continue
            by_part = bool(remember(seen.message, parts_by_file, key))
            read = seen._replace(files=files, by_part=by_part)
            for path in files:
                more.setdefault(path, []).append(read)
    for path, found in more.items():
        reads[path] = sorted((*reads.get(path, ()), *found))
    return reads, unnamed


def _read_paths(call: ToolCall, key: FoldKey) -> tuple[str, ...]:
    rule = key.settings.reads
    return read_paths(call, rule.path_args, key.settings.project) if rule else ()


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


def _reports_failure(report: dict[str, Json]) -> bool:
    stderr = report.get("stderr")
    if isinstance(stderr, str) and stderr:
        return True
    codes = [report.get(name) for name in EXIT_CODE_NAMES]
    return any(code not in (None, 0, "0", "") for code in codes)
