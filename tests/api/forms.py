"""Forms with files, as bytes: what a client would send."""

from collections.abc import AsyncGenerator, Iterable, Iterator, Sequence
from dataclasses import dataclass

BOUNDARY = "----a-boundary-of-our-tests"
FORM = f"multipart/form-data; boundary={BOUNDARY}"


@dataclass(frozen=True, kw_only=True)
class Field:
    """A part of a form. One with a filename is a file."""

    name: str = "file"
    body: bytes = b""
    filename: str | None = None
    content_type: str | None = None

    @property
    def headers(self) -> bytes:
        name_field = f'; filename="{_quote(self.filename)}"' if self.filename is not None else ""
        lines = [f'Content-Disposition: form-data; name="{_quote(self.name)}"{name_field}']
        lines += [f"Content-Type: {self.content_type}"] if self.content_type else []
        return "\r\n".join([*lines, "", ""]).encode()


def file(filename: str, body: bytes, content_type: str | None = None) -> Field:
    return Field(filename=filename, body=body, content_type=content_type)


def form_of(*parts: Field | bytes, boundary: str = BOUNDARY) -> bytes:
    """A whole form. A part of bytes has its own headers."""
    mark = f"--{boundary}".encode()
    texts = [part if isinstance(part, bytes) else part.headers + part.body for part in parts]
    return b"".join([mark + b"\r\n" + part + b"\r\n" for part in texts]) + mark + b"--\r\n"


def begin_form(*parts: Field | bytes) -> bytes:
    """A form that is not ended: its last part may go on."""
    return form_of(*parts).removesuffix(b"\r\n" + form_of())


def cut_at(body: bytes, places: Sequence[int]) -> Iterator[bytes]:
    """Bytes in pieces that end at these places."""
    ends = [*sorted({place % (len(body) + 1) for place in places}), len(body)]
    start = 0
    for end in ends:
        if end > start:
            yield body[start:end]
        start = end


async def send_pieces(pieces: Iterable[bytes]) -> AsyncGenerator[bytes]:
    """Pieces as a request hands them out: an empty one is the last."""
    for piece in pieces:
        yield piece
    yield b""


def _quote(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"')
