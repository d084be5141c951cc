"""Whether bytes are text, in whatever encoding, and whether that is an SVG image. Refuses to say which encoding."""

from __future__ import annotations

import codecs
import re
import unicodedata
from collections.abc import Mapping
from dataclasses import dataclass

from recto.conversation.input_files import ENDINGS
from recto.conversation.messages import FileKind
from recto.errors import FileRefused
from recto.files.encoding.decode import MARKS, chinese_utf16
from recto.files.types.names import ending_of
from recto.files.types.signatures import PDF_WITHIN, RTF, SVG, Family, Signature, look

HEAD_BYTES = 2**16
UNKNOWN = "application/octet-stream"
PLAIN = "text/plain"

_OPEN_XML = "application/vnd.openxmlformats-officedocument"
_OPEN_DOCUMENT = "application/vnd.oasis.opendocument"
DOCUMENTS: Mapping[str, str] = {
    "pdf": "application/pdf",
    "doc": "application/msword",
    "docx": f"{_OPEN_XML}.wordprocessingml.document",
    "xls": "application/vnd.ms-excel",
    "xlsx": f"{_OPEN_XML}.spreadsheetml.sheet",
    "ppt": "application/vnd.ms-powerpoint",
    "pptx": f"{_OPEN_XML}.presentationml.presentation",
    "odt": f"{_OPEN_DOCUMENT}.text",
    "ods": f"{_OPEN_DOCUMENT}.spreadsheet",
    "odp": f"{_OPEN_DOCUMENT}.presentation",
    "odg": f"{_OPEN_DOCUMENT}.graphics",
    "rtf": "application/rtf",
    "epub": "application/epub+zip",
    "eml": "message/rfc822",
    "msg": "application/vnd.ms-outlook",
    "txt": PLAIN,
    "csv": "text/csv",
    "tsv": "text/tab-separated-values",
    "md": "text/markdown",
    "html": "text/html",
    "htm": "text/html",
    "json": "application/json",
    "jsonl": "application/jsonl",
    "xml": "application/xml",
    "yaml": "application/yaml",
    "yml": "application/yaml",
    "toml": "application/toml",
    "py": "text/x-python",
    "js": "text/javascript",
}
MEDIA: Mapping[str, str] = {
    "png": "image/png",
    "jpg": "image/jpeg",
    "gif": "image/gif",
    "webp": "image/webp",
    "bmp": "image/bmp",
    "svg": "image/svg+xml",
    "tiff": "image/tiff",
    "ico": "image/x-icon",
    "heic": "image/heic",
    "heif": "image/heif",
    "avif": "image/avif",
    "mp3": "audio/mpeg",
    "wav": "audio/wav",
    "m4a": "audio/mp4",
    "aac": "audio/aac",
    "flac": "audio/flac",
    "ogg": "audio/ogg",
    "wma": "audio/x-ms-wma",
    "amr": "audio/amr",
    "mp4": "video/mp4",
    "mov": "video/quicktime",
    "webm": "video/webm",
    "mkv": "video/x-matroska",
    "avi": "video/x-msvideo",
    "mpeg": "video/mpeg",
    "wmv": "video/x-ms-wmv",
    "flv": "video/x-flv",
    "3gp": "video/3gpp",
}
# Documents that are no text, and what their bytes must be.
_CONTAINERS: Mapping[str, tuple[Family, ...]] = {
    "pdf": ("pdf",),
    # With a password on it, a program of Microsoft's wraps the zip in its old container.
    **dict.fromkeys(("docx", "xlsx", "pptx"), ("zip", "ole")),
    **dict.fromkeys(("odt", "ods", "odp", "odg", "epub"), ("zip",)),
    **dict.fromkeys(("xls", "ppt", "msg"), ("ole",)),
    "doc": ("ole", "rtf"),
    "rtf": ("rtf",),
}
# Many programs write a page of HTML, or plain text, under these.
_OFTEN_TEXT = frozenset({"doc", "xls"})
# The same container without pictures.
_AS_SOUND: Mapping[str, str] = {
    "video/mp4": "audio/mp4",
    "video/webm": "audio/webm",
    "video/x-matroska": "audio/x-matroska",
    "video/x-ms-wmv": "audio/x-ms-wma",
    "video/3gpp": "audio/3gpp",
}
_AS_VIDEO: Mapping[str, str] = {"audio/mp4": "video/mp4", "audio/ogg": "video/ogg"}
_ENDING_FOR = {
    **{mime: ending for ending, mime in reversed([*DOCUMENTS.items(), *MEDIA.items()])},
    "image/jpg": "jpg",
    "audio/mp3": "mp3",
    "audio/x-wav": "wav",
    "audio/x-m4a": "m4a",
    "text/xml": "xml",
}


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
    kind: FileKind | None = next((kind for kind, endings in ENDINGS.items() if ending in endings), None)
    if kind is None:
        return _by_bytes(head, seen, declared)
    return _document(head, seen, ending) if kind == "document" else _media(head, seen, kind, ending)


def ending_for(mime_type: str | None) -> str:
    """The usual ending of a type with its dot; nothing where none is known."""
    ending = _ENDING_FOR.get(_bare(mime_type))
    return f".{ending}" if ending else ""


def _by_bytes(head: bytes, seen: Signature | None, declared: str | None) -> FileType:
    if seen:
        return FileType(kind=seen.kinds[0], mime_type=seen.mime_type)
    if is_svg(head):
        return FileType(kind="image", mime_type=SVG.mime_type)
    if not is_text(head):
        return FileType(kind="document", mime_type=UNKNOWN)
    told = _bare(declared)
    is_told = told.startswith("text/") and told in _ENDING_FOR
    return FileType(kind="document", mime_type=told if is_told else PLAIN)


def _document(head: bytes, seen: Signature | None, ending: str) -> FileType:
    families = _CONTAINERS.get(ending)
    if families is None or (ending in _OFTEN_TEXT and seen is None):
        fits = seen in (None, RTF) and is_text(head)
    elif ending == "pdf":
        fits = b"%PDF" in head[:PDF_WITHIN]
    else:
        fits = seen is not None and seen.family in families
    if not fits:
        raise _mismatch(head, seen, ending)
    return FileType(kind="document", mime_type=DOCUMENTS.get(ending, PLAIN))


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


def _bare(mime_type: str | None) -> str:
    return (mime_type or "").partition(";")[0].strip().lower()


TEXT = "txt"
# What is not here is read as plain text: code, settings, logs, and what nobody knows.
FORMATS = frozenset(
    {
        *("pdf", "doc", "docx", "xls", "xlsx", "ppt", "pptx", "odt", "ods", "odp", "odg", "rtf", "epub", "eml", "msg"),
        *("csv", "tsv", "md", "html", "json", "jsonl", "xml", TEXT),
    }
)


def format_of(mime_type: str, name: str) -> str:
    """What a file's bytes are: the stored type says so, else the name's ending (F12)."""
    known = ending_for(mime_type) or ending_for(DOCUMENTS.get(ending_of(name)))
    ending = known.removeprefix(".")
    return ending if ending in FORMATS else TEXT


# Types a browser shows without running anything in them.
SHOWN = frozenset(
    {
        *(f"image/{kind}" for kind in ("png", "jpeg", "gif", "webp", "avif", "bmp")),
        *(f"audio/{kind}" for kind in ("mpeg", "wav", "ogg", "mp4", "webm")),
        *(f"video/{kind}" for kind in ("mp4", "webm", "ogg")),
        "application/pdf",
        "text/plain",
    }
)
# Types a browser only saves. Everything else might be run by one, whatever it is called.
SAVED = re.compile(
    r"application/(vnd\.(?!.*\+xml)[a-z0-9.+-]+|msword|rtf|json|zip|epub\+zip)|text/(csv|markdown|tab-separated-values)"
    r"|image/(tiff|heic|heif)|audio/(flac|aac|midi)|video/(quicktime|x-msvideo|x-matroska)"
)


def served_as(mime_type: str) -> tuple[str, bool]:
    """The type a file is served as, and whether a browser may show it where it stands."""
    essence = mime_type.partition(";")[0].strip().lower()
    if essence in SHOWN:
        return essence, True
    return (essence if SAVED.fullmatch(essence) else UNKNOWN), False


_WIDE = ("utf-32-le", "utf-32-be", "utf-16-le", "utf-16-be")
# Controls that texts have: blanks, escapes of terminals and of Japanese encodings, the end mark of old systems.
_CONTROLS = re.compile(rb"[\x01-\x07\x10-\x19\x1c-\x1f\x7f]")
_MOST_CONTROLS = 0.01
_NO_TEXT = frozenset({"Cc", "Cn", "Co", "Cs"})
_SVG = re.compile(r"<(?:svg:)?svg[\s>/]")


def is_text(head: bytes) -> bool:
    """Whether the first bytes of a file are text: UTF-8, UTF-16 or 32 by mark or evidently, or an older encoding."""
    for mark, encoding in MARKS:
        if head.startswith(mark):
            return _decoded(head, encoding) is not None
    if any(chinese_utf16(head)):
        return True
    if b"\0" in head:
        return any(_is_evidently(head, encoding) for encoding in _WIDE)
    return _decoded(head, "utf-8") is not None or len(_CONTROLS.findall(head)) <= len(head) * _MOST_CONTROLS


def is_svg(head: bytes) -> bool:
    """Whether a text begins, after declarations and comments, with an `svg` element."""
    encoding = next((encoding for mark, encoding in MARKS if head.startswith(mark)), "utf-8")
    text = (_decoded(head, encoding) or "").removeprefix("\ufeff").lstrip()
    for opening, closing in (("<?", "?>"), ("<!--", "-->"), ("<!DOCTYPE", ">"), ("<!--", "-->")):
        while text.startswith(opening):
            text = text.partition(closing)[2].lstrip(" \t\r\n]>" if opening == "<!DOCTYPE" else None)
    return _SVG.match(text) is not None


def _decoded(head: bytes, encoding: str) -> str | None:
    """The text; a character that is cut off at the end does no harm."""
    try:
        return codecs.getincrementaldecoder(encoding)().decode(head)
    except UnicodeDecodeError:
        return None


def _is_evidently(head: bytes, encoding: str) -> bool:
    """Whether bytes with zeros in them are wide characters: all are letters and the like, and there is plain text.

    Read the wrong way round, plain characters become letters whose number ends in two zeros; those are rarer in texts.
    """
    text = _decoded(head, encoding) or ""
    if len(head) % 2 or not all(one.isspace() or unicodedata.category(one) not in _NO_TEXT for one in text):
        return False
    return 0 < sum(map(str.isascii, text)) >= sum(ord(one) & 0xFF == 0 for one in text)
