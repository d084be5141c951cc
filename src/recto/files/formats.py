"""The format of a file by its usual ending, as a parser is told of it. Refuses nothing: what is unknown is text."""

from __future__ import annotations

from recto.files.names import ending_of
from recto.files.types import DOCUMENTS, ending_for

TEXT = "txt"
# What is not here is read as plain text: code, settings, logs, and what nobody knows.
FORMATS = frozenset(
    {
        *("pdf", "doc", "docx", "xls", "xlsx", "ppt", "pptx", "odt", "ods", "odp", "odg", "rtf", "epub", "eml", "msg"),
        *("csv", "tsv", "md", "html", "json", "jsonl", "xml", TEXT),
    }
)


def format_of(mime_type: str, name: str) -> str:
    """What a file's bytes are: the stored type says so, else the name's ending (F12)."""
    known = ending_for(mime_type) or ending_for(DOCUMENTS.get(ending_of(name)))
    ending = known.removeprefix(".")
    return ending if ending in FORMATS else TEXT
