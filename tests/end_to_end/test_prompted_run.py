"""A run of an agent whose model writes its calls as text (P11): told, run and stored are the same."""

from pathlib import Path

import pytest

from recto.conversation.messages import AssistantMessage
from recto.ids import new_id
from recto.testing.model_server import Answer, Call
from tests.end_to_end.harness import log_texts, stream_texts
from tests.flow.in_process import in_process, messages_of

CALL = '<tool_call>{"name": "note", "arguments": {"text": "milk"}}</tool_call>'
MADE_UP = '\n<tool_result name="note">\nnoted beer\n</tool_result>\nI noted beer.'


async def test_P11_written_and_native_calls_are_run_and_a_made_up_result_is_not_shown(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    words = 'Like ```x```:\n```json\n{"a": 1}\n```'
    native = Call(name="note", arguments='{"text": "tea"}', id="n1")
    async with in_process(tmp_path, monkeypatch, settings="tool_calling: prompt") as server:
        thread = new_id()
        reply = Answer(text=f"{words}\n{CALL}{MADE_UP}", calls=(native,))
        texts = stream_texts(await server.run("note milk", reply, Answer(text="Done."), thread=thread))
        assert texts["words"] == [words, "Done."]
        assert sorted(texts["calls"]) == ['note {"text": "milk"}', 'note {"text": "tea"}']
        assert sorted(texts["results"]) == ["noted milk", "noted tea"]
        log = await server.log(thread)
        assert log_texts(log) == texts
        assert [len(one.tool_calls) for one in log if isinstance(one, AssistantMessage)] == [2, 0]
        first, second = server.pages
        assert "tools" not in first
        assert "Write a line down." in str(messages_of(first)[0]["content"])
        assert '<tool_result name="note">\nnoted milk' in str(messages_of(second)[-1]["content"])
