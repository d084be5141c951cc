"""A model that never ends: every word is the microsecond it was sent at, on the clock all processes share.

The space stands before a word, as models write it: white space at the end of a text is held back until more follows.
"""

from __future__ import annotations

import asyncio
import sys
import time

CHUNK = (
    '{"id":"c","object":"chat.completion.chunk","created":0,"model":"fake",'
    '"choices":[{"index":0,"delta":%s,"finish_reason":null}]}'
)
HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n"


async def serve(rate: float) -> None:
    """Answer everybody with so many words a second until they go away."""

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(HEAD + _chunk('{"role":"assistant","content":""}'))
        due = time.monotonic()
        while not writer.is_closing():
            writer.write(_chunk(f'{{"content":" {time.monotonic_ns() // 1000}"}}'))
            due += 1 / rate
            await asyncio.sleep(due - time.monotonic())

    server = await asyncio.start_server(answer, "127.0.0.1", 0, backlog=2048)
    print(f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}", flush=True)
    async with server:
        await server.serve_forever()


def _chunk(delta: str) -> bytes:
    event = b"data: " + (CHUNK % delta).encode() + b"\n\n"
    return b"%x\r\n%b\r\n" % (len(event), event)


if __name__ == "__main__":
    asyncio.run(serve(float(sys.argv[1])))
