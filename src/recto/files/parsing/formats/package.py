"""Parts of an office package, and where their ids lead. Refuses what declares entities, and what is too large."""

from __future__ import annotations

import posixpath
from collections.abc import Mapping
from xml.etree import ElementTree

from recto.files.parsing.formats.archive import Archive

RELATION = "{http://schemas.openxmlformats.org/officeDocument/2006/relationships}"
# The strict form of the format has other names for the same.
_STRICT = "http://purl.oclc.org/ooxml/"
_USUAL = {
    "http://purl.oclc.org/ooxml/drawingml/": "http://schemas.openxmlformats.org/drawingml/2006/",
    "http://purl.oclc.org/ooxml/presentationml/main": "http://schemas.openxmlformats.org/presentationml/2006/main",
    "http://purl.oclc.org/ooxml/spreadsheetml/main": "http://schemas.openxmlformats.org/spreadsheetml/2006/main",
    "http://purl.oclc.org/ooxml/wordprocessingml/main": "http://schemas.openxmlformats.org/wordprocessingml/2006/main",
    "http://purl.oclc.org/ooxml/officeDocument/relationships": RELATION[1:-1],
}


def part(archive: Archive, name: str) -> ElementTree.Element | None:
    """A part as XML; nothing where there is none, or it is damaged."""
    text = archive.text(name)
    for strict, usual in _USUAL.items() if _STRICT in text else ():
        text = text.replace(strict, usual)
    # Entities that grow and grow are declared; no program declares any here.
    if not text or "<!DOCTYPE" in text:
        return None
    try:
        return ElementTree.fromstring(text)  # noqa: S314 - it declares no entities
    except ElementTree.ParseError:
        return None


def targets(archive: Archive, name: str) -> Mapping[str, str]:
    """Where the ids in a part lead: to other parts, or out."""
    folder, _, base = name.rpartition("/")
    root = part(archive, f"{folder}/_rels/{base}.rels")
    return {} if root is None else {one.get("Id", ""): _target(one, folder) for one in root}


def _target(relation: ElementTree.Element, folder: str) -> str:
    target = relation.get("Target", "")
    if relation.get("TargetMode") == "External":
        return target
    return target.lstrip("/") if target.startswith("/") else posixpath.normpath(posixpath.join(folder, target))
