"""A PDF as pdfium sees it: pages, text, links, annotations, lines and pictures."""

from __future__ import annotations

import math
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import contextmanager
from ctypes import byref, c_float, c_int, c_ushort, create_string_buffer
from dataclasses import dataclass
from importlib import import_module
from io import BytesIO
from itertools import islice, pairwise
from typing import Protocol, TypeAlias, cast

from recto.files.parsing.formats.pdf.columns import LinePiece, PageLine, Rows, find_tables
from recto.files.parsing.ports import DAMAGED, ENCRYPTED, UnreadableDocument

_WRONG_PASSWORD = 4
_PICTURE_DEPTH = 4
_MOST_LINKS = 200
# A page with fewer letters that is mostly a picture is a scan. The letters may be a stamp or a page number.
FEW_LETTERS = 100
_MOST_OF_PAGE = 0.6
# Limits of drawn lines: lines on a page, and segments of a path; least length and least distance of two lines, in
# typographic points.
_MOST_POINTS = 20_000
_SHORTEST_RULE = 5.0
_SAME_RULE = 3.0
# Limits of table rows: characters of a row and of a page; mean letter width, widening by gaps, and width of a gap, in
# line heights.
_LONGEST_ROW = 120
_MOST_PLACED = 100_000
_NARROW = 0.42
_SPREAD = 1.15
_GAP = 1.0
# Most pictures of a page to measure. A scan may consist of strips.
_MOST_PICTURES = 1_000
_URL_BYTES = 4_096
_DOTS_AN_INCH = 300
_POINTS_AN_INCH = 72
# Most pixels of a rendered page. An A4 page at 300 dots per inch has 8.7 million.
_MOST_PIXELS = 12_000_000
_MOST_ANNOTATIONS = 1_000
# Invisible, hidden, or not for the screen.
_UNSEEN_FLAGS = 1 | 2 | 32
# The value of an unchecked box.
_NOT_TICKED = "Off"


class _TextPage(Protocol):
    raw: object

    def get_text_bounded(
        self, left: float | None = ..., bottom: float | None = ..., right: float | None = ..., top: float | None = ...
    ) -> str: ...
    def get_text_range(self) -> str: ...
    def count_chars(self) -> int: ...
    def close(self) -> None: ...


class _Bitmap(Protocol):
    buffer: Sequence[int]
    width: int
    height: int
    stride: int

    def close(self) -> None: ...


_Corners: TypeAlias = tuple[float, float, float, float]


class _Matrix(Protocol):
    def on_point(self, x: float, y: float) -> tuple[float, float]: ...
    def on_rect(self, left: float, bottom: float, right: float, top: float) -> _Corners: ...


class _Object(Protocol):
    raw: object
    container: _Object | None

    def get_bounds(self) -> _Corners: ...
    def get_matrix(self) -> _Matrix: ...


class _Page(Protocol):
    raw: object

    def get_textpage(self) -> _TextPage: ...
    def get_objects(self, filter: Sequence[int], max_depth: int) -> Iterator[_Object]: ...
    def get_bbox(self) -> _Corners: ...
    def get_size(self) -> tuple[float, float]: ...
    def render(self, *, scale: float, grayscale: bool) -> _Bitmap: ...
    def close(self) -> None: ...


class _Document(Protocol):
    raw: object

    def __len__(self) -> int: ...
    def __getitem__(self, place: int) -> _Page: ...
    def import_pages(self, pdf: _Document, pages: list[int]) -> None: ...
    def save(self, dest: BytesIO) -> None: ...
    def close(self) -> None: ...


class _Opening(Protocol):
    def __call__(self, data: bytes, /) -> _Document: ...
    def new(self) -> _Document: ...


class _Library(Protocol):
    PdfDocument: _Opening
    PdfiumError: type[RuntimeError]


class _RawAnnotations(Protocol):
    """Functions of pdfium for annotations, which its Python wrapper lacks."""

    FPDF_ANNOT_LINK: int
    FPDF_ANNOT_FREETEXT: int
    FPDF_ANNOT_STAMP: int
    FPDF_ANNOT_POPUP: int
    FPDF_ANNOT_WIDGET: int

    def FPDFPage_GetAnnotCount(self, page: object) -> int: ...  # noqa: N802 - its name
    def FPDFPage_GetAnnot(self, page: object, place: int) -> object: ...  # noqa: N802 - its name
    def FPDFPage_CloseAnnot(self, annotation: object) -> None: ...  # noqa: N802 - its name
    def FPDFAnnot_GetSubtype(self, annotation: object) -> int: ...  # noqa: N802 - its name
    def FPDFAnnot_GetFlags(self, annotation: object) -> int: ...  # noqa: N802 - its name
    def FPDFAnnot_HasKey(self, annotation: object, key: bytes) -> bool: ...  # noqa: N802 - its name
    def FPDFAnnot_GetStringValue(self, annotation: object, key: bytes, buffer: object, size: int) -> int: ...  # noqa: N802 - its name


class _Raw(_RawAnnotations, Protocol):
    """Functions of pdfium that its Python wrapper lacks."""

    FPDF_PAGEOBJ_IMAGE: int
    FPDF_PAGEOBJ_PATH: int
    FLAT_NORMALDISPLAY: int
    FPDF_LINK: type
    FS_RECTF: type

    def FPDFLink_Enumerate(self, page: object, place: object, link: object) -> bool: ...  # noqa: N802 - its name
    def FPDFLink_GetAction(self, link: object) -> object: ...  # noqa: N802 - its name
    def FPDFLink_GetAnnotRect(self, link: object, box: object) -> bool: ...  # noqa: N802 - its name
    def FPDFAction_GetURIPath(self, document: object, action: object, buffer: object, size: int) -> int: ...  # noqa: N802 - its name
    def FPDFText_GetLooseCharBox(self, text: object, place: int, box: object) -> bool: ...  # noqa: N802 - its name
    def FPDFPath_CountSegments(self, path: object) -> int: ...  # noqa: N802 - its name
    def FPDFPath_GetPathSegment(self, path: object, place: int) -> object: ...  # noqa: N802 - its name
    def FPDFPathSegment_GetPoint(self, segment: object, x: object, y: object) -> bool: ...  # noqa: N802 - its name
    def FPDFPage_Flatten(self, page: object, target: int) -> int: ...  # noqa: N802 - its name


class _Box(Protocol):
    left: float
    bottom: float
    right: float
    top: float


@dataclass(frozen=True, kw_only=True)
class PageLink:
    """Text of a page with its URL."""

    label: str
    url: str


@dataclass(frozen=True, kw_only=True)
class PageSight:
    """A page as pdfium sees it. `remarks` are comments and form values that are not drawn."""

    text: str
    links: tuple[PageLink, ...]
    remarks: tuple[str, ...]
    tables: tuple[Rows, ...]
    is_scan: bool


@dataclass(frozen=True, kw_only=True)
class Rules:
    """The number of vertical and horizontal lines on a page. Lines at the same position count once."""

    upright: int
    across: int


class Pdf:
    """An open PDF."""

    def __init__(self, document: _Document, library: _Library, raw: _Raw) -> None:
        self._document, self._library, self._raw = document, library, raw
        self.page_count = len(document)

    def part(self, pages: Sequence[int]) -> bytes:
        """Return a PDF of some pages, counted from 0. Raise UnreadableDocument."""
        new = self._library.PdfDocument.new()
        try:
            new.import_pages(self._document, list(pages))
            out = BytesIO()
            new.save(out)
        except self._library.PdfiumError as error:
            raise UnreadableDocument(DAMAGED) from error
        finally:
            new.close()
        return out.getvalue()

    def has_page(self, place: int) -> bool:
        """Return True if a page exists; the declared number of pages may be wrong."""
        try:
            self._document[place].close()
        except self._library.PdfiumError:
            return False
        return True

    def examine(self, place: int) -> PageSight | None:
        """Return the content of a page; None if it is damaged. Annotations become part of the page."""
        try:
            with self._page(place) as (page, words):
                links, annotations = tuple(self._links(page, words)), annotations_on(page.raw, self._raw)
                if not any(one.is_drawn for one in annotations):
                    return self._sight(page, words, links, annotations)
                self._raw.FPDFPage_Flatten(page.raw, self._raw.FLAT_NORMALDISPLAY)
            # The text of annotations appears only after loading the page again.
            with self._page(place) as (page, words):
                return self._sight(page, words, links, annotations)
        except self._library.PdfiumError:
            return None

    def rules(self, place: int) -> Rules:
        """Count the lines that may belong to a table."""
        try:
            with self._page(place) as (page, _):
                lines = list(islice(self._lines(page), _MOST_POINTS))
        except self._library.PdfiumError:
            lines = list[_Corners]()
        upright = [x for x, y, to_x, to_y in lines if abs(to_x - x) < 1 and abs(to_y - y) >= _SHORTEST_RULE]
        across = [y for x, y, to_x, to_y in lines if abs(to_y - y) < 1 and abs(to_x - x) >= _SHORTEST_RULE]
        return Rules(upright=_count_distinct(upright), across=_count_distinct(across))

    def picture(self, place: int) -> bytes:
        """Render a page as a grayscale PGM picture. Raise UnreadableDocument."""
        try:
            with self._page(place) as (page, _):
                width, height = page.get_size()
                largest = math.sqrt(_MOST_PIXELS / max(1.0, width * height))
                bitmap = page.render(scale=min(_DOTS_AN_INCH / _POINTS_AN_INCH, largest), grayscale=True)
                try:
                    pixels = bytes(bitmap.buffer)
                    rows = (
                        pixels[row * bitmap.stride : row * bitmap.stride + bitmap.width] for row in range(bitmap.height)
                    )
                    return b"P5 %d %d 255\n" % (bitmap.width, bitmap.height) + b"".join(rows)
                finally:
                    bitmap.close()
        except self._library.PdfiumError as error:
            raise UnreadableDocument(DAMAGED) from error

    @contextmanager
    def _page(self, place: int) -> Generator[tuple[_Page, _TextPage]]:
        page = self._document[place]
        try:
            words = page.get_textpage()
            try:
                yield page, words
            finally:
                words.close()
        finally:
            page.close()

    def _sight(
        self, page: _Page, words: _TextPage, links: tuple[PageLink, ...], annotations: Sequence[Annotation]
    ) -> PageSight:
        text = words.get_text_bounded().replace("\r\n", "\n").replace("\r", "\n")
        remarks = tuple([one.remark for one in annotations if one.remark])
        is_scan, tables = self._is_scan(page, text), tuple(find_tables(list(_placed_lines(words, self._raw))))
        return PageSight(text=text, links=links, remarks=remarks, tables=tables, is_scan=is_scan)

    def _is_scan(self, page: _Page, text: str) -> bool:
        """Return True if a page is a picture with little text."""
        if count_letters(text) >= FEW_LETTERS:
            return False
        pictures = page.get_objects(filter=[self._raw.FPDF_PAGEOBJ_IMAGE], max_depth=_PICTURE_DEPTH)
        if not text.strip():
            return next(iter(pictures), None) is not None
        try:
            whole = page.get_bbox()
            covered = 0.0
            for picture in islice(pictures, _MOST_PICTURES):
                corners, container = picture.get_bounds(), picture.container
                while container:
                    corners, container = container.get_matrix().on_rect(*corners), container.container
                covered += _area(corners, whole)
        except self._library.PdfiumError:
            # A picture without a place covers no text.
            return False
        return covered >= _MOST_OF_PAGE * _area(whole, whole) > 0

    def _lines(self, page: _Page) -> Iterator[_Corners]:
        """Yield start and end of drawn lines."""
        x, y = c_float(), c_float()
        for path in page.get_objects(filter=[self._raw.FPDF_PAGEOBJ_PATH], max_depth=_PICTURE_DEPTH):
            points = list[tuple[float, float]]()
            for place in range(min(_MOST_POINTS, self._raw.FPDFPath_CountSegments(path.raw))):
                segment = self._raw.FPDFPath_GetPathSegment(path.raw, place)
                if self._raw.FPDFPathSegment_GetPoint(segment, byref(x), byref(y)):
                    point, around = path.get_matrix().on_point(x.value, y.value), path.container
                    while around:
                        point, around = around.get_matrix().on_point(*point), around.container
                    points.append(point)
            yield from ((*start, *end) for start, end in pairwise(points))

    def _links(self, page: _Page, words: _TextPage) -> Iterator[PageLink]:
        place, link = c_int(0), self._raw.FPDF_LINK()
        for _ in range(_MOST_LINKS):
            if not self._raw.FPDFLink_Enumerate(page.raw, byref(place), byref(link)):
                return
            action = self._raw.FPDFLink_GetAction(link)
            buffer = create_string_buffer(_URL_BYTES)
            length = self._raw.FPDFAction_GetURIPath(self._document.raw, action, buffer, _URL_BYTES) if action else 0
            url = buffer.value.decode("utf-8", "replace") if 0 < length <= _URL_BYTES else ""
            box = cast("_Box", self._raw.FS_RECTF())
            if url and self._raw.FPDFLink_GetAnnotRect(link, byref(cast("c_int", box))):
                label = words.get_text_bounded(box.left, min(box.bottom, box.top), box.right, max(box.bottom, box.top))
                yield PageLink(label=" ".join(label.split()), url=url)


@contextmanager
def open_pdf(data: bytes) -> Generator[Pdf]:
    """Open a PDF. Raise UnreadableDocument."""
    library = cast("_Library", import_module("pypdfium2"))
    raw = cast("_Raw", import_module("pypdfium2.raw"))
    try:
        document = library.PdfDocument(data)
    except library.PdfiumError as error:
        is_locked = getattr(error, "err_code", None) == _WRONG_PASSWORD
        raise UnreadableDocument(ENCRYPTED if is_locked else DAMAGED) from error
    try:
        yield Pdf(document, library, raw)
    finally:
        document.close()


def count_letters(text: str) -> int:
    """Count letters and digits."""
    return sum(map(str.isalnum, text))


def _placed_lines(words: _TextPage, raw: _Raw) -> Iterator[PageLine]:
    """Yield the lines of a page that are short enough for a table."""
    text, start = words.get_text_range(), 0
    box = cast("_Box", raw.FS_RECTF())
    at = byref(cast("c_int", box))

    def place_of(place: int) -> _Corners:
        raw.FPDFText_GetLooseCharBox(words.raw, place, at)
        return box.left, box.bottom, box.right, box.top

    # Positions are unreliable if the numbers of characters differ.
    is_known = len(text) == words.count_chars() and len(text) <= _MOST_PLACED
    for line_text in text.splitlines(keepends=True) if is_known else ():
        line = line_text.rstrip()
        if line and len(line) <= _LONGEST_ROW:
            yield _placed_line(line, start, place_of)
        start += len(line_text)


def _placed_line(line: str, start: int, place_of: Callable[[int], _Corners]) -> PageLine:
    left, bottom, _, top = place_of(start)
    end, height = place_of(start + len(line) - 1)[2], top - bottom
    pieces, start_of_piece = list[LinePiece](), 0
    wide = len(line) - len(line.encode("ascii", "ignore"))
    is_spread = end - left >= _SPREAD * height * (wide + _NARROW * (len(line) - wide))
    for place in (place for place, one in enumerate(line) if one == " ") if is_spread else ():
        right, after = place_of(start + place - 1)[2], place_of(start + place + 1)[0]
        if after - right >= _GAP * height:
            pieces.append(LinePiece(left=left, right=right, text=line[start_of_piece:place].strip()))
            left, start_of_piece = after, place + 1
    pieces.append(LinePiece(left=left, right=end, text=line[start_of_piece:].strip()))
    return PageLine(bottom=bottom, height=height, pieces=tuple(pieces))


def _count_distinct(places: Sequence[float]) -> int:
    """Count distinct positions."""
    sorted_places = sorted(places)
    return bool(sorted_places) + sum(after - before > _SAME_RULE for before, after in pairwise(sorted_places))


def _area(corners: _Corners, within: _Corners) -> float:
    left, bottom = map(max, corners[:2], within[:2])
    right, top = map(min, corners[2:], within[2:])
    return max(0.0, right - left) * max(0.0, top - bottom)


@dataclass(frozen=True, kw_only=True)
class Annotation:
    """A visible annotation. `is_drawn`: it draws its own text. `remark`: text to add to the page, or empty."""

    is_drawn: bool
    remark: str


def annotations_on(page: object, raw: _RawAnnotations) -> tuple[Annotation, ...]:
    """Return the annotations of a page."""
    count = min(_MOST_ANNOTATIONS, raw.FPDFPage_GetAnnotCount(page))
    return tuple([one for place in range(count) for one in _annotation(page, place, raw)])


def _annotation(page: object, place: int, raw: _RawAnnotations) -> Iterator[Annotation]:
    annotation = raw.FPDFPage_GetAnnot(page, place)
    if not annotation:
        return
    try:
        kind = raw.FPDFAnnot_GetSubtype(annotation)
        if kind in (raw.FPDF_ANNOT_LINK, raw.FPDF_ANNOT_POPUP) or raw.FPDFAnnot_GetFlags(annotation) & _UNSEEN_FLAGS:
            return
        has_words = kind in (raw.FPDF_ANNOT_WIDGET, raw.FPDF_ANNOT_FREETEXT, raw.FPDF_ANNOT_STAMP)
        is_drawn = has_words and bool(raw.FPDFAnnot_HasKey(annotation, b"AP"))
        if kind == raw.FPDF_ANNOT_WIDGET:
            # Report the value of a field that is not drawn, and the state of a checked box, whose mark is not text.
            value = _string(annotation, b"AS", raw) or ("" if is_drawn else _string(annotation, b"V", raw))
            words = ": ".join(filter(None, (_string(annotation, b"T", raw), value)))
            remark = f"[form field] {words}" if value not in ("", _NOT_TICKED) else ""
        else:
            words = "" if is_drawn else _string(annotation, b"Contents", raw)
            remark = words and f"[comment] {words}"
        yield Annotation(is_drawn=is_drawn, remark=remark)
    finally:
        raw.FPDFPage_CloseAnnot(annotation)


def _string(annotation: object, key: bytes, raw: _RawAnnotations) -> str:
    size = raw.FPDFAnnot_GetStringValue(annotation, key, None, 0)
    buffer = (c_ushort * (size // 2))()
    raw.FPDFAnnot_GetStringValue(annotation, key, buffer, size)
    return bytes(buffer).decode("utf-16-le", "replace").rstrip("\0").strip()
