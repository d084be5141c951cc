"""MCP results as tool result parts: texts, images, resources, structured values. Pure."""

from __future__ import annotations

from base64 import b64decode
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from mcp_types import (
    AudioContent,
    BlobResourceContents,
    CallToolResult,
    ContentBlock,
    EmbeddedResource,
    ImageContent,
    ReadResourceResult,
    Resource,
    ResourceLink,
    TextContent,
    TextResourceContents,
)

from recto.conversation.json import Json, dump, load
from recto.conversation.messages import Data, File, FileKind, Text, ToolPart
from recto.tools.ports import ToolResult

ERROR = "error"
NOTHING = "Done; the tool answered nothing."
FAILED = "The tool failed and did not say why."
LEFT_OUT = "(An {kind} of {size:,} bytes was left out: more than {most:,} of one result are not taken.)"
UNREADABLE = "(An {kind} came whose bytes cannot be read.)"
NOT_SHOWN = "(A file of type {type}, {size:,} bytes, which cannot be shown here.)"
# The field that servers use to wrap a value that is no object.
WRAPPED = "result"


@dataclass(frozen=True, kw_only=True)
class ResultLimits:
    """Limits of one result: bytes of its files, and a function that removes secrets from texts."""

    file_bytes: int
    hide: Callable[[str], str]


def tool_result(answer: CallToolResult, limits: ResultLimits) -> ToolResult:
    """Convert the result of a call. A failed call's text reaches the model."""
    parts = list(_parts(answer.content, limits))
    texts = [part.text for part in parts if isinstance(part, Text)]
    structured = limits.hide(dump(answer.structured_content).decode())
    if answer.structured_content is not None and not _is_repeated(_value(structured), texts):
        parts.append(Text(text=structured))
    if not parts:
        parts = [Text(text=FAILED if answer.is_error else NOTHING)]
    return ToolResult(parts=tuple(parts), error=ERROR if answer.is_error else None)


def resource_result(answer: ReadResourceResult, limits: ResultLimits) -> ToolResult:
    """Convert the contents of a resource."""
    blocks = [EmbeddedResource(resource=one) for one in answer.contents]
    return ToolResult(parts=tuple(_parts(blocks, limits)) or (Text(text="It is empty."),))


def resource_line(resource: Resource) -> str:
    """Return the line of a resource list: uri, name, type and description."""
    about = "; ".join(filter(None, (resource.title or resource.name, resource.mime_type, resource.description)))
    return f"- {resource.uri}: {' '.join(about.split())}"


def _is_repeated(structured: Json, texts: Sequence[str]) -> bool:
    """Return True if the texts repeat the value: servers send both, for clients that read only one."""
    values = [_value(text) for text in texts]
    inner = structured.get(WRAPPED) if isinstance(structured, dict) and list(structured) == [WRAPPED] else structured
    return bool(values) and (values in ([structured], [inner], inner) or texts in ([inner], inner))


def _value(text: str) -> Json:
    try:
        return load(text)
    except ValueError:
        return text


def _parts(blocks: Sequence[ContentBlock], limits: ResultLimits) -> Iterator[ToolPart]:
    remaining_bytes = limits.file_bytes
    for block in blocks:
        part = _part(block, remaining_bytes, limits)
        remaining_bytes -= (
            _bytes_in(part.source.base64) if isinstance(part, File) and isinstance(part.source, Data) else 0
        )
        yield part


def _part(block: ContentBlock, remaining_bytes: int, limits: ResultLimits) -> ToolPart:
    match block:
        case TextContent(text=text):
            return Text(text=limits.hide(text))
        case ImageContent(data=data, mime_type=mime):
            return _file("image", data, mime, remaining_bytes)
        case AudioContent(data=data, mime_type=mime):
            return _file("audio", data, mime, remaining_bytes)
        case ResourceLink():
            return Text(text=limits.hide(resource_line(block)))
        case EmbeddedResource():
            return _resource(block.resource, remaining_bytes, limits)


def _resource(
    resource: TextResourceContents | BlobResourceContents, remaining_bytes: int, limits: ResultLimits
) -> ToolPart:
    if isinstance(resource, TextResourceContents):
        return Text(text=limits.hide(f"{resource.uri}\n{resource.text}"))
    mime = resource.mime_type or "application/octet-stream"
    match mime.partition("/")[0]:
        case "image" | "audio" as kind:
            return _file(kind, resource.blob, mime, remaining_bytes)
        case _:
            size = _bytes_in(resource.blob)
            return Text(text=limits.hide(f"{resource.uri}\n") + NOT_SHOWN.format(type=mime, size=size))


def _file(kind: FileKind, data: str, mime: str | None, remaining_bytes: int) -> ToolPart:
    size = _bytes_in(data)
    if size > remaining_bytes:
        return Text(text=LEFT_OUT.format(kind=kind, size=size, most=remaining_bytes))
    try:
        b64decode(data, validate=True)
    except ValueError:
        return Text(text=UNREADABLE.format(kind=kind))
    return File(kind=kind, source=Data(base64=data), mime_type=mime)


def _bytes_in(base64: str) -> int:
    return len(base64) * 3 // 4 - base64[-2:].count("=")
