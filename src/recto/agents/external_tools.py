"""Settings of external tools: MCP servers, and services with an OpenAPI file."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated
from urllib.parse import urlsplit

from pydantic import Field

from recto.config.problem import Fault
from recto.config.table_check import Seconds, Table, Word, matching, require, value_fault
from recto.config.yaml_values import Values

# Name of a server, which is the prefix of its tool names, before two underscores. It is short, because a tool name has
# at most 64 characters.
SERVER_NAME = re.compile(r"(?!.*__)[a-z0-9]([a-z0-9_-]{0,22}[a-z0-9])?")
BETWEEN = "__"
VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
HEADER = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~-]+")
URL = re.compile(r"https?://(\[[0-9A-Fa-f:.]+\]|[^\s/?#\[\]]*[^\s/?#:\[\]])(:[0-9]{1,5})?(/[!-\"$-~]*)?")
LINE = re.compile(r"[^\r\n\0]*")
# Placeholder for a secret from the server's environment.
SECRET = re.compile(r"secret:([A-Z][A-Z0-9_]*)")
OF_COMMAND = ("env", "network", "sandbox", "readable", "writable")
OF_URL = ("headers", "internal")


FILE_ENDINGS = (".yaml", ".yml", ".json")
SERVER_NAME_RULE = (
    "a name has 1 to 24 lower-case letters, digits, - or single _, and neither begins nor ends with - or _"
)
VARIABLE_RULE = "an environment variable has letters, digits and _, and does not begin with a digit"
ServerName = Annotated[str, matching(SERVER_NAME, SERVER_NAME_RULE)]
Line = Annotated[str, matching(LINE, "it is one line")]
WebAddress = Annotated[
    str,
    matching(URL, "it is an http or https URL, such as https://example.com/mcp"),
    require(
        lambda value: "@" not in urlsplit(value).netloc,
        "a name or password in it would be shown; send it in headers, as secret:NAME",
    ),
]
Headers = dict[Annotated[str, matching(HEADER, "it is not a header name, such as Authorization")], Line]
Folder = Annotated[
    str,
    require(
        lambda value: Path(value).is_absolute() and ".." not in Path(value).parts,
        "it is an absolute path, such as /srv/documents",
    ),
]
Folders = list[Folder]
FileBeside = Annotated[
    str,
    require(
        lambda value: (
            Path(value).suffix in FILE_ENDINGS and not Path(value).is_absolute() and ".." not in Path(value).parts
        ),
        "it is a YAML or JSON file in the agent's folder, such as shop.yaml",
    ),
]


class McpTable(Table):
    """Settings of `mcp.NAME`: an MCP server, by its command or its URL."""

    command: Annotated[list[Word], Field(min_length=1)] | None = None
    env: dict[Annotated[str, matching(VARIABLE, VARIABLE_RULE)], Line] = Field(default_factory=dict[str, str])
    network: bool = False
    sandbox: bool = True
    readable: Folders = Field(default_factory=list[str])
    writable: Folders = Field(default_factory=list[str])
    url: WebAddress | None = None
    headers: Headers = Field(default_factory=dict[str, str])
    internal: bool = False
    tools: list[Word] | None = None
    resources: bool = False
    seconds: Seconds | None = None


class OpenApiTable(Table):
    """Settings of `openapi.NAME`: an HTTP service that a file in the agent's folder describes."""

    file: FileBeside
    server: WebAddress | None = None
    operations: list[Word] | None = None
    headers: Headers = Field(default_factory=dict[str, str])
    security: dict[str, Line] = Field(default_factory=dict[str, str])
    internal: bool = False
    seconds: Seconds | None = None


@dataclass(frozen=True, kw_only=True)
class SettingsPlace:
    """File and line of a setting."""

    file: Path
    line: int | None

    @property
    def folder(self) -> Path:
        """Return the agent's folder."""
        return self.file.parent


@dataclass(frozen=True, kw_only=True)
class McpSettings:
    """An MCP server. Recto starts it with `command` or connects to `url`.

    `tools` are the names of the tools to offer, as the server spells them; None offers all. `seconds` limits one call.
    """

    name: str
    place: SettingsPlace
    command: tuple[str, ...] = ()
    env: Mapping[str, str] = field(default_factory=dict[str, str])
    network: bool = False
    sandbox: bool = True
    readable: tuple[str, ...] = ()
    writable: tuple[str, ...] = ()
    url: str = ""
    headers: Mapping[str, str] = field(default_factory=dict[str, str])
    internal: bool = False
    tools: tuple[str, ...] | None = None
    resources: bool = False
    seconds: float | None = None


@dataclass(frozen=True, kw_only=True)
class OpenApiSettings:
    """An HTTP service.

    `server` overrides the address in the file; `security` has a credential for each security scheme.
    """

    name: str
    place: SettingsPlace
    file: Path
    server: str = ""
    operations: tuple[str, ...] | None = None
    headers: Mapping[str, str] = field(default_factory=dict[str, str])
    security: Mapping[str, str] = field(default_factory=dict[str, str])
    internal: bool = False
    seconds: float | None = None


def is_external(tool: str, servers: Iterable[str]) -> bool:
    """Return True if a name has the prefix of one of these servers.

    Whether the tool exists is known only after connecting.
    """
    return any(tool.startswith(f"{server}{BETWEEN}") for server in servers)


def external_faults(
    mcp: Mapping[str, McpTable], openapi: Mapping[str, OpenApiTable], values: Values
) -> Iterator[Fault]:
    """Yield faults that the schema does not find."""
    for name, table in mcp.items():
        if (table.command is None) == (table.url is None):
            text = f"mcp.{name} needs either a command or a url."
            yield Fault(line=values.names.get(("mcp", name), 1), text=text)
            continue
        others, kind = (OF_URL, "url") if table.command else (OF_COMMAND, "command")
        for other in [one for one in others if one in table.model_fields_set]:
            text = f"mcp.{name}.{other} has no effect without a {kind}. Remove the line."
            yield Fault(line=values.names.get(("mcp", name, other), 1), text=text)
    for name in [name for name in openapi if name in mcp]:
        yield value_fault(values, ("openapi", name), name, "there is an mcp of that name too; rename one of them")


def mcp_settings(tables: Mapping[str, McpTable], values: Values, file: Path) -> tuple[McpSettings, ...]:
    """Return the MCP servers of an agent."""
    servers = [
        McpSettings(
            name=name,
            place=_place(values, file, ("mcp", name)),
            command=tuple(table.command or ()),
            url=table.url or "",
            tools=None if table.tools is None else tuple(table.tools),
            readable=tuple(table.readable),
            writable=tuple(table.writable),
            **table.model_dump(exclude={"command", "url", "tools", "readable", "writable"}),
        )
        for name, table in tables.items()
    ]
    return tuple(servers)


def openapi_settings(tables: Mapping[str, OpenApiTable], values: Values, file: Path) -> tuple[OpenApiSettings, ...]:
    """Return the OpenAPI services of an agent."""
    services = [
        OpenApiSettings(
            name=name,
            place=_place(values, file, ("openapi", name)),
            file=file.parent / table.file,
            server=table.server or "",
            operations=None if table.operations is None else tuple(table.operations),
            **table.model_dump(exclude={"file", "server", "operations"}),
        )
        for name, table in tables.items()
    ]
    return tuple(services)


def _place(values: Values, file: Path, path: Sequence[str]) -> SettingsPlace:
    """Return the place of a setting. The line is None if a variant inherits it from AGENT.md."""
    return SettingsPlace(file=file, line=values.names.get(tuple(path)))
