"""What stands in the containers of documents: members of a zip, and marks of a password. Unpacks only what is small."""

from __future__ import annotations

import lzma
import struct
import zipfile
import zlib
from io import BytesIO

from recto.files.encoding.decode import decode

MOST_BYTES = 64 * 2**20
# What reading a damaged zip may end in.
_BROKEN = (
    *(zipfile.BadZipFile, zlib.error, lzma.LZMAError, EOFError, OSError, KeyError, ValueError, IndexError),
    *(struct.error, NotImplementedError, RuntimeError),
)
_SECTOR = 512
# A stream that programs of Microsoft put a locked document in.
_SEALED = "EncryptedPackage".encode("utf-16-le")
_WORD = b"\xec\xa5"
_WORD_LOCKED = 0x0100
# The head of a presentation that is locked.
_SLIDES_LOCKED = bytes.fromhex("dfc4d1f3")


class Archive:
    """A zip that is opened once, whatever is taken from it."""

    def __init__(self, data: bytes) -> None:
        try:
            self._archive = zipfile.ZipFile(BytesIO(data))
        except _BROKEN:
            self._archive = None

    def text(self, name: str) -> str:
        """A text in it; nothing where there is none, or it is damaged or too large."""
        if self._archive is None:
            return ""
        try:
            with self._archive.open(name) as stream:
                data = stream.read(MOST_BYTES + 1)
        except _BROKEN:
            return ""
        return "" if len(data) > MOST_BYTES else decode(data) or ""

    def is_too_large(self, name: str) -> bool:
        """Whether what it says of itself is more than is taken from it."""
        try:
            return self._archive is not None and self._archive.getinfo(name).file_size > MOST_BYTES
        except KeyError:
            return False

    def with_text(self, name: str, text: str) -> bytes | None:
        """The texts in it with one of them changed, and nothing else; None where it is damaged or too large."""
        if self._archive is None:
            return None
        kept = [one for one in self._archive.infolist() if one.filename.endswith((".xml", ".rels", "mimetype"))]
        if sum(one.file_size for one in kept) > MOST_BYTES:
            return None
        out = BytesIO()
        try:
            with zipfile.ZipFile(out, "w") as changed:
                for one in kept:
                    # Once more than it says of itself is not read.
                    changed.writestr(one.filename, text if one.filename == name else self._archive.read(one))
        except _BROKEN:
            return None
        return out.getvalue()


def member(data: bytes, name: str) -> str:
    """A text in a zip; nothing where there is none, or it is damaged or too large."""
    return Archive(data).text(name)


def is_sealed(data: bytes) -> bool:
    """Whether an OpenDocument says that a password is needed."""
    return "<manifest:encryption-data" in member(data, "META-INF/manifest.xml")


def is_locked(data: bytes, form: str) -> bool:
    """Whether an old container says that a password is needed."""
    if _SEALED in data:
        return True
    if form == "doc":
        starts = (place for place in range(0, len(data), _SECTOR) if data.startswith(_WORD, place))
        return any(int.from_bytes(data[place + 10 : place + 12], "little") & _WORD_LOCKED for place in starts)
    return form == "ppt" and _SLIDES_LOCKED in data
