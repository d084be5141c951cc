"""One MCP session, shared by all runs of its agent: started in the background and restarted when it is lost.

A call interrupted by a lost session is repeated only if the server declares that safe.
"""

from __future__ import annotations

import asyncio
import logging
import os
import signal
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager, suppress
from dataclasses import dataclass, field
from importlib.metadata import version
from typing import TYPE_CHECKING, TypeVar, cast

from recto.agents.external_tools import McpSettings
from recto.errors import SettingsError, ToolError
from recto.tools.call import TIMEOUT
from recto.tools.external.sandbox import CannotStart, environment
from recto.tools.external.services import ExternalServices, SecretValues, SourceState

if TYPE_CHECKING:
    from anyio.streams.memory import MemoryObjectReceiveStream, MemoryObjectSendStream
    from mcp.client import Client, IncomingMessage
    from mcp.client._transport import TransportStreams  # the type that all transports yield; it has no public name
    from mcp.shared.message import SessionMessage

LOGGER = logging.getLogger("recto.tools")
# Seconds that a server has to end before SIGTERM, and again before SIGKILL. A stopping Recto server waits for both.
STOP_SECONDS = 1.0
# Characters kept of a server's standard error, enough to show why it ended.
TAIL_CHARACTERS = 2_000
FIRST_PAUSE = 0.5
# Duration of a steady session. After such a session, the next one starts without a long pause.
STEADY_SECONDS = 30.0
NO_PACKAGE = "it needs a package that is not installed: pip install 'recto[mcp]'"
SLOW = "{tool} took longer than {seconds:g} seconds and was stopped. It may have done part of its work."
CONNECTION_LOST = "the connection was lost"
LOST_CALL = (
    "The connection to {server} was lost while {tool} was at work; whether it finished is not known. It was not called "
    "again. Look at what is there before you do."
)
DOWN = "{server} cannot be reached at present, so {tool} was not called. Try it later, or go on without it."
# Beginnings of the client's texts for a lost connection. The error code does not help, because servers use it too.
CLOSED = ("Connection closed", "SSE stream")
# Beginnings of error texts for calls that were not executed: the server does not know the session, or nothing was sent.
NOT_DONE = ("Session terminated", "Client must be used")
Answer = TypeVar("Answer")


class McpServer:
    """An MCP server with tools for an agent. `used_names` are tool names that the agent already uses."""

    def __init__(self, settings: McpSettings, used_names: frozenset[str], services: ExternalServices) -> None:
        self.settings, self.name, self.place = settings, settings.name, settings.place
        self.state = SourceState()
        self.secrets = SecretValues(services.environment)
        self._used_names = used_names
        self._services = services
        self._client: Client | None = None
        # Function that returns the transport's reason for the end of the session.
        self._end_reason: Callable[[], str] = str
        self._up, self._connection_lost, self._changed, self._wake = (asyncio.Event() for _ in range(4))

    async def run(self) -> None:
        """Start sessions until cancelled, with a growing pause between failures."""
        pause, clock = FIRST_PAUSE, asyncio.get_running_loop().time
        while True:
            start = clock()
            problem = await self._run_session()
            self._forget_client()
            # Log a problem when it changes, not at every retry.
            level = logging.DEBUG if problem == self.state.problem else logging.WARNING
            LOGGER.log(level, "MCP server %s: %s. It is tried again.", self.name, problem)
            self.state.set_problem(problem)
            is_steady = clock() - start > STEADY_SECONDS
            pause = FIRST_PAUSE if is_steady else min(2 * pause, self._services.settings.retry_seconds)
            await _wait_at_most(self._wake.wait(), pause)
            self._wake.clear()

    async def call(self, tool: str, ask: Callable[[Client], Awaitable[Answer]], *, may_repeat: bool) -> Answer:
        """Return the server's answer. Raises ToolError if there is none, or if the server reports an error."""
        for is_last in (False, True):
            if self._client is None:
                # A call needs the session now: end the pause before the next try.
                self._wake.set()
                await _wait_at_most(self._up.wait(), self._services.settings.wait_seconds)
            if self._client is None:
                raise ToolError(DOWN.format(server=self.name, tool=tool), status="failed")
            client = self._client
            try:
                async with asyncio.timeout(self.settings.seconds):
                    return await ask(client)
            except TimeoutError as error:
                raise ToolError(SLOW.format(tool=tool, seconds=self.settings.seconds or 0), status=TIMEOUT) from error
            # Catch server errors, invalid answers and ended sessions. Any of their texts may contain a secret.
            except Exception as error:
                from anyio import BrokenResourceError, ClosedResourceError

                is_closed = isinstance(error, (BrokenResourceError, ClosedResourceError))
                if not (is_closed or str(error).startswith((*CLOSED, *NOT_DONE))):
                    raise ToolError(f"{tool} failed: {self.secrets.hide(str(error))}") from error
                if client is self._client:
                    self._forget_client()
                    self._connection_lost.set()
                if is_last or not (may_repeat or str(error).startswith(NOT_DONE)):
                    raise ToolError(LOST_CALL.format(server=self.name, tool=tool), status="interrupted") from error
        raise AssertionError("the last try returns or raises")

    def _forget_client(self) -> None:
        self._client = None
        self._up.clear()

    async def _run_session(self) -> str:
        """Run one session to its end and return why it ended."""
        self._connection_lost.clear()
        self._changed.clear()
        self._end_reason = str
        try:
            await self._session()
        except ImportError:
            return NO_PACKAGE
        # The MCP library may raise any error. It ends only this session.
        except Exception as error:
            LOGGER.debug("MCP server %s: a session ended.", self.name, exc_info=True)
            return self.secrets.hide(self._end_reason() or _describe(error))
        return self.secrets.hide(self._end_reason() or CONNECTION_LOST)

    async def _session(self) -> None:
        from mcp.client import Client
        from mcp_types import Implementation

        info = Implementation(name="recto", version=version("recto"))
        async with AsyncExitStack() as stack:
            async with asyncio.timeout(self._services.settings.start_seconds):
                transport = await (self._child_transport() if self.settings.command else self._web_transport(stack))
                new_client = Client(transport, client_info=info, message_handler=self._notice, cache=None)
                client = await stack.enter_async_context(new_client)
                await self._list(client)
            self._client = client
            self._up.set()
            listening = asyncio.create_task(self._listen(client))
            try:
                await self._follow(client)
            finally:
                listening.cancel()
                await asyncio.gather(listening, return_exceptions=True)

    async def _child_transport(self) -> AbstractAsyncContextManager[TransportStreams]:
        settings, services = self.settings, self._services
        child = ChildServer(
            name=self.name,
            command=await services.sandbox.command(settings),
            environment=environment(settings, self.secrets.fill_in(settings.env)),
            folder=str(settings.place.folder.resolve()),
            line_bytes=services.settings.message_bytes,
            hide=self.secrets.hide,
            on_end=self._connection_lost.set,
        )
        self._end_reason = lambda: child.problem
        return child.transport()

    async def _web_transport(self, stack: AsyncExitStack) -> AbstractAsyncContextManager[TransportStreams]:
        import httpx2
        from mcp.client.streamable_http import streamable_http_client

        from recto.tools.external.guarded_http import GuardedTransport

        settings, most = self.settings, self._services.settings.message_bytes
        headers = self.secrets.fill_in(settings.headers)
        transport = GuardedTransport(self._services.open_web(settings.internal), most)
        self._end_reason = lambda: transport.problem
        client = httpx2.AsyncClient(transport=transport, headers=headers, timeout=None, trust_env=False)
        await stack.enter_async_context(client)
        return streamable_http_client(settings.url, http_client=client, max_sse_event_size=most)

    async def _list(self, client: Client) -> None:
        from recto.tools.external.mcp_tools import list_tools  # here: the package may be missing

        tools, warnings = await list_tools(client, self, self._used_names, self._services)
        for warning in [one for one in warnings if one not in self.state.warnings]:
            LOGGER.warning("MCP server %s: %s", self.name, warning)
        self.state.set_tools(tools, warnings)

    async def _follow(self, client: Client) -> None:
        """List the tools again whenever they change, until the session is lost."""
        while not self._connection_lost.is_set():
            waiting = [asyncio.ensure_future(event.wait()) for event in (self._connection_lost, self._changed)]
            try:
                await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
            finally:
                for one in waiting:
                    one.cancel()
            if self._changed.is_set() and not self._connection_lost.is_set():
                self._changed.clear()
                async with asyncio.timeout(self._services.settings.start_seconds):
                    await self._list(client)

    async def _notice(self, message: IncomingMessage) -> None:
        """Record list changes that older servers report without a subscription."""
        from mcp_types import ResourceListChangedNotification, ToolListChangedNotification

        if isinstance(message, (ToolListChangedNotification, ResourceListChangedNotification)):
            self._changed.set()

    async def _listen(self, client: Client) -> None:
        """Subscribe to list changes on newer servers."""
        from mcp.client.subscriptions import ListenNotSupportedError, SubscriptionLost

        tools = client.server_capabilities.tools
        while tools and tools.list_changed:
            try:
                async with client.listen(tools_list_changed=True, resources_list_changed=True) as changes:
                    async for _ in changes:
                        self._changed.set()
            except ListenNotSupportedError:
                return
            except SubscriptionLost:
                LOGGER.debug("MCP server %s no longer says what changes; it is asked again.", self.name)
            await asyncio.sleep(FIRST_PAUSE)
            # Changes between two subscriptions were not reported, so list again.
            self._changed.set()


def _describe(error: BaseException) -> str:
    """Describe an error; of a group, the first error."""
    match error:
        case BaseExceptionGroup(exceptions=exceptions):
            return _describe(cast("tuple[BaseException, ...]", exceptions)[0])
        case CannotStart() | SettingsError():
            return str(error).rstrip(".")
        case TimeoutError():
            return "it did not answer in time"
        case OSError():
            return f"it cannot be started ({error.strerror or error})"
        case _:
            return str(error) or type(error).__name__


async def _wait_at_most(waiting: Awaitable[object], seconds: float) -> None:
    try:
        await asyncio.wait_for(waiting, seconds)
    except TimeoutError:
        return


@dataclass(kw_only=True)
class ChildServer:
    """An MCP server as a child process: one message per line, of bounded length. Other lines are ignored.

    `on_end` is called when the server's output ends. Afterwards `problem` contains the reason. `hide` removes secrets
    from the output.
    """

    name: str
    command: Sequence[str]
    environment: Mapping[str, str]
    folder: str
    line_bytes: int
    hide: Callable[[str], str]
    on_end: Callable[[], None]
    problem: str = field(default="", init=False)
    _tail: str = field(default="", init=False)
    _is_over: bool = field(default=False, init=False)

    @asynccontextmanager
    async def transport(self) -> AsyncGenerator[TransportStreams]:
        """Start the server and yield its streams. The end of the context ends the server."""
        import anyio
        from mcp.shared.message import SessionMessage

        pipe = asyncio.subprocess.PIPE
        process = await asyncio.create_subprocess_exec(
            *self.command,
            stdin=pipe,
            stdout=pipe,
            stderr=pipe,
            env=dict(self.environment),
            cwd=self.folder,
            limit=self.line_bytes,
            start_new_session=True,
        )
        come, incoming = anyio.create_memory_object_stream[SessionMessage | Exception](0)
        outgoing, messages = anyio.create_memory_object_stream[SessionMessage](0)
        working = [
            asyncio.create_task(self._read(process, come)),
            asyncio.create_task(self._write(process, messages, come)),
            asyncio.create_task(self._listen(process)),
        ]
        try:
            yield incoming, outgoing
        finally:
            # Check now, because closing the input also ends the server, which is no problem to report.
            ended_itself = self._is_over
            await asyncio.shield(asyncio.ensure_future(_end(process)))
            # Wait for the end of the server's standard error.
            await asyncio.wait(working[-1:], timeout=STOP_SECONDS)
            for task in working:
                task.cancel()
            await asyncio.gather(*working, return_exceptions=True)
            if ended_itself and not self.problem:
                text = " ".join(self.hide(self._tail).split())
                self.problem = f"it ended with code {process.returncode}{f'; it last said: {text}' if text else ''}"
            for stream in (come, incoming, outgoing, messages):
                stream.close()

    async def _read(
        self, process: asyncio.subprocess.Process, come: MemoryObjectSendStream[SessionMessage | Exception]
    ) -> None:
        """Forward messages until the output ends, then close the session's stream."""
        from mcp.shared.message import SessionMessage
        from mcp_types import jsonrpc_message_adapter

        async with come:
            while process.stdout:
                try:
                    line = await process.stdout.readline()
                except ValueError:
                    self.problem = f"it sent a message of more than {self.line_bytes:,} bytes"
                    break
                if not line:
                    break
                try:
                    message = jsonrpc_message_adapter.validate_json(line, by_name=False)
                except ValueError:
                    LOGGER.debug("MCP server %s wrote a line that is no message.", self.name)
                    continue
                await come.send(SessionMessage(message))
        self._is_over = True
        self.on_end()

    async def _write(
        self,
        process: asyncio.subprocess.Process,
        messages: MemoryObjectReceiveStream[SessionMessage],
        come: MemoryObjectSendStream[SessionMessage | Exception],
    ) -> None:
        with suppress(OSError):
            async for one in messages:
                text = one.message.model_dump_json(by_alias=True, exclude_unset=True)
                if process.stdin:
                    process.stdin.write(f"{text}\n".encode())
                    await process.stdin.drain()
            return
        # The server accepts no more input, so fail all pending requests.
        come.close()

    async def _listen(self, process: asyncio.subprocess.Process) -> None:
        while process.stderr and (piece := await process.stderr.read(4_096)):
            self._tail = (self._tail + piece.decode(errors="replace"))[-TAIL_CHARACTERS:]


async def _end(process: asyncio.subprocess.Process) -> None:
    """Close the server's input, which asks it to end. If it does not end, signal it and all its processes."""
    if process.stdin:
        process.stdin.close()
    for number in (signal.SIGTERM, signal.SIGKILL):
        with suppress(TimeoutError):
            async with asyncio.timeout(STOP_SECONDS):
                await process.wait()
                return
        with suppress(ProcessLookupError):
            os.killpg(process.pid, number)
    await process.wait()
