"""Long bodies, read straight from the socket (P9): whole, between other requests, and left by either side."""

import asyncio
import hashlib
from collections.abc import AsyncGenerator, Callable, Coroutine
from contextlib import aclosing
from typing import TypeAlias

import pytest
from starlette.requests import ClientDisconnect, Request
from starlette.responses import PlainTextResponse, Response
from starlette.types import Receive, Scope, Send

from recto.api.connections import DIRECT, DIRECT_BYTES, body_of
from tests.api.raw_connection import RawConnection, RawServer
from tests.waiting import settle

Handler: TypeAlias = Callable[[Request, AsyncGenerator[bytes]], Coroutine[None, None, Response]]
LONG = bytes(range(251)) * 20_000
SHORT = LONG[: DIRECT_BYTES - 1]


def serving(handle: Handler) -> RawServer:
    """Give every request with its body to a function."""

    async def answer(scope: Scope, receive: Receive, send: Send) -> None:
        request = Request(scope, receive)
        async with aclosing(body_of(request)) as body:
            reply = await handle(request, body)
        await reply(scope, receive, send)

    return RawServer(answer)


async def digest(request: Request, body: AsyncGenerator[bytes]) -> Response:
    """Which bytes came, and whether they could be read from the socket."""
    digest = hashlib.sha256()
    async for piece in body:
        digest.update(piece)
    return PlainTextResponse(describe(digest.hexdigest(), direct=DIRECT in request.scope.get("extensions", {})))


def describe(hex: str, *, direct: bool) -> str:
    return f"{hex} {'direct' if direct else 'usual'}"


def post(body: bytes, *fields: str) -> bytes:
    head = "\r\n".join(("POST / HTTP/1.1", "host: x", *fields, f"content-length: {len(body)}", "", ""))
    return head.encode() + body


def chunked(body: bytes) -> bytes:
    head = b"POST / HTTP/1.1\r\nhost: x\r\ntransfer-encoding: chunked\r\n\r\n"
    return head + b"%x\r\n%b\r\n0\r\n\r\n" % (len(body), body)


async def answer_from(one: RawConnection) -> str:
    head = await one.reader.readuntil(b"\r\n\r\n")
    (length,) = [line for line in head.split(b"\r\n") if line.lower().startswith(b"content-length:")]
    return (await one.reader.readexactly(int(length.partition(b":")[2]))).decode()


@pytest.mark.parametrize(
    ("data", "body", "direct"),
    [
        (post(LONG), LONG, True),
        (post(LONG[:DIRECT_BYTES]), LONG[:DIRECT_BYTES], True),
        (post(SHORT), SHORT, False),
        (post(b""), b"", False),
        (chunked(LONG), LONG, False),
    ],
    ids=["long", "just long", "short", "empty", "without a length"],
)
async def test_P9_a_body_comes_whole_whichever_way_it_is_read(data: bytes, body: bytes, direct: bool):
    async with serving(digest) as server:
        one = await server.dial()
        one.writer.write(data)
        assert await answer_from(one) == describe(hashlib.sha256(body).hexdigest(), direct=direct)


async def test_P9_requests_sent_ahead_behind_a_long_body_are_answered_in_their_order():
    bodies = [LONG, SHORT, b"few", LONG[::-1], b"", LONG]
    async with serving(digest) as server:
        one = await server.dial()
        for body in bodies:
            one.writer.write(post(body))
        answers = [await answer_from(one) for _ in bodies]
    assert answers == [describe(hashlib.sha256(body).hexdigest(), direct=len(body) >= DIRECT_BYTES) for body in bodies]


async def test_P9_a_long_body_that_comes_in_drops_is_whole():
    async with serving(digest) as server:
        one = await server.dial()
        whole = post(LONG)
        for place in range(0, len(whole), 300_007):
            one.writer.write(whole[place : place + 300_007])
            await one.writer.drain()
            await settle()
        assert await answer_from(one) == describe(hashlib.sha256(LONG).hexdigest(), direct=True)


async def test_P9_who_waits_to_be_told_to_go_on_with_a_long_body_is_told():
    async with serving(digest) as server:
        one = await server.dial()
        one.writer.write(post(LONG, "expect: 100-continue").removesuffix(LONG))
        assert await one.reader.readuntil(b"\r\n\r\n") == b"HTTP/1.1 100 Continue\r\n\r\n"
        one.writer.write(LONG)
        assert await answer_from(one) == describe(hashlib.sha256(LONG).hexdigest(), direct=True)


@pytest.mark.parametrize("is_rude", [False, True], ids=["closed", "reset"])
async def test_P9_who_leaves_in_a_long_body_is_noticed(is_rude: bool):
    leaving = asyncio.Event()

    async def read(_request: Request, body: AsyncGenerator[bytes]) -> Response:
        try:
            async for _ in body:
                pass
        except ClientDisconnect:
            leaving.set()
        return Response(status_code=400)

    async with serving(read) as server:
        one = await server.dial()
        one.writer.write(post(LONG)[:-1_000_000])
        await one.writer.drain()
        if is_rude:
            one.writer.transport.abort()
        else:
            one.writer.close()
        assert await leaving.wait()


async def test_P9_a_long_body_that_nobody_reads_on_ends_with_its_connection():
    async def read_some(_request: Request, body: AsyncGenerator[bytes]) -> Response:
        some = 0
        async for piece in body:
            some += len(piece)
            if some > DIRECT_BYTES:
                break
        return PlainTextResponse("enough", headers={"connection": "close"})

    async with serving(read_some) as server:
        one = await server.dial()
        # All that it reads, and no more: what is left unread would reset the connection.
        one.writer.write(post(LONG).removesuffix(LONG) + LONG[: DIRECT_BYTES + 1])
        assert await answer_from(one) == "enough"
        assert await one.reader.read() == b""
