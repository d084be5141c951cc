"""Members of zip files, parts of office packages, and detection of password protection."""

from __future__ import annotations

import lzma
import posixpath
import struct
import zipfile
import zlib
from collections.abc import Mapping
from io import BytesIO
from xml.etree import ElementTree

from recto.files.decode import decode

MOST_BYTES = 64 * 2**20
# Errors from reading a damaged zip.
_BROKEN = (
    *(zipfile.BadZipFile, zlib.error, lzma.LZMAError, EOFError, OSError, KeyError, ValueError, IndexError),
    *(struct.error, NotImplementedError, RuntimeError),
)
_SECTOR = 512
# The stream in which Microsoft programs put a document with a password.
_SEALED = "EncryptedPackage".encode("utf-16-le")
_WORD = b"\xec\xa5"
_WORD_LOCKED = 0x0100
# The head of a presentation with a password.
_SLIDES_LOCKED = bytes.fromhex("dfc4d1f3")


class Archive:
    """An open zip file."""

    def __init__(self, data: bytes) -> None:
        try:
            self._archive = zipfile.ZipFile(BytesIO(data))
        except _BROKEN:
            self._archive = None

    def text(self, name: str) -> str:
        """Return a text member; empty if it is missing, damaged or too large."""
        if self._archive is None:
            return ""
        try:
            with self._archive.open(name) as stream:
                data = stream.read(MOST_BYTES + 1)
        except _BROKEN:
            return ""
        return "" if len(data) > MOST_BYTES else decode(data) or ""

    def is_too_large(self, name: str) -> bool:
        """Return True if the declared size of a member is over the limit."""
        try:
            return self._archive is not None and self._archive.getinfo(name).file_size > MOST_BYTES
        except KeyError:
            return False

    def with_text(self, name: str, text: str) -> bytes | None:
        """Return a zip of all text members with one of them replaced; None if the zip is damaged or too large."""
        if self._archive is None:
            return None
        members = [one for one in self._archive.infolist() if one.filename.endswith((".xml", ".rels", "mimetype"))]
        if sum(one.file_size for one in members) > MOST_BYTES:
            return None
        out = BytesIO()
        try:
            with zipfile.ZipFile(out, "w") as changed:
                for one in members:
                    # Reads at most the declared size.
                    changed.writestr(one.filename, text if one.filename == name else self._archive.read(one))
        except _BROKEN:
            return None
        return out.getvalue()


def read_member(data: bytes, name: str) -> str:
    """Return a text member of a zip; empty if it is missing, damaged or too large."""
    return Archive(data).text(name)


def is_sealed(data: bytes) -> bool:
    """Return True if an OpenDocument file has a password."""
    return "<manifest:encryption-data" in read_member(data, "META-INF/manifest.xml")


def is_locked(data: bytes, form: str) -> bool:
    """Return True if an old Office file has a password."""
    if _SEALED in data:
        return True
    if form == "doc":
        starts = (place for place in range(0, len(data), _SECTOR) if data.startswith(_WORD, place))
        return any(int.from_bytes(data[place + 10 : place + 12], "little") & _WORD_LOCKED for place in starts)
    return form == "ppt" and _SLIDES_LOCKED in data


RELATION = "{http://schemas.openxmlformats.org/officeDocument/2006/relationships}"
# Namespaces of the strict variant, and the usual ones.
_STRICT = "http://purl.oclc.org/ooxml/"
_USUAL = {
    "http://purl.oclc.org/ooxml/drawingml/": "http://schemas.openxmlformats.org/drawingml/2006/",
    "http://purl.oclc.org/ooxml/presentationml/main": "http://schemas.openxmlformats.org/presentationml/2006/main",
    "http://purl.oclc.org/ooxml/spreadsheetml/main": "http://schemas.openxmlformats.org/spreadsheetml/2006/main",
    "http://purl.oclc.org/ooxml/wordprocessingml/main": "http://schemas.openxmlformats.org/wordprocessingml/2006/main",
    "http://purl.oclc.org/ooxml/officeDocument/relationships": RELATION[1:-1],
}


def read_xml(archive: Archive, name: str) -> ElementTree.Element | None:
    """Parse an XML member; return None if it is missing or damaged."""
    text = archive.text(name)
    for strict, usual in _USUAL.items() if _STRICT in text else ():
        text = text.replace(strict, usual)
    # No office program declares entities, which might expand without end.
    if not text or "<!DOCTYPE" in text:
        return None
    try:
        return ElementTree.fromstring(text)  # noqa: S314 - it declares no entities
    except ElementTree.ParseError:
        return None


def read_targets(archive: Archive, name: str) -> Mapping[str, str]:
    """Return the targets of the ids in a part: other parts, or URLs."""
    folder, _, base = name.rpartition("/")
    root = read_xml(archive, f"{folder}/_rels/{base}.rels")
    targets = dict[str, str]()
    for relation in root if root is not None else ():
        target = relation.get("Target", "")
        if relation.get("TargetMode") != "External":
            is_absolute = target.startswith("/")
            target = target.lstrip("/") if is_absolute else posixpath.normpath(posixpath.join(folder, target))
        targets[relation.get("Id", "")] = target
    return targets
