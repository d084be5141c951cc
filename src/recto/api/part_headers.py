"""What the headers of a form and of its parts say, as their sender wrote it. Refuses a part without a name."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from urllib.parse import unquote_to_bytes

from recto.errors import WireError

BOUNDARY_BYTES = 200
PARAMETER = re.compile(r';\s*([^\s;="]+)\s*=\s*(?:"((?:[^"\\]|\\.)*)"|([^;\s"]*))\s*', re.DOTALL)
ESCAPED = re.compile(r'\\(["\\])')
CHARSETS = frozenset({"utf-8", "iso-8859-1"})


@dataclass(frozen=True, kw_only=True)
class Heading:
    """What a part says of itself. One without a `filename` is a field with a text."""

    name: str
    filename: str | None = None
    content_type: str | None = None


def boundary_of(content_type: str) -> bytes:
    """The boundary a content-type names."""
    boundary = dict(_parameters(content_type)).get("boundary", "").encode()
    if not 0 < len(boundary) <= BOUNDARY_BYTES:
        problem = f'names no boundary of up to {BOUNDARY_BYTES} bytes, as in `multipart/form-data; boundary="..."`'
        raise WireError(where="content-type", problem=problem)
    return boundary


def heading_of(headers: Mapping[str, str]) -> Heading:
    """What the headers of a part say, by their names in lower case. `filename*` is heard before `filename`."""
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
    """The parameters of a header, one behind the other: what cannot be read ends them."""
    place = header.find(";")
    while place >= 0 and (found := PARAMETER.match(header, place)):
        name, quoted, plain = found.groups()
        yield name.lower(), ESCAPED.sub(r"\1", quoted) if quoted is not None else plain
        place = found.end()


def _extended(value: str) -> str | None:
    """A name as RFC 8187 writes it: `UTF-8''na%C3%AFve.txt`. None where it is not so written."""
    charset, _, rest = value.partition("'")
    _, quote, encoded = rest.partition("'")
    if not quote or charset.lower() not in CHARSETS:
        return None
    return unquote_to_bytes(encoded).decode(charset, "replace")


def decoded(text: bytes) -> str:
    """Text as most senders mean it; what is no UTF-8 has a letter for every byte."""
    try:
        return text.decode()
    except UnicodeDecodeError:
        return text.decode("latin-1")
