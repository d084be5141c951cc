"""What a file is: its name and its first bytes together decide. Refuses what is not what its name says."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from recto.conversation.file_formats import (
    ONLY_TEXT,
    PLAIN,
    UNKNOWN,
    FileFormat,
    bare_type,
    ending_of,
    format_by_ending,
    format_by_type,
)
from recto.conversation.messages import FileKind
from recto.errors import FileRefused
from recto.files.types.signatures import PDF_WITHIN, RTF, SVG, Signature, is_svg, is_text, look

HEAD_BYTES = 2**16
# The same container without pictures.
_AS_SOUND: Mapping[str, str] = {
    "video/mp4": "audio/mp4",
    "video/webm": "audio/webm",
    "video/x-matroska": "audio/x-matroska",
    "video/x-ms-wmv": "audio/x-ms-wma",
    "video/3gpp": "audio/3gpp",
}
_AS_VIDEO: Mapping[str, str] = {"audio/mp4": "video/mp4", "audio/ogg": "video/ogg"}


@dataclass(frozen=True, kw_only=True)
class FileType:
    """A kind of file, and the type it is served as."""

    kind: FileKind
    mime_type: str


def type_of(head: bytes, name: str, declared: str | None) -> FileType:
    """What a file is. Raises FileRefused (`mismatch`) where bytes and name do not agree.

    What the sender declares only tells texts without an ending apart.
    """
    ending, seen = ending_of(name), look(head)
    if seen and seen.family == "program":
        raise FileRefused("it is a program, and those are never taken; send a document", code="mismatch")
    known = format_by_ending(ending)
    if known is None:
        return _by_bytes(head, seen, declared)
    return _document(head, seen, known, ending) if known.kind == "document" else _media(head, seen, known.kind, ending)


def _by_bytes(head: bytes, seen: Signature | None, declared: str | None) -> FileType:
    if seen:
        return FileType(kind=seen.kinds[0], mime_type=seen.mime_type)
    if is_svg(head):
        return FileType(kind="image", mime_type=SVG.mime_type)
    if not is_text(head):
        return FileType(kind="document", mime_type=UNKNOWN)
    named = bare_type(declared)
    is_known = named.startswith("text/") and format_by_type(named) is not None
    return FileType(kind="document", mime_type=named if is_known else PLAIN)


def _document(head: bytes, seen: Signature | None, known: FileFormat, ending: str) -> FileType:
    containers = known.containers
    if containers == ONLY_TEXT or ("text" in containers and seen is None):
        fits = seen in (None, RTF) and is_text(head)
    elif containers == ("pdf",):
        fits = b"%PDF" in head[:PDF_WITHIN]
    else:
        fits = seen is not None and seen.family in containers
    if not fits:
        raise _mismatch(head, seen, ending)
    return FileType(kind="document", mime_type=known.mime_type)


def _media(head: bytes, seen: Signature | None, kind: FileKind, ending: str) -> FileType:
    found = seen or (SVG if kind == "image" and is_svg(head) else None)
    if found is None or kind not in found.kinds:
        raise _mismatch(head, seen, ending)
    other = _AS_SOUND if kind == "audio" else _AS_VIDEO
    return FileType(kind=kind, mime_type=other.get(found.mime_type, found.mime_type))


def _mismatch(head: bytes, seen: Signature | None, ending: str) -> FileRefused:
    found = seen.word if seen else "text" if is_text(head) else "something unknown"
    reason = f"its name ends in .{ending}, but its bytes are {found}; send it under the name it should have"
    return FileRefused(reason, code="mismatch")
