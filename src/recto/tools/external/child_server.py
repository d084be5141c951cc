"""An MCP server as a child process: one message per line, of bounded length. Other lines are ignored."""

from __future__ import annotations

import asyncio
import logging
import os
import signal
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from anyio.streams.memory import MemoryObjectReceiveStream, MemoryObjectSendStream
    from mcp.client._transport import TransportStreams  # what all its transports give has no other name
    from mcp.shared.message import SessionMessage

LOGGER = logging.getLogger("recto.tools")
# Twice: until SIGTERM, then until SIGKILL. A stopping server waits for both.
STOP_SECONDS = 1.0
# Of its standard error: enough to show why it ended.
TAIL_CHARACTERS = 2_000


@dataclass(kw_only=True)
class ChildServer:
    """One start of a server. It calls `on_end` when the output ends; `problem` has the reason afterwards.

    `hide` removes secrets from its output.
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
        """Start the server and yield its streams. It ends with the context."""
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
            # Closing its input makes it end too, which is no problem.
            ended_itself = self._is_over
            await asyncio.shield(asyncio.ensure_future(_end(process)))
            # Its last output may still be on its way.
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
        """Forward messages until the output ends. The session sees the end of its stream."""
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
        # It accepts no more input: fail those who wait for its answers.
        come.close()

    async def _listen(self, process: asyncio.subprocess.Process) -> None:
        while process.stderr and (piece := await process.stderr.read(4_096)):
            self._tail = (self._tail + piece.decode(errors="replace"))[-TAIL_CHARACTERS:]


async def _end(process: asyncio.subprocess.Process) -> None:
    """Close its input, which asks it to end. If it stays, signal it and all its processes."""
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
