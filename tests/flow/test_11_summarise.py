"""Step 11: a conversation that no longer fits gets a summary, as a marker; the log keeps everything."""

from pathlib import Path

import pytest

from recto.conversation.log import Compacted
from recto.ids import new_id
from recto.testing.model_server import Answer
from tests.flow.in_process import in_process

LONG = "words " * 600


async def test_R13_a_long_conversation_goes_on_from_its_summary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    thread = new_id()
    async with in_process(tmp_path, monkeypatch, settings="window: 1000\ncompact: {least: 1}") as server:
        await server.run(LONG, Answer(text="One.", usage=None), thread=thread)
        await server.run(LONG, Answer(text="SUMMARY: words."), Answer(text="Two."), thread=thread)
        log = await server.log(thread)
        assert [type(entry) for entry in log].count(Compacted) == 1
        assert str(server.pages[-1]).count("SUMMARY: words.") == 1
        assert str(log).count(LONG.strip()) == 2
