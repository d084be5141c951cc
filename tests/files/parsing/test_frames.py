"""The protocol with a parser process (D7): frames survive encoding, and invalid ones are rejected."""

from operator import mul

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from recto.config.file_settings import ParseLimits
from recto.conversation.document import KINDS, Element, text_of
from recto.errors import WireError
from recto.files.parsing import frames
from recto.files.parsing.frames import FRAME_BYTES, LENGTH_BYTES, ParseOrder, Ready
from recto.files.parsing.ports import DocumentEnd, DocumentStart, Failed, FoundElements, Frame, Task

WORDS = st.text(max_size=40)
COUNTS = st.integers(min_value=0, max_value=10**9)
ROWS = st.lists(st.lists(WORDS, max_size=3).map(tuple), max_size=3).map(tuple)
ELEMENTS = st.builds(
    Element,
    kind=st.sampled_from(KINDS),
    text=WORDS.map(lambda text: text.replace("\0", "")),
    page=st.none() | COUNTS,
    level=st.none() | COUNTS,
    rows=ROWS.map(lambda rows: tuple(tuple(cell.replace("\0", "") for cell in row) for row in rows)),
)
LONG_TEXTS = st.builds(Element, kind=st.just("text"), text=st.builds(mul, WORDS, st.sampled_from([1, 20_000])))
FRAMES = st.one_of(
    st.builds(DocumentStart, unit=st.sampled_from([None, "page", "slide", "sheet"]), page_count=st.none() | COUNTS),
    st.builds(FoundElements, elements=st.lists(ELEMENTS, max_size=5).map(tuple), pages=COUNTS, scans=st.booleans()),
    st.builds(Failed, code=st.sampled_from(["damaged", "locked"]), reason=st.text(st.characters(min_codepoint=32))),
    st.just(DocumentEnd()),
    st.just(Ready()),
)
LIMITS = st.builds(ParseLimits, seconds=st.floats(min_value=0.1, max_value=1000), pages=COUNTS, characters=COUNTS)
TASKS = st.builds(Task, format=WORDS, name=WORDS, limits=LIMITS, ocr=st.sampled_from(["", "eng", "chi_sim+eng"]))


def read(encoded: bytes) -> Frame | Ready:
    head, body = encoded[:LENGTH_BYTES], encoded[LENGTH_BYTES:]
    assert frames.frame_length(head) == len(body)
    return frames.frame_from(body)


@given(frame=FRAMES)
def test_D7_a_frame_is_read_as_it_was_written(frame: Frame | Ready):
    assert read(frames.framed(frames.frame_row(frame))) == frame


@given(task=TASKS, size=COUNTS)
def test_D7_an_order_is_read_as_it_was_written(task: Task, size: int):
    order = ParseOrder(task=task, size=size)
    assert frames.order_from(frames.framed(frames.order_row(order))[LENGTH_BYTES:]) == order


@given(elements=st.lists(LONG_TEXTS, max_size=3), pages=COUNTS)
def test_D7_much_text_goes_in_several_frames_and_is_the_same_text(elements: list[Element], pages: int):
    pieces = list(frames.pieces_of(FoundElements(elements=tuple(elements), pages=pages, scans=True), pages_before=0))
    assert text_of([part for piece in pieces for part in piece.elements]) == text_of(elements)
    assert all(len(frames.framed(frames.frame_row(piece))) <= FRAME_BYTES for piece in pieces)
    last = len(pieces) - 1
    assert [(piece.pages, piece.scans) for piece in pieces] == [(0, False)] * last + [(pages, True)]


@pytest.mark.parametrize("kind", ["table", "rows"])
@pytest.mark.parametrize("width", [3, 300])
def test_D7_a_large_table_goes_row_by_row_and_is_the_same_table(kind: str, width: int):
    rows = tuple((f"{number}", "甲" * (number % width)) for number in range(2_000))
    lines = [f"| {' | '.join(row)} |" for row in rows]
    text = "\n".join([lines[0], "| --- | --- |", *lines[1:]] if kind == "table" else lines)
    table = Element(kind="table" if kind == "table" else "rows", text=text, page=2, rows=rows)
    large = FoundElements(elements=(table, *[Element(kind="rows", text="\n".join(lines), rows=rows)] * 3))
    pieces = list(frames.pieces_of(large, pages_before=0))
    parts = [part for piece in pieces for part in piece.elements]
    assert len(pieces) > 1
    assert text_of(parts) == text_of(large.elements)
    assert [row for part in parts for row in part.rows] == [row for whole in large.elements for row in whole.rows]
    assert all(len(frames.framed(frames.frame_row(piece))) <= FRAME_BYTES for piece in pieces)


def test_D7_a_table_of_one_endless_row_keeps_its_text_without_cells():
    cell = "\x01" * 1_000_000
    pieces = list(frames.pieces_of(FoundElements(elements=(Element(kind="rows", text=cell, rows=((cell,),)),)), 0))
    parts = [part for piece in pieces for part in piece.elements]
    assert ("".join(part.text for part in parts), [part.rows for part in parts if part.rows]) == (cell, [])
    assert all(len(frames.framed(frames.frame_row(piece))) <= FRAME_BYTES for piece in pieces)


def test_D7_a_frame_that_is_too_long_is_refused_before_it_is_read():
    assert frames.frame_length(FRAME_BYTES.to_bytes(LENGTH_BYTES, "big")) == FRAME_BYTES
    with pytest.raises(WireError, match="at most"):
        frames.frame_length((FRAME_BYTES + 1).to_bytes(LENGTH_BYTES, "big"))


EMPTY: list[object] = []
WRONG_FIELDS: list[dict[str, object]] = [
    *({"kind": "picture"}, {"kind": None}, {"text": 1}, {"text": None}, {"page": -1}, {"page": "1"}, {"page": True}),
    *({"level": 1.5}, {"level": EMPTY}, {"rows": 1}, {"rows": [1]}, {"rows": [[1]]}),
]
WRONG_ELEMENTS: list[object] = [
    *(None, 1, "text", ["a"], [None], [EMPTY]),
    *([{"kind": "text", "text": "a", **field}] for field in WRONG_FIELDS),
]
WRONG_UNITS: list[object] = ["leaf", 1, EMPTY, {}]
WRONG_FRAMES: list[object] = [
    *(EMPTY, "ready", None, {}, {"frame": "open"}, {"frame": ["ended"]}, {"frame": "found"}),
    *({"frame": "found", "elements": EMPTY, "pages": pages} for pages in (-1, 2**53, True, 1.5, "1", None)),
    *({"frame": "found", "elements": elements, "pages": 0} for elements in WRONG_ELEMENTS),
    *({"frame": "found", "elements": EMPTY, "pages": 0, "scans": scans} for scans in (1, "true", None)),
    *({"frame": "opened", "unit": unit, "page_count": None} for unit in WRONG_UNITS),
    *({"frame": "opened", "unit": None, "page_count": count} for count in (-1, "1", True)),
    *({"frame": "failed", "code": code, "reason": "why"} for code in ("", "a b", 1, None, "a" * 41)),
    {"frame": "failed", "code": "damaged", "reason": None},
]


@pytest.mark.parametrize("row", WRONG_FRAMES, ids=str)
def test_D7_what_is_no_frame_is_refused(row: object):
    with pytest.raises(WireError, match="frame"):
        frames.frame_from(orjson.dumps(row))


@given(body=st.binary(max_size=60))
def test_D7_any_bytes_are_a_frame_or_refused(body: bytes):
    try:
        frame = frames.frame_from(body)
    except WireError:
        return
    assert frames.frame_from(frames.framed(frames.frame_row(frame))[LENGTH_BYTES:]) == frame


def test_D7_nesting_without_end_is_refused_and_a_reason_without_end_and_a_character_of_no_database_are_cut():
    with pytest.raises(WireError, match="no JSON"):
        frames.frame_from(b'{"frame":' + b"[" * 200_000)
    failed = frames.frame_from(orjson.dumps({"frame": "failed", "code": "damaged", "reason": "why " * 10_000}))
    assert isinstance(failed, Failed)
    assert len(failed.reason) == frames.REASON_CHARACTERS
    row = {"frame": "found", "elements": [{"kind": "text", "text": "a\0b", "rows": [["c\0"]]}], "pages": 0}
    frame = frames.frame_from(orjson.dumps(row))
    assert frame == FoundElements(elements=(Element(kind="text", text="a\ufffdb", rows=(("c\ufffd",),)),))
