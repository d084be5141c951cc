"""Attachments in requests, messages and calls: stored by an id, never by a url or by bytes.

A request names files by signed urls or carries their bytes; what is stored names them by `recto-attachment:ID`, which
no client can send: it is signed by nobody (P10). A stored call names them by the ids the model knows; readers who act
on it get urls in their place (F8).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
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


def drop_copies(body: Json) -> Json:
    """A request without the client's copies of what others said: they are never read (P3), and may hold our urls."""
    messages = body.get("messages") if isinstance(body, dict) else None
    if not isinstance(body, dict) or not isinstance(messages, list):
        return body
    kept = [message for message in messages if not (isinstance(message, dict) and message.get("role") in COPIES)]
    return {**body, "messages": kept} if len(kept) < len(messages) else body


def replace_files(body: Json, found: Mapping[Source, Attachment]) -> Json:
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


def attach_files(messages: Sequence[Message], found: Mapping[Source, Attachment]) -> tuple[Message, ...]:
    """The messages of a request as `from_stored` has them of what is stored of it: no copies, every file by its key."""

    def attached(part: UserPart) -> UserPart:
        one = found.get(part.source) if isinstance(part, File) else None
        return File(kind=one.kind, source=Key(key=one.id), mime_type=one.mime_type, name=one.name) if one else part

    return tuple([_with_parts(message, attached) for message in messages if message.role not in COPIES])


def read_stored_files(messages: Sequence[Message]) -> tuple[Message, ...]:
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


def encode_with_files(event: Mapping[str, Json], files: Iterable[FileRef]) -> bytes:
    """An event as it is stored: with the attachment and the name of each file its ids stand for."""
    named = {ref.id: {"key": ref.attachment, "name": ref.name} for ref in files}
    return dump({**event, FILES: named})


def sign_file_urls(body: bytes, url_of: UrlSigner) -> bytes:
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


# These take ids and find the file themselves.
EXEMPT_TOOLS = frozenset({"read_files", "dataset_search", "sandbox_fetch_user_file"})

_LINE_BREAKS = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029]+")
# A whole JSON string, and the colon behind it where it is a key.
_JSON_STRING = re.compile(r'"[^"\\]*+(?:\\.[^"\\]*+)*+"(?P<colon>\s*+:)?', re.DOTALL)


@dataclass(frozen=True, kw_only=True)
class InputFile:
    """A file under the id the model knows it by. `url` is empty where nobody can fetch it by one."""

    id: str
    name: str
    kind: FileKind
    url: str
    file: File


@dataclass(frozen=True, kw_only=True)
class FileMaps:
    """What an id stands for: `documents` for read_files, `files` of every kind, `urls` for external tools (F7)."""

    documents: Mapping[str, InputFile]
    files: Mapping[str, InputFile]
    urls: Mapping[str, str]


def input_files(message: UserMessage, *, prefix: str, urls: Mapping[str, str], max_files: int) -> tuple[InputFile, ...]:
    """The message's files with the ids `{prefix}-{i}`. `urls` has a signed url for each storage key.

    i counts what is left after cleaning, deduplication and the limit, so the same message always gives the same ids.
    """
    kept = clean_files(message)[:max_files]
    return tuple(_input_file(file, f"{prefix}-{place}", urls) for place, file in enumerate(kept))


def clean_files(message: UserMessage) -> tuple[File, ...]:
    """The files of a message that have bytes somewhere, each source once, in upload order."""
    first: dict[Source, File] = {}
    for part in message.parts:
        if isinstance(part, File) and _has_source(part):
            first.setdefault(part.source, part)
    return tuple(first.values())


def _has_source(file: File) -> bool:
    match file.source:
        case Url(url=place) | Key(key=place) | Data(base64=place) | ProviderFile(handle=place):
            return bool(place.strip())


def _input_file(file: File, file_id: str, urls: Mapping[str, str]) -> InputFile:
    url = _url_of(file.source, urls)
    return InputFile(id=file_id, name=display_name(file, url), kind=file.kind, url=url, file=file)


def _url_of(source: Source, urls: Mapping[str, str]) -> str:
    match source:
        case Url(url=url):
            # Bytes spelled as a url would put the whole file into the reminder.
            return "" if url.lstrip()[:5].lower() == "data:" else url
        case Key(key=key):
            return urls.get(key, "")
        case Data() | ProviderFile():
            return ""


def display_name(file: File, url: str = "") -> str:
    """The file's name as people wrote it, on one line: its own, else the one in its url, else its kind."""
    name = _decoded(file.name) if file.name else next(_names_in(url), "")
    return one_line(name) or file.kind


def one_line(name: str) -> str:
    """The name without line breaks and control characters, so that it cannot look like a line of ours."""
    return _LINE_BREAKS.sub(" ", name).strip()


def _names_in(url: str) -> Iterator[str]:
    """Names a url gives: `?filename=`, then the end of its path."""
    try:
        split = urlsplit(url)
    except ValueError:
        return
    yield from filter(None, parse_qs(split.query).get("filename", ()))
    if split.scheme != "data" and (last := split.path.rpartition("/")[2]):
        yield _decoded(last)


def _decoded(name: str) -> str:
    try:
        return unquote(name, errors="strict")
    except UnicodeDecodeError:
        return name


def file_prefixes(messages: Sequence[Message]) -> Mapping[int, str]:
    """The prefix of file ids for each user message, by the message's place (F4); no two are equal.

    It is the response id the message was admitted with. In imported history it is the id of the turn's first assistant
    message, else the user message's own, else its place. Give it the whole log, also what a rollback hides: a place in
    a window would change as the window slides.
    """
    prefixes: dict[int, str] = {}
    taken: set[str] = set()
    for place, reply in memoise_prefix(messages, _first_replies).ids.items():
        known = _known_prefixes(messages[place], reply, place)
        prefixes[place] = known[0] if known[0] and known[0] not in taken else _free_prefix(known, taken)
        taken.add(prefixes[place])
    return prefixes


def _free_prefix(known: tuple[str, ...], taken: Container[str]) -> str:
    return next(one for one in chain(known, (f"{known[-1]}.{n}" for n in count(1))) if one and one not in taken)


def _known_prefixes(message: Message, reply: str, place: int) -> tuple[str, ...]:
    if isinstance(message, UserMessage) and message.response_id:
        return (message.response_id,)
    return (reply, message.id, str(place))


class _Replies(NamedTuple):
    """By the place of each user message: the id of the first assistant message of its turn, or nothing."""

    seen: int
    waiting: int | None
    ids: Mapping[int, str]


def _first_replies(known: _Replies | None, messages: Sequence[Message]) -> _Replies:
    seen, waiting, before = known or _Replies(0, None, {})
    ids = dict(before)
    for place, message in enumerate(messages, start=seen):
        if message.role == "user":
            waiting = place
            ids[place] = ""
        elif waiting is not None and message.role == "assistant":
            ids[waiting] = message.id
            waiting = None
    return _Replies(seen + len(messages), waiting, ids)


def file_maps(shown: Iterable[InputFile]) -> FileMaps:
    """The maps of every file ever shown, oldest first; an id shown again counts as it was shown last."""
    known = tuple(shown)
    files = {one.id: one for one in known}
    return FileMaps(
        documents={file_id: one for file_id, one in files.items() if one.kind == "document"},
        files=files,
        urls={one.id: one.url for one in known if one.url},
    )


def arguments_for(tool_name: str, arguments_text: str, urls: Mapping[str, str]) -> str:
    """The arguments to send to an external tool: ids become urls, all else stays as the model wrote it.

    Only the strings that are ids are rewritten, so numbers too long for a float and repeated keys survive. Text that
    is no JSON stays too: checking it is the schema's business.
    """
    if tool_name in EXEMPT_TOOLS or not urls or not _is_json(arguments_text):
        return arguments_text
    return _JSON_STRING.sub(lambda found: _resolved_string(found, urls), arguments_text)


def ids_in(tool_name: str, arguments_text: str, known: Container[str]) -> tuple[str, ...]:
    """Of the known file ids, those `arguments_for` would put a url in the place of, each once."""
    if tool_name in EXEMPT_TOOLS or not _is_json(arguments_text):
        return ()
    values = [load(found[0]) for found in _JSON_STRING.finditer(arguments_text) if not found["colon"]]
    return tuple(dict.fromkeys([value for value in values if isinstance(value, str) and value in known]))


def _is_json(text: str) -> bool:
    try:
        load(text)
    except ValueError:
        return False
    return True


def _resolved_string(found: re.Match[str], urls: Mapping[str, str]) -> str:
    if found["colon"]:
        return found[0]
    value = load(found[0])
    url = urls.get(value) if isinstance(value, str) else None
    return found[0] if url is None else dump(url).decode()
