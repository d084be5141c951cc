"""Tools and resources of an MCP server as tools of an agent."""

from __future__ import annotations

from base64 import b64decode
from collections.abc import Awaitable, Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol, TypeAlias, TypeVar, cast

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

from recto.agents.external_tools import BETWEEN, McpSettings
from recto.config.checked import nearest
from recto.conversation.json import Json, dump, load, load_object
from recto.conversation.messages import Data, File, FileKind, Text, ToolOffer, ToolPart
from recto.conversation.next_step import INVALID_ARGUMENTS
from recto.tools.call import text_result
from recto.tools.external.services import ExternalServices, SecretValues
from recto.tools.external.tool_offers import CannotOffer, mended_offer, tool_names
from recto.tools.mark import Mark
from recto.tools.ports import Progress, ReportProgress, Tool, ToolContext, ToolResult

if TYPE_CHECKING:
    from mcp.client import Client
    from mcp_types import Resource
    from mcp_types import Tool as McpTool

    from recto.tools.external.mcp_tools import ResultLimits

ERROR = "error"
NOTHING = "Done; the tool answered nothing."
FAILED = "The tool failed and did not say why."
LEFT_OUT = "(An {kind} of {size:,} bytes was left out: more than {most:,} of one result are not taken.)"
UNREADABLE = "(An {kind} came whose bytes cannot be read.)"
NOT_SHOWN = "(A file of type {type}, {size:,} bytes, which cannot be shown here.)"
# The field that servers use to wrap a value that is no object.
WRAPPED = "result"
# Stop following a server that returns more and more pages.
MOST_PAGES = 100
LIST, READ = "list_resources", "read_resource"
ABOUT_LIST = "List the resources that {server} has to read: their uris, names and types."
ABOUT_READ = "Read a resource of {server} by its uri, one that {list} lists or a result names."
NO_INPUT: Json = {"type": "object", "properties": {}, "additionalProperties": False}
URI_INPUT: Json = {
    "type": "object",
    "properties": {"uri": {"type": "string", "minLength": 1}},
    "required": ["uri"],
    "additionalProperties": False,
}
NO_RESOURCES = "It has no resources at present."
PERCENT = 100
Given: TypeAlias = dict[str, object]
Answer = TypeVar("Answer")


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
    if answer.structured_content is not None and not _is_said(_value(structured), texts):
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


def _is_said(structured: Json, texts: Sequence[str]) -> bool:
    """Return True if the texts repeat the value: servers send both, for clients that read only one."""
    said = [_value(text) for text in texts]
    inner = structured.get(WRAPPED) if isinstance(structured, dict) and list(structured) == [WRAPPED] else structured
    return bool(said) and (said in ([structured], [inner], inner) or texts in ([inner], inner))


def _value(text: str) -> Json:
    try:
        return load(text)
    except ValueError:
        return text


def _parts(blocks: Sequence[ContentBlock], limits: ResultLimits) -> Iterator[ToolPart]:
    left = limits.file_bytes
    for block in blocks:
        part = _part(block, left, limits)
        left -= _bytes_in(part.source.base64) if isinstance(part, File) and isinstance(part.source, Data) else 0
        yield part


def _part(block: ContentBlock, left: int, limits: ResultLimits) -> ToolPart:
    match block:
        case TextContent(text=text):
            return Text(text=limits.hide(text))
        case ImageContent(data=data, mime_type=mime):
            return _file("image", data, mime, left)
        case AudioContent(data=data, mime_type=mime):
            return _file("audio", data, mime, left)
        case ResourceLink():
            return Text(text=limits.hide(resource_line(block)))
        case EmbeddedResource():
            return _resource(block.resource, left, limits)


def _resource(resource: TextResourceContents | BlobResourceContents, left: int, limits: ResultLimits) -> ToolPart:
    if isinstance(resource, TextResourceContents):
        return Text(text=limits.hide(f"{resource.uri}\n{resource.text}"))
    mime = resource.mime_type or "application/octet-stream"
    match mime.partition("/")[0]:
        case "image" | "audio" as kind:
            return _file(kind, resource.blob, mime, left)
        case _:
            size = _bytes_in(resource.blob)
            return Text(text=limits.hide(f"{resource.uri}\n") + NOT_SHOWN.format(type=mime, size=size))


def _file(kind: FileKind, data: str, mime: str | None, left: int) -> ToolPart:
    size = _bytes_in(data)
    if size > left:
        return Text(text=LEFT_OUT.format(kind=kind, size=size, most=left))
    try:
        b64decode(data, validate=True)
    except ValueError:
        return Text(text=UNREADABLE.format(kind=kind))
    return File(kind=kind, source=Data(base64=data), mime_type=mime)


def _bytes_in(base64: str) -> int:
    return len(base64) * 3 // 4 - base64[-2:].count("=")


class McpCaller(Protocol):
    """The parts of a server that its tools use: settings, secrets, and calls."""

    @property
    def settings(self) -> McpSettings: ...
    @property
    def secrets(self) -> SecretValues: ...
    async def call(self, tool: str, ask: Callable[[Client], Awaitable[Answer]], *, may_repeat: bool) -> Answer: ...


@dataclass(frozen=True, kw_only=True)
class ListedTools:
    """The tools of a server for an agent; `warnings` explain which ones the agent does not get."""

    tools: tuple[Tool, ...]
    warnings: tuple[str, ...]


@dataclass(frozen=True, kw_only=True)
class _Wanted:
    """A tool before it is offered: its name on the server, description, and call."""

    own: str
    description: str
    schema: Json
    ask: Callable[[Client, Given, ReportProgress], Awaitable[ToolResult]]
    may_repeat: bool


async def listed_tools(
    client: Client, server: McpCaller, taken: frozenset[str], services: ExternalServices
) -> ListedTools:
    """Return the tools of a server that its agent allows."""
    settings, has = server.settings, client.server_capabilities
    every = await _listed(client) if has.tools else []
    wanted = [
        _of_tool(tool, server, services) for tool in every if settings.tools is None or tool.name in settings.tools
    ]
    if settings.resources and has.resources and await _resources(client):
        wanted += _of_resources(server, services)
    # Of a duplicate name, keep the first tool.
    wanted = list({one.own: one for one in reversed(wanted)}.values())[::-1]
    warnings = list(_warnings(settings, [tool.name for tool in every], len(wanted), services.settings.tools))
    names = tool_names(settings.name, [one.own for one in wanted], taken)
    tools = list[Tool]()
    for one in wanted[: services.settings.tools]:
        try:
            tools.append(await _tool(names[one.own], one, server, services))
        except CannotOffer as error:
            warnings.append(f"its tool {one.own!r} is left out: {error}")
    return ListedTools(tools=tuple(tools), warnings=tuple(warnings))


def _warnings(settings: McpSettings, known: Sequence[str], wanted: int, most: int) -> Iterator[str]:
    for name in settings.tools or ():
        if name not in known:
            yield f"it has no tool {name!r}{nearest(name, known)}"
    if wanted > most:
        yield f"it has {wanted} tools, of which the first {most} are taken; name those that are wanted in tools"


async def _listed(client: Client) -> list[McpTool]:
    found: list[McpTool] = []
    cursor = None
    for _ in range(MOST_PAGES):
        page = await client.list_tools(cursor=cursor)
        found += page.tools
        cursor = page.next_cursor
        if cursor is None:
            break
    return found


async def _resources(client: Client) -> list[Resource]:
    found: list[Resource] = []
    cursor = None
    for _ in range(MOST_PAGES):
        page = await client.list_resources(cursor=cursor)
        found += page.resources
        cursor = page.next_cursor
        if cursor is None:
            break
    return found


def _of_tool(tool: McpTool, server: McpCaller, services: ExternalServices) -> _Wanted:
    async def ask(client: Client, given: Given, report: ReportProgress) -> ToolResult:
        from recto.tools.external.mcp_tools import tool_result

        async def progressed(progress: float, total: float | None, message: str | None) -> None:
            report(_progress(server.secrets.hide(message or tool.name), progress, total))

        answer = await client.call_tool(tool.name, given, progress_callback=progressed)
        return tool_result(answer, _limits(server, services))

    hints = tool.annotations
    return _Wanted(
        own=tool.name,
        description=tool.description or tool.title or (hints.title if hints else None) or tool.name,
        schema=cast("Json", tool.input_schema),
        ask=ask,
        may_repeat=bool(hints and (hints.read_only_hint or hints.idempotent_hint)),
    )


def _of_resources(server: McpCaller, services: ExternalServices) -> list[_Wanted]:
    async def list_them(client: Client, _given: Given, _report: ReportProgress) -> ToolResult:
        from recto.tools.external.mcp_tools import resource_line

        lines = [resource_line(one) for one in await _resources(client)]
        return text_result(server.secrets.hide("\n".join(lines)) or NO_RESOURCES)

    async def read_one(client: Client, given: Given, _report: ReportProgress) -> ToolResult:
        from recto.tools.external.mcp_tools import resource_result

        return resource_result(await client.read_resource(str(given["uri"])), _limits(server, services))

    name = server.settings.name
    about = ABOUT_READ.format(server=name, list=f"{name}{BETWEEN}{LIST}")
    return [
        _Wanted(own=LIST, description=ABOUT_LIST.format(server=name), schema=NO_INPUT, ask=list_them, may_repeat=True),
        _Wanted(own=READ, description=about, schema=URI_INPUT, ask=read_one, may_repeat=True),
    ]


def _limits(server: McpCaller, services: ExternalServices) -> ResultLimits:
    from recto.tools.external.mcp_tools import ResultLimits

    return ResultLimits(file_bytes=services.settings.file_bytes, hide=server.secrets.hide)


def _progress(label: str, done: float, total: float | None) -> Progress:
    """Return progress in whole numbers; a fraction becomes percent."""
    if total is not None and 0 < total <= 1:
        return Progress(label=label, done=round(done / total * PERCENT), total=PERCENT, unit="%")
    return Progress(label=label, done=round(done), total=None if total is None else round(total), unit="")


async def _tool(name: str, wanted: _Wanted, server: McpCaller, services: ExternalServices) -> Tool:
    plain = ToolOffer(name=name, description=wanted.description, parameters="")
    offer = await mended_offer(plain, wanted.schema, services.settings.description_characters, services.schemas)

    async def act(arguments: str, context: ToolContext) -> ToolResult:
        advice = (await services.schemas.check([(arguments, offer.parameters)]))[0]
        if advice is not None:
            return text_result(advice, INVALID_ARGUMENTS)
        given: Given = dict(load_object(arguments) or {})
        return await server.call(
            name, lambda client: wanted.ask(client, given, context.report), may_repeat=wanted.may_repeat
        )

    mark = Mark(external=True, safe_to_repeat=wanted.may_repeat)
    return Tool(offer=offer, act=act, mark=mark, origin=f"mcp.{server.settings.name} in {server.settings.place.file}")
