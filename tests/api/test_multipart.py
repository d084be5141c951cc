"""Forms as they come: the same parts however the bytes are cut, in large pieces, and nothing read ahead."""

import asyncio
from collections.abc import AsyncGenerator, Iterable, Sequence
from contextlib import nullcontext

import pytest
from hypothesis import given
from hypothesis import strategies as st
from starlette.exceptions import HTTPException

from recto.api.files.multipart import OUTSIDE_BYTES, PIECE, FormLimits, Heading, MultipartForm, boundary_of, heading_of
from recto.errors import TooLarge, WireError
from tests.api.forms import BOUNDARY, FORM, Field, begin_form, cut_at, file, form_of, send_pieces
from tests.api.virtual_time import run_virtually
from tests.waiting import settle

LIMITS = FormLimits()
EDGES = [b"", b"\r", b"\r\n", b"\r\n--", f"\r\n--{BOUNDARY}".encode()[:-1], f"--{BOUNDARY}\r\n".encode(), b"-" * 40]
NAMES = st.text(st.characters(exclude_characters="\r\n", codec="utf-8"), max_size=20)
FIELDS = st.builds(
    Field,
    name=NAMES,
    body=st.binary(max_size=200) | st.sampled_from(EDGES) | st.lists(st.sampled_from(EDGES)).map(b"x".join),
    filename=st.none() | NAMES,
    content_type=st.none() | st.just("text/plain"),
)


async def read(pieces: Iterable[bytes], limits: FormLimits = LIMITS) -> list[tuple[Heading, bytes]]:
    results = list[tuple[Heading, bytes]]()
    async for part in MultipartForm(send_pieces(pieces), FORM, limits).parts():
        results.append((part.heading, b"".join([piece async for piece in part.pieces()])))
    return results


def expected(fields: Sequence[Field]) -> list[tuple[Heading, bytes]]:
    return [(Heading(name=one.name, filename=one.filename, content_type=one.content_type), one.body) for one in fields]


@given(fields=st.lists(FIELDS, max_size=4), places=st.lists(st.integers(0, 2_000), max_size=30))
def test_P9_a_form_has_the_same_parts_however_it_is_cut(fields: list[Field], places: list[int]):
    # A part may not hold the boundary on a line of its own: whoever writes a form takes another then.
    whole = [one for one in fields if f"\r\n--{BOUNDARY}".encode() not in b"\r\n" + one.body]
    assert asyncio.run(read(cut_at(form_of(*whole), places))) == expected(whole)


@given(fields=st.lists(FIELDS, min_size=1, max_size=3), end=st.integers(0, 2_000))
def test_P9_a_form_that_is_cut_off_is_refused(fields: list[Field], end: int):
    body = form_of(*fields).removesuffix(b"--\r\n")
    with pytest.raises(WireError, match="boundary"):
        asyncio.run(read([body[: end % (len(body) + 1)]]))


@given(body=st.binary(max_size=300), places=st.lists(st.integers(0, 300), max_size=5))
def test_P9_bytes_that_are_no_form_are_refused_and_never_fail(body: bytes, places: list[int]):
    with pytest.raises(WireError):
        asyncio.run(read(cut_at(body, places)))


async def test_P9_bytes_come_in_large_pieces_though_they_are_sent_in_small_ones():
    body = bytes(range(256)) * 1_024
    form = MultipartForm(send_pieces(cut_at(form_of(file("a.bin", body)), range(0, 300_000, 1_000))), FORM, LIMITS)
    async for part in form.parts():
        pieces = [piece async for piece in part.pieces()]
        assert b"".join(pieces) == body
        assert min(len(piece) for piece in pieces[:-1]) >= PIECE
        assert part.size == len(body)


async def test_P9_no_more_than_one_piece_of_the_stream_is_read_ahead():
    pulled, body = 0, form_of(file("a.bin", bytes(50 * PIECE)), file("b.bin", b"b"))

    async def count_pieces() -> AsyncGenerator[bytes]:
        nonlocal pulled
        for piece in cut_at(body, range(0, len(body), PIECE)):
            pulled += 1
            yield piece

    part = await anext(MultipartForm(count_pieces(), FORM, LIMITS).parts())
    assert pulled == 1
    size = 0
    async for piece in part.pieces():
        size += len(piece)
        assert (pulled - 2) * PIECE <= size


WITHIN_FILE = begin_form(file("a", b"a"))
WITHIN_HEADERS = WITHIN_FILE[:60]
WITHIN_FIELD = begin_form(Field(name="agent", body=b"d"))
SILENT, REST, WHOLE = ("No more data of the form arrived for 5 s.", "Form fields took longer than 5 s", "The form took")


async def dripping(first: bytes, drop: bytes, pause: float) -> AsyncGenerator[bytes]:
    """Some bytes, then a drop again and again, each of which is waited for."""
    ready = asyncio.Event()
    yield first
    while True:
        if pause:
            asyncio.get_running_loop().call_later(pause, ready.set)
            await ready.wait()
            ready.clear()
        yield drop


async def refusal_of(stream: AsyncGenerator[bytes], limits: FormLimits) -> str:
    with pytest.raises(HTTPException) as caught_error:
        async for part in MultipartForm(stream, FORM, limits).parts():
            await part.skip(None)
    assert caught_error.value.status_code == 408
    return caught_error.value.detail


@pytest.mark.parametrize(
    ("first", "drop", "pause", "problem", "seconds"),
    [
        (WITHIN_FILE, b"d", 999, SILENT, 5),
        (WITHIN_FIELD, b"d", 999, REST, 5),
        (WITHIN_HEADERS, b"d", 999, REST, 5),
        (form_of(file("a", b"a")), b"d", 999, REST, 5),
        (b"\n", b"\n", 0.5, REST, 5),
        (WITHIN_HEADERS, b"d", 0.5, REST, 5),
        (WITHIN_FIELD, b"d", 0.5, REST, 5),
        (WITHIN_FIELD, b"\r\n" + WITHIN_FIELD, 0.5, REST, 5),
        # A file may come slowly for as long as a form may.
        (WITHIN_FILE, b"d", 4, WHOLE, 60),
    ],
)
def test_P9_silence_and_slowness_end_a_form(first: bytes, drop: bytes, pause: float, problem: str, seconds: float):
    limits = FormLimits(seconds=5, form_seconds=60)
    detail, now = run_virtually(refusal_of(dripping(first, drop, pause), limits))
    assert (problem in detail, now) == (True, seconds)


def test_P9_the_time_a_file_takes_is_not_held_against_the_rest():
    async def slow() -> AsyncGenerator[bytes]:
        drops = dripping(WITHIN_FILE, b"d", 3)
        for _ in range(4):
            yield await anext(drops)
        yield b"\r\n" + WITHIN_FIELD
        yield b"\r\n" + form_of()

    async def ends() -> list[bool]:
        form = MultipartForm(slow(), FORM, FormLimits(seconds=5))
        return [await part.skip(None) async for part in form.parts()]

    assert run_virtually(ends()) == ([True, True], 9)


async def test_P9_a_form_that_never_pauses_has_no_longer_than_any_other():
    assert "The form took longer" in await refusal_of(dripping(WITHIN_FILE, b"x", 0), FormLimits(form_seconds=0))


async def test_P9_a_form_is_ended_where_the_server_stops_and_one_that_comes_later_is_not_read():
    form = MultipartForm(dripping(WITHIN_FILE, b"d", 999), FORM, LIMITS)
    reading = asyncio.create_task((await anext(form.parts())).skip(None))
    await settle()
    form.stop()
    later = MultipartForm(send_pieces([WITHIN_FILE]), FORM, LIMITS)
    later.stop()
    for read_on in (reading, anext(later.parts())):
        with pytest.raises(HTTPException, match="The server is stopping") as caught_error:
            await read_on
        assert caught_error.value.status_code == 503


@pytest.mark.parametrize(
    "body",
    [
        b"\r\n" * 500 + form_of(file("a", b"a")),
        form_of(file("a", b"a" * 1_000)),
        form_of(Field(name="x", body=b"a" * 1_000)),
        form_of(b"A: " + b"b" * 1_000 + b"\r\nContent-Disposition: form-data; name=x\r\n\r\n"),
        form_of(*[file("a", b"")] * 20),
        form_of(file("a", b"a")) + b"x" * 1_000,
    ],
)
async def test_P9_every_byte_of_a_form_counts(body: bytes):
    pieces = list(cut_at(body, range(0, len(body), 100)))
    await read(pieces, FormLimits(all_bytes=len(body)))
    with pytest.raises(TooLarge, match=f"limit of {len(body) - 1:,} bytes"):
        await read(pieces, FormLimits(all_bytes=len(body) - 1))


@pytest.mark.parametrize("is_before", [True, False])
async def test_P9_no_more_than_a_little_may_stand_outside_of_a_form(is_before: bool):
    rest, form = [b"\n" * 4_096] * (OUTSIDE_BYTES // 4_096), form_of(file("a", b"a"))
    pieces = [*rest, form] if is_before else [form, *rest]
    assert await read(pieces) == expected([file("a", b"a")])
    with pytest.raises(TooLarge, match="more than 65,536 bytes outside of its boundaries"):
        await read([rest[0], *pieces] if is_before else [*pieces, rest[0]])


@pytest.mark.parametrize(
    ("body", "problem"),
    [
        (b"", "ends before the closing boundary"),
        (b'{"file": "a"}', "is not a form with the boundary"),
        (form_of(b"\r\nbody"), "without `Content-Disposition"),
        (form_of(b"Content-Disposition: form-data\r\n\r\nbody"), "without `Content-Disposition"),
        (form_of(b"no colon\r\n\r\nbody"), "is not a form"),
        (form_of(b": empty\r\n\r\nbody"), "is not a form"),
        (form_of(b"A: b\r\n" * 17 + b"\r\nbody"), "header count"),
        (form_of(b"A: " + b"b" * 70_000 + b"\r\n\r\nbody"), "header size"),
        (form_of(b"A: b" + b"c" * 40_000 + b"\r\nD: " + b"e" * 40_000 + b"\r\n\r\nbody"), "bytes of headers"),
        (form_of(file("a", b"a"), boundary="another"), "is not a form"),
        (form_of(*[file("a", b"a")] * 6), "more than 5 parts"),
    ],
)
async def test_P9_a_form_that_breaks_the_rules_is_refused_in_words(body: bytes, problem: str):
    with pytest.raises(WireError, match=problem):
        await read(cut_at(body, range(0, len(body), 65_536)), FormLimits(parts=5))


@pytest.mark.parametrize(
    ("disposition", "filename"),
    [
        ('form-data; name="f"', None),
        ('form-data; name="f"; filename=""', ""),
        ("form-data; name=f; filename=a.pdf", "a.pdf"),
        ('form-data; NAME="f"; FileName="a.pdf"', "a.pdf"),
        ('form-data; name="f"; filename="a;b=\\"c\\".pdf"', 'a;b="c".pdf'),
        ('form-data; name="f"; filename="C:\\dir\\a.pdf"', "C:\\dir\\a.pdf"),
        ('form-data; name="f"; filename="报告.pdf"', "报告.pdf"),
        ('form-data; name="f"; filename="plain.pdf"; filename*=UTF-8\'\'%E6%8A%A5.pdf', "报.pdf"),
        ("form-data; name=\"f\"; filename*=iso-8859-1'en'%A3.pdf", "£.pdf"),
        ('form-data; name="f"; filename="plain.pdf"; filename*=KOI8-R\'\'%C1.pdf', "plain.pdf"),
        ("form-data; name=\"f\"; filename*=UTF-8''%FF%00.pdf", "\ufffd\0.pdf"),
        ('form-data; name="f"; filename="never closed', ""),
    ],
)
def test_P9_the_name_of_a_file_is_read_as_its_sender_wrote_it(disposition: str, filename: str | None):
    heading = heading_of({"content-disposition": disposition, "content-type": "Text/Plain; charset=x"})
    assert (heading.name, heading.filename, heading.content_type) == ("f", filename, "text/plain")


def test_P9_headers_of_many_open_quotes_are_read_at_once():
    header = "form-data" + ';a="' * 16_000
    with pytest.raises(WireError, match="without `Content-Disposition"):
        heading_of({"content-disposition": header})


@pytest.mark.parametrize(
    ("parameters", "boundary"),
    [
        ("; boundary=abc", b"abc"),
        ('; charset=utf-8; Boundary="a b c"', b"a b c"),
        *[(text, None) for text in ("", "; boundary=", '; boundary=""', f"; boundary={'x' * 201}", "; charset=utf-8")],
    ],
)
def test_P9_the_boundary_is_the_one_the_content_type_names(parameters: str, boundary: bytes | None):
    fails = pytest.raises(WireError, match="content-type: has no boundary")
    with nullcontext() if boundary else fails:
        assert boundary_of(f"multipart/form-data{parameters}") == boundary
