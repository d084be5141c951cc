"""File ids in the calls of tools that act elsewhere (F8): stored as ids, sent as urls.

A stored event says which files its ids stand for; who sends it signs a url for each, and takes the note out.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import TypeAlias

from recto.page.attachment import FileRef
from recto.page.canonical import Json, dump, load_object
from recto.page.input_files import arguments_for, ids_in

SignedUrl: TypeAlias = Callable[[str, str], str]
# Under this name in a stored event; nobody is ever sent it.
FILES = "rectoFiles"
_MARKED = b'"rectoFiles":'
_ARGUMENTS = b'{"type":"TOOL_CALL_ARGS"'


def refs_in(tool: str, arguments: str, refs: Iterable[FileRef]) -> tuple[FileRef, ...]:
    """The files that the ids in a call's arguments stand for, as far as they are there."""
    known = {ref.id: ref for ref in refs if ref.is_there}
    return tuple([known[id] for id in ids_in(tool, arguments, known.keys())])


def with_files(event: Mapping[str, Json], files: Iterable[FileRef]) -> bytes:
    """An event as it is stored: with the attachment and the name of each file its ids stand for."""
    named = {ref.id: {"key": ref.attachment, "name": ref.name} for ref in files}
    return dump({**event, FILES: named})


def as_sent(body: bytes, url_of: SignedUrl) -> bytes:
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
