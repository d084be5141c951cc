"""Files of messages: attachments in storage, the file ids that models see, and URLs for their readers (F4-F12).

Requests name files by signed URLs or contain their bytes. Stored requests name them by `recto-attachment:ID`, which no
client can send (P10). Stored calls name them by the ids that the model sees; readers get URLs instead (F8). Nothing is
fetched or signed here.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import datetime
from itertools import chain, count
from typing import NamedTuple, TypeAlias
from urllib.parse import parse_qs, unquote, urlsplit

from recto.conversation.json import Json, dump, load, load_object
from recto.conversation.memo import memoise_prefix
from recto.conversation.messages import (
    Data,
    File,
    FileKind,
    Key,
    Message,
    ProviderFile,
    Source,
    ToolMessage,
    Url,
    UserMessage,
    UserPart,
)

SCHEME = "recto-attachment:"
# Roles of messages that a client can only copy from the server.
COPIES = ("assistant", "reasoning", "activity")
# The field of a stored event with the files of a call. Clients never receive it.
FILES = "rectoFiles"
# Tools that accept file ids and find the files themselves.
EXEMPT_TOOLS = frozenset({"read_files", "dataset_search", "sandbox_fetch_user_file"})
UrlSigner: TypeAlias = Callable[[str, str], str]

_MARKED = f'"{FILES}":'.encode()
_ARGUMENTS = b'{"type":"TOOL_CALL_ARGS"'
_LINE_BREAKS = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029]+")
# A whole JSON string, and the colon after it if it is a key.
_JSON_STRING = re.compile(r'"[^"\\]*+(?:\\.[^"\\]*+)*+"(?P<colon>\s*+:)?', re.DOTALL)


@dataclass(frozen=True, kw_only=True)
class Attachment:
    """An uploaded file. `blob` names its bytes in the storage, which stores equal bytes of a user once.

    `is_new` is not stored: it tells the caller that this upload created the attachment.
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
    """A file id that the model sees, and the attachment it denotes for the life of the thread (F4).

    `is_there` is False once the attachment was deleted; then `size` is 0.
    """

    id: str
    attachment: str
    name: str
    kind: FileKind
    mime_type: str | None = None
    size: int = field(default=0, compare=False)
    is_there: bool = True


@dataclass(frozen=True, kw_only=True)
class InputFile:
    """A file with the id that the model sees. `url` is empty if the file has no URL."""

    id: str
    name: str
    kind: FileKind
    url: str
    file: File


@dataclass(frozen=True, kw_only=True)
class FileMaps:
    """File ids and their meaning: `documents` for read_files, `files` of every kind, `urls` for external tools (F7)."""

    documents: Mapping[str, InputFile]
    files: Mapping[str, InputFile]
    urls: Mapping[str, str]


# Attachments in requests


def files_in(messages: Sequence[Message]) -> Iterator[tuple[str, File]]:
    """Yield the files of a request, each with the path of its field."""
    for place, message in enumerate(messages):
        for at, part in enumerate(message.parts if isinstance(message, (UserMessage, ToolMessage)) else ()):
            if isinstance(part, File):
                yield f"messages[{place}].content[{at}]", part


def drop_copies(body: Json) -> Json:
    """Remove the client's copies of the server's messages.

    Recto never reads these copies (P3), and they may contain its URLs.
    """
    messages = body.get("messages") if isinstance(body, dict) else None
    if not isinstance(body, dict) or not isinstance(messages, list):
        return body
    own_messages = [one for one in messages if not (isinstance(one, dict) and one.get("role") in COPIES)]
    return {**body, "messages": own_messages} if len(own_messages) < len(messages) else body


def replace_files(body: Json, attachments: Mapping[Source, Attachment]) -> Json:
    """Return a request for storage: each file is replaced by its attachment, with its kind, name and type (F12)."""
    return change_content(body, lambda part: _replace_part(part, attachments)) if attachments else body


def change_content(body: Json, change: Callable[[Json], Json]) -> Json:
    """Return a request with each part of its messages changed. Anything malformed stays as it is."""
    messages = body.get("messages") if isinstance(body, dict) else None
    if not isinstance(body, dict) or not isinstance(messages, list):
        return body
    rows = list(messages)
    for place, message in enumerate(rows):
        content = message.get("content") if isinstance(message, dict) else None
        if isinstance(message, dict) and isinstance(content, list):
            rows[place] = {**message, "content": list(map(change, content))}
    return {**body, "messages": rows}


def _replace_part(part: Json, attachments: Mapping[Source, Attachment]) -> Json:
    match part:
        # Match the same sources as decoding does.
        case {"type": "binary", **binary}:
            url = binary.get("url")
            source = Url(url=url) if isinstance(url, str) else None
        case {"source": {"type": "url", "value": str(url)}}:
            source = Url(url=url)
        case {"source": {"type": "data", "value": str(data)}}:
            source = Data(base64=data)
        case _:
            source = None
    attachment = attachments.get(source) if source else None
    if attachment is None:
        return part
    place = {"type": "url", "value": f"{SCHEME}{attachment.id}", "mimeType": attachment.mime_type}
    return {"type": attachment.kind, "source": place, "metadata": {"filename": attachment.name}}


def attach_files(messages: Sequence[Message], attachments: Mapping[Source, Attachment]) -> tuple[Message, ...]:
    """Return the messages of a request, with the same files that `read_stored_files` reads from its stored form."""

    def attach(part: UserPart) -> UserPart:
        one = attachments.get(part.source) if isinstance(part, File) else None
        return File(kind=one.kind, source=Key(key=one.id), mime_type=one.mime_type, name=one.name) if one else part

    return tuple([_change_files(message, attach) for message in messages if message.role not in COPIES])


def read_stored_files(messages: Sequence[Message]) -> tuple[Message, ...]:
    """Return the messages of a stored request, in which files have the keys of their attachments."""

    def resolve(part: UserPart) -> UserPart:
        match part:
            case File(source=Url(url=url)) if url.startswith(SCHEME):
                return replace(part, source=Key(key=url.removeprefix(SCHEME)))
            case _:
                return part

    return tuple([_change_files(message, resolve) for message in messages])


def _change_files(message: Message, change: Callable[[UserPart], UserPart]) -> Message:
    if not isinstance(message, (UserMessage, ToolMessage)) or not any(isinstance(part, File) for part in message.parts):
        return message
    return replace(message, parts=tuple([change(part) for part in message.parts]))


def refs_of(message: UserMessage, response_id: str, attachments: Mapping[str, Attachment]) -> tuple[FileRef, ...]:
    """Return the file ids of a message from `read_stored_files`: `{response_id}-{i}` (F4)."""
    keys = [file.source.key if isinstance(file.source, Key) else "" for file in clean_files(message)]
    places = [(place, key) for place, key in enumerate(keys) if key in attachments]
    return tuple([ref_to(attachments[key], f"{response_id}-{place}") for place, key in places])


def ref_to(one: Attachment, id: str) -> FileRef:
    """Return a file id for an attachment."""
    return FileRef(id=id, attachment=one.id, name=one.name, kind=one.kind, mime_type=one.mime_type, size=one.size)


def file_of(ref: FileRef) -> File:
    """Return the file of an id, as a part of a message."""
    return File(kind=ref.kind, source=Key(key=ref.attachment), mime_type=ref.mime_type, name=ref.name)


# File ids that models see


def input_files(message: UserMessage, *, prefix: str, urls: Mapping[str, str], max_files: int) -> tuple[InputFile, ...]:
    """Return the files of a message with the ids `{prefix}-{i}`. `urls` maps storage keys to signed URLs.

    `i` counts files after cleaning, deduplication and the limit, so equal messages always get equal ids.
    """
    files = list[InputFile]()
    for place, file in enumerate(clean_files(message)[:max_files]):
        match file.source:
            # A data URL would put the whole file into the reminder.
            case Url(url=url) if url.lstrip()[:5].lower() != "data:":
                pass
            case Key(key=key):
                url = urls.get(key, "")
            case _:
                url = ""
        name = display_name(file, url)
        files.append(InputFile(id=f"{prefix}-{place}", name=name, kind=file.kind, url=url, file=file))
    return tuple(files)


def clean_files(message: UserMessage) -> tuple[File, ...]:
    """Return the files of a message that have a source, without duplicates, in upload order."""
    first: dict[Source, File] = {}
    for part in message.parts:
        match part:
            case File(source=Url(url=value) | Key(key=value) | Data(base64=value) | ProviderFile(handle=value)) if (
                value.strip()
            ):
                first.setdefault(part.source, part)
            case _:
                pass
    return tuple(first.values())


def display_name(file: File, url: str = "") -> str:
    """Return the name of a file on one line: its own name, else the name in its URL, else its kind."""
    name = file.name
    if not name:
        try:
            split = urlsplit(url)
        except ValueError:
            return file.kind
        # Use `?filename=`, else the end of the path
        if names := list(filter(None, parse_qs(split.query).get("filename", ()))):
            return one_line(names[0]) or file.kind
        name = split.path.rpartition("/")[2] if split.scheme != "data" else ""
    with suppress(UnicodeDecodeError):
        name = unquote(name, errors="strict")
    return one_line(name) or file.kind


def one_line(name: str) -> str:
    """Replace line breaks and control characters in a name, so that it cannot imitate a line that Recto wrote."""
    return _LINE_BREAKS.sub(" ", name).strip()


def file_prefixes(messages: Sequence[Message]) -> Mapping[int, str]:
    """Return the unique prefix of file ids for each user message, by its place (F4).

    The prefix is the message's response id. In imported history it is the id of the turn's first assistant message,
    else the user message's own id, else its place. Pass the whole log, including rolled-back messages: places in a
    history window would change as the window moves.
    """
    prefixes: dict[int, str] = {}
    used_prefixes: set[str] = set()
    for place, reply in memoise_prefix(messages, _first_replies).ids.items():
        message = messages[place]
        response_id = message.response_id if isinstance(message, UserMessage) else ""
        candidates = (response_id,) if response_id else (reply, message.id, str(place))
        if not candidates[0] or candidates[0] in used_prefixes:
            variants = (f"{candidates[-1]}.{n}" for n in count(1))
            candidates = (next(one for one in chain(candidates, variants) if one and one not in used_prefixes),)
        prefixes[place] = candidates[0]
        used_prefixes.add(candidates[0])
    return prefixes


class _Replies(NamedTuple):
    """The id of the first assistant message of each turn, by the place of the user message; empty without a reply."""

    length: int
    waiting: int | None
    ids: Mapping[int, str]


def _first_replies(replies: _Replies | None, messages: Sequence[Message]) -> _Replies:
    start, waiting, before = replies or _Replies(0, None, {})
    ids = dict(before)
    for place, message in enumerate(messages, start=start):
        if message.role == "user":
            waiting = place
            ids[place] = ""
        elif waiting is not None and message.role == "assistant":
            ids[waiting] = message.id
            waiting = None
    return _Replies(start + len(messages), waiting, ids)


def file_maps(files: Iterable[InputFile]) -> FileMaps:
    """Return the maps of all files a thread has shown, oldest first. Of equal ids the last one counts."""
    all_files = tuple(files)
    by_id = {one.id: one for one in all_files}
    return FileMaps(
        documents={file_id: one for file_id, one in by_id.items() if one.kind == "document"},
        files=by_id,
        urls={one.id: one.url for one in all_files if one.url},
    )


# File ids in calls (F8)


def arguments_for(tool_name: str, arguments_text: str, urls: Mapping[str, str]) -> str:
    """Replace file ids by URLs in the arguments for an external tool.

    Only strings that are ids change, so long numbers and repeated keys survive. Invalid JSON stays unchanged, because
    the tool's schema rejects it later.
    """
    if tool_name in EXEMPT_TOOLS or not urls or not _is_json(arguments_text):
        return arguments_text

    def resolve(match: re.Match[str]) -> str:
        value = None if match["colon"] else load(match[0])
        url = urls.get(value) if isinstance(value, str) else None
        return match[0] if url is None else dump(url).decode()

    return _JSON_STRING.sub(resolve, arguments_text)


def ids_in(tool_name: str, arguments_text: str, ids: Container[str]) -> tuple[str, ...]:
    """Return the distinct ids among `ids` that `arguments_for` would replace."""
    if tool_name in EXEMPT_TOOLS or not _is_json(arguments_text):
        return ()
    values = [load(match[0]) for match in _JSON_STRING.finditer(arguments_text) if not match["colon"]]
    return tuple(dict.fromkeys([value for value in values if isinstance(value, str) and value in ids]))


def _is_json(text: str) -> bool:
    try:
        load(text)
    except ValueError:
        return False
    return True


def refs_in(tool: str, arguments: str, refs: Iterable[FileRef]) -> tuple[FileRef, ...]:
    """Return the existing files whose ids occur in a call's arguments."""
    by_id = {ref.id: ref for ref in refs if ref.is_there}
    return tuple([by_id[id] for id in ids_in(tool, arguments, by_id.keys())])


def encode_with_files(event: Mapping[str, Json], files: Iterable[FileRef]) -> bytes:
    """Encode an event for storage, with the attachment and name of each file id in it."""
    return dump({**event, FILES: {ref.id: {"key": ref.attachment, "name": ref.name} for ref in files}})


def sign_file_urls(body: bytes, url_of: UrlSigner) -> bytes:
    """Replace file ids in a stored event by URLs for its readers. `url_of` signs one by attachment id and name."""
    if not body.startswith(_ARGUMENTS) or _MARKED not in body:
        return body
    event = dict(load_object(body) or {})
    # The marker may also occur in the arguments, so check that the event itself has the field.
    files = event.pop(FILES, None)
    if not isinstance(files, dict):
        return body
    urls = {id: url_of(str(file["key"]), str(file["name"])) for id, file in files.items() if isinstance(file, dict)}
    return dump({**event, "delta": arguments_for("", str(event["delta"]), urls)})
