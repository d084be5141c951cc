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

# Minimum size of the pieces of a part, except for the last piece.
PIECE = 65_536
# Maximum bytes before and after the parts. Some clients send a preamble or an epilogue.
OUTSIDE_BYTES = 65_536
HEADERS = 16
BOUNDARY_BYTES = 200
PARAMETER = re.compile(r';\s*([^\s;="]+)\s*=\s*(?:"((?:[^"\\]|\\.)*)"|([^;\s"]*))\s*', re.DOTALL)
ESCAPED = re.compile(r'\\(["\\])')
# A file name in the form of RFC 8187, such as `UTF-8''na%C3%AFve.txt`.
EXTENDED = re.compile(r"(utf-8|iso-8859-1)'[^']*'(.*)", re.IGNORECASE | re.DOTALL)
SILENT = "No more data of the form arrived for {seconds:g} s. Send it again without a pause."
FIELDS_TOO_SLOW = "Form fields took longer than {seconds:g} s to arrive. Retry on a faster connection."
TOO_SLOW = "The form took longer than {seconds:g} s to arrive. Retry on a faster connection, or split it."
TOO_MUCH = "The form exceeds the limit of {most:,} bytes. Send fewer or smaller files."
OUTSIDE = f"The form has more than {OUTSIDE_BYTES:,} bytes outside of its boundaries. Remove them."
STOPPING = "The server is stopping and has stored no files of the form. Send it again in a moment."


@dataclass(frozen=True, kw_only=True)
class FormLimits:
    """Limits of a form: parts, bytes of each part's headers, total bytes (None: no limit), and seconds.

    A file may pause for up to `seconds`. All other parts together may take `seconds`, and the whole form
    `form_seconds`.
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


_FormEvent: TypeAlias = Heading | bytes | _End


class MultipartForm:
    """Streaming reader of a form. It reads at most one chunk ahead."""

    def __init__(self, stream: AsyncGenerator[bytes], content_type: str, limits: FormLimits) -> None:
        self._stream = stream
        self._limits = limits
        self._parts_parser = _FormParser(boundary_of(content_type), limits.header_bytes)
        self._size = self._outside = 0
        self._is_in_part = False
        self._clock = asyncio.get_running_loop().time
        self._end = self._clock() + limits.form_seconds
        self._rest_seconds = limits.seconds
        self._timeout: asyncio.Timeout | None = None
        self._is_stopped = False

    def stop(self) -> None:
        """Make the current or next read fail, because the server is stopping."""
        self._is_stopped = True
        if self._timeout is not None and not self._timeout.expired():
            self._timeout.reschedule(self._clock())

    async def parts(self) -> AsyncGenerator[FormPart]:
        """Yield the parts in order. Skip the unread bytes of each part."""
        count = 0
        while (event := await self._next()) is not None:
            if not isinstance(event, Heading):
                continue
            count += 1
            if count > self._limits.parts:
                raise WireError(where="body", problem=f"has more than {self._limits.parts} parts. Send fewer at a time")
            self._is_in_part = True
            yield FormPart(self, event)

    async def next_bytes(self) -> bytes | None:
        """Return bytes of the current part; None at its end."""
        event = await self._next() if self._is_in_part else None
        if isinstance(event, bytes):
            return event
        self._is_in_part = False
        return None

    async def _next(self) -> _FormEvent | None:
        while not self._parts_parser.events:
            piece = await self._wait()
            if not piece and not self._parts_parser.is_over:
                raise WireError(where="body", problem="ends before the closing boundary of the form. Send all of it")
            self._size += len(piece)
            if self._limits.all_bytes is not None and self._size > self._limits.all_bytes:
                raise TooLarge(TOO_MUCH.format(most=self._limits.all_bytes))
            if not piece:
                return None
            was_over = self._parts_parser.is_over
            self._parts_parser.feed(piece)
            self._outside += len(piece) if was_over or not self._parts_parser.has_begun else 0
            if self._outside > OUTSIDE_BYTES:
                raise TooLarge(OUTSIDE)
        return self._parts_parser.events.popleft()

    async def _wait(self) -> bytes:
        """Return the next chunk, within the pause limit of a file or the total time of all other parts."""
        start, is_file = self._clock(), self._parts_parser.is_in_file
        seconds = self._limits.seconds if is_file else self._rest_seconds
        try:
            async with asyncio.timeout_at(min(start + seconds, self._end)) as self._timeout:
                # Compare the time as well, because the timeout never fires while data is always ready.
                piece = await anext(self._stream, b"") if start < self._end and not self._is_stopped else None
        except TimeoutError:
            piece = None
        finally:
            self._timeout = None
        if piece is None:
            if self._is_stopped:
                raise HTTPException(HTTPStatus.SERVICE_UNAVAILABLE, STOPPING)
            problem, seconds = SILENT if is_file else FIELDS_TOO_SLOW, self._limits.seconds
            if self._clock() >= self._end:
                problem, seconds = TOO_SLOW, self._limits.form_seconds
            raise HTTPException(HTTPStatus.REQUEST_TIMEOUT, problem.format(seconds=seconds))
        self._rest_seconds -= 0 if is_file else self._clock() - start
        return piece


class FormPart:
    """A part of a form. Its bytes can be read once, before the next part. `size` counts the bytes read."""

    def __init__(self, form: MultipartForm, heading: Heading) -> None:
        self._form = form
        self.heading = heading
        self.size = 0

    async def pieces(self) -> AsyncGenerator[bytes]:
        """Yield the bytes in large pieces."""
        buffer, size = list[bytes](), 0
        while (piece := await self._next()) is not None:
            buffer.append(piece)
            size += len(piece)
            if size >= PIECE:
                yield buffer[0] if len(buffer) == 1 else b"".join(buffer)
                buffer, size = [], 0
        if buffer:
            yield b"".join(buffer)

    async def text(self, limit: int) -> str:
        """Return the part as text. Raise WireError if it exceeds `limit` bytes."""
        content = bytearray()
        async for piece in self.pieces():
            content += piece
            if len(content) > limit:
                problem = f"has more than {limit:,} bytes. Give the part a filename if it is a file"
                raise WireError(where=self.heading.name, problem=problem)
        return decode(bytes(content))

    async def skip(self, limit: int | None) -> bool:
        """Skip the rest of the part. Stop and return False once the part exceeds `limit` bytes."""
        while limit is None or self.size <= limit:
            if await self._next() is None:
                return True
        return False

    async def _next(self) -> bytes | None:
        piece = await self._form.next_bytes()
        self.size += len(piece or b"")
        return piece


class _FormParser:
    """Parser events of a body in order, and the position in the form."""

    def __init__(self, boundary: bytes, header_bytes: int) -> None:
        self.events: deque[_FormEvent] = deque()
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

    def feed(self, piece: bytes) -> None:
        try:
            self._parser.write(piece)
        except FormParserError as error:
            problem = f"is not a form with the boundary of its content-type: {error}"
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
        self._headers[decode(bytes(self._field)).lower()] = decode(bytes(self._value))
        self._field, self._value = bytearray(), bytearray()

    def _end_headers(self) -> None:
        heading = heading_of(self._headers)
        self.is_in_file = heading.filename is not None
        self.events.append(heading)

    def _add_data(self, data: bytes, start: int, end: int) -> None:
        self.events.append(data[start:end])

    def _end_part(self) -> None:
        self.is_in_file = False
        self.events.append(_End.PART)

    def _finish(self) -> None:
        self.has_begun = self.is_over = True


def boundary_of(content_type: str) -> bytes:
    """Return the boundary of a content type."""
    boundary = dict(_parameters(content_type)).get("boundary", "").encode()
    if not 0 < len(boundary) <= BOUNDARY_BYTES:
        problem = f'has no boundary of up to {BOUNDARY_BYTES} bytes, as in `multipart/form-data; boundary="..."`'
        raise WireError(where="content-type", problem=problem)
    return boundary


def heading_of(headers: Mapping[str, str]) -> Heading:
    """Parse the headers of a part, given by lower-case names. `filename*` takes precedence over `filename`."""
    parameters = dict(_parameters(headers.get("content-disposition", "")))
    if "name" not in parameters:
        problem = "has a part without `Content-Disposition: form-data` and a name"
        raise WireError(where="body", problem=problem)
    filename = parameters.get("filename")
    if match := EXTENDED.fullmatch(parameters.get("filename*", "")):
        filename = unquote_to_bytes(match[2]).decode(match[1], "replace")
    content_type = headers.get("content-type", "").partition(";")[0].strip().lower() or None
    return Heading(name=parameters["name"], filename=filename, content_type=content_type)


def _parameters(header: str) -> Iterator[tuple[str, str]]:
    """Yield the parameters of a header up to the first invalid one."""
    place = header.find(";")
    while place >= 0 and (match := PARAMETER.match(header, place)):
        name, escaped_text, plain = match.groups()
        yield name.lower(), ESCAPED.sub(r"\1", escaped_text) if escaped_text is not None else plain
        place = match.end()


def decode(text: bytes) -> str:
    """Decode text as UTF-8, else as Latin-1."""
    try:
        return text.decode()
    except UnicodeDecodeError:
        return text.decode("latin-1")
