"""What files an agent takes (D1): whether any, which kinds and endings, how many, how large."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

from recto.conversation.file_formats import UNKNOWN, format_by_ending
from recto.conversation.messages import FileKind

# The model reads what it wants to with a tool, or every page of its carries the documents (D2).
FileMode: TypeAlias = Literal["tool", "always"]
FIELDS: Mapping[FileKind, str] = {"document": "documents", "image": "images", "audio": "audio", "video": "video"}
# The tool that reads documents, and the one that old logs did it with; agents need not name them.
READING, OLD_READING = "read_files", "file_read"


@dataclass(frozen=True, kw_only=True)
class FileInput:
    """What an agent's users may attach. `endings` are taken as documents beside those known to be.

    `max_bytes` None is what the server takes. In mode `always` pages carry the documents, up to `quote_tokens` of them.
    `urls` are the hosts that files may be fetched from, such as `example.com`, `*.example.com` or `*` for all (D7).
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
        """Whether documents may come, all or only those of extra endings."""
        return self.is_on and (self.documents or bool(self.endings))

    def takes(self, kind: FileKind) -> bool:
        """Whether files of a kind may come."""
        return self.is_on and bool(getattr(self, FIELDS[kind]))

    def why_not(self, kind: FileKind, mime_type: str, name: str, size: int) -> str | None:
        """Why a file may not be attached, in words for whoever sent it; None where it may.

        What is text may be, whatever its name ends in.
        """
        if not self.is_on:
            return "this agent takes no files; name one that does with `agent`"
        ending = name.rpartition(".")[2].lower() if "." in name else ""
        is_extra = ending in self.endings
        if not self.takes(kind) and not (is_extra and kind == "document"):
            types = ", ".join(field for one, field in FIELDS.items() if self.takes(one)) or "nothing"
            return f"this agent takes no {FIELDS[kind]}; it takes {types}"
        if kind == "document" and ending and not is_extra and not _is_known(mime_type, ending):
            return f"files ending in .{ending[:20]} are not taken; the agent's `file_input.endings` may name more"
        if self.max_bytes is not None and size > self.max_bytes:
            return f"it has {size:,} bytes; this agent takes files of up to {self.max_bytes:,}"
        return None


OFF = FileInput()


def _is_known(mime_type: str, ending: str) -> bool:
    """Whether a document is one that can be read: text, or of a format by its ending, as far as its bytes are."""
    formats = format_by_ending(ending)
    return mime_type.startswith("text/") or (
        formats is not None and formats.kind == "document" and mime_type != UNKNOWN
    )


def with_reading(tools: Sequence[str], takes_documents: bool) -> tuple[str, ...]:
    """The names of an agent's tools. One whose users may attach documents can read them, whatever it names (F5)."""
    return (*tools, READING) if takes_documents and READING not in tools else tuple(tools)
