"""A request that somebody may have worked on is not sent again."""

import asyncio
import time

import pytest

from recto.config.run_settings import Timeouts
from recto.models.http_client import STALE_SECONDS, HttpClient
from tests.models.raw_server import RawServer, Talk


def test_a_request_that_was_worked_on_for_a_while_is_not_sent_again():
    def works_and_closes(talk: Talk) -> None:
        talk.answer(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")
        talk.request()
        time.sleep(STALE_SECONDS + 0.1)

    async def ask_twice(url: str) -> None:
        client = HttpClient(url, {})
        for _ in range(2):
            answer = await client.post(b"{}", Timeouts())
            assert await answer.read() == b""
            answer.close()

    with RawServer(works_and_closes, works_and_closes) as server:
        with pytest.raises(ConnectionError, match="closed before it answered"):
            asyncio.run(ask_twice(server.url))
        assert (len(server.requests), server.connections) == (2, 1)
