"""User messages as the model sees them (F1, F2), and tool results that cannot pose as ours (F3)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from recto.page.draft import Draft, unchanged
from recto.page.facts import Facts, Turn
from recto.page.growing import grow
from recto.page.input_files import FileMaps, InputFile, file_maps, file_prefixes, input_files
from recto.page.log import messages_of
from recto.page.manifest import Note
from recto.page.messages import (
    File,
    Message,
    Opaque,
    Text,
    ToolMessage,
    ToolPart,
    Url,
    UserMessage,
    UserPart,
    remember,
    remember_last,
)
from recto.page.prompt import language
from recto.page.reminder import FRAME_TAGS, Locale, neutralise, reminder, with_reminder

CURRENT = Note(decision="injected", rule="F1", reason="what the user has at hand in this turn")
PAST = Note(decision="injected", rule="F2", reason="files of a past turn, by their ids")
NEUTRALISED = Note(decision="repaired", rule="F3", reason="text in it that looks like ours is made harmless")


def guard(messages: Sequence[Message]) -> Draft:
    """The conversation with tool results in which our own tags mean nothing (F3)."""
    forged = grow(messages, _find_forged)
    return _replaced(messages, forged.shown, NEUTRALISED)


@dataclass(frozen=True, kw_only=True)
class _Forged:
    """Tool results that had to be changed, by place, among so many messages."""

    count: int = 0
    shown: Mapping[int, Message] = field(default_factory=dict[int, Message])


def _find_forged(known: _Forged | None, messages: Sequence[Message]) -> _Forged:
    known = known or _Forged()
    tools = [(place, one) for place, one in enumerate(messages, start=known.count) if isinstance(one, ToolMessage)]
    found = {place: harmless for place, one in tools if (harmless := remember(one, _neutralised)) is not one}
    return _Forged(count=known.count + len(messages), shown={**known.shown, **found})


def _neutralised(message: ToolMessage) -> ToolMessage:
    parts = tuple([_neutral_part(part) for part in message.parts])
    return message if parts == message.parts else replace(message, parts=parts)


def _neutral_part(part: ToolPart) -> ToolPart:
    if not isinstance(part, Text):
        return part
    text = neutralise(part.text, FRAME_TAGS)
    return part if text == part.text else replace(part, text=text)


def remind(messages: Sequence[Message], facts: Facts, shown: Mapping[str, tuple[InputFile, ...]]) -> Draft:
    """The conversation with each user message as the model sees it: the current one with all that is at hand (F1),
    past ones with their files only (F2). `shown` has the files of each user message by its id.
    """
    if facts.turn is None:
        return unchanged(messages)
    users = [place for place, message in enumerate(messages) if message.role == "user"]
    current = users[-1] if users else -1
    changed: dict[int, Message] = {}
    for place in users:
        message = messages[place]
        files = shown.get(message.id, ())
        if isinstance(message, UserMessage) and (files or place == current):
            text = _reminder(facts, files) if place == current else reminder(files=files, locale=_locale(facts))
            changed[place] = remember_last(message, _with_reminder, text, files, facts.target.sees_images)
    past = _replaced(messages, changed, PAST)
    if current not in past.notes:
        return past
    return replace(past, notes={**past.notes, current: CURRENT})


def _reminder(facts: Facts, files: Sequence[InputFile]) -> str:
    turn = facts.turn or Turn()
    return reminder(
        files=files,
        datasets=turn.datasets,
        context=turn.context,
        time=turn.admitted,
        zone=turn.zone,
        locale=_locale(facts),
    )


def _locale(facts: Facts) -> Locale:
    return "en" if language(facts.locale) == "en" else "zh"


def _with_reminder(message: UserMessage, text: str, files: tuple[InputFile, ...], sees_images: bool) -> UserMessage:
    words = "\n".join(part.text for part in message.parts if isinstance(part, Text))
    said = with_reminder(text, words)
    images = [_image(one) for one in files if one.kind == "image"] if sees_images else []
    others = [part for part in message.parts if isinstance(part, Opaque)]
    parts: tuple[UserPart, ...] = (*([Text(text=said)] if said else []), *images, *others)
    return message if parts == message.parts else replace(message, parts=parts)


def _image(one: InputFile) -> File:
    return replace(one.file, source=Url(url=one.url)) if one.url else one.file


def _replaced(messages: Sequence[Message], changed: Mapping[int, Message], note: Note) -> Draft:
    differing = {place: message for place, message in changed.items() if message is not messages[place]}
    if not differing:
        return unchanged(messages)
    shown = list(messages)
    for place, message in differing.items():
        shown[place] = message
    return Draft(messages=tuple(shown), origins=range(len(shown)), notes=dict.fromkeys(differing, note))


def files_shown(facts: Facts) -> Mapping[str, tuple[InputFile, ...]]:
    """The files of every user message of the log, by its id: also of those a rollback hides (F4)."""
    messages = messages_of(facts.log)
    with_files = [place for place, message in enumerate(messages) if message.role == "user" and _has_files(message)]
    if not with_files:
        return {}
    prefixes = file_prefixes(messages)
    last_user = max(prefixes)
    found: dict[str, tuple[InputFile, ...]] = {}
    for place in with_files:
        message = messages[place]
        prefix = (facts.turn.response_id if facts.turn and place == last_user else "") or prefixes[place]
        if isinstance(message, UserMessage):
            found[message.id] = input_files(message, prefix=prefix, urls=facts.urls, max_files=facts.max_files)
    return found


def maps_of(facts: Facts) -> FileMaps:
    """What every file id ever shown in this thread stands for (F7)."""
    return file_maps(one for files in files_shown(facts).values() for one in files)


def _has_files(message: UserMessage) -> bool:
    return any(isinstance(part, File) for part in message.parts)
