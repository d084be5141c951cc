"""Documents without pages that count: letters and books. Structure as far as the format has it."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from xml.sax.saxutils import unescape

from recto.files.parsing import formulas, odt, rtf
from recto.files.parsing.counting import Labels
from recto.files.parsing.extraction import extract
from recto.files.parsing.markdown import blocks
from recto.files.parsing.nodes import elements_of
from recto.files.parsing.numbering import docx_labels
from recto.files.parsing.odt_lists import odt_labels
from recto.files.parsing.ports import Frame
from recto.files.parsing.told import told
from recto.page.document import Element

_ROW_END, _CELL_END = "\t\t", "\t"
# Where a link leads, as xberg takes it from a docx: still written as XML.
_LEADS = re.compile(r"(?<=\]\()\S*&\w+;\S*")


def flowing(data: bytes, form: str) -> Iterator[Frame]:
    """The elements of a text document, in their order. Raises Unreadable."""
    if form == "epub":
        # Its nodes do not say which item is within which.
        return told(blocks(extract(data, form, "markdown").content))
    data = _READY[form](data) if form in _READY else data
    found = extract(data, form)
    nodes = found.document.nodes if found.document else []
    elements = elements_of(nodes, _LABELS[form](data)) if nodes or not found.content.strip() else blocks(found.content)
    if form in _MENDED:
        elements = map(_MENDED[form], elements)
    return told(formulas.placed(elements) if form == "docx" else elements)


def _separated(element: Element) -> Element:
    """Cells of a table that its format has lost, set apart again. Other tabs stay: one alone ends no row."""
    if _ROW_END not in element.text:
        return element
    return replace(element, text=element.text.replace(_ROW_END, "\n").replace(_CELL_END, " | "))


def _led(element: Element) -> Element:
    """Links that lead where their document says."""
    if not _LEADS.search(element.text):
        return element
    rows = tuple([tuple([_LEADS.sub(_plain, cell) for cell in row]) for row in element.rows])
    return replace(element, text=_LEADS.sub(_plain, element.text), rows=rows)


def _plain(found: re.Match[str]) -> str:
    return unescape(found[0], {"&quot;": '"', "&apos;": "'"})


_MENDED: Mapping[str, Callable[[Element], Element]] = {"doc": _separated, "docx": _led}
# How items are numbered is not to be found in the old ones.
_LABELS: Mapping[str, Callable[[bytes], Labels]] = {
    "docx": docx_labels,
    "odt": odt_labels,
    "rtf": lambda _: Labels(()),
    "doc": lambda _: Labels(()),
}
_READY: Mapping[str, Callable[[bytes], bytes]] = {"docx": formulas.ready, "odt": odt.ready, "rtf": rtf.ready}
