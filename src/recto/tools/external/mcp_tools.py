"""Tools and resources of an MCP server as tools of an agent, and its results as parts of tool results."""

from __future__ import annotations

from base64 import b64decode
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol, TypeAlias, TypeVar, cast

import mcp_types
from mcp.client import Client

from recto.agents.external_tools import BETWEEN, McpSettings
from recto.config.table_check import nearest
from recto.conversation.json import Json, dump, load, load_object
from recto.conversation.messages import Data, File, FileKind, Text, ToolOffer, ToolPart
from recto.conversation.next_step import INVALID_ARGUMENTS
from recto.tools.call import text_result
from recto.tools.external.services import ExternalServices, SecretValues
from recto.tools.external.tool_offers import CannotOffer, normalise_offer, tool_names
from recto.tools.mark import Mark
from recto.tools.ports import Progress, ReportProgress, Tool, ToolContext, ToolResult

# The most pages to read of a list, because a server may return more pages without end.
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
ERROR = "error"
NOTHING = "Done; the tool answered nothing."
FAILED = "The tool failed and did not say why."
LEFT_OUT = "(An {kind} of {size:,} bytes was left out: more than {most:,} of one result are not taken.)"
UNREADABLE = "(An {kind} came whose bytes cannot be read.)"
NOT_SHOWN = "(A file of type {type}, {size:,} bytes, which cannot be shown here.)"
# The field that servers use to wrap a value that is no object.
WRAPPED = "result"
CallArguments: TypeAlias = dict[str, object]
Answer = TypeVar("Answer")
Page = TypeVar("Page", bound=mcp_types.PaginatedResult)


class McpCaller(Protocol):
    """The parts of a server that its tools use: settings, secrets, and calls."""

    @property
    def settings(self) -> McpSettings: ...
    @property
    def secrets(self) -> SecretValues: ...
    async def call(self, tool: str, ask: Callable[[Client], Awaitable[Answer]], *, may_repeat: bool) -> Answer: ...


@dataclass(frozen=True, kw_only=True)
class _ToolDraft:
    """A tool before it is offered: its name on the server, description, and call."""

    own: str
    description: str
    schema: Json
    ask: Callable[[Client, CallArguments, ReportProgress], Awaitable[ToolResult]]
    may_repeat: bool


async def list_tools(
    client: Client, server: McpCaller, used_names: frozenset[str], services: ExternalServices
) -> tuple[tuple[Tool, ...], tuple[str, ...]]:
    """Return the tools of a server that its agent allows, and warnings about those that the agent does not get."""
    settings, has = server.settings, client.server_capabilities
    pages = _pages(lambda cursor: client.list_tools(cursor=cursor))
    every = [tool async for page in pages for tool in page.tools] if has.tools else []
    drafts = [
        _tool_draft(tool, server, services) for tool in every if settings.tools is None or tool.name in settings.tools
    ]
    if settings.resources and has.resources and await _list_resources(client):
        drafts += _resource_drafts(server, services)
    # Of a duplicate name, keep the first tool.
    drafts = list({one.own: one for one in reversed(drafts)}.values())[::-1]
    own_names, most = [tool.name for tool in every], services.settings.tools
    unknown = [name for name in settings.tools or () if name not in own_names]
    warnings = [f"it has no tool {name!r}{nearest(name, own_names)}" for name in unknown]
    if len(drafts) > most:
        warnings.append(
            f"it has {len(drafts)} tools, of which the first {most} are taken; name those that are wanted in tools"
        )
    names = tool_names(settings.name, [one.own for one in drafts], used_names)
    tools = list[Tool]()
    for one in drafts[:most]:
        try:
            tools.append(await _tool(names[one.own], one, server, services))
        except CannotOffer as error:
            warnings.append(f"its tool {one.own!r} is left out: {error}")
    return tuple(tools), tuple(warnings)


async def _list_resources(client: Client) -> list[mcp_types.Resource]:
    pages = _pages(lambda cursor: client.list_resources(cursor=cursor))
    return [resource async for page in pages for resource in page.resources]


async def _pages(fetch: Callable[[str | None], Awaitable[Page]]) -> AsyncIterator[Page]:
    cursor = None
    for _ in range(MOST_PAGES):
        page = await fetch(cursor)
        yield page
        cursor = page.next_cursor
        if cursor is None:
            return


def _tool_draft(tool: mcp_types.Tool, server: McpCaller, services: ExternalServices) -> _ToolDraft:
    async def ask(client: Client, arguments: CallArguments, report: ReportProgress) -> ToolResult:
        async def report_progress(progress: float, total: float | None, message: str | None) -> None:
            label, unit = server.secrets.hide(message or tool.name), ""
            # A fraction becomes percent.
            if total is not None and 0 < total <= 1:
                progress, total, unit = progress / total * PERCENT, PERCENT, "%"
            whole = None if total is None else round(total)
            report(Progress(label=label, done=round(progress), total=whole, unit=unit))

        answer = await client.call_tool(tool.name, arguments, progress_callback=report_progress)
        return tool_result(answer, server, services)

    hints = tool.annotations
    return _ToolDraft(
        own=tool.name,
        description=tool.description or tool.title or (hints.title if hints else None) or tool.name,
        schema=cast("Json", tool.input_schema),
        ask=ask,
        may_repeat=bool(hints and (hints.read_only_hint or hints.idempotent_hint)),
    )


def _resource_drafts(server: McpCaller, services: ExternalServices) -> list[_ToolDraft]:
    async def list_them(client: Client, _arguments: CallArguments, _report: ReportProgress) -> ToolResult:
        lines = [resource_line(one) for one in await _list_resources(client)]
        return text_result(server.secrets.hide("\n".join(lines)) or NO_RESOURCES)

    async def read_one(client: Client, arguments: CallArguments, _report: ReportProgress) -> ToolResult:
        return resource_result(await client.read_resource(str(arguments["uri"])), server, services)

    name = server.settings.name
    about = ABOUT_READ.format(server=name, list=f"{name}{BETWEEN}{LIST}")
    return [
        _ToolDraft(
            own=LIST, description=ABOUT_LIST.format(server=name), schema=NO_INPUT, ask=list_them, may_repeat=True
        ),
        _ToolDraft(own=READ, description=about, schema=URI_INPUT, ask=read_one, may_repeat=True),
    ]


async def _tool(name: str, draft: _ToolDraft, server: McpCaller, services: ExternalServices) -> Tool:
    plain = ToolOffer(name=name, description=draft.description, parameters="")
    offer = await normalise_offer(plain, draft.schema, services.settings.description_characters, services.schemas)

    async def act(arguments: str, context: ToolContext) -> ToolResult:
        advice = (await services.schemas.check([(arguments, offer.parameters)]))[0]
        if advice is not None:
            return text_result(advice, INVALID_ARGUMENTS)
        values: CallArguments = dict(load_object(arguments) or {})
        return await server.call(
            name, lambda client: draft.ask(client, values, context.report), may_repeat=draft.may_repeat
        )

    mark = Mark(external=True, safe_to_repeat=draft.may_repeat)
    return Tool(offer=offer, act=act, mark=mark, origin=f"mcp.{server.settings.name} in {server.settings.place.file}")


def tool_result(answer: mcp_types.CallToolResult, server: McpCaller, services: ExternalServices) -> ToolResult:
    """Convert the result of a call. If the call failed, its text tells the model why."""
    parts = list(_parts(answer.content, server, services))
    texts = [part.text for part in parts if isinstance(part, Text)]
    if answer.structured_content is not None:
        structured = server.secrets.hide(dump(answer.structured_content).decode())
        whole, values = _value(structured), [_value(text) for text in texts]
        inner = whole.get(WRAPPED) if isinstance(whole, dict) and list(whole) == [WRAPPED] else whole
        # Add the structured value unless a text repeats it. Servers send both for clients that read only one.
        if not values or not (values in ([whole], [inner], inner) or texts in ([inner], inner)):
            parts.append(Text(text=structured))
    if not parts:
        parts = [Text(text=FAILED if answer.is_error else NOTHING)]
    return ToolResult(parts=tuple(parts), error=ERROR if answer.is_error else None)


def resource_result(answer: mcp_types.ReadResourceResult, server: McpCaller, services: ExternalServices) -> ToolResult:
    """Convert the contents of a resource."""
    blocks = [mcp_types.EmbeddedResource(resource=one) for one in answer.contents]
    return ToolResult(parts=tuple(_parts(blocks, server, services)) or (Text(text="It is empty."),))


def resource_line(resource: mcp_types.Resource) -> str:
    """Return the line of a resource list: uri, name, type and description."""
    about = "; ".join(filter(None, (resource.title or resource.name, resource.mime_type, resource.description)))
    return f"- {resource.uri}: {' '.join(about.split())}"


def _value(text: str) -> Json:
    try:
        return load(text)
    except ValueError:
        return text


def _parts(
    blocks: Sequence[mcp_types.ContentBlock], server: McpCaller, services: ExternalServices
) -> Iterator[ToolPart]:
    remaining_bytes = services.settings.file_bytes
    for block in blocks:
        part = _part(block, remaining_bytes, server.secrets.hide)
        yield part
        if isinstance(part, File) and isinstance(part.source, Data):
            remaining_bytes -= _bytes_in(part.source.base64)


def _part(block: mcp_types.ContentBlock, remaining_bytes: int, hide: Callable[[str], str]) -> ToolPart:
    match block:
        case mcp_types.TextContent(text=text):
            return Text(text=hide(text))
        case mcp_types.ImageContent(data=data, mime_type=mime):
            return _file("image", data, mime, remaining_bytes)
        case mcp_types.AudioContent(data=data, mime_type=mime):
            return _file("audio", data, mime, remaining_bytes)
        case mcp_types.ResourceLink():
            return Text(text=hide(resource_line(block)))
        case mcp_types.EmbeddedResource(resource=resource):
            pass
    if isinstance(resource, mcp_types.TextResourceContents):
        return Text(text=hide(f"{resource.uri}\n{resource.text}"))
    mime = resource.mime_type or "application/octet-stream"
    match mime.partition("/")[0]:
        case "image" | "audio" as kind:
            return _file(kind, resource.blob, mime, remaining_bytes)
        case _:
            size = _bytes_in(resource.blob)
            return Text(text=hide(f"{resource.uri}\n") + NOT_SHOWN.format(type=mime, size=size))


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
