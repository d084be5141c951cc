"""Documents parsed by xberg, as elements."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cache
from typing import TYPE_CHECKING, Literal, TypeAlias, cast

import orjson

from recto.conversation.document import Element
from recto.conversation.file_formats import type_for
from recto.conversation.json import Json
from recto.files.parsing.formats.counting import NO_NUMBER, Labels
from recto.files.parsing.formats.tables import table_elements, trim_rows
from recto.files.parsing.ports import DAMAGED, ENCRYPTED, DocumentStart, FoundElements, Frame, UnreadableDocument

if TYPE_CHECKING:
    from xberg import ExtractInput, ExtractionConfig
    from xberg._xberg import DocumentNode, ExtractedDocument, ExtractionResult, TextAnnotation

# Forms of a result: nodes with headings, lists and links; one Markdown text; or tables only.
ExtractedAs: TypeAlias = Literal["structure", "markdown", "tables"]
# Large limits, because the process has a memory limit of its own.
_LARGEST = 2**31
_MOST_CELLS = 50_000_000
# Highest compression ratio. A higher one is an attack.
_TIGHTEST = 1_000
_SECONDS = 3_600
# Deepest HTML element. At twice this depth, the stack of xberg overflows and ends the process.
_DEEPEST = 250
_LOCKED = re.compile(r"password|encrypt", re.IGNORECASE)


def extract(data: bytes, form: str, form_of_result: ExtractedAs = "structure") -> ExtractedDocument:
    """Extract the content of a document in one form. Raise UnreadableDocument."""
    import xberg

    source = xberg.ExtractInput(kind=xberg.ExtractInputKind.BYTES, bytes=data, mime_type=type_for(form))
    config = _config(form_of_result)
    try:
        result = asyncio.run(_ask(source, config))
    except MemoryError:
        raise
    except Exception as error:
        raise UnreadableDocument(ENCRYPTED if _LOCKED.search(str(error)) else DAMAGED) from error
    except BaseException as error:
        # A Rust panic is not an Exception.
        if type(error).__name__ != "PanicException":
            raise
        raise UnreadableDocument(DAMAGED) from error
    if not result.results:
        raise UnreadableDocument(DAMAGED)
    return result.results[0]


async def _ask(source: ExtractInput, config: ExtractionConfig) -> ExtractionResult:
    import xberg

    return await xberg.extract(source, config)


@cache
def _config(form_of_result: ExtractedAs) -> ExtractionConfig:
    import xberg

    return xberg.ExtractionConfig(
        use_cache=False,
        disable_ocr=True,
        enable_quality_processing=False,
        escape_markdown=False,
        mime_detection_policy=xberg.MimeDetectionPolicy.TRUST_EXTENSION,
        output_format=xberg.OutputFormat("markdown" if form_of_result == "markdown" else "plain"),
        include_document_structure=form_of_result == "structure",
        extraction_timeout_secs=_SECONDS,
        # Keep repeated text, which may matter: the head of a table, the number of a contract.
        content_filter=xberg.ContentFilterConfig(
            include_headers=True,
            include_footers=True,
            include_footnotes=True,
            strip_repeating_text=False,
            include_watermarks=False,
        ),
        html_options=xberg.ConversionOptions(
            extract_metadata=False,
            compact_tables=True,
            bullets="-",
            max_depth=_DEEPEST,
            # Distinguishes hard line breaks from wrapped lines.
            newline_style=xberg.NewlineStyle.BACKSLASH,
            inline_data_media=xberg.InlineDataMedia.ALT_TEXT_ONLY,
            # Remove nothing: many pages have all their text in a form or in the header.
            preprocessing=xberg.PreprocessingOptions(enabled=False, remove_navigation=False, remove_forms=False),
        ),
        security_limits=xberg.SecurityLimits(
            max_archive_size=_LARGEST,
            max_compression_ratio=_TIGHTEST,
            max_content_size=_LARGEST,
            max_iterations=_LARGEST,
            max_table_cells=_MOST_CELLS,
        ),
    )


Content: TypeAlias = Mapping[str, Json]

SPEAKER_NOTES = "[speaker notes] "
_INDENT = "  "
_DEEPEST_HEADING = 6
_TITLE_LEVEL = 2
# Blanks except tabs, which separate columns.
_SPACE = re.compile(r"[^\S\n\t]+")


def elements_of(nodes: Sequence[DocumentNode], labels: Labels | None = None) -> Iterator[Element]:
    """Yield nodes as elements. `labels` belong to formats in which a list may continue another."""
    contents = [content_of(node) for node in nodes]
    numbers: dict[int, int] = {}
    doubtful = _doubtful(nodes, contents) if labels else frozenset[int]()
    for place, node in enumerate(nodes):
        if contents[place]["node_type"] == "list_item":
            words = str(contents[place].get("text") or "")
            lists = [around for around in _parents(node, nodes) if contents[around]["node_type"] == "list"]
            mark = NO_NUMBER
            if lists and lists[0] not in doubtful and contents[lists[0]].get("ordered"):
                numbers[lists[0]] = numbers.get(lists[0], 0) + 1
                mark = f"{numbers[lists[0]]}."
            label = labels.take(words) if labels else None
            mark = (node.attributes or {}).get("list_marker") or label or mark
            level = max(1, len(lists))
            text = _SPACE.sub(" ", add_links(words, node.annotations)).strip().replace("\n", " ")
            yield Element(kind="item", text=f"{_INDENT * (level - 1)}{mark} {text}", page=node.page, level=level)
        else:
            yield from _block(node, contents[place])


def _doubtful(nodes: Sequence[DocumentNode], contents: Sequence[Content]) -> frozenset[int]:
    """Return the positions of numbered lists that may continue an earlier list, because no heading separates them."""
    places, is_after = set[int](), False
    for place, (node, content) in enumerate(zip(nodes, contents, strict=True)):
        if content["node_type"] == "list" and content.get("ordered") and node.parent is None:
            places |= {place} if is_after else set()
            is_after = True
        is_after = is_after and content["node_type"] != "heading"
    return frozenset(places)


def content_of(node: DocumentNode) -> Content:
    """Return the content of a node as data."""
    return cast("Content", orjson.loads(str(node.content)))


def words_of(content: Content, name: str = "text") -> str:
    """Return a text of a node; empty if it has none."""
    return str(content.get(name) or "").strip()


def _block(node: DocumentNode, content: Content) -> Iterator[Element]:
    page = node.page
    match content["node_type"]:
        case "heading" | "title":
            level = min(_DEEPEST_HEADING, max(1, int(cast("int", content.get("level") or 1))))
            if text := " ".join(add_links(str(content.get("text") or ""), node.annotations).split()):
                yield Element(kind="heading", text=f"{'#' * level} {text}", page=page, level=level)
        case "paragraph" | "quote" | "citation":
            yield from paragraph(add_links(str(content.get("text") or ""), node.annotations), page)
        case "table":
            yield from table_elements(trim_rows(grid_rows(content)), page)
        case "code":
            text = f"```{words_of(content, 'language')}\n{str(content.get('text') or '').rstrip()}\n```"
            yield Element(kind="code", text=text, page=page)
        case "formula":
            yield from paragraph(f"$${words_of(content)}$$", page)
        case "footnote":
            yield from note("[footnote] ", words_of(content), page)
        case "comment":
            yield from note("[comment] ", words_of(content), page)
        case "image":
            if text := words_of(content, "description"):
                yield from paragraph(f"[image: {text}]", page)
        case "definition_item":
            yield from paragraph(f"{words_of(content, 'term')}: {words_of(content, 'definition')}", page)
        case "admonition":
            yield from paragraph(words_of(content, "title"), page)
        case "raw_block":
            yield from paragraph(words_of(content, "content"), page)
        case "metadata_block":
            entries = cast("list[dict[str, str]]", content.get("entries") or [])
            yield from paragraph("\n".join(f"{entry['key']}: {entry['value']}" for entry in entries), page)
        case _:
            pass


def paragraph(text: str, page: int | None) -> Iterator[Element]:
    """Yield a paragraph unless it is empty."""
    if text := _SPACE.sub(" ", text).strip():
        yield Element(kind="paragraph", text=text, page=page)


def title(text: str) -> Iterator[Element]:
    """Yield the title of a slide unless it is empty."""
    if text := " ".join(text.split()):
        yield Element(kind="heading", text=f"{'#' * _TITLE_LEVEL} {text}", level=_TITLE_LEVEL)


def note(what: str, text: str, page: int | None) -> Iterator[Element]:
    """Yield a note unless it is empty."""
    if text := text.strip():
        yield Element(kind="note", text=what + text, page=page)


def _parents(node: DocumentNode, nodes: Sequence[DocumentNode]) -> Iterator[int]:
    """Yield the places of the parents of a node, the closest first."""
    visited: set[int] = set()
    place = node.parent
    while place is not None and place not in visited and place < len(nodes):
        visited.add(place)
        yield place
        place = nodes[place].parent


def grid_rows(content: Content) -> list[list[str]]:
    """Return the cells of a table by row and column. The text of a merged cell is in its first place."""
    grid = cast("Mapping[str, Json]", content.get("grid") or {})
    cells = cast("list[dict[str, Json]]", grid.get("cells") or [])
    places = [(int(cast("int", cell["row"])), int(cast("int", cell["col"])), str(cell["content"])) for cell in cells]
    width = max((col for _, col, _ in places), default=-1) + 1
    rows = [[""] * width for _ in range(max((row for row, _, _ in places), default=-1) + 1)]
    for row, col, text in places:
        rows[row][col] = text
    return rows


def add_links(text: str, annotations: Sequence[TextAnnotation]) -> str:
    """Return text with Markdown links. The positions of links count bytes."""
    data = text.encode()
    out, done = list[str](), 0
    for start, end, url in _links(annotations):
        if start < done or end > len(data):
            continue
        label = data[start:end].decode("utf-8", "ignore")
        out += [data[done:start].decode("utf-8", "ignore"), link(label, url)]
        done = end
    return "".join(out) + data[done:].decode("utf-8", "ignore")


def link(label: str, url: str) -> str:
    """Return a Markdown link; only its text if it leads to a place in the document."""
    if not url or url.startswith("#") or not label.strip():
        return label
    before, after = label[: len(label) - len(label.lstrip())], label[len(label.rstrip()) :]
    words = " ".join(label.split()).replace("[", "\\[").replace("]", "\\]")
    return f"{before}[{words}]({url.replace(' ', '%20').replace(')', '%29')}){after}"


def _links(annotations: Sequence[TextAnnotation]) -> Iterator[tuple[int, int, str]]:
    """Yield start, end and URL of links. Adjacent links to one URL are one link."""
    links = sorted(
        (one.start, one.end, str(kind["url"]))
        for one in annotations
        if (kind := cast("Content", orjson.loads(str(one.kind))))["annotation_type"] == "link"
    )
    waiting: tuple[int, int, str] | None = None
    for start, end, url in links:
        if waiting and waiting[1:] == (start, url):
            waiting = (waiting[0], end, url)
            continue
        if waiting:
            yield waiting
        waiting = (start, end, url)
    if waiting:
        yield waiting


FRAME_ELEMENTS = 100


def unpaged_frames(elements: Iterable[Element]) -> Iterator[Frame]:
    """Yield elements without pages, many to a frame."""
    yield DocumentStart()
    waiting: list[Element] = []
    for element in elements:
        waiting.append(replace(element, page=None))
        if len(waiting) == FRAME_ELEMENTS:
            yield FoundElements(elements=tuple(waiting))
            waiting = []
    if waiting:
        yield FoundElements(elements=tuple(waiting))
