"""Formulas in the sentences of a docx. (xberg puts each before the paragraph that it stands in.) Reads no formula."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import replace

from recto.files.parsing.archive import Archive
from recto.page.document import Element

_CONTENT = "word/document.xml"
# A character that no text has, where a formula stands.
_MARK = "\ufdd0"
_RUN = f"<w:r><w:t>{_MARK}</w:t></w:r>"
# Formulas with lines of their own, and others.
_FORMULA = re.compile(r"<m:oMathPara\b.*?</m:oMathPara>|(<m:oMath[ >].*?</m:oMath>)", re.DOTALL)
_ALONE = "$$"


def ready(data: bytes) -> bytes:
    """The document with a mark at each formula within a line; as it is where there is none, or it is too large."""
    archive = Archive(data)
    text = archive.text(_CONTENT)
    changed = _FORMULA.sub(lambda found: _RUN + found[1] if found[1] else found[0], text)
    return data if changed == text else archive.with_text(_CONTENT, changed) or data


def placed(elements: Iterable[Element]) -> Iterator[Element]:
    """The elements with each formula at its mark."""
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


def _with(element: Element, formulas: list[str]) -> Iterator[Element]:
    if _MARK not in element.text:
        yield element
        return
    first, *others = element.text.split(_MARK)
    filled = [*formulas, *[""] * (len(others) - len(formulas))]
    text = first + "".join(formula + after for formula, after in zip(filled, others, strict=True))
    rows = tuple([tuple([cell.replace(_MARK, "") for cell in row]) for row in element.rows])
    if text.strip():
        yield replace(element, text=text, rows=rows)
