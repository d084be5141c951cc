"""Text documents: docx, doc, odt, rtf, epub."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from html import unescape
from itertools import chain, pairwise, zip_longest
from xml.etree import ElementTree
from xml.sax.saxutils import unescape as unescape_xml

from recto.conversation.document import Element
from recto.files.parsing.formats.archive import Archive, read_xml
from recto.files.parsing.formats.counting import Labels, format_number
from recto.files.parsing.formats.markdown import parse_markdown
from recto.files.parsing.formats.office.opendocument import odt_labels, prepare_odt
from recto.files.parsing.formats.tables import table_elements
from recto.files.parsing.formats.xberg_document import elements_of, extract, paragraph, unpaged_frames
from recto.files.parsing.ports import Frame

_ROW_END, _CELL_END = "\t\t", "\t"
_MOST_COLUMNS = 64
_ITEM_MARK = re.compile(r"\s*-\s")
# The target of a link in a docx, which xberg leaves XML-escaped.
_LEADS = re.compile(r"(?<=\]\()\S*&\w+;\S*")


def parse_letter(data: bytes, form: str) -> Iterator[Frame]:
    """Yield the frames of a text document. Raise UnreadableDocument."""
    if form == "epub":
        # The nodes of an epub do not show how its list items are nested.
        return unpaged_frames(parse_markdown(extract(data, form, "markdown").content))
    prepare = {"docx": mark_formulas, "odt": prepare_odt, "rtf": prepare_rtf}.get(form)
    data = prepare(data) if prepare else data
    result = extract(data, form)
    nodes = result.document.nodes if result.document else []
    if nodes or not result.content.strip():
        # Other formats do not contain the numbers of items.
        labels = docx_labels(data) if form == "docx" else odt_labels(data) if form == "odt" else Labels(())
        elements = elements_of(nodes, labels)
    else:
        elements = parse_markdown(result.content)
    if form == "doc":
        elements = chain.from_iterable(map(restore_table, elements))
    return unpaged_frames(insert_formulas(map(_unescape_links, elements)) if form == "docx" else elements)


def restore_table(element: Element) -> Iterator[Element]:
    """Restore a table from text with tabs at the ends of cells and rows. A single tab ends no row."""
    if _ROW_END not in element.text:
        yield element
        return
    *cells, after = _ITEM_MARK.sub("", element.text, count=1).split(_CELL_END)
    width = next((width for width in range(1, _MOST_COLUMNS) if _has_rows(cells, width)), 0)
    if not width:
        yield replace(element, text=element.text.replace(_ROW_END, "\n").replace(_CELL_END, " | "))
        return
    yield from table_elements([cells[at : at + width] for at in range(0, len(cells), width + 1)])
    yield from paragraph(after, None)


def _has_rows(cells: Sequence[str], width: int) -> bool:
    """Return True if the cells form rows of this width, each followed by an empty cell.

    A single row must not have empty cells, because it would be ambiguous.
    """
    is_one = len(cells) == width + 1 and not all(cells[:width])
    return len(cells) % (width + 1) == 0 and not any(cells[width :: width + 1]) and not is_one


def _unescape_links(element: Element) -> Element:
    if not _LEADS.search(element.text):
        return element

    def plain(text: str) -> str:
        return _LEADS.sub(lambda match: unescape_xml(match[0], {"&quot;": '"', "&apos;": "'"}), text)

    return replace(element, text=plain(element.text), rows=tuple([tuple(map(plain, row)) for row in element.rows]))


# Details of a docx that xberg loses: the places of formulas and the numbers of lists.
_CONTENT = "word/document.xml"
# Marks the place of a formula; no text contains this character.
_MARK = "\ufdd0"
_RUN = f"<w:r><w:t>{_MARK}</w:t></w:r>"
# A formula on a line of its own, or a formula within a line (group 1).
_FORMULA = re.compile(r"<m:oMathPara\b.*?</m:oMathPara>|(<m:oMath[ >].*?</m:oMath>)", re.DOTALL)
_ALONE = "$$"
_W = "{http://schemas.openxmlformats.org/wordprocessingml/2006/main}"
_LEVELS = 9
_OF_STYLE = f"{_W}pPr/{_W}numPr"
_NO_LIST = "0"
_PARAGRAPH = re.compile(r"<w:p(?=[ >])")
_OLDER = re.compile(r"<w:pPrChange\b.*?</w:pPrChange>", re.DOTALL)
# Content for old programs only, which repeats the content before it.
_FALLBACK = re.compile(r"<mc:Fallback\b.*?</mc:Fallback>", re.DOTALL)
_WORDS = re.compile(r"<w:t(?: [^>]*)?>([^<]*)<")
_STYLE, _LIST, _LEVEL = (re.compile(rf'<w:{tag} w:val="([^"]*)"') for tag in ("pStyle", "numId", "ilvl"))
_PLACE = re.compile("%([1-9])")


@dataclass(frozen=True, kw_only=True)
class Level:
    """A level of a list: its first number, its number format, and the text around the number."""

    start: int = 1
    way: str = "decimal"
    pattern: str = ""


@dataclass(frozen=True, kw_only=True)
class NumberedList:
    """A list: its counter, its levels, and the numbers at which levels restart in it (`anew`)."""

    counter: str
    levels: Mapping[int, Level]
    anew: Mapping[int, int] = field(default_factory=dict[int, int])


def mark_formulas(data: bytes) -> bytes:
    """Mark the place of each formula within a line.

    Return the document unchanged if it has no such formula or is too large.
    """
    archive = Archive(data)
    text = archive.text(_CONTENT)
    changed = _FORMULA.sub(lambda match: _RUN + match[1] if match[1] else match[0], text)
    return data if changed == text else archive.with_text(_CONTENT, changed) or data


def insert_formulas(elements: Iterable[Element]) -> Iterator[Element]:
    """Yield the elements with each formula at its mark."""
    waiting: list[Element] = []
    for element in elements:
        if element.text.startswith(_ALONE) and element.text.endswith(_ALONE):
            waiting.append(element)
            continue
        count = 0 if element.rows or element.text.strip() == _MARK else element.text.count(_MARK)
        alone = len(waiting) - min(count, len(waiting))
        yield from waiting[:alone]
        formulas = [f"${one.text.strip('$')}$" for one in waiting[alone:]]
        waiting = []
        if _MARK not in element.text:
            yield element
            continue
        first, *others = element.text.split(_MARK)
        text = first + "".join(map("".join, zip_longest(formulas, others, fillvalue="")))
        rows = tuple([tuple([cell.replace(_MARK, "") for cell in row]) for row in element.rows])
        if text.strip():
            yield replace(element, text=text, rows=rows)
    yield from waiting


def docx_labels(data: bytes) -> Labels:
    """Return the labels of the list items of a docx."""
    archive = Archive(data)
    root = read_xml(archive, "word/numbering.xml")
    if root is None:
        return Labels(())
    styles = _styles(read_xml(archive, "word/styles.xml"))
    return Labels(_labels(archive.text(_CONTENT), _lists(root), styles))


def _labels(
    text: str, lists: Mapping[str, NumberedList], styles: Mapping[str, tuple[str, int]]
) -> Iterator[tuple[str, str]]:
    counts: defaultdict[str, dict[int, int]] = defaultdict(dict)
    restarted = set[tuple[str, int]]()
    for markup in _PARAGRAPH.split(_FALLBACK.sub("", text))[1:]:
        matches = [pattern.search(_OLDER.sub("", markup)) for pattern in (_STYLE, _LIST, _LEVEL)]
        name, level = styles.get(matches[0][1], ("", 0)) if matches[0] else ("", 0)
        name = matches[1][1] if matches[1] else name
        level = _whole(matches[2][1], 0) if matches[2] else level
        if (one := lists.get(name)) is None:
            continue
        count = counts[one.counter]
        count[level] = count[level] + 1 if level in count else one.levels.get(level, Level()).start
        if level in one.anew and (name, level) not in restarted:
            restarted.add((name, level))
            count[level] = one.anew[level]
        for deeper in range(level + 1, _LEVELS):
            count.pop(deeper, None)
        yield unescape("".join(_WORDS.findall(markup))), _label(one.levels, level, count)


def _label(levels: Mapping[int, Level], level: int, count: Mapping[int, int]) -> str:
    """Return the number of an item with the text around it; empty if a part of it is unknown."""
    format = levels.get(level, Level())
    above = [levels.get(place, Level()) for place in range(level + 1)]
    numbers = [format_number(count.get(place, one.start), one.way) for place, one in enumerate(above)]
    places = [int(number) - 1 for number in _PLACE.findall(format.pattern)]
    if not places or any(place > level or not numbers[place] for place in places):
        return ""
    return _PLACE.sub(lambda match: numbers[int(match[1]) - 1], format.pattern).strip()


def _lists(root: ElementTree.Element) -> Mapping[str, NumberedList]:
    kinds = {one.get(f"{_W}abstractNumId", ""): _levels(one) for one in root.iter(f"{_W}abstractNum")}
    lists: dict[str, NumberedList] = {}
    for one in root.iter(f"{_W}num"):
        kind = _value(one, "abstractNumId")
        changed = {_whole(change.get(f"{_W}ilvl", ""), 0): change for change in one.iter(f"{_W}lvlOverride")}
        anew = {level: _value(change, "startOverride") for level, change in changed.items()}
        lists[one.get(f"{_W}numId", "")] = NumberedList(
            counter=kind,
            levels={**kinds.get(kind, {}), **_levels(one)},
            anew={level: _whole(start, 1) for level, start in anew.items() if start},
        )
    return {name: one for name, one in lists.items() if name != _NO_LIST}


def _levels(kind: ElementTree.Element) -> Mapping[int, Level]:
    return {
        _whole(one.get(f"{_W}ilvl", ""), 0): Level(
            start=_whole(_value(one, "start"), 0), way=_value(one, "numFmt"), pattern=_value(one, "lvlText")
        )
        for one in kind.iter(f"{_W}lvl")
    }


def _styles(root: ElementTree.Element | None) -> Mapping[str, tuple[str, int]]:
    """Return list and level of each style, which may inherit them from another style."""
    elements = {one.get(f"{_W}styleId", ""): one for one in root.iter(f"{_W}style")} if root is not None else {}
    styles: dict[str, tuple[str, int]] = {}
    for name, one in elements.items():
        numbering, above = one.find(_OF_STYLE), _value(one, "basedOn")
        for _ in range(_LEVELS):
            if numbering is None and above in elements:
                numbering, above = elements[above].find(_OF_STYLE), _value(elements[above], "basedOn")
        if numbering is not None:
            styles[name] = (_value(numbering, "numId"), _whole(_value(numbering, "ilvl"), 0))
    return styles


def _value(one: ElementTree.Element, tag: str) -> str:
    child = one.find(f"{_W}{tag}")
    return "" if child is None else child.get(f"{_W}val", "")


def _whole(text: str, otherwise: int) -> int:
    return int(text) if text.isdecimal() and len(text) < _LEVELS else otherwise


# xberg drops footnotes unless they are part of their paragraph.
_FOOTNOTE = re.compile(rb"\{\\(?:\*\\)?footnote(?![a-z])")
# The first half of a surrogate pair, its replacement text, and the second half.
_FIRST = (
    rb"(5529[6-9]|55[3-9]\d\d|56[0-2]\d\d|563[01]\d|-102[0-3]\d|-10240|-10[01]\d\d|-9[3-9]\d\d|-92[2-9]\d|-921[7-9])"
)
_HALVES = re.compile(rb"\\u" + _FIRST + rb" ?((?:\\uc\d ?|\\'[0-9a-fA-F]{2}|\?)*)\\u(-?\d{4,5})(?!\d)")
_SECOND = 0xDC00
_STANDING_IN = re.compile(rb"\\uc\d ?")
_TOKEN = re.compile(rb"\\(?:(trowd|row|cell|par|nestcell)(?![a-z])|cellx(-?\d{1,6}))")
# Largest distance, in twips, of cell edges that count as one.
_SAME = 30
_MOST_EDGES = 100


@dataclass(frozen=True, kw_only=True)
class _Row:
    """A row of a table: the ends of its cells in the text and on the page."""

    ends: tuple[int, ...]
    edges: tuple[int, ...]


def prepare_rtf(data: bytes) -> bytes:
    """Make xberg keep footnotes and rare characters, and align columns.

    Empty cells after a wide cell keep later cells in their column.
    """
    data = _HALVES.sub(_join_halves, _FOOTNOTE.sub(b"{ ", data))
    out, done = list[bytes](), 0
    for end, count in (one for table in _tables(data) for one in _fillers(table)):
        out += [data[done:end], b"\\cell" * count]
        done = end
    return b"".join(out) + data[done:]


def _join_halves(match: re.Match[bytes]) -> bytes:
    first, second = int(match[1]) % 0x10000, int(match[3]) % 0x10000
    if second >> 10 != _SECOND >> 10:
        return match[0]
    # Keep the `\uc` controls, which set the length of later replacement texts.
    prefix = b"".join(_STANDING_IN.findall(match[2]))
    return prefix + b"\\u%d" % (0x10000 + ((first & 0x3FF) << 10) + (second & 0x3FF))


def _tables(data: bytes) -> Iterator[Sequence[_Row]]:
    rows, ends, edges = list[_Row](), list[int](), list[int]()
    is_within = is_nested = False
    for match in _TOKEN.finditer(data):
        match match[1]:
            case None:
                edges.append(int(match[2]))
            case b"trowd":
                edges, is_within = [], True
            case b"cell":
                ends.append(match.end())
            case b"nestcell":
                is_nested = True
            case b"row":
                # Skip a row with a nested table, whose cells cannot be told from its own.
                rows += [] if is_nested else [_Row(ends=tuple(ends), edges=tuple(edges))]
                ends, is_within, is_nested = [], False, False
            case _ if not is_within:
                yield rows
                rows = []
            case _:
                pass
    yield rows


def _fillers(rows: Sequence[_Row]) -> Iterator[tuple[int, int]]:
    """Yield the ends of cells, and how many empty cells are missing after each."""
    edges = sorted({edge for row in rows for edge in row.edges})
    columns = [edge for before, edge in pairwise([-(10**9), *edges]) if edge - before > _SAME]
    for row in rows if len(columns) <= _MOST_EDGES else ():
        places = [sum(column <= edge for column in columns) for edge in row.edges]
        if len(row.ends) == len(places):
            spans = (
                (end, place - before - 1) for end, (before, place) in zip(row.ends, pairwise([0, *places]), strict=True)
            )
            yield from ((end, count) for end, count in spans if count > 0)
