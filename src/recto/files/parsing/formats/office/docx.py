"""Details of a docx that xberg loses: the places of formulas and the numbers of lists."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from html import unescape
from xml.etree import ElementTree

from recto.conversation.document import Element
from recto.files.parsing.formats.archive import Archive, read_xml
from recto.files.parsing.formats.counting import Labels, format_number

_CONTENT = "word/document.xml"
# Marks the place of a formula; no text contains this character.
_MARK = "\ufdd0"
_RUN = f"<w:r><w:t>{_MARK}</w:t></w:r>"
# Formulas on lines of their own, and others.
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
    """A list: its counter, its levels, and the levels that restart with it."""

    counter: str
    levels: Mapping[int, Level]
    anew: Mapping[int, int] = field(default_factory=dict[int, int])


def ready(data: bytes) -> bytes:
    """Mark the place of each formula within a line. Return the document unchanged if it has none or is too large."""
    archive = Archive(data)
    text = archive.text(_CONTENT)
    changed = _FORMULA.sub(lambda match: _RUN + match[1] if match[1] else match[0], text)
    return data if changed == text else archive.with_text(_CONTENT, changed) or data


def with_formulas(elements: Iterable[Element]) -> Iterator[Element]:
    """Yield the elements with each formula at its mark."""
    waiting: list[Element] = []
    for element in elements:
        if element.text.startswith(_ALONE) and element.text.endswith(_ALONE):
            waiting.append(element)
            continue
        count = 0 if element.rows or element.text.strip() == _MARK else element.text.count(_MARK)
        alone = len(waiting) - min(count, len(waiting))
        yield from waiting[:alone]
        yield from _with(element, [f"${one.text.strip('$')}$" for one in waiting[alone:]])
        waiting = []
    yield from waiting


def docx_labels(data: bytes) -> Labels:
    """Return the labels of the list items of a docx."""
    archive = Archive(data)
    root = read_xml(archive, "word/numbering.xml")
    if root is None:
        return Labels(())
    styles = _styles(read_xml(archive, "word/styles.xml"))
    return Labels(_labels(archive.text(_CONTENT), _lists(root), styles))


def _with(element: Element, formulas: list[str]) -> Iterator[Element]:
    if _MARK not in element.text:
        yield element
        return
    first, *others = element.text.split(_MARK)
    texts = [*formulas, *[""] * (len(others) - len(formulas))]
    text = first + "".join(formula + after for formula, after in zip(texts, others, strict=True))
    rows = tuple([tuple([cell.replace(_MARK, "") for cell in row]) for row in element.rows])
    if text.strip():
        yield replace(element, text=text, rows=rows)


def _labels(
    text: str, lists: Mapping[str, NumberedList], styles: Mapping[str, tuple[str, int]]
) -> Iterator[tuple[str, str]]:
    counts: defaultdict[str, dict[int, int]] = defaultdict(dict)
    restarted = set[tuple[str, int]]()
    for paragraph in _PARAGRAPH.split(_FALLBACK.sub("", text))[1:]:
        name, level = _list_of(_OLDER.sub("", paragraph), styles)
        if (one := lists.get(name)) is None:
            continue
        count = counts[one.counter]
        count[level] = count[level] + 1 if level in count else one.levels.get(level, Level()).start
        if level in one.anew and (name, level) not in restarted:
            restarted.add((name, level))
            count[level] = one.anew[level]
        for deeper in range(level + 1, _LEVELS):
            count.pop(deeper, None)
        yield unescape("".join(_WORDS.findall(paragraph))), _label(one.levels, level, count)


def _list_of(paragraph: str, styles: Mapping[str, tuple[str, int]]) -> tuple[str, int]:
    style, name, level = (pattern.search(paragraph) for pattern in (_STYLE, _LIST, _LEVEL))
    of_style = styles.get(style[1], ("", 0)) if style else ("", 0)
    return (name[1] if name else of_style[0], _whole(level[1], 0) if level else of_style[1])


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
