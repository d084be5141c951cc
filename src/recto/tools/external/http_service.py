"""Tools for the operations of an OpenAPI file, called over HTTP through the guarded connector."""

from __future__ import annotations

import asyncio
import logging
from base64 import b64encode
from collections.abc import Mapping
from contextlib import closing
from dataclasses import dataclass, field
from email.message import Message
from typing import TYPE_CHECKING
from urllib.parse import quote, urlencode, urlsplit

from recto.agents.external_tools import OpenApiSettings
from recto.config.table_check import nearest
from recto.conversation.json import Json, dump, load_object
from recto.conversation.messages import Data, File, Text, ToolOffer
from recto.conversation.next_step import INVALID_ARGUMENTS
from recto.errors import SettingsError, ToolError
from recto.http.client import BrokenAnswer, ClosedUnanswered
from recto.tools.call import TIMEOUT, text_result
from recto.tools.external import openapi_file
from recto.tools.external.services import ExternalServices, SecretValues, SourceState, describe_failure
from recto.tools.external.tool_offers import CannotOffer, normalise_offer, tool_names
from recto.tools.mark import Mark
from recto.tools.ports import Tool, ToolContext, ToolResult

if TYPE_CHECKING:
    from recto.files.ports import WebSession
    from recto.http.client import HttpConnection

LOGGER = logging.getLogger("recto.tools")
ACCEPT = "application/json, text/*;q=0.9, */*;q=0.5"
# Characters that stay unquoted in a path. `%` is one, because values in the path are already quoted.
AS_IT_IS = "/%:@!$&()*+,;=~-._"
GOOD = range(200, 300)
PICTURES = ("image/png", "image/jpeg", "image/gif", "image/webp")
SLOW = "{tool} took longer than {seconds:g} seconds and was stopped. It may have done part of its work."
NO_SERVER = "the file names no address that is whole; give it as server"
NOT_READ = "it cannot be read ({reason})"
BROKEN_OFF = "{host} broke off, or sent what is no answer; whether {tool} has acted is not known."
NO_ANSWER = "(status {status}, nothing more)"
NOT_SHOWN = "(a file of type {type}, {size:,} bytes, which cannot be shown here)"
TOO_LONG = "{tool} answered with more than {most:,} bytes, so the answer was not read. Ask for less at a time."


@dataclass(frozen=True, kw_only=True)
class HttpRequest:
    """A request as it is sent. It contains secrets: never log it."""

    method: str
    url: str
    headers: Mapping[str, str]
    data: bytes | None = None


class HttpService:
    """A service with tools for an agent; `used_names` are tool names that the agent already uses."""

    def __init__(self, settings: OpenApiSettings, used_names: frozenset[str], services: ExternalServices) -> None:
        self.settings, self.name, self.place = settings, settings.name, settings.place
        self.state = SourceState()
        self._used_names = used_names
        self._services = services
        self._secrets = SecretValues(services.environment)
        self._web: WebSession | None = None

    async def run(self) -> None:
        """Read the OpenAPI file and wait until cancelled. The first tool call opens a connection."""
        try:
            await self._read()
        except (openapi_file.NotOpenApi, SettingsError) as error:
            problem = str(error).rstrip(".")
            LOGGER.warning("OpenAPI service %s: %s.", self.name, problem)
            self.state.set_problem(problem)
            return
        for warning in self.state.warnings:
            LOGGER.warning("OpenAPI service %s: %s", self.name, warning)
        try:
            await asyncio.Event().wait()
        finally:
            if self._web:
                self._web.close()

    async def _read(self) -> None:
        file = await asyncio.to_thread(self._parse_file)
        settings = self.settings
        server = settings.server or file.server
        if not server:
            raise openapi_file.NotOpenApi(NO_SERVER)
        values = self._secrets.fill_in(self.settings.security)
        encoded = {name: b64encode(value.encode()).decode() for name, value in values.items()}
        for value in encoded.values():
            self._secrets.add(value)
        is_basic = {name for name, scheme in file.schemes.items() if scheme.is_basic}
        own = OwnParts(
            server=server.rstrip("/"),
            headers=self._secrets.fill_in(settings.headers),
            credentials={name: encoded[name] if name in is_basic else value for name, value in values.items()},
            schemes=file.schemes,
        )
        operations = [one for one in file.operations if settings.operations is None or one.name in settings.operations]
        own_names, schemes = [one.name for one in file.operations], tuple(file.schemes)
        unknown = [name for name in settings.operations or () if name not in own_names]
        warnings = [*file.warnings, *[f"there is no operation {name!r}{nearest(name, own_names)}" for name in unknown]]
        unknown = [name for name in settings.security if name not in schemes]
        warnings += [f"there is no security scheme {name!r}{nearest(name, schemes)}" for name in unknown]
        names = tool_names(settings.name, [one.name for one in operations], self._used_names)
        most, tools = self._services.settings.tools, dict[str, Tool]()
        if len(operations) > most:
            count = len(operations)
            warnings.append(f"it has {count} operations, of which the first {most} are taken; name some of them")
        for one in operations[:most]:
            try:
                tools.setdefault(names[one.name], await self._tool(names[one.name], one, own))
            except CannotOffer as error:
                warnings.append(f"operation {one.name!r} is left out: {error}")
        self.state.set_tools(tuple(tools.values()), tuple(warnings))

    def _parse_file(self) -> openapi_file.OpenApiFile:
        try:
            with self.settings.file.open("rb") as stream:
                return openapi_file.read_openapi(stream.read(openapi_file.MOST_BYTES + 1))
        except OSError as error:
            raise openapi_file.NotOpenApi(NOT_READ.format(reason=error.strerror)) from error

    async def _tool(self, name: str, operation: openapi_file.Operation, own: OwnParts) -> Tool:
        plain = ToolOffer(name=name, description=operation.description, parameters="")
        limits = self._services.settings
        offer = await normalise_offer(plain, operation.schema, limits.description_characters, self._services.schemas)

        async def act(arguments: str, _context: ToolContext) -> ToolResult:
            advice = (await self._services.schemas.check([(arguments, offer.parameters)]))[0]
            if advice is not None:
                return text_result(advice, INVALID_ARGUMENTS)
            request = make_request(operation, load_object(arguments) or {}, own)
            try:
                async with asyncio.timeout(self.settings.seconds):
                    return await self._send(name, request)
            except TimeoutError as error:
                raise ToolError(SLOW.format(tool=name, seconds=self.settings.seconds or 0), status=TIMEOUT) from error

        mark = Mark(external=True, safe_to_repeat=operation.may_repeat)
        return Tool(offer=offer, act=act, mark=mark, origin=f"{operation.method} {operation.path} of {self.name}")

    async def _send(self, tool: str, request: HttpRequest) -> ToolResult:
        web = self._web = self._web or self._services.open_web(self.settings.internal)
        host = urlsplit(request.url).hostname or ""
        try:
            # The HTTP client sends headers as Latin-1, and these are UTF-8.
            headers = {name: value.encode().decode("latin-1") for name, value in request.headers.items()}
            answer = await web.request(request.method, request.url, headers, request.data or b"")
            with closing(answer):
                return await self._read_answer(tool, answer)
        except (OSError, ValueError) as error:
            if web.has_refused or not isinstance(error, BrokenAnswer | ClosedUnanswered):
                raise ToolError(f"{tool} was not called: {describe_failure(web, host, error)}.") from error
            raise ToolError(BROKEN_OFF.format(host=host, tool=tool), status="interrupted") from error

    async def _read_answer(self, tool: str, answer: HttpConnection) -> ToolResult:
        most, body = self._services.settings.message_bytes, bytearray()
        while piece := await answer.read():
            body += piece
            if len(body) > most:
                raise ToolError(TOO_LONG.format(tool=tool, most=most))
        error = None if answer.status in GOOD else "error"
        content_type = Message()
        content_type["Content-Type"] = answer.header(b"content-type") or "application/octet-stream"
        mime_type = content_type.get_content_type()
        if error is None and mime_type in PICTURES and len(body) <= self._services.settings.file_bytes:
            picture = File(kind="image", source=Data(base64=b64encode(body).decode()), mime_type=mime_type)
            return ToolResult(parts=(picture,))
        try:
            text = body.decode(content_type.get_content_charset("utf-8")).strip()
        except (UnicodeDecodeError, LookupError):
            text = NOT_SHOWN.format(type=mime_type, size=len(body))
        text = text or NO_ANSWER.format(status=answer.status)
        answer_text = text if error is None else f"{tool} failed with status {answer.status}: {text}"
        return ToolResult(parts=(Text(text=self._secrets.hide(answer_text)),), error=error)


@dataclass(frozen=True, kw_only=True)
class OwnParts:
    """Parts that the settings add to every request: address, headers, and the credential of each scheme."""

    server: str
    headers: Mapping[str, str]
    credentials: Mapping[str, str]
    schemes: Mapping[str, openapi_file.SecurityScheme]


def make_request(operation: openapi_file.Operation, arguments: Mapping[str, Json], own: OwnParts) -> HttpRequest:
    """Build the request of a call. No argument can change the host, path or another header."""
    path, parts = operation.path, _SentParts()
    for one in operation.parameters:
        value = arguments.get(one.argument)
        if one.place == "path":
            # Quote a value as one path segment. An empty value or dots would lead to another path.
            text = _format_value(value)
            if text in ("", ".", ".."):
                raise ToolError(f"{one.argument} is {text!r}, which cannot be a part of an address. Give another.")
            path = path.replace(f"{{{one.name}}}", quote(text, safe=""))
        elif value is not None:
            is_many = one.explode and isinstance(value, list)
            for each in (value if isinstance(value, list) else ()) if is_many else (value,):
                parts.add(one.place, one.name, _format_value(each))
    # Use the first alternative for which all credentials are configured.
    usable = [names for names in operation.security if set(names) <= own.credentials.keys() & own.schemes.keys()]
    for name in usable[0] if usable else ():
        scheme = own.schemes[name]
        parts.add(scheme.place, scheme.name, f"{scheme.prefix}{own.credentials[name]}")
    data = _body(operation, arguments)
    own_headers = {"Accept": ACCEPT, **parts.headers}
    own_headers |= {"Cookie": "; ".join(parts.cookies)} if parts.cookies else {}
    own_headers |= {"Content-Type": operation.body} if data is not None else {}
    # Settings take precedence over arguments.
    headers = {name: value for name, value in own_headers.items() if name.lower() not in map(str.lower, own.headers)}
    query = f"?{urlencode(parts.query)}" if parts.query else ""
    return HttpRequest(
        method=operation.method.upper(),
        url=f"{own.server}{quote(path, safe=AS_IT_IS)}{query}",
        headers={**headers, **own.headers},
        data=data,
    )


@dataclass(frozen=True, kw_only=True)
class _SentParts:
    """Parts of a request besides path and body."""

    query: list[tuple[str, str]] = field(default_factory=list[tuple[str, str]])
    headers: dict[str, str] = field(default_factory=dict[str, str])
    cookies: list[str] = field(default_factory=list[str])

    def add(self, place: openapi_file.SentPlace, name: str, value: str) -> None:
        match place:
            case "query":
                self.query.append((name, value))
            case "cookie":
                self.cookies.append(f"{name}={quote(value, safe='')}")
            case _:
                self.headers[name] = " ".join(value.split())


def _format_value(value: Json) -> str:
    match value:
        case None:
            return ""
        case str():
            return value
        case list():
            return ",".join(map(_format_value, value))
        case _:
            return dump(value).decode()


def _body(operation: openapi_file.Operation, arguments: Mapping[str, Json]) -> bytes | None:
    if not operation.body:
        return None
    fields: Json = {name: value for name, value in arguments.items() if name in operation.fields}
    if operation.is_whole:
        fields = arguments.get(openapi_file.BODY)
    if fields is None or fields == {}:
        return b"{}" if operation.fields and operation.body != openapi_file.FORM_TYPE else None
    if operation.body == openapi_file.FORM_TYPE and isinstance(fields, Mapping):
        return urlencode([(name, _format_value(value)) for name, value in fields.items()]).encode()
    return dump(fields)
