"""Text documents: docx, doc, odt, rtf, epub."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import chain
from xml.sax.saxutils import unescape

from recto.conversation.document import Element
from recto.files.parsing.formats.counting import Labels
from recto.files.parsing.formats.markdown import parse_markdown
from recto.files.parsing.formats.office import docx, rtf
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
        # Its nodes do not tell which item contains which.
        return unpaged_frames(parse_markdown(extract(data, form, "markdown").content))
    data = _READY[form](data) if form in _READY else data
    result = extract(data, form)
    nodes = result.document.nodes if result.document else []
    elements = (
        elements_of(nodes, _LABELS.get(form, _no_labels)(data))
        if nodes or not result.content.strip()
        else parse_markdown(result.content)
    )
    if form in _MENDED:
        elements = chain.from_iterable(map(_MENDED[form], elements))
    return unpaged_frames(docx.with_formulas(elements) if form == "docx" else elements)


def _no_labels(_: bytes) -> Labels:
    return Labels(())


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
    """Return True if the cells are rows of this width, with an empty cell after each. One row alone is ambiguous."""
    is_one = len(cells) == width + 1 and not all(cells[:width])
    return len(cells) % (width + 1) == 0 and not any(cells[width :: width + 1]) and not is_one


def _unescape_links(element: Element) -> Iterator[Element]:
    """Restore the targets of links."""
    if _LEADS.search(element.text):
        rows = tuple([tuple([_LEADS.sub(_plain, cell) for cell in row]) for row in element.rows])
        element = replace(element, text=_LEADS.sub(_plain, element.text), rows=rows)
    yield element


def _plain(match: re.Match[str]) -> str:
    return unescape(match[0], {"&quot;": '"', "&apos;": "'"})


_MENDED: Mapping[str, Callable[[Element], Iterator[Element]]] = {"doc": restore_table, "docx": _unescape_links}
# Other formats do not contain the numbers of items.
_LABELS: Mapping[str, Callable[[bytes], Labels]] = {"docx": docx.docx_labels, "odt": odt_labels}
_READY: Mapping[str, Callable[[bytes], bytes]] = {"docx": docx.ready, "odt": prepare_odt, "rtf": rtf.ready}
