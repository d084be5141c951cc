"""List cursors. Clients send a cursor back unchanged; the server rejects a changed one."""

from __future__ import annotations

from base64 import urlsafe_b64decode, urlsafe_b64encode

from recto.conversation.json import dump, load
from recto.errors import WireError

MAX_LENGTH = 256
MAX_NUMBER = 2**63 - 1
NUL = "\0"
PROBLEM = "is not one of this server. Request the first page without a cursor, then continue with its `next`"


def encode_cursor(number: int, id: str) -> str:
    """Return the cursor after a row, given its sort key and id."""
    return urlsafe_b64encode(dump([number, id])).decode().rstrip("=")


def decode_cursor(text: str) -> tuple[int, str]:
    """Return the sort key and id of a cursor. Raise WireError for a text that is not a cursor of this server."""
    try:
        value = load(urlsafe_b64decode(text[:MAX_LENGTH].encode() + b"=" * (-len(text) % 4)))
    except ValueError:
        value = None
    match value:
        case [int(number), str(id)] if (
            abs(number) <= MAX_NUMBER and NUL not in id and encode_cursor(number, id) == text
        ):
            return number, id
        case _:
            raise WireError(where="cursor", problem=PROBLEM)
