"""Attachments: storage, signing, types, parsing, outbound fetching. Refuses to parse in our own process.

For programs that only want to read documents: `read_document`, or `read_document_now` where nothing is asynchronous.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from recto.files.reading import ReadDocument, read_document, read_document_now

__all__ = ["ReadDocument", "read_document", "read_document_now"]


def __getattr__(name: str) -> object:
    """The reader of documents, once somebody asks for it: everything in this room imports this file."""
    if name in __all__:
        return getattr(import_module("recto.files.reading"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
