"""Files of a user message as the model knows them: an id, a name, a kind, a url; and ids back to urls (F4-F12).

Nothing is read, fetched or signed here: signed urls come in as arguments.
"""

from __future__ import annotations

import re
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain, count
from typing import NamedTuple
from urllib.parse import parse_qs, unquote, urlsplit

from recto.conversation.json import dump, load
from recto.conversation.memo import grow
from recto.conversation.messages import Data, File, FileKind, Key, Message, ProviderFile, Source, Url, UserMessage

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
    for place, reply in grow(messages, _first_replies).ids.items():
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
