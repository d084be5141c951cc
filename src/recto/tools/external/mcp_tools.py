"""Tools and resources of an MCP server as tools of an agent."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol, TypeAlias, TypeVar, cast

from recto.agents.external_tools import BETWEEN, McpSettings
from recto.config.checked import nearest
from recto.conversation.json import Json, load_object
from recto.conversation.messages import ToolOffer
from recto.conversation.next_step import INVALID_ARGUMENTS
from recto.tools.call import text_result
from recto.tools.external.services import ExternalServices, SecretValues
from recto.tools.external.tool_offers import CannotOffer, normalise_offer, tool_names
from recto.tools.mark import Mark
from recto.tools.ports import Progress, ReportProgress, Tool, ToolContext, ToolResult

if TYPE_CHECKING:
    from mcp.client import Client
    from mcp_types import Resource
    from mcp_types import Tool as McpTool

    from recto.tools.external.mcp_results import ResultLimits

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
Arguments: TypeAlias = dict[str, object]
Answer = TypeVar("Answer")


class McpCaller(Protocol):
    """The parts of a server that its tools use: settings, secrets, and calls."""

    @property
    def settings(self) -> McpSettings: ...
    @property
    def secrets(self) -> SecretValues: ...
    async def call(self, tool: str, ask: Callable[[Client], Awaitable[Answer]], *, may_repeat: bool) -> Answer: ...


@dataclass(frozen=True, kw_only=True)
class ToolList:
    """The tools of a server for an agent; `warnings` explain which ones the agent does not get."""

    tools: tuple[Tool, ...]
    warnings: tuple[str, ...]


@dataclass(frozen=True, kw_only=True)
class _ToolDraft:
    """A tool before it is offered: its name on the server, description, and call."""

    own: str
    description: str
    schema: Json
    ask: Callable[[Client, Arguments, ReportProgress], Awaitable[ToolResult]]
    may_repeat: bool


async def list_tools(
    client: Client, server: McpCaller, used_names: frozenset[str], services: ExternalServices
) -> ToolList:
    """Return the tools of a server that its agent allows."""
    settings, has = server.settings, client.server_capabilities
    every = await _list_tools(client) if has.tools else []
    drafts = [
        _tool_draft(tool, server, services) for tool in every if settings.tools is None or tool.name in settings.tools
    ]
    if settings.resources and has.resources and await _list_resources(client):
        drafts += _resource_drafts(server, services)
    # Of a duplicate name, keep the first tool.
    drafts = list({one.own: one for one in reversed(drafts)}.values())[::-1]
    warnings = list(_warnings(settings, [tool.name for tool in every], len(drafts), services.settings.tools))
    names = tool_names(settings.name, [one.own for one in drafts], used_names)
    tools = list[Tool]()
    for one in drafts[: services.settings.tools]:
        try:
            tools.append(await _tool(names[one.own], one, server, services))
        except CannotOffer as error:
            warnings.append(f"its tool {one.own!r} is left out: {error}")
    return ToolList(tools=tuple(tools), warnings=tuple(warnings))


def _warnings(settings: McpSettings, names: Sequence[str], count: int, most: int) -> Iterator[str]:
    for name in settings.tools or ():
        if name not in names:
            yield f"it has no tool {name!r}{nearest(name, names)}"
    if count > most:
        yield f"it has {count} tools, of which the first {most} are taken; name those that are wanted in tools"


async def _list_tools(client: Client) -> list[McpTool]:
    tools: list[McpTool] = []
    cursor = None
    for _ in range(MOST_PAGES):
        page = await client.list_tools(cursor=cursor)
        tools += page.tools
        cursor = page.next_cursor
        if cursor is None:
            break
    return tools


async def _list_resources(client: Client) -> list[Resource]:
    resources: list[Resource] = []
    cursor = None
    for _ in range(MOST_PAGES):
        page = await client.list_resources(cursor=cursor)
        resources += page.resources
        cursor = page.next_cursor
        if cursor is None:
            break
    return resources


def _tool_draft(tool: McpTool, server: McpCaller, services: ExternalServices) -> _ToolDraft:
    async def ask(client: Client, arguments: Arguments, report: ReportProgress) -> ToolResult:
        from recto.tools.external.mcp_results import tool_result

        async def progressed(progress: float, total: float | None, message: str | None) -> None:
            report(_progress(server.secrets.hide(message or tool.name), progress, total))

        answer = await client.call_tool(tool.name, arguments, progress_callback=progressed)
        return tool_result(answer, _limits(server, services))

    hints = tool.annotations
    return _ToolDraft(
        own=tool.name,
        description=tool.description or tool.title or (hints.title if hints else None) or tool.name,
        schema=cast("Json", tool.input_schema),
        ask=ask,
        may_repeat=bool(hints and (hints.read_only_hint or hints.idempotent_hint)),
    )


def _resource_drafts(server: McpCaller, services: ExternalServices) -> list[_ToolDraft]:
    async def list_them(client: Client, _arguments: Arguments, _report: ReportProgress) -> ToolResult:
        from recto.tools.external.mcp_results import resource_line

        lines = [resource_line(one) for one in await _list_resources(client)]
        return text_result(server.secrets.hide("\n".join(lines)) or NO_RESOURCES)

    async def read_one(client: Client, arguments: Arguments, _report: ReportProgress) -> ToolResult:
        from recto.tools.external.mcp_results import resource_result

        return resource_result(await client.read_resource(str(arguments["uri"])), _limits(server, services))

    name = server.settings.name
    about = ABOUT_READ.format(server=name, list=f"{name}{BETWEEN}{LIST}")
    return [
        _ToolDraft(
            own=LIST, description=ABOUT_LIST.format(server=name), schema=NO_INPUT, ask=list_them, may_repeat=True
        ),
        _ToolDraft(own=READ, description=about, schema=URI_INPUT, ask=read_one, may_repeat=True),
    ]


def _limits(server: McpCaller, services: ExternalServices) -> ResultLimits:
    from recto.tools.external.mcp_results import ResultLimits

    return ResultLimits(file_bytes=services.settings.file_bytes, hide=server.secrets.hide)


def _progress(label: str, done: float, total: float | None) -> Progress:
    """Return progress in whole numbers; a fraction becomes percent."""
    if total is not None and 0 < total <= 1:
        return Progress(label=label, done=round(done / total * PERCENT), total=PERCENT, unit="%")
    return Progress(label=label, done=round(done), total=None if total is None else round(total), unit="")


async def _tool(name: str, draft: _ToolDraft, server: McpCaller, services: ExternalServices) -> Tool:
    plain = ToolOffer(name=name, description=draft.description, parameters="")
    offer = await normalise_offer(plain, draft.schema, services.settings.description_characters, services.schemas)

    async def act(arguments: str, context: ToolContext) -> ToolResult:
        advice = (await services.schemas.check([(arguments, offer.parameters)]))[0]
        if advice is not None:
            return text_result(advice, INVALID_ARGUMENTS)
        values: Arguments = dict(load_object(arguments) or {})
        return await server.call(
            name, lambda client: draft.ask(client, values, context.report), may_repeat=draft.may_repeat
        )

    mark = Mark(external=True, safe_to_repeat=draft.may_repeat)
    return Tool(offer=offer, act=act, mark=mark, origin=f"mcp.{server.settings.name} in {server.settings.place.file}")
