"""A pptx from its own XML. (xberg sets letters apart that are formatted apart, and loses where links lead.)"""

from __future__ import annotations

import posixpath
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from xml.etree import ElementTree

from recto.files.parsing.archive import Archive
from recto.files.parsing.nodes import link
from recto.files.parsing.tables import table_elements, trimmed
from recto.page.document import Element

_A = "{http://schemas.openxmlformats.org/drawingml/2006/main}"
_P = "{http://schemas.openxmlformats.org/presentationml/2006/main}"
_R = "{http://schemas.openxmlformats.org/officeDocument/2006/relationships}"
# The strict form of the format has other names for the same.
_STRICT = {
    "http://purl.oclc.org/ooxml/drawingml/main": _A[1:-1],
    "http://purl.oclc.org/ooxml/presentationml/main": _P[1:-1],
    "http://purl.oclc.org/ooxml/officeDocument/relationships": _R[1:-1],
}
_FALLBACK = "{http://schemas.openxmlformats.org/markup-compatibility/2006}Fallback"
_LEVELS = tuple("012345678")
_START = "ppt/presentation.xml"
TITLES = ("title", "ctrTitle")
# Boxes of every slide that say nothing of it.
_FURNITURE = ("sldNum", "dt", "ftr", "hdr", "sldImg")
TITLE_LEVEL = 2
_INDENT = "  "


@dataclass(frozen=True, kw_only=True)
class Deck:
    """A presentation. `slides` are the names of its parts, in their order."""

    archive: Archive
    slides: tuple[str, ...]

    def elements(self, place: int) -> Iterator[Element]:
        """What stands on a slide: the title first."""
        name = self.slides[place]
        root = _part(self.archive, name)
        if root is None:
            return
        targets = _targets(self.archive, name)
        shapes = [shape for shape in _shown(root) if shape.tag == f"{_P}sp" and _role(shape) not in _FURNITURE]
        for shape in shapes:
            if _role(shape) in TITLES and (text := " ".join(_words(shape, targets).split())):
                yield Element(kind="heading", text=f"{'#' * TITLE_LEVEL} {text}", level=TITLE_LEVEL)
        for one in _shown(root):
            if one.tag == f"{_P}sp" and _role(one) not in (*TITLES, *_FURNITURE):
                yield from _paragraphs(one, targets)
            elif one.tag == f"{_A}tbl":
                rows = ([_words(cell, targets) for cell in row.iter(f"{_A}tc")] for row in one.iter(f"{_A}tr"))
                yield from table_elements(trimmed(rows))
        for name in filter(_is_diagram, targets.values()):
            drawn = _part(self.archive, name)
            yield from _paragraphs(drawn, {}) if drawn is not None else ()

    def notes(self, place: int) -> str:
        """What the speaker of a slide has noted."""
        targets = _targets(self.archive, self.slides[place])
        name = next((target for target in targets.values() if "/notesSlides/" in target), None)
        root = _part(self.archive, name) if name else None
        shapes = [] if root is None else [one for one in root.iter(f"{_P}sp") if _role(one) not in _FURNITURE]
        return "\n".join(filter(None, (_words(shape, {}).strip() for shape in shapes)))


def open_deck(data: bytes) -> Deck | None:
    """The presentation in a zip, or None where there is none."""
    archive = Archive(data)
    root = _part(archive, _START)
    if root is None:
        return None
    targets = _targets(archive, _START)
    ids = (one.get(f"{_R}id", "") for one in root.iter(f"{_P}sldId"))
    return Deck(archive=archive, slides=tuple(targets[key] for key in ids if key in targets))


def _part(archive: Archive, name: str) -> ElementTree.Element | None:
    text = archive.text(name)
    for strict, usual in _STRICT.items():
        text = text.replace(strict, usual)
    # Entities that grow and grow are declared; no program declares any here.
    if not text or "<!DOCTYPE" in text:
        return None
    try:
        return ElementTree.fromstring(text)  # noqa: S314 - it declares no entities
    except ElementTree.ParseError:
        return None


def _targets(archive: Archive, name: str) -> Mapping[str, str]:
    """Where the ids in a part lead: to other parts, or out."""
    folder, _, base = name.rpartition("/")
    root = _part(archive, f"{folder}/_rels/{base}.rels")
    return {} if root is None else {one.get("Id", ""): _target(one, folder) for one in root}


def _target(relation: ElementTree.Element, folder: str) -> str:
    target = relation.get("Target", "")
    if relation.get("TargetMode") == "External":
        return target
    return target.lstrip("/") if target.startswith("/") else posixpath.normpath(posixpath.join(folder, target))


def _is_diagram(name: str) -> bool:
    return "/diagrams/data" in name


def _shown(root: ElementTree.Element) -> Iterator[ElementTree.Element]:
    """All that is in a part, without what only older programs are to show in its place."""
    waiting = [root]
    while waiting:
        one = waiting.pop()
        if one.tag != _FALLBACK:
            yield one
            waiting += reversed(one)


def _role(shape: ElementTree.Element) -> str:
    """What a box is for, where the slide's layout says so."""
    place = shape.find(f"{_P}nvSpPr/{_P}nvPr/{_P}ph")
    return "" if place is None else place.get("type", "")


def _paragraphs(shape: ElementTree.Element, targets: Mapping[str, str]) -> Iterator[Element]:
    for one in shape.iter(f"{_A}p"):
        properties = one.find(f"{_A}pPr")
        level = _level(properties)
        if not (text := _line(one, targets).strip()):
            continue
        if level or _is_listed(properties):
            yield Element(kind="item", text=f"{_INDENT * level}- {text}", level=level + 1)
        else:
            yield Element(kind="paragraph", text=text)


def _level(properties: ElementTree.Element | None) -> int:
    told = properties.get("lvl", "") if properties is not None else ""
    return int(told) if told in _LEVELS else 0


def _is_listed(properties: ElementTree.Element | None) -> bool:
    marks = (f"{_A}buChar", f"{_A}buAutoNum", f"{_A}buBlip")
    return properties is not None and any(properties.find(mark) is not None for mark in marks)


def _words(box: ElementTree.Element, targets: Mapping[str, str]) -> str:
    return "\n".join(_line(one, targets) for one in box.iter(f"{_A}p"))


def _line(paragraph: ElementTree.Element, targets: Mapping[str, str]) -> str:
    """The words of a paragraph with their links. Neighbours that lead to one place are one link."""
    runs: list[tuple[str, str]] = []
    for run in paragraph:
        if run.tag == f"{_A}br":
            runs.append(("\n", ""))
        elif run.tag in (f"{_A}r", f"{_A}fld"):
            words = run.find(f"{_A}t")
            leads = run.find(f"{_A}rPr/{_A}hlinkClick")
            url = targets.get(leads.get(f"{_R}id", ""), "") if leads is not None else ""
            runs.append(((words.text or "") if words is not None else "", url if ":" in url else ""))
    joined: list[tuple[str, str]] = []
    for text, url in runs:
        if joined and joined[-1][1] == url:
            joined[-1] = (joined[-1][0] + text, url)
        else:
            joined.append((text, url))
    return "".join(link(text, url) for text, url in joined)
