"""File types, detected from the first bytes and the name of a file."""

from __future__ import annotations

import codecs
import re
import unicodedata
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal, TypeAlias, cast

from recto.conversation import file_formats
from recto.conversation.messages import FileKind
from recto.errors import FileRefused
from recto.files.decode import MARKS, decode_chinese_utf16

HEAD_BYTES = 2**16
# Audio types of containers that usually contain video.
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
    """A kind of file, and its media type."""

    kind: FileKind
    mime_type: str


def detect_type(head: bytes, name: str, declared_type: str | None) -> FileType:
    """Return the type of a file. Use the declared type only for text without a known extension. Raise FileRefused."""
    ending, signature = file_formats.ending_of(name), find_signature(head)
    if signature and signature.family == "program":
        raise FileRefused("it is a program, and those are never taken; send a document", code="mismatch")
    format = file_formats.format_by_ending(ending)
    if format is None:
        return _type_of_bytes(head, signature, declared_type)
    kind, mime_type, containers = format.kind, format.mime_type, format.containers
    if kind != "document":
        media = signature or (SVG if kind == "image" and is_svg(head) else None)
        fits = media is not None and kind in media.kinds
        mime_type = media.mime_type if media else mime_type
        mime_type = (_AS_SOUND if kind == "audio" else _AS_VIDEO).get(mime_type, mime_type)
    elif containers == file_formats.ONLY_TEXT or ("text" in containers and signature is None):
        fits = signature in (None, RTF) and is_text(head)
    elif containers == ("pdf",):
        fits = b"%PDF" in head[:PDF_WITHIN]
    else:
        fits = signature is not None and signature.family in containers
    if not fits:
        content = signature.word if signature else "text" if is_text(head) else "something unknown"
        reason = f"its name ends in .{ending}, but its bytes are {content}; send it under the name it should have"
        raise FileRefused(reason, code="mismatch")
    return FileType(kind=kind, mime_type=mime_type)


def _type_of_bytes(head: bytes, signature: Signature | None, declared_type: str | None) -> FileType:
    if signature:
        return FileType(kind=signature.kinds[0], mime_type=signature.mime_type)
    if is_svg(head):
        return FileType(kind="image", mime_type=SVG.mime_type)
    if not is_text(head):
        return FileType(kind="document", mime_type=file_formats.UNKNOWN)
    mime_type = file_formats.bare_type(declared_type)
    is_known = mime_type.startswith("text/") and file_formats.format_by_type(mime_type) is not None
    return FileType(kind="document", mime_type=mime_type if is_known else file_formats.PLAIN)


Family: TypeAlias = Literal["media", "pdf", "zip", "ole", "rtf", "archive", "program"]

PDF_WITHIN = 1024


@dataclass(frozen=True, kw_only=True)
class Signature:
    """A type that the first bytes show: its name for users, its media type, and the possible kinds, likeliest first."""

    word: str
    mime_type: str
    kinds: tuple[FileKind, ...] = ("document",)
    family: Family = "media"


def _media(word: str, mime_type: str, *kinds: FileKind) -> Signature:
    """Return an image, audio or video type. If several kinds are possible, the file name decides."""
    kind = cast("FileKind", mime_type.partition("/")[0])
    return Signature(word=word, mime_type=mime_type, kinds=kinds or (kind,))


def _archive(word: str, mime_type: str) -> Signature:
    return Signature(word=word, mime_type=mime_type, family="archive")


PROGRAM = Signature(word="a program", mime_type="application/octet-stream", family="program")
PDF = Signature(word="a PDF", mime_type="application/pdf", family="pdf")
ZIP = Signature(word="a zip archive", mime_type="application/zip", family="zip")
OLE = Signature(word="an old Office file", mime_type="application/x-ole-storage", family="ole")
RTF = Signature(word="rich text", mime_type="application/rtf", family="rtf")
SVG = _media("an SVG image", "image/svg+xml")
MP4 = _media("MP4", "video/mp4", "video", "audio")
OGG = _media("Ogg sound", "audio/ogg", "audio", "video")
MP3 = _media("MP3 sound", "audio/mpeg")
QUICKTIME = _media("a QuickTime video", "video/quicktime")

# Beginnings that are long enough to be unique. Shorter ones are in `_PATTERNS`.
_BEGINNINGS: tuple[tuple[bytes, Signature], ...] = (
    (b"\x89PNG\r\n\x1a\n", _media("a PNG image", "image/png")),
    (b"\xff\xd8\xff", _media("a JPEG image", "image/jpeg")),
    (b"GIF87a", _media("a GIF image", "image/gif")),
    (b"GIF89a", _media("a GIF image", "image/gif")),
    (b"II*\0", _media("a TIFF image", "image/tiff")),
    (b"MM\0*", _media("a TIFF image", "image/tiff")),
    (b"II+\0", _media("a TIFF image", "image/tiff")),
    (b"MM\0+", _media("a TIFF image", "image/tiff")),
    (b"#!AMR\n", _media("AMR sound", "audio/amr")),
    (b"#!AMR-WB\n", _media("AMR sound", "audio/amr-wb")),
    (b"MThd\0\0\0\x06", _media("MIDI sound", "audio/midi")),
    (b"OggS\0", OGG),
    (b"\x30\x26\xb2\x75\x8e\x66\xcf\x11", _media("Windows Media", "video/x-ms-wmv", "video", "audio")),
    (b"\0\0\x01\xba", _media("an MPEG video", "video/mpeg")),
    (b"\0\0\x01\xb3", _media("an MPEG video", "video/mpeg")),
    (b"FLV\x01", _media("a Flash video", "video/x-flv")),
    (b"PK\x03\x04", ZIP),
    (b"PK\x05\x06", ZIP),
    (b"PK\x07\x08", ZIP),
    (b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1", OLE),
    (b"{\\rtf", RTF),
    (b"\x1f\x8b\x08", _archive("a gzip archive", "application/gzip")),
    (b"7z\xbc\xaf\x27\x1c", _archive("a 7z archive", "application/x-7z-compressed")),
    (b"Rar!\x1a\x07", _archive("a RAR archive", "application/vnd.rar")),
    (b"\xfd7zXZ\0", _archive("an xz archive", "application/x-xz")),
    (b"\x28\xb5\x2f\xfd", _archive("a Zstandard archive", "application/zstd")),
    (b"\x7fELF", PROGRAM),
    *(
        (start, PROGRAM)
        for start in (b"\xfe\xed\xfa\xce", b"\xfe\xed\xfa\xcf", b"\xce\xfa\xed\xfe", b"\xcf\xfa\xed\xfe")
    ),
    (b"\xca\xfe\xba\xbe", PROGRAM),
)
# Types by the first four bytes of a file and its bytes 8 to 11.
_IN_RIFF = {
    (b"RIFF", b"WEBP"): _media("a WebP image", "image/webp"),
    (b"RIFF", b"WAVE"): _media("WAV sound", "audio/wav"),
    (b"RF64", b"WAVE"): _media("WAV sound", "audio/wav"),
    (b"RIFF", b"AVI "): _media("an AVI video", "video/x-msvideo"),
    (b"FORM", b"AIFF"): _media("AIFF sound", "audio/aiff"),
    (b"FORM", b"AIFC"): _media("AIFF sound", "audio/aiff"),
}
# Types by the brand at byte 8 of a file with `ftyp` at byte 4.
_BRANDS = {
    **dict.fromkeys((b"heic", b"heix", b"heim", b"heis", b"hevc", b"hevx"), _media("a HEIC image", "image/heic")),
    **dict.fromkeys((b"mif1", b"msf1"), _media("a HEIF image", "image/heif")),
    **dict.fromkeys((b"avif", b"avis"), _media("an AVIF image", "image/avif")),
    **dict.fromkeys((b"M4A ", b"M4B ", b"M4P "), _media("M4A sound", "audio/mp4", "audio", "video")),
    b"qt  ": QUICKTIME,
}
_THREE_GP = _media("3GP", "video/3gpp", "video", "audio")
# Short beginnings that a text might have by chance. The patterns check later bytes, too.
_PATTERNS: tuple[tuple[re.Pattern[bytes], Signature], ...] = tuple(
    (re.compile(pattern, re.DOTALL), signature)
    for pattern, signature in (
        (rb"\0...(?:moov|mdat|wide|pnot)", QUICKTIME),
        (rb"ID3[\x02-\x04]..[\0-\x7f]{4}", MP3),
        (rb"fLaC[\0\x80]", _media("FLAC sound", "audio/flac")),
        # A frame header: eleven one bits, version, layer. The byte order mark ff fe would be layer one, which is never
        # used.
        (rb"\xff[\xf0\xf1\xf8\xf9]", _media("AAC sound", "audio/aac")),
        (rb"\xff[\xe2\xe3\xf2\xf3\xfa\xfb][\x10-\xef]", MP3),
        (rb"BM.{4}\0{4}.{4}[\x0c\x28\x34\x38\x40\x6c\x7c]\0\0\0", _media("a BMP image", "image/bmp")),
        (rb"\0\0\x01\0[\x01-\xff]\0...\0", _media("an icon", "image/x-icon")),
        (rb"MZ[^\0]{0,62}\0", PROGRAM),
    )
)

_WIDE = ("utf-32-le", "utf-32-be", "utf-16-le", "utf-16-be")
# Control characters that texts do not contain. Texts may contain whitespace, ESC (terminals, Japanese encodings) and
# the old end-of-file mark.
_CONTROLS = re.compile(rb"[\x01-\x07\x10-\x19\x1c-\x1f\x7f]")
_MOST_CONTROLS = 0.01
_NO_TEXT = frozenset({"Cc", "Cn", "Co", "Cs"})
_SVG = re.compile(r"<(?:svg:)?svg[\s>/]")


def find_signature(head: bytes) -> Signature | None:
    """Return the type that the first bytes show; None for text and unknown formats."""
    for start, signature in _BEGINNINGS:
        if head.startswith(start):
            return signature
    for pattern, signature in _PATTERNS:
        if pattern.match(head):
            return signature
    brand = head[8:12]
    if signature := _IN_RIFF.get((head[:4], brand)):
        return signature
    if head[4:8] == b"ftyp":
        return _THREE_GP if brand.startswith((b"3gp", b"3g2")) else _BRANDS.get(brand, MP4)
    if head.startswith(b"\x1a\x45\xdf\xa3"):
        mime_type = "video/webm" if b"webm" in head[:64] else "video/x-matroska"
        return _media("Matroska", mime_type, "video", "audio")
    return PDF if b"%PDF-" in head[:PDF_WITHIN] else None


def is_text(head: bytes) -> bool:
    """Return True if the first bytes of a file are text in any encoding."""
    for mark, encoding in MARKS:
        if head.startswith(mark):
            return _decode_head(head, encoding) is not None
    if any(decode_chinese_utf16(head)):
        return True
    if b"\0" in head:
        return any(_is_evidently(head, encoding) for encoding in _WIDE)
    return _decode_head(head, "utf-8") is not None or len(_CONTROLS.findall(head)) <= len(head) * _MOST_CONTROLS


def is_svg(head: bytes) -> bool:
    """Return True if a text starts with an `svg` element after declarations and comments."""
    encoding = next((encoding for mark, encoding in MARKS if head.startswith(mark)), "utf-8")
    text = (_decode_head(head, encoding) or "").removeprefix("\ufeff").lstrip()
    for opening, closing in (("<?", "?>"), ("<!--", "-->"), ("<!DOCTYPE", ">"), ("<!--", "-->")):
        while text.startswith(opening):
            text = text.partition(closing)[2].lstrip(" \t\r\n]>" if opening == "<!DOCTYPE" else None)
    return _SVG.match(text) is not None


def _decode_head(head: bytes, encoding: str) -> str | None:
    """Decode bytes, ignoring an incomplete character at their end. Return None if they are invalid."""
    try:
        return codecs.getincrementaldecoder(encoding)().decode(head)
    except UnicodeDecodeError:
        return None


def _is_evidently(head: bytes, encoding: str) -> bool:
    """Return True if bytes with NULs are text in `encoding`: only readable characters, including ASCII.

    In the wrong byte order, ASCII characters get code points that end in 00, which are rare in texts.
    """
    text = _decode_head(head, encoding) or ""
    if len(head) % 2 or not all(one.isspace() or unicodedata.category(one) not in _NO_TEXT for one in text):
        return False
    return 0 < sum(map(str.isascii, text)) >= sum(ord(one) & 0xFF == 0 for one in text)
