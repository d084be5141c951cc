"""Cursors: where a list goes on, as a text clients hand back. Refuses what was not made here."""

from __future__ import annotations

from base64 import urlsafe_b64decode, urlsafe_b64encode

from recto.conversation.json import dump, load
from recto.errors import WireError

LONGEST = 256
LARGEST = 2**63 - 1
NUL = "\0"
PROBLEM = "is none this server gave out. Ask for the first page without one, and go on with its `next`"


def write_cursor(number: int, id: str) -> str:
    """The cursor behind a row, by what the list is ordered by."""
    return urlsafe_b64encode(dump([number, id])).decode().rstrip("=")


def read_cursor(text: str) -> tuple[int, str]:
    """What a cursor says. One that was cut, changed or made up raises WireError."""
    try:
        found = load(urlsafe_b64decode(text[:LONGEST].encode() + b"=" * (-len(text) % 4)))
    except ValueError:
        found = None
    match found:
        case [int(number), str(id)] if abs(number) <= LARGEST and NUL not in id and write_cursor(number, id) == text:
            return number, id
        case _:
            raise WireError(where="cursor", problem=PROBLEM)
