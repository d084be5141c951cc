"""Content codings: unpack request bodies within a limit, and pack responses on request."""

from __future__ import annotations

import re
import zlib

from starlette.datastructures import Headers
from starlette.middleware.gzip import GZipMiddleware
from starlette.responses import Response, StreamingResponse
from starlette.types import ASGIApp, Scope

from recto.errors import WireError

PLAIN = frozenset({"", "identity"})
GZIP, DEFLATE = frozenset({"gzip", "x-gzip"}), "deflate"
CODINGS = "gzip, deflate"
# Window bits of gzip, zlib and raw deflate data. Many senders declare raw data as `deflate`.
GZIP_BITS, ZLIB_BITS, RAW_BITS = 31, 15, -15
# Low bits of the first byte of a zlib stream. Raw data from encoders never begins with these bits.
METHOD_BITS, METHOD = 0x0F, 8
SMALLEST_ANSWER, LEVEL = 1_024, 6
NO_GZIP = re.compile(r"gzip\s*;\s*q\s*=\s*0(\.0*)?\s*(,|$)", re.IGNORECASE)


def coding_of(headers: Headers) -> str:
    """Return the coding of a body; empty for none."""
    coding = ", ".join(headers.getlist("content-encoding")).strip().lower()
    return "" if coding in PLAIN else coding


def is_supported(coding: str) -> bool:
    """Return True if the coding is supported."""
    return not coding or coding in GZIP or coding == DEFLATE


class BodyDecoder:
    """Incremental decoder of a body. `end` reports all errors, so that the size check comes first."""

    def __init__(self, coding: str) -> None:
        self._coding = coding
        self._problem: str | None = None
        self._stream = zlib.decompressobj(GZIP_BITS) if coding in GZIP else None

    def feed(self, piece: bytes, limit: int) -> bytes:
        """Return a piece, or at most `limit` unpacked bytes of it if the body has a coding."""
        if not self._coding or not piece:
            return piece
        if self._problem:
            return b""
        if self._stream is None:
            self._stream = zlib.decompressobj(ZLIB_BITS if piece[0] & METHOD_BITS == METHOD else RAW_BITS)
        try:
            unpacked = self._stream.decompress(piece, limit)
        except zlib.error as error:
            self._problem = f"is not {self._coding}: {error}"
            return b""
        if self._stream.unused_data:
            self._problem = f"continues after the end of its {self._coding} data"
        return unpacked

    def end(self) -> None:
        """Reject a body that is invalid or incomplete."""
        if self._coding and not self._problem and (self._stream is None or not self._stream.eof):
            self._problem = f"ends before its {self._coding} data is complete. Send all of it"
        if self._problem:
            raise WireError(where="body", problem=self._problem)


def accepts_gzip(headers: Headers) -> bool:
    """Return True if the client accepts gzip."""
    codings = headers.get("accept-encoding", "")
    return "gzip" in codings and not NO_GZIP.search(codings)


def pack(scope: Scope, answer: Response) -> ASGIApp:
    """Return the response, compressed if the client accepts gzip.

    Event streams stay uncompressed. So do responses with an ETag, which identifies exact bytes: files, and the web
    page, which is already compressed.
    """
    is_small = not isinstance(answer, StreamingResponse) and len(answer.body) < SMALLEST_ANSWER
    if is_small or "etag" in answer.headers:
        return answer
    if NO_GZIP.search(Headers(scope=scope).get("accept-encoding", "")):
        return answer
    return GZipMiddleware(answer, minimum_size=SMALLEST_ANSWER, compresslevel=LEVEL)
