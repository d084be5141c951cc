"""Streaming parser of multipart/form-data: part by part, in pieces, never holding a whole file."""

from __future__ import annotations

import asyncio
import re
from collections import deque
from collections.abc import AsyncGenerator, Iterator, Mapping
from dataclasses import dataclass
from enum import Enum, auto
from http import HTTPStatus
from typing import TypeAlias
from urllib.parse import unquote_to_bytes

from python_multipart.exceptions import FormParserError
from python_multipart.multipart import MultipartParser
from starlette.exceptions import HTTPException

from recto.errors import TooLarge, WireError

# Minimum size of the pieces handed on, if available.
PIECE = 65_536
# Some clients send a preamble or an epilogue.
OUTSIDE_BYTES = 65_536
HEADERS = 16
BOUNDARY_BYTES = 200
PARAMETER = re.compile(r';\s*([^\s;="]+)\s*=\s*(?:"((?:[^"\\]|\\.)*)"|([^;\s"]*))\s*', re.DOTALL)
ESCAPED = re.compile(r'\\(["\\])')
CHARSETS = frozenset({"utf-8", "iso-8859-1"})
SILENT = "Nothing more of the form came for {seconds:g} seconds. Send it again, without a pause."
REST_TOO_SLOW = "What is no file in the form took {seconds:g} seconds in all. Send it again, faster."
TOO_SLOW = "The form took longer than {seconds:g} seconds. Send it again, faster, or in several forms."
TOO_MUCH = "The form has more than {most:,} bytes, the most that is read of one. Send fewer files, or smaller ones."
OUTSIDE = f"The form has more than {OUTSIDE_BYTES:,} bytes outside of its boundaries. Leave them out."
STOPPING = "The server is stopping, and nothing of the form was kept. Send it again in a moment."


@dataclass(frozen=True, kw_only=True)
class FormLimits:
    """Limits of a form: parts, bytes of each part's headers, total bytes (None: no limit), and seconds.

    A file may pause for `seconds`, all other parts together may take `seconds`, and the whole form `form_seconds`.
    """

    parts: int = 1_000
    header_bytes: int = 65_536
    all_bytes: int | None = None
    seconds: float = 60.0
    form_seconds: float = 3_600.0


@dataclass(frozen=True, kw_only=True)
class Heading:
    """Headers of a part. A part without `filename` is a text field."""

    name: str
    filename: str | None = None
    content_type: str | None = None


class _End(Enum):
    PART = auto()


_Found: TypeAlias = Heading | bytes | _End


class MultipartForm:
    """A form that is read as it arrives, at most one chunk ahead of what was requested."""

    def __init__(self, stream: AsyncGenerator[bytes], content_type: str, limits: FormLimits) -> None:
        self._stream = stream
        self._limits = limits
        self._finds = _Finds(boundary_of(content_type), limits.header_bytes)
        self._size = self._outside = 0
        self._is_in_part = False
        self._clock = asyncio.get_running_loop().time
        self._end = self._clock() + limits.form_seconds
        self._rest_seconds = limits.seconds
        self._waiting: asyncio.Timeout | None = None
        self._is_stopped = False

    def stop(self) -> None:
        """Make readers fail because the server stops; waiting ones fail at once."""
        self._is_stopped = True
        if self._waiting is not None and not self._waiting.expired():
            self._waiting.reschedule(self._clock())

    async def parts(self) -> AsyncGenerator[FormPart]:
        """Yield the parts in order. Unread rest of a part is skipped."""
        count = 0
        while (found := await self._next()) is not None:
            if not isinstance(found, Heading):
                continue
            count += 1
            if count > self._limits.parts:
                raise WireError(where="body", problem=f"has more than {self._limits.parts} parts; send fewer at a time")
            self._is_in_part = True
            yield FormPart(self, found)

    async def next_bytes(self) -> bytes | None:
        """Return bytes of the current part; None at its end."""
        found = await self._next() if self._is_in_part else None
        if isinstance(found, bytes):
            return found
        self._is_in_part = False
        return None

    async def _next(self) -> _Found | None:
        while not self._finds.waiting:
            piece = await self._read()
            if not piece:
                return None
            was_over = self._finds.is_over
            self._finds.look_into(piece)
            self._outside += len(piece) if was_over or not self._finds.has_begun else 0
            if self._outside > OUTSIDE_BYTES:
                raise TooLarge(OUTSIDE)
        return self._finds.waiting.popleft()

    async def _read(self) -> bytes:
        piece = await self._wait()
        if not piece and not self._finds.is_over:
            raise WireError(where="body", problem="ends before the boundary that closes the form; send all of it")
        self._size += len(piece)
        if self._limits.all_bytes is not None and self._size > self._limits.all_bytes:
            raise TooLarge(TOO_MUCH.format(most=self._limits.all_bytes))
        return piece

    async def _wait(self) -> bytes:
        """Return the next chunk. The wait counts against the current file, or against all other parts."""
        begun, is_file = self._clock(), self._finds.is_in_file
        seconds = self._limits.seconds if is_file else self._rest_seconds
        try:
            async with asyncio.timeout_at(min(begun + seconds, self._end)) as self._waiting:
                # A client that always has data ready would never time out.
                piece = await anext(self._stream, b"") if begun < self._end and not self._is_stopped else None
        except TimeoutError:
            piece = None
        finally:
            self._waiting = None
        if piece is None:
            raise self._ended(is_file=is_file)
        self._rest_seconds -= 0 if is_file else self._clock() - begun
        return piece

    def _ended(self, *, is_file: bool) -> HTTPException:
        """Return the reason to stop waiting."""
        if self._is_stopped:
            return HTTPException(HTTPStatus.SERVICE_UNAVAILABLE, STOPPING)
        if self._clock() >= self._end:
            return HTTPException(HTTPStatus.REQUEST_TIMEOUT, TOO_SLOW.format(seconds=self._limits.form_seconds))
        problem = SILENT if is_file else REST_TOO_SLOW
        return HTTPException(HTTPStatus.REQUEST_TIMEOUT, problem.format(seconds=self._limits.seconds))


class FormPart:
    """A part of a form. Its bytes can be read once, before the next part. `taken` counts the bytes read."""

    def __init__(self, form: MultipartForm, heading: Heading) -> None:
        self._form = form
        self.heading = heading
        self.taken = 0

    async def pieces(self) -> AsyncGenerator[bytes]:
        """Yield the bytes in large pieces."""
        held, size = list[bytes](), 0
        while (piece := await self._next()) is not None:
            held.append(piece)
            size += len(piece)
            if size >= PIECE:
                yield held[0] if len(held) == 1 else b"".join(held)
                held, size = [], 0
        if held:
            yield b"".join(held)

    async def text(self, most: int) -> str:
        """Return a short text."""
        read = bytearray()
        async for piece in self.pieces():
            read += piece
            if len(read) > most:
                break
        if len(read) > most:
            problem = f"has more than {most:,} bytes; a part that is a file has a filename"
            raise WireError(where=self.heading.name, problem=problem)
        return decoded(bytes(read))

    async def skip(self, most: int | None) -> bool:
        """Skip the rest, up to `most` bytes of the whole part. Returns True at its end."""
        while most is None or self.taken <= most:
            if await self._next() is None:
                return True
        return False

    async def _next(self) -> bytes | None:
        piece = await self._form.next_bytes()
        self.taken += len(piece or b"")
        return piece


class _Finds:
    """Parser events of a body in order, and the position in the form."""

    def __init__(self, boundary: bytes, header_bytes: int) -> None:
        self.waiting: deque[_Found] = deque()
        self.has_begun = self.is_in_file = self.is_over = False
        self._header_bytes = header_bytes
        self._size = 0
        self._field, self._value = bytearray(), bytearray()
        self._headers: dict[str, str] = {}
        self._parser = MultipartParser(
            boundary,
            {
                "on_part_begin": self._begin,
                "on_header_field": self._add_field,
                "on_header_value": self._add_value,
                "on_header_end": self._end_header,
                "on_headers_finished": self._end_headers,
                "on_part_data": self._add_data,
                "on_part_end": self._end_part,
                "on_end": self._finish,
            },
            max_header_count=HEADERS,
            max_header_size=header_bytes,
        )

    def look_into(self, piece: bytes) -> None:
        try:
            self._parser.write(piece)
        except FormParserError as error:
            problem = f"is no form with the boundary its content-type names: {error}"
            raise WireError(where="body", problem=problem) from error

    def _begin(self) -> None:
        self._headers, self._size, self.has_begun = {}, 0, True

    def _add_field(self, data: bytes, start: int, end: int) -> None:
        self._count(end - start)
        self._field += data[start:end]

    def _add_value(self, data: bytes, start: int, end: int) -> None:
        self._count(end - start)
        self._value += data[start:end]

    def _count(self, size: int) -> None:
        self._size += size
        if self._size > self._header_bytes:
            raise WireError(where="body", problem=f"has a part with more than {self._header_bytes:,} bytes of headers")

    def _end_header(self) -> None:
        self._headers[decoded(bytes(self._field)).lower()] = decoded(bytes(self._value))
        self._field, self._value = bytearray(), bytearray()

    def _end_headers(self) -> None:
        heading = heading_of(self._headers)
        self.is_in_file = heading.filename is not None
        self.waiting.append(heading)

    def _add_data(self, data: bytes, start: int, end: int) -> None:
        self.waiting.append(data[start:end])

    def _end_part(self) -> None:
        self.is_in_file = False
        self.waiting.append(_End.PART)

    def _finish(self) -> None:
        self.has_begun = self.is_over = True


def boundary_of(content_type: str) -> bytes:
    """Return the boundary of a content type."""
    boundary = dict(_parameters(content_type)).get("boundary", "").encode()
    if not 0 < len(boundary) <= BOUNDARY_BYTES:
        problem = f'names no boundary of up to {BOUNDARY_BYTES} bytes, as in `multipart/form-data; boundary="..."`'
        raise WireError(where="content-type", problem=problem)
    return boundary


def heading_of(headers: Mapping[str, str]) -> Heading:
    """Parse the headers of a part, given by lower-case names. `filename*` takes precedence over `filename`."""
    parameters = dict(_parameters(headers.get("content-disposition", "")))
    if "name" not in parameters:
        problem = "has a part without `Content-Disposition: form-data` and a name"
        raise WireError(where="body", problem=problem)
    extended = _extended(parameters["filename*"]) if "filename*" in parameters else None
    return Heading(
        name=parameters["name"],
        filename=extended if extended is not None else parameters.get("filename"),
        content_type=headers.get("content-type", "").partition(";")[0].strip().lower() or None,
    )


def _parameters(header: str) -> Iterator[tuple[str, str]]:
    """Yield the parameters of a header up to the first invalid one."""
    place = header.find(";")
    while place >= 0 and (found := PARAMETER.match(header, place)):
        name, quoted, plain = found.groups()
        yield name.lower(), ESCAPED.sub(r"\1", quoted) if quoted is not None else plain
        place = found.end()


def _extended(value: str) -> str | None:
    """Decode a name as of RFC 8187, such as `UTF-8''na%C3%AFve.txt`. None if invalid."""
    charset, _, rest = value.partition("'")
    _, quote, encoded = rest.partition("'")
    if not quote or charset.lower() not in CHARSETS:
        return None
    return unquote_to_bytes(encoded).decode(charset, "replace")


def decoded(text: bytes) -> str:
    """Decode text as UTF-8, else as Latin-1."""
    try:
        return text.decode()
    except UnicodeDecodeError:
        return text.decode("latin-1")
