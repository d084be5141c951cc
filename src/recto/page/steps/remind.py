"""Reminders of user messages (F1, F2), file ids of the thread (F4, F7), and images for models with vision (D2)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TypeAlias

from recto.conversation.locale import language
from recto.conversation.log import messages_of, view
from recto.conversation.memo import memoise, memoise_last, memoise_prefix
from recto.conversation.message_files import FileMaps, InputFile, file_maps, file_prefixes, input_files
from recto.conversation.messages import (
    File,
    Key,
    Message,
    Opaque,
    Text,
    ToolMessage,
    ToolPart,
    Url,
    UserMessage,
    UserPart,
)
from recto.page.draft import Draft, replaced, then, unchanged
from recto.page.facts import Facts, Turn
from recto.page.manifest import Note
from recto.page.prompt.reminder import Locale, escape, files_section, reminder, with_reminder
from recto.page.steps.fit import can_show

CURRENT = Note(decision="injected", rule="F1", reason="what the user has at hand in this turn")
PAST = Note(decision="injected", rule="F2", reason="files of a past turn, by their ids")
PAST_TURN = Turn()
UNPICTURED = "pictures among them are not shown, and it says so"
SIGHT = Note(decision="injected", rule="D2", reason="pictures in a tool's result, where the model can see them")
# The last line of the files section for a model without image input (D2).
BLIND: Mapping[Locale, str] = {
    "zh": "当前模型看不到图片：以上图片只有 id、名称和地址，不要猜测其内容。",
    "en": "This model cannot see images: of those above it has the id, name and url only. Do not guess what they show.",
}
# The line for images that are deleted or have an unsupported format or size.
HIDDEN_IMAGES: Mapping[Locale, str] = {
    "zh": "以下图片无法展示给当前模型，不要猜测其内容：{ids}",
    "en": "These images cannot be shown to this model. Do not guess what they show: {ids}",
}
# Image types that every provider with image input accepts.
SEEN_TYPES = frozenset({"image/png", "image/jpeg", "image/gif", "image/webp"})


def remind(messages: Sequence[Message], facts: Facts, shown_files: Mapping[int, tuple[InputFile, ...]]) -> Draft:
    """Add the whole reminder to the current user message (F1) and the files section to past ones (F2).

    `shown_files` is the result of `files_shown` for the log of these messages.
    """
    if facts.turn is None:
        return unchanged(messages)
    with_files = memoise_prefix(messages, _find_files)
    current = with_files.last_user
    locale, sees = language(facts.locale), facts.target.sees_images
    changed: dict[int, Message] = {}
    unpictured: list[int] = []
    for place in (*with_files.users, *([current] if current not in (-1, *with_files.users[-1:]) else ())):
        message = messages[place]
        files = shown_files.get(id(message), ())
        if isinstance(message, UserMessage) and (files or place == current):
            turn = facts.turn if place == current else PAST_TURN
            pictures = tuple([_picture(one.file, facts) for one in files if one.kind == "image"]) if sees else None
            changed[place] = memoise_last(message, _reminded, turn, files, locale, pictures)
            if pictures != () and _find_hidden_images(files, pictures):
                unpictured.append(place)
    draft = replaced(messages, changed, PAST)
    notes = {**draft.notes, current: CURRENT} if current in draft.notes else draft.notes
    notes = {**notes}
    for place in unpictured:
        notes[place] = notes[place]._replace(rule="D2", reason=f"{notes[place].reason}; {UNPICTURED}")
    return then(replace(draft, notes=notes), _show_pictures(draft.messages, with_files.tools, facts))


def _picture(file: File, facts: Facts) -> File | None:
    """Return an image as url or bytes, or None if it cannot be sent."""
    if file.mime_type is not None and file.mime_type not in SEEN_TYPES:
        return None
    if not isinstance(file.source, Key):
        return file
    key = file.source.key
    if facts.pictures is not None:
        source = facts.pictures.get(key)
    else:
        source = Url(url=url) if (url := facts.urls.get(key)) else None
    return replace(file, source=source) if source else None


ShownPictures: TypeAlias = tuple[File | None, ...] | None


def _reminded(
    message: UserMessage, turn: Turn, files: tuple[InputFile, ...], locale: Locale, pictures: ShownPictures
) -> UserMessage:
    """Return the message with its reminder and images.

    `pictures` are the images among the files, in order; None for a model without image input.
    """
    datasets, context, time, zone = turn.datasets, turn.context, turn.admitted_at, turn.zone
    text = reminder(files=files, datasets=datasets, context=context, time=time, zone=zone, locale=locale)
    if hidden_ids := _find_hidden_images(files, pictures):
        ids, section = escape(", ".join(hidden_ids)), files_section(files, locale)
        notice = BLIND[locale] if pictures is None else HIDDEN_IMAGES[locale].format(ids=ids)
        text = text.replace(section, f"{section}\n{notice}", 1)
    words = "\n".join(part.text for part in message.parts if isinstance(part, Text))
    content = with_reminder(text, words)
    images = [one for one in pictures or () if one is not None]
    others = [part for part in message.parts if isinstance(part, Opaque)]
    parts: tuple[UserPart, ...] = (*([Text(text=content)] if content else []), *images, *others)
    return message if parts == message.parts else replace(message, parts=parts)


def _find_hidden_images(files: Sequence[InputFile], pictures: ShownPictures) -> Sequence[str]:
    """Return the ids of images that are not shown."""
    images = [one.id for one in files if one.kind == "image"]
    return images if pictures is None else [id for id, picture in zip(images, pictures, strict=True) if picture is None]


def _show_pictures(messages: Sequence[Message], places: Sequence[int], facts: Facts) -> Draft:
    """Show images of tool results to the model where possible. Other images stay unchanged."""
    changed: dict[int, Message] = {}
    for place in places if facts.target.sees_images else ():
        message = messages[place]
        if isinstance(message, ToolMessage):
            parts = list(message.parts)
            for at, part in enumerate(parts):
                picture = _picture(part, facts) if isinstance(part, File) and part.kind == "image" else None
                if picture and can_show(picture, message, facts.target):
                    parts[at] = picture
            changed[place] = memoise_last(message, _with_parts, tuple(parts))
    return replaced(messages, changed, SIGHT)


def _with_parts(message: ToolMessage, parts: tuple[ToolPart, ...]) -> ToolMessage:
    return message if parts == message.parts else replace(message, parts=parts)


@dataclass(frozen=True, kw_only=True)
class _WithFiles:
    """Places of user messages and tool results with files, among the first `count` messages."""

    count: int = 0
    last_user: int = -1
    users: tuple[int, ...] = ()
    tools: tuple[int, ...] = ()


def _find_files(previous: _WithFiles | None, messages: Sequence[Message]) -> _WithFiles:
    previous = previous or _WithFiles()
    pairs = list(enumerate(messages, start=previous.count))
    users = [place for place, one in pairs if isinstance(one, UserMessage) and _has_files(one)]
    tools = [place for place, one in pairs if isinstance(one, ToolMessage) and _has_files(one)]
    last = max([previous.last_user, *[place for place, one in pairs if one.role == "user"]])
    return _WithFiles(
        count=previous.count + len(messages),
        last_user=last,
        users=(*previous.users, *users),
        tools=(*previous.tools, *tools),
    )


def files_shown(facts: Facts) -> Mapping[int, tuple[InputFile, ...]]:
    """Return the files of every user message of the log, including rolled-back ones (F4).

    Keys are `id(message)`, because imported messages may have missing or duplicate ids.
    """
    log_view = view(facts.log)
    messages = log_view.messages if log_view.entries is facts.log else messages_of(facts.log)
    users = memoise_prefix(messages, _find_files).users
    if not users:
        return {}
    prefixes = _prefixes(messages, facts)
    files: dict[int, tuple[InputFile, ...]] = {}
    for place in users:
        message = messages[place]
        # A message that occurs twice in the log keeps the ids of its first occurrence.
        if isinstance(message, UserMessage) and id(message) not in files:
            # The cache key holds only the message's own urls, because comparing all urls takes longer as the thread
            # grows.
            urls = tuple([(key, facts.urls[key]) for key in memoise(message, _keys_of) if key in facts.urls])
            files[id(message)] = memoise_last(message, _files_of, prefixes[place], urls, facts.max_files)
    return files


def _keys_of(message: UserMessage) -> tuple[str, ...]:
    sources = [part.source for part in message.parts if isinstance(part, File)]
    return tuple([source.key for source in sources if isinstance(source, Key)])


def _files_of(
    message: UserMessage, prefix: str, urls: tuple[tuple[str, str], ...], max_files: int
) -> tuple[InputFile, ...]:
    return input_files(message, prefix=prefix, urls=dict(urls), max_files=max_files)


def _prefixes(messages: Sequence[Message], facts: Facts) -> Mapping[int, str]:
    """Return the prefix of each user message. The last visible message gets the turn's prefix if it has none."""
    prefixes = file_prefixes(messages)
    log_view = view(facts.log)
    current = log_view.messages[log_view.turn_start] if log_view.turn_start < len(log_view.messages) else None
    prefix = facts.turn.response_id if facts.turn else ""
    if not isinstance(current, UserMessage) or current.response_id or prefix in ("", *prefixes.values()):
        return prefixes
    place = max(place for place in prefixes if messages[place] is current)
    return {**prefixes, place: prefix}


def maps_of(facts: Facts) -> FileMaps:
    """Return the maps of every file id that the thread has shown (F7).

    A rollback can make a past message the current one, with another prefix. The maps include the ids of its past form.
    """
    newest = next((message for message in reversed(messages_of(facts.log)) if message.role == "user"), None)
    past = files_shown(replace(facts, turn=None))
    file_groups = (*(files for key, files in past.items() if key != id(newest)), *files_shown(facts).values())
    return file_maps(one for files in file_groups for one in files)


def _has_files(message: UserMessage | ToolMessage) -> bool:
    return any(isinstance(part, File) for part in message.parts)
