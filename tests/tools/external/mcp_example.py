"""MCP server made with the official package, over its standard streams or HTTP."""

import asyncio
import os
import socket
import sys
from base64 import b64encode
from pathlib import Path

import uvicorn
from mcp.server.mcpserver import Context, MCPServer
from mcp.server.mcpserver.exceptions import ToolError
from mcp_types import BlobResourceContents, EmbeddedResource, ImageContent, TextContent, ToolAnnotations
from starlette.types import Receive, Scope, Send

from tests.files.heads import PNG

server = MCPServer("a-server")
READ_ONLY = ToolAnnotations(read_only_hint=True)


@server.tool()
def echo(text: str) -> str:
    """Say it again."""
    return text


@server.tool()
def add(a: int, b: int) -> dict[str, int]:
    """Add two numbers."""
    return {"sum": a + b}


@server.tool()
def picture() -> list[ImageContent | TextContent | EmbeddedResource]:
    """A picture, with words and a file."""
    file = BlobResourceContents(uri="file:///a.bin", blob=b64encode(b"1234").decode(), mime_type="application/zip")
    return [
        TextContent(text="Look:"),
        ImageContent(data=b64encode(PNG).decode(), mime_type="image/png"),
        EmbeddedResource(resource=file),
    ]


@server.tool()
def fail(text: str) -> str:
    """Fail, saying why."""
    raise ToolError(f"no way: {text}")


@server.tool()
def environment() -> dict[str, str]:
    """Everything in the environment."""
    return dict(os.environ)


@server.tool()
def reach(port: int) -> str:
    """Connect to a port of this machine."""
    try:
        socket.create_connection(("127.0.0.1", port), 1).close()
    except OSError as error:
        return f"not reached: {type(error).__name__}"
    return "reached"


@server.tool()
def write(path: str) -> str:
    """Write a file, and say what is in its folder."""
    try:
        Path(path).write_text("here", encoding="utf-8")
    except OSError as error:
        return f"not written: {type(error).__name__}"
    return "written"


@server.tool()
def read(path: str) -> str:
    """Read a file."""
    try:
        return Path(path).read_text(encoding="utf-8")
    except OSError as error:
        return f"not read: {type(error).__name__}"


@server.tool()
async def slow(mark: str, ctx: Context) -> str:
    """Say how far it is, and go on until it is cancelled, which is written to a file."""
    try:
        await ctx.report_progress(0, 10, "step 0")
        await asyncio.Event().wait()
    except asyncio.CancelledError:
        Path(mark).write_text("cancelled", encoding="utf-8")
        raise
    return "never"


@server.tool()
@server.tool(name="die_reading", annotations=READ_ONLY)
def die(mark: str) -> str:
    """End the whole server the first time."""
    file = Path(mark)
    count = int(file.read_text(encoding="utf-8")) + 1 if file.exists() else 1
    file.write_text(str(count), encoding="utf-8")
    if count == 1:
        os._exit(3)
    return f"call {count}"


@server.tool()
def huge(characters: int) -> str:
    """Say very much."""
    return "x" * characters


@server.tool()
async def grow(name: str, ctx: Context) -> str:
    """Have one more tool from now on."""
    server.add_tool(echo, name=name)
    await ctx.notify_tools_changed()
    return f"{name} is there"


@server.tool(name="odd.name/of tool")
def odd() -> str:
    """A tool whose name no provider takes."""
    return "odd"


@server.resource("notes://today", name="today", mime_type="text/plain")
def today() -> str:
    """What is to be done today."""
    return "Buy milk."


@server.resource("notes://photo", name="photo", mime_type="image/png")
def photo() -> bytes:
    """A photo."""
    return PNG


def main() -> None:
    if len(sys.argv) == 1:
        print("a-server is ready; token", os.environ.get("TOKEN", "none"), file=sys.stderr)
        server.run()
        return
    token = os.environ.get("TOKEN")
    app = server.streamable_http_app()

    async def guarded(scope: Scope, receive: Receive, send: Send) -> None:
        headers: dict[bytes, bytes] = dict(scope.get("headers", ()))
        if scope["type"] == "http" and token and headers.get(b"authorization") != f"Bearer {token}".encode():
            await send({"type": "http.response.start", "status": 401, "headers": []})
            await send({"type": "http.response.body", "body": b"no"})
            return
        await app(scope, receive, send)

    uvicorn.run(guarded, host="127.0.0.1", port=int(sys.argv[1]), log_level="warning")


if __name__ == "__main__":
    main()
