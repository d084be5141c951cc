"""Presentations: each slide with its title, its content, and its speaker notes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from xml.etree import ElementTree

from recto.conversation.document import Element
from recto.files.parsing.formats import xberg_document as xberg
from recto.files.parsing.formats.archive import RELATION, Archive, read_targets, read_xml
from recto.files.parsing.formats.counting import NO_NUMBER, format_number
from recto.files.parsing.formats.office.old_office import slide_tables
from recto.files.parsing.formats.office.opendocument import drawing_pages
from recto.files.parsing.formats.pdf.columns import insert_tables
from recto.files.parsing.formats.tables import table_elements, trim_rows
from recto.files.parsing.formats.xberg_document import SPEAKER_NOTES, link, note, title
from recto.files.parsing.ports import DAMAGED, DocumentStart, FoundElements, Frame, Unit, UnreadableDocument


def parse_slides(data: bytes, form: str) -> Iterator[Frame]:
    """Yield the slides of a presentation or the pages of a drawing. Raise UnreadableDocument."""
    if form == "pptx":
        archive = Archive(data)
        if (root := read_xml(archive, _START)) is None:
            raise UnreadableDocument(DAMAGED)
        targets = read_targets(archive, _START)
        ids = (one.get(f"{RELATION}id", "") for one in root.iter(f"{_P}sldId"))
        names = [targets[key] for key in ids if key in targets]
        yield from _frames("slide", len(names), _of_deck(archive, names))
        return
    if form == "ppt":
        nodes = list(_of_nodes(data))
        yield from _frames("slide", len(nodes), (("", elements) for elements in nodes))
        return
    pages = drawing_pages(data)
    if pages is None:
        raise UnreadableDocument(DAMAGED)
    yield from _frames("page" if form == "odg" else "slide", len(pages), (("", list(page)) for page in pages))


def _frames(unit: Unit, count: int, slides: Iterator[tuple[str, Sequence[Element]]]) -> Iterator[Frame]:
    """Yield the frames of slides. A slide is the text after its number, and its elements."""
    yield DocumentStart(unit=unit, page_count=count)
    for number, (beside, elements) in enumerate(slides, 1):
        mark = Element(kind="page", text=f"[{unit} {number}{beside}]", page=number)
        yield FoundElements(elements=(mark, *(replace(element, page=number) for element in elements)), pages=number)


def _of_deck(archive: Archive, names: Sequence[str]) -> Iterator[tuple[str, Sequence[Element]]]:
    for number, name in enumerate(names, 1):
        root, targets = read_xml(archive, name), read_targets(archive, name)
        slide = Slide(archive=archive, root=ElementTree.Element(f"{_P}sld") if root is None else root, targets=targets)
        elements = list(slide.elements())
        if root is None:
            why = TOO_LARGE if archive.is_too_large(name) else DAMAGED_SLIDE
            elements.append(Element(kind="note", text=f"[slide {number} {why}]"))
        elif all(one.text.startswith(PICTURE) for one in elements) and slide.has_picture():
            elements.append(Element(kind="note", text=f"[slide {number} has no text: it is a picture]"))
        for words in slide.comments():
            elements += note("[comment] ", words, None)
        yield (" (hidden)" if slide.is_hidden() else ""), [*elements, *note(SPEAKER_NOTES, slide.notes(), None)]


def _of_nodes(data: bytes) -> Iterator[Sequence[Element]]:
    """Yield slides of a ppt from xberg. The first slide includes elements before it."""
    document = xberg.extract(data, "ppt").document
    number = 0
    marked: list[tuple[int, Element]] = []
    for node in document.nodes if document else []:
        content = xberg.content_of(node)
        if content["node_type"] == "slide":
            number += 1
            marked += [(number, element) for element in title(xberg.words_of(content, "title"))]
        elif content["node_type"] in ("raw_block", "footnote"):
            text = xberg.words_of(content, "content") or xberg.words_of(content)
            marked += [(number, element) for element in note(SPEAKER_NOTES, text, None)]
        else:
            marked += [(number, element) for element in xberg.elements_of([node])]
    by_slide = {
        key: [element for _, element in group] for key, group in groupby(marked, key=lambda one: max(1, one[0]))
    }
    tables = list(slide_tables(data))
    for place in range(1, number + 1):
        elements = by_slide.get(place, [])
        texts = {one.text for one in elements}
        own = [rows for rows in tables if texts.issuperset(filter(None, rows[0]))]
        yield insert_tables(elements, own, place)


_A = "{http://schemas.openxmlformats.org/drawingml/2006/main}"
_CHART = "{http://schemas.openxmlformats.org/drawingml/2006/chart}"
_LONGEST = 9
_P = "{http://schemas.openxmlformats.org/presentationml/2006/main}"
_FALLBACK = "{http://schemas.openxmlformats.org/markup-compatibility/2006}Fallback"
_LEVELS = tuple("012345678")
_START = "ppt/presentation.xml"
TITLES = ("title", "ctrTitle")
# Boxes that repeat on every slide.
_FURNITURE = ("sldNum", "dt", "ftr", "hdr", "sldImg")
PICTURE = "[image: "
TOO_LARGE, DAMAGED_SLIDE = "is too large to be read", "is damaged and cannot be read"
# Number formats by the first letters of their type.
_WAYS = {
    "arabic": "decimal",
    "alphaLc": "lowerLetter",
    "alphaUc": "upperLetter",
    "romanLc": "lowerRoman",
    "romanUc": "upperRoman",
    "circleNum": "decimalEnclosedCircle",
    "ea1": "chineseCounting",
}
_INDENT = "  "


@dataclass(frozen=True, kw_only=True)
class Slide:
    """A slide as XML; an empty one if it cannot be read. `targets` maps its ids to other parts and URLs."""

    archive: Archive
    root: ElementTree.Element
    targets: Mapping[str, str]

    def elements(self) -> Iterator[Element]:
        """Yield the content of the slide, its title first."""
        shapes = [one for one in _visible_elements(self.root) if one.tag == f"{_P}sp" and _role(one) in TITLES]
        for shape in shapes:
            yield from title(_words(shape, self.targets))
        for one in _visible_elements(self.root):
            yield from self._shape(one)
        for diagram in self._parts("/diagrams/data"):
            yield from _paragraphs(diagram, {})

    def is_hidden(self) -> bool:
        return self.root.get("show", "1") in ("0", "false")

    def has_picture(self) -> bool:
        return any(one.tag == f"{_P}pic" for one in _visible_elements(self.root))

    def comments(self) -> Iterator[str]:
        """Yield the comments on the slide."""
        for root in self._parts("/comments/"):
            # Old comments contain plain text, new ones paragraphs.
            yield from ("".join(one.itertext()) for one in root.iter(f"{_P}text"))
            yield from (_words(one, {}) for one in root.iter() if one.tag.endswith("}txBody"))

    def notes(self) -> str:
        """Return the speaker notes."""
        shapes = [one for root in self._parts("/notesSlides/") for one in root.iter(f"{_P}sp")]
        texts = (_words(shape, {}).strip() for shape in shapes if _role(shape) not in _FURNITURE)
        return "\n".join(filter(None, texts))

    def _parts(self, folder: str) -> Iterator[ElementTree.Element]:
        for name in self.targets.values():
            if folder in name and (root := read_xml(self.archive, name)) is not None:
                yield root

    def _shape(self, one: ElementTree.Element) -> Iterator[Element]:
        if one.tag == f"{_P}sp" and _role(one) not in (*TITLES, *_FURNITURE):
            yield from _paragraphs(one, self.targets)
        elif one.tag == f"{_A}tbl":
            rows = ([_words(cell, self.targets) for cell in row.iter(f"{_A}tc")] for row in one.iter(f"{_A}tr"))
            yield from table_elements(trim_rows(rows))
        elif one.tag == f"{_P}pic" and (properties := one.find(f"{_P}nvPicPr/{_P}cNvPr")) is not None:
            if words := " ".join(properties.get("descr", "").split()):
                yield Element(kind="paragraph", text=f"{PICTURE}{words}]")
        elif one.tag == f"{_CHART}chart":
            chart = read_xml(self.archive, self.targets.get(one.get(f"{RELATION}id", ""), ""))
            yield from _chart(chart) if chart is not None else ()


def _chart(root: ElementTree.Element) -> Iterator[Element]:
    """Yield the title of a chart, then a table with a column for each series."""
    name = root.find(f"{_CHART}chart/{_CHART}title")
    words = " ".join("".join(one.text or "" for one in name.iter(f"{_A}t")).split()) if name is not None else ""
    yield Element(kind="paragraph", text=f"[chart: {words}]" if words else "[chart]")
    series = list(root.iter(f"{_CHART}ser"))
    names = ["".join(_points(one, "tx").values()) for one in series]
    categories: dict[int, str] = {}
    for one in series:
        categories = {**_points(one, "cat"), **_points(one, "xVal"), **categories}
    values = [{**_points(one, "val"), **_points(one, "yVal")} for one in series]
    places = sorted({*categories, *(place for one in values for place in one)})
    rows = [[categories.get(place, ""), *(one.get(place, "") for one in values)] for place in places]
    yield from table_elements(trim_rows([["", *names], *rows]) if rows else [])


def _points(series: ElementTree.Element, part: str) -> Mapping[int, str]:
    """Return the stored values of a series by index; the innermost ones if they have several levels."""
    points: dict[int, str] = {}
    values = series.find(f"{_CHART}{part}")
    for one in values.iter(f"{_CHART}pt") if values is not None else ():
        place, value = one.get("idx", ""), one.find(f"{_CHART}v")
        if place.isdecimal() and len(place) < _LONGEST and value is not None:
            points.setdefault(int(place), (value.text or "").strip())
    return points


def _visible_elements(root: ElementTree.Element) -> Iterator[ElementTree.Element]:
    """Yield all elements of a part, without fallbacks for old programs."""
    waiting = [root]
    while waiting:
        one = waiting.pop()
        if one.tag != _FALLBACK:
            yield one
            waiting += reversed(one)


def _role(shape: ElementTree.Element) -> str:
    """Return the role of a box in the layout of its slide."""
    place = shape.find(f"{_P}nvSpPr/{_P}nvPr/{_P}ph")
    return "" if place is None else place.get("type", "")


def _paragraphs(shape: ElementTree.Element, targets: Mapping[str, str]) -> Iterator[Element]:
    counts: dict[int, int] = {}
    for one in shape.iter(f"{_A}p"):
        if (properties := one.find(f"{_A}pPr")) is None:
            properties = ElementTree.Element(f"{_A}pPr")
        level = int(lvl) if (lvl := properties.get("lvl", "")) in _LEVELS else 0
        if not (text := _line(one, targets).strip()):
            continue
        counts = {place: count for place, count in counts.items() if place <= level}
        numbering = properties.find(f"{_A}buAutoNum")
        if numbering is not None:
            first = numbering.get("startAt", "")
            start = int(first) if first.isdecimal() and len(first) <= len(_LEVELS) else 1
            counts[level] = counts.get(level, start - 1) + 1
            mark = _list_mark(numbering, counts[level])
        else:
            counts.pop(level, None)
            has_mark = any(properties.find(f"{_A}{tag}") is not None for tag in ("buChar", "buBlip"))
            mark = "-" if level or has_mark else ""
        if mark:
            yield Element(kind="item", text=f"{_INDENT * level}{mark} {text}", level=level + 1)
        else:
            yield Element(kind="paragraph", text=text)


def _list_mark(numbering: ElementTree.Element, number: int) -> str:
    """Return the mark before an item in its number format."""
    kind = numbering.get("type", "")
    way = next((way for begin, way in _WAYS.items() if kind.startswith(begin)), "")
    words = format_number(number, way)
    if not words:
        return NO_NUMBER
    if kind.endswith("ParenBoth"):
        return f"({words})"
    return words + (")" if kind.endswith("ParenR") else "" if kind.endswith("Plain") else ".")


def _words(box: ElementTree.Element, targets: Mapping[str, str]) -> str:
    return "\n".join(_line(one, targets) for one in box.iter(f"{_A}p"))


def _line(paragraph: ElementTree.Element, targets: Mapping[str, str]) -> str:
    """Return the text of a paragraph with its links. Adjacent links to one target are one link."""
    runs: list[tuple[str, str]] = []
    for run in paragraph:
        if run.tag == f"{_A}br":
            runs.append(("\n", ""))
        elif run.tag in (f"{_A}r", f"{_A}fld"):
            words = run.find(f"{_A}t")
            leads = run.find(f"{_A}rPr/{_A}hlinkClick")
            url = targets.get(leads.get(f"{RELATION}id", ""), "") if leads is not None else ""
            runs.append(((words.text or "") if words is not None else "", url if ":" in url else ""))
    links: list[tuple[str, str]] = []
    for text, url in runs:
        if links and links[-1][1] == url:
            links[-1] = (links[-1][0] + text, url)
        else:
            links.append((text, url))
    return "".join(link(text, url) for text, url in links)
