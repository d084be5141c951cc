"""File formats, one row each: extensions, media type, kind, container of the bytes, parser, and how Recto serves them.

To add a format, add a row. Parsers are in `recto.files.parsing.formats.parse`. Plain text needs no row: Recto accepts
and reads it under any name.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal, TypeAlias

from recto.conversation.messages import FileKind

# Parsers of documents in `recto.files.parsing.formats.parse`.
ParserName: TypeAlias = Literal["pdf", "flowing", "sheets", "slides", "mail", "table", "html", "notebook", "text"]
# Containers of a document's bytes.
ByteContainer: TypeAlias = Literal["pdf", "zip", "ole", "rtf", "text"]
# Ways to serve a file: shown in the browser, saved, or as plain bytes so that no browser runs the file.
Served: TypeAlias = Literal["shown", "saved", "bytes"]

UNKNOWN = "application/octet-stream"
PLAIN = "text/plain"
TEXT = "txt"
ONLY_TEXT: tuple[ByteContainer, ...] = ("text",)

_ZIP: tuple[ByteContainer, ...] = ("zip",)
# A password-protected document is a zip inside Microsoft's old container (OLE).
_ZIP_OR_OLE: tuple[ByteContainer, ...] = ("zip", "ole")
_OPEN_XML = "application/vnd.openxmlformats-officedocument"
_OPEN_DOCUMENT = "application/vnd.oasis.opendocument"
# Extensions of plain text files.
_PLAIN_ENDINGS = (
    *("text", "log", "ini", "cfg", "conf", "env", "properties", "diff", "patch", "rst", "adoc", "tex", "bib", "srt"),
    *("vtt", "ics", "vcf", "css", "scss", "sass", "less", "ts", "tsx", "jsx", "mjs", "cjs", "vue", "svelte", "java"),
    *("kt", "kts", "scala", "groovy", "gradle", "c", "h", "cpp", "cc", "hpp", "cs", "go", "rs", "swift", "dart", "rb"),
    *("php", "pl", "lua", "r", "jl", "ex", "exs", "erl", "hs", "clj", "sh", "bash", "zsh", "ps1", "bat", "sql"),
    *("graphql", "proto", "tf", "cmake", "mk"),
)


@dataclass(frozen=True, kw_only=True)
class FileFormat:
    """A format, identified by its usual extension.

    `containers` apply to documents; other files are recognised by their bytes. Without a `parser`, Recto reads the file
    as plain text. `endings` and `mime_types` are synonyms.
    """

    ending: str
    mime_type: str
    kind: FileKind = "document"
    containers: tuple[ByteContainer, ...] = ONLY_TEXT
    parser: ParserName | None = None
    served: Served = "bytes"
    endings: tuple[str, ...] = ()
    mime_types: tuple[str, ...] = ()


def _document(
    ending: str, mime_type: str, containers: tuple[ByteContainer, ...], parser: ParserName, served: Served = "saved"
) -> FileFormat:
    return FileFormat(ending=ending, mime_type=mime_type, containers=containers, parser=parser, served=served)


def _text(ending: str, mime_type: str, parser: ParserName | None = None, served: Served = "bytes") -> FileFormat:
    return FileFormat(ending=ending, mime_type=mime_type, parser=parser, served=served)


def _media(
    ending: str,
    mime_type: str,
    served: Served = "bytes",
    endings: tuple[str, ...] = (),
    mime_types: tuple[str, ...] = (),
) -> FileFormat:
    kinds: Mapping[str, FileKind] = {"image": "image", "audio": "audio", "video": "video"}
    kind = kinds[mime_type.partition("/")[0]]
    return FileFormat(
        ending=ending, mime_type=mime_type, kind=kind, served=served, endings=endings, mime_types=mime_types
    )


FORMATS: tuple[FileFormat, ...] = (
    _document("pdf", "application/pdf", ("pdf",), "pdf", "shown"),
    _document("docx", f"{_OPEN_XML}.wordprocessingml.document", _ZIP_OR_OLE, "flowing"),
    # Many programs write HTML or plain text with the extensions of the old formats.
    _document("doc", "application/msword", ("ole", "rtf", "text"), "flowing"),
    _document("odt", f"{_OPEN_DOCUMENT}.text", _ZIP, "flowing"),
    _document("rtf", "application/rtf", ("rtf",), "flowing"),
    FileFormat(
        ending="xlsx",
        mime_type=f"{_OPEN_XML}.spreadsheetml.sheet",
        containers=_ZIP_OR_OLE,
        parser="sheets",
        served="saved",
        # Recto does not read or run macros.
        endings=("xlsm",),
        mime_types=("application/vnd.ms-excel.sheet.macroenabled.12",),
    ),
    _document("xls", "application/vnd.ms-excel", ("ole", "text"), "sheets"),
    _document("ods", f"{_OPEN_DOCUMENT}.spreadsheet", _ZIP, "sheets"),
    _document("pptx", f"{_OPEN_XML}.presentationml.presentation", _ZIP_OR_OLE, "slides"),
    _document("ppt", "application/vnd.ms-powerpoint", ("ole",), "slides"),
    _document("odp", f"{_OPEN_DOCUMENT}.presentation", _ZIP, "slides"),
    _document("odg", f"{_OPEN_DOCUMENT}.graphics", _ZIP, "slides"),
    _document("epub", "application/epub+zip", _ZIP, "flowing"),
    FileFormat(ending="html", mime_type="text/html", parser="html", endings=("htm",)),
    _text("eml", "message/rfc822", "mail"),
    _document("msg", "application/vnd.ms-outlook", ("ole",), "mail"),
    _text("csv", "text/csv", "table", "saved"),
    _text("tsv", "text/tab-separated-values", "table", "saved"),
    _text("ipynb", "application/x-ipynb+json", "notebook"),
    FileFormat(ending=TEXT, mime_type=PLAIN, parser="text", served="shown", endings=_PLAIN_ENDINGS),
    FileFormat(ending="md", mime_type="text/markdown", parser="text", served="saved", endings=("markdown", "mdx")),
    _text("json", "application/json", "text", "saved"),
    _text("jsonl", "application/jsonl", "text"),
    FileFormat(ending="xml", mime_type="application/xml", parser="text", mime_types=("text/xml",)),
    FileFormat(ending="yaml", mime_type="application/yaml", endings=("yml",)),
    _text("toml", "application/toml"),
    _text("py", "text/x-python"),
    _text("js", "text/javascript"),
    _media("png", "image/png", "shown"),
    _media("jpg", "image/jpeg", "shown", ("jpeg",), ("image/jpg",)),
    _media("gif", "image/gif", "shown"),
    _media("webp", "image/webp", "shown"),
    _media("bmp", "image/bmp", "shown"),
    _media("svg", "image/svg+xml"),
    _media("tiff", "image/tiff", "saved", ("tif",)),
    _media("ico", "image/x-icon"),
    _media("heic", "image/heic", "saved"),
    _media("heif", "image/heif", "saved"),
    _media("avif", "image/avif", "shown"),
    _media("mp3", "audio/mpeg", "shown", (), ("audio/mp3",)),
    _media("wav", "audio/wav", "shown", (), ("audio/x-wav",)),
    _media("m4a", "audio/mp4", "shown", (), ("audio/x-m4a",)),
    _media("aac", "audio/aac", "saved"),
    _media("flac", "audio/flac", "saved"),
    _media("ogg", "audio/ogg", "shown", ("oga", "opus")),
    _media("wma", "audio/x-ms-wma"),
    _media("amr", "audio/amr"),
    _media("mp4", "video/mp4", "shown", ("m4v",)),
    _media("mov", "video/quicktime", "saved"),
    _media("webm", "video/webm", "shown"),
    _media("mkv", "video/x-matroska", "saved"),
    _media("avi", "video/x-msvideo", "saved"),
    _media("mpeg", "video/mpeg", "bytes", ("mpg",)),
    _media("wmv", "video/x-ms-wmv"),
    _media("flv", "video/x-flv"),
    _media("3gp", "video/3gpp"),
)
# Media types without an extension above.
_SERVED_BESIDE: dict[str, Served] = {
    "audio/webm": "shown",
    "video/ogg": "shown",
    "audio/midi": "saved",
    "application/zip": "saved",
    "application/vnd.rar": "saved",
}
_BY_ENDING = {ending: row for row in FORMATS for ending in (row.ending, *row.endings)}
_BY_TYPE = {mime_type: row for row in FORMATS for mime_type in (row.mime_type, *row.mime_types)}


def format_by_ending(ending: str) -> FileFormat | None:
    """Return the format of an extension without its dot, or None if it is unknown."""
    return _BY_ENDING.get(ending)


def ending_of(name: str) -> str:
    """Return the extension of a name in lower case without its dot, or an empty string. `.env` has none."""
    stem, _, ending = name.rpartition(".")
    return ending.lower() if stem else ""


def format_by_type(mime_type: str | None) -> FileFormat | None:
    """Return the format of a media type, ignoring its parameters."""
    return _BY_TYPE.get(bare_type(mime_type))


def type_for(ending: str) -> str:
    """Return the media type of a document by its extension."""
    file_format = format_by_ending(ending)
    return file_format.mime_type if file_format else PLAIN


def ending_for(mime_type: str | None) -> str:
    """Return the usual extension of a media type with its dot, or an empty string."""
    file_format = format_by_type(mime_type)
    return f".{file_format.ending}" if file_format else ""


def format_of(mime_type: str, name: str) -> str:
    """Return the extension of a file's format by its stored media type, else by its name (F12)."""
    file_format = format_by_type(mime_type) or format_by_ending(ending_of(name))
    return file_format.ending if file_format and file_format.parser else TEXT


def served_as(mime_type: str) -> tuple[str, bool]:
    """Return the media type to serve a file with, and True if a browser may show it inline."""
    bare = bare_type(mime_type)
    file_format = _BY_TYPE.get(bare)
    served = file_format.served if file_format and file_format.mime_type == bare else _SERVED_BESIDE.get(bare, "bytes")
    return (UNKNOWN if served == "bytes" else bare), served == "shown"


def bare_type(mime_type: str | None) -> str:
    """Return a media type in lower case without its parameters."""
    return (mime_type or "").partition(";")[0].strip().lower()
