"""What was put on top of a page of a PDF: fields of a form, typed words, comments. Knows nothing of links."""

from __future__ import annotations

from collections.abc import Iterator
from ctypes import c_ushort
from dataclasses import dataclass
from typing import Protocol

_MOST_ANNOTATIONS = 1_000
# Invisible, hidden, or not for the screen.
_UNSEEN_FLAGS = 1 | 2 | 32
# What a box of a form has as its value while it is not ticked.
_NOT_TICKED = "Off"


class RawAnnotations(Protocol):
    """The functions of pdfium for them, which its wrapper has no words for."""

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


@dataclass(frozen=True, kw_only=True)
class Annotation:
    """One that can be seen: whether it is drawn with words of its own, and what is to be said of it besides."""

    is_drawn: bool
    remark: str


def annotations_on(page: object, raw: RawAnnotations) -> tuple[Annotation, ...]:
    """Those on a page."""
    count = min(_MOST_ANNOTATIONS, raw.FPDFPage_GetAnnotCount(page))
    return tuple([one for place in range(count) for one in _annotation(page, place, raw)])


def _annotation(page: object, place: int, raw: RawAnnotations) -> Iterator[Annotation]:
    found = raw.FPDFPage_GetAnnot(page, place)
    if not found:
        return
    try:
        kind = raw.FPDFAnnot_GetSubtype(found)
        if kind in (raw.FPDF_ANNOT_LINK, raw.FPDF_ANNOT_POPUP) or raw.FPDFAnnot_GetFlags(found) & _UNSEEN_FLAGS:
            return
        has_words = kind in (raw.FPDF_ANNOT_WIDGET, raw.FPDF_ANNOT_FREETEXT, raw.FPDF_ANNOT_STAMP)
        is_drawn = has_words and bool(raw.FPDFAnnot_HasKey(found, b"AP"))
        of_kind = _of_field if kind == raw.FPDF_ANNOT_WIDGET else _of_comment
        yield Annotation(is_drawn=is_drawn, remark=of_kind(found, is_drawn, raw))
    finally:
        raw.FPDFPage_CloseAnnot(found)


def _of_field(field: object, is_drawn: bool, raw: RawAnnotations) -> str:
    """Its value, where that is not drawn. The mark in a box is no word, so that one is ticked is always said."""
    value = _string(field, b"AS", raw) or ("" if is_drawn else _string(field, b"V", raw))
    if value in ("", _NOT_TICKED):
        return ""
    return f"[form field] {': '.join(filter(None, (_string(field, b'T', raw), value)))}"


def _of_comment(comment: object, is_drawn: bool, raw: RawAnnotations) -> str:
    words = "" if is_drawn else _string(comment, b"Contents", raw)
    return words and f"[comment] {words}"


def _string(annotation: object, key: bytes, raw: RawAnnotations) -> str:
    size = raw.FPDFAnnot_GetStringValue(annotation, key, None, 0)
    buffer = (c_ushort * (size // 2))()
    raw.FPDFAnnot_GetStringValue(annotation, key, buffer, size)
    return bytes(buffer).decode("utf-16-le", "replace").rstrip("\0").strip()
