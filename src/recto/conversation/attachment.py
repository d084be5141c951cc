"""Attachments in requests, messages and calls: stored by an id, never by a url or by bytes.

A request names files by signed urls or carries their bytes; what is stored names them by `recto-attachment:ID`, which
no client can send: it is signed by nobody (P10). A stored call names them by the ids the model knows; readers who act
on it get urls in their place (F8).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import TypeAlias

from recto.conversation.input_files import arguments_for, clean_files, ids_in
from recto.conversation.json import Json, dump, load_object
from recto.conversation.messages import (
    Data,
    File,
    FileKind,
    Key,
    Message,
    Source,
    ToolMessage,
    Url,
    UserMessage,
    UserPart,
)

SCHEME = "recto-attachment:"
# Whose words a client can only repeat.
COPIES = ("assistant", "reasoning", "activity")
# Under this name in a stored event; nobody is ever sent it.
FILES = "rectoFiles"
UrlSigner: TypeAlias = Callable[[str, str], str]
_MARKED = f'"{FILES}":'.encode()
_ARGUMENTS = b'{"type":"TOOL_CALL_ARGS"'


@dataclass(frozen=True, kw_only=True)
class Attachment:
    """A file somebody uploaded. `blob` names its bytes in the storage; the same bytes of a user are there once.

    `is_new`, which is not stored, says that whoever got it has made it: it was not there before.
    """

    id: str
    owner: str
    name: str
    kind: FileKind
    mime_type: str
    size: int
    sha256: str
    blob: str
    created: datetime
    is_new: bool = field(default=False, compare=False)


@dataclass(frozen=True, kw_only=True)
class FileRef:
    """A file id as the model knows it, and the attachment it stands for, for the life of the thread (F4).

    `is_there` is False once the attachment was deleted; `size` is known of those that are there.
    """

    id: str
    attachment: str
    name: str
    kind: FileKind
    mime_type: str | None = None
    size: int = field(default=0, compare=False)
    is_there: bool = True


def files_in(messages: Sequence[Message]) -> Iterator[tuple[str, File]]:
    """The files a request brings, each with the name of the field it stands in."""
    for place, message in enumerate(messages):
        for at, part in enumerate(message.parts if isinstance(message, (UserMessage, ToolMessage)) else ()):
            if isinstance(part, File):
                yield f"messages[{place}].content[{at}]", part


def without_copies(body: Json) -> Json:
    """A request without the client's copies of what others said: they are never read (P3), and may hold our urls."""
    messages = body.get("messages") if isinstance(body, dict) else None
    if not isinstance(body, dict) or not isinstance(messages, list):
        return body
    kept = [message for message in messages if not (isinstance(message, dict) and message.get("role") in COPIES)]
    return {**body, "messages": kept} if len(kept) < len(messages) else body


def with_attachments(body: Json, found: Mapping[Source, Attachment]) -> Json:
    """A request as it is stored: every file by its attachment, with the kind, name and type it has there (F12)."""
    if not found or not isinstance(body, dict):
        return body
    messages = body.get("messages")
    if not isinstance(messages, list):
        return body
    return {**body, "messages": [_stored_message(message, found) for message in messages]}


def _stored_message(message: Json, found: Mapping[Source, Attachment]) -> Json:
    content = message.get("content") if isinstance(message, dict) else None
    if not isinstance(message, dict) or not isinstance(content, list):
        return message
    return {**message, "content": [_stored_part(part, found) for part in content]}


def _stored_part(part: Json, found: Mapping[Source, Attachment]) -> Json:
    source = _source_of(part) if isinstance(part, dict) else None
    attachment = found.get(source) if source else None
    if attachment is None or not isinstance(part, dict):
        return part
    place = {"type": "url", "value": f"{SCHEME}{attachment.id}", "mimeType": attachment.mime_type}
    return {"type": attachment.kind, "source": place, "metadata": {"filename": attachment.name}}


def _source_of(part: Mapping[str, Json]) -> Source | None:
    """Where the bytes of a part are, as decoding the request says."""
    if part.get("type") == "binary":
        url = part.get("url")
        return Url(url=url) if isinstance(url, str) else None
    source = part.get("source")
    value = source.get("value") if isinstance(source, dict) else None
    if not isinstance(source, dict) or not isinstance(value, str):
        return None
    match source.get("type"):
        case "url":
            return Url(url=value)
        case "data":
            return Data(base64=value)
        case _:
            return None


def as_stored(messages: Sequence[Message], found: Mapping[Source, Attachment]) -> tuple[Message, ...]:
    """The messages of a request as `from_stored` has them of what is stored of it: no copies, every file by its key."""

    def attached(part: UserPart) -> UserPart:
        one = found.get(part.source) if isinstance(part, File) else None
        return File(kind=one.kind, source=Key(key=one.id), mime_type=one.mime_type, name=one.name) if one else part

    return tuple([_with_parts(message, attached) for message in messages if message.role not in COPIES])


def from_stored(messages: Sequence[Message]) -> tuple[Message, ...]:
    """The messages of a stored request: files by the keys of their attachments."""
    return tuple([_with_parts(message, _keyed_part) for message in messages])


def _with_parts(message: Message, change: Callable[[UserPart], UserPart]) -> Message:
    if not isinstance(message, (UserMessage, ToolMessage)) or not any(isinstance(part, File) for part in message.parts):
        return message
    return replace(message, parts=tuple([change(part) for part in message.parts]))


def _keyed_part(part: UserPart) -> UserPart:
    match part:
        case File(source=Url(url=url)) if url.startswith(SCHEME):
            return replace(part, source=Key(key=url.removeprefix(SCHEME)))
        case _:
            return part


def refs_of(message: UserMessage, response_id: str, found: Mapping[str, Attachment]) -> tuple[FileRef, ...]:
    """The ids under which the files of a message of `from_stored` are shown: `{response_id}-{i}` (F4)."""
    keys = [file.source.key if isinstance(file.source, Key) else "" for file in clean_files(message)]
    return tuple([ref_to(found[key], f"{response_id}-{place}") for place, key in enumerate(keys) if key in found])


def ref_to(one: Attachment, id: str) -> FileRef:
    """A file id that stands for an attachment."""
    return FileRef(id=id, attachment=one.id, name=one.name, kind=one.kind, mime_type=one.mime_type, size=one.size)


def file_of(ref: FileRef) -> File:
    """The file an id stands for, as a message has it."""
    return File(kind=ref.kind, source=Key(key=ref.attachment), mime_type=ref.mime_type, name=ref.name)


# Calls name files by the ids the model knows (F8)


def refs_in(tool: str, arguments: str, refs: Iterable[FileRef]) -> tuple[FileRef, ...]:
    """The files that the ids in a call's arguments stand for, as far as they are there."""
    known = {ref.id: ref for ref in refs if ref.is_there}
    return tuple([known[id] for id in ids_in(tool, arguments, known.keys())])


def with_files(event: Mapping[str, Json], files: Iterable[FileRef]) -> bytes:
    """An event as it is stored: with the attachment and the name of each file its ids stand for."""
    named = {ref.id: {"key": ref.attachment, "name": ref.name} for ref in files}
    return dump({**event, FILES: named})


def as_sent(body: bytes, url_of: UrlSigner) -> bytes:
    """A stored event as readers get it. `url_of` signs a url for an attachment, by its id and name."""
    if not body.startswith(_ARGUMENTS) or _MARKED not in body:
        return body
    event = dict(load_object(body) or {})
    # Arguments may say the same words; only the note itself is at the top of the event.
    named = event.pop(FILES, None)
    if not isinstance(named, dict):
        return body
    urls = {id: url_of(str(file["key"]), str(file["name"])) for id, file in named.items() if isinstance(file, dict)}
    return dump({**event, "delta": arguments_for("", str(event["delta"]), urls)})
