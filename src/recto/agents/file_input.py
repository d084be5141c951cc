"""Attachments that an agent accepts (D1): kinds, endings, number and size."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

from recto.conversation.file_formats import UNKNOWN, format_by_ending
from recto.conversation.messages import FileKind

# Access to documents: the model reads them with a tool, or every page contains them (D2).
FileMode: TypeAlias = Literal["tool", "always"]
FIELDS: Mapping[FileKind, str] = {"document": "documents", "image": "images", "audio": "audio", "video": "video"}
# Name of the tool that reads documents, and its name in old logs. Agents need not list this tool.
READING, OLD_READING = "read_files", "file_read"


@dataclass(frozen=True, kw_only=True)
class FileInput:
    """Attachments that an agent accepts. Files with the extra `endings` count as documents.

    Without `max_bytes`, the server's limit applies. In mode `always`, pages contain up to `quote_tokens` of documents.
    `urls` are the hosts from which files may be fetched, such as `example.com`, `*.example.com` or `*` for all (D7).
    """

    is_on: bool = False
    documents: bool = True
    images: bool = True
    audio: bool = False
    video: bool = False
    endings: tuple[str, ...] = ()
    max_files: int = 10
    max_bytes: int | None = None
    mode: FileMode = "tool"
    quote_tokens: int = 20_000
    urls: tuple[str, ...] = ()

    @property
    def takes_documents(self) -> bool:
        """Return True if documents are accepted, either all documents or only files with extra endings."""
        return self.is_on and (self.documents or bool(self.endings))

    def takes(self, kind: FileKind) -> bool:
        """Return True if files of a kind are accepted."""
        return self.is_on and bool(getattr(self, FIELDS[kind]))

    def why_not(self, kind: FileKind, mime_type: str, name: str, size: int) -> str | None:
        """Return the reason why a file is rejected, or None. Text files are accepted with any ending."""
        if not self.is_on:
            return "this agent accepts no files; name one that does with `agent`"
        ending = name.rpartition(".")[2].lower() if "." in name else ""
        is_extra = ending in self.endings
        if not self.takes(kind) and not (is_extra and kind == "document"):
            types = ", ".join(field for one, field in FIELDS.items() if self.takes(one)) or "nothing"
            return f"this agent accepts no {FIELDS[kind]}; it accepts {types}"
        formats = format_by_ending(ending)
        # Accept text files, and known formats if their bytes match.
        is_document = formats is not None and formats.kind == "document" and mime_type != UNKNOWN
        is_accepted = is_extra or is_document or mime_type.startswith("text/")
        if kind == "document" and ending and not is_accepted:
            return f"files ending in .{ending[:20]} are not accepted; the agent's `file_input.endings` may allow them"
        if self.max_bytes is not None and size > self.max_bytes:
            return f"it has {size:,} bytes; this agent accepts files of up to {self.max_bytes:,}"
        return None


OFF = FileInput()


def with_reading(tools: Sequence[str], takes_documents: bool) -> tuple[str, ...]:
    """Return the names of an agent's tools. Include the document reader if users may attach documents (F5)."""
    return (*tools, READING) if takes_documents and READING not in tools else tuple(tools)
