"""Content codings: bodies that come packed are unpacked within a limit, answers are packed for who asks for it."""

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
TAKEN = "gzip, deflate"
# How zlib is told the format: gzip, its own, or none around the data, which many senders mean by deflate.
GZIP_BITS, ZLIB_BITS, RAW_BITS = 31, 15, -15
# Of the first byte: how a stream of zlib begins, and no encoder's bare data.
METHOD_BITS, METHOD = 0x0F, 8
SMALLEST_ANSWER, LEVEL = 1_024, 6
NO_GZIP = re.compile(r"gzip\s*;\s*q\s*=\s*0(\.0*)?\s*(,|$)", re.IGNORECASE)


def coding_of(headers: Headers) -> str:
    """How a body is packed; empty where it is not."""
    coding = ", ".join(headers.getlist("content-encoding")).strip().lower()
    return "" if coding in PLAIN else coding


def is_taken(coding: str) -> bool:
    """Whether we can unpack it."""
    return not coding or coding in GZIP or coding == DEFLATE


class Unpacked:
    """A body as it is unpacked, piece by piece. One that is not packed is passed on. What is wrong is told at its end:
    whether it is too large is asked before.
    """

    def __init__(self, coding: str) -> None:
        self._coding = coding
        self._problem: str | None = None
        self._stream = zlib.decompressobj(GZIP_BITS) if coding in GZIP else None

    def feed(self, piece: bytes, most: int) -> bytes:
        """What a piece holds, `most` bytes of it and not one more."""
        if not self._coding or not piece:
            return piece
        if self._problem:
            return b""
        if self._stream is None:
            self._stream = zlib.decompressobj(ZLIB_BITS if piece[0] & METHOD_BITS == METHOD else RAW_BITS)
        try:
            found = self._stream.decompress(piece, most)
        except zlib.error as error:
            self._problem = f"is no {self._coding}: {error}"
            return b""
        if self._stream.unused_data:
            self._problem = f"goes on behind the end of its {self._coding}"
        return found

    def end(self) -> None:
        """Refuse a body that could not be unpacked, or stops before its end."""
        if self._coding and not self._problem and (self._stream is None or not self._stream.eof):
            self._problem = f"ends before its {self._coding} does; send all of it"
        if self._problem:
            raise WireError(where="body", problem=self._problem)


def takes_gzip(headers: Headers) -> bool:
    """Whether who asks takes an answer that is packed."""
    accepted = headers.get("accept-encoding", "")
    return "gzip" in accepted and not NO_GZIP.search(accepted)


def packed(scope: Scope, answer: Response) -> ASGIApp:
    """An answer, packed where that is wanted. Not streams of events, which go out as they come, and not what has a
    tag, which names its bytes as they are: files, and the web page, which comes packed.
    """
    is_small = not isinstance(answer, StreamingResponse) and len(answer.body) < SMALLEST_ANSWER
    if is_small or "etag" in answer.headers:
        return answer
    if NO_GZIP.search(Headers(scope=scope).get("accept-encoding", "")):
        return answer
    return GZipMiddleware(answer, minimum_size=SMALLEST_ANSWER, compresslevel=LEVEL)
