"""Sample model calls of invented pages, and their bodies."""

from collections.abc import Sequence
from hashlib import sha256

from recto.page.body import Segment
from recto.store.ports import CallStart
from tests.store.suite.samples import at


def call(number: int, page: str, *, shared: int = 0, new: str | None = None, manifest: bytes = b"[]") -> CallStart:
    """Return a call of a page with one segment per letter; `new` are the segments to store."""
    segments = [segment(letter) for letter in (page[shared:] if new is None else new)]
    return CallStart(
        number=number,
        purpose="reply",
        model="gpt-x",
        digest="d" * 64,
        shared=shared,
        hashes=b"".join([segment(letter).sha256 for letter in page[shared:]]),
        segments=segments,
        manifest=manifest,
        started=at(number),
    )


def segment(letter: str) -> Segment:
    """Return bytes other than the letter alone, so that order and borders matter."""
    data = f"<{letter}>".encode() * 3
    return Segment(data=data, sha256=sha256(data).digest())


def body_of(page: Sequence[str]) -> bytes:
    return b"".join([segment(letter).data for letter in page])
