"""An agent whose model writes its calls as text (P11), through a real server: told, run and stored are the same."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import cast

import pytest

from recto.conversation.json import dump
from recto.testing.client import ask, run
from recto.testing.model_server import Answer, Call, Request
from recto.testing.process import ServerProcess
from tests.end_to_end.harness import TOOLS, Harness, log_texts, stream_texts

pytestmark = pytest.mark.full

CALL = '<tool_call>{"name": "note", "arguments": {"text": "milk"}}</tool_call>'
NOTED = 'note {"text": "milk"}'
MADE_UP = '\n<tool_result name="note">\nnoted beer\n</tool_result>\nI noted beer.'


def anthropic(*blocks: tuple[str, str]) -> Answer:
    """An answer of blocks in any order, each of one piece."""
    events = [_event("message_start", message={"usage": {"input_tokens": 9, "output_tokens": 1}})]
    for index, (kind, said) in enumerate(blocks):
        events.append(_event("content_block_start", index=index, content_block={"type": kind, kind: ""}))
        events.append(_event("content_block_delta", index=index, delta={"type": f"{kind}_delta", kind: said}))
        if kind == "thinking":
            signed = {"type": "signature_delta", "signature": f"signed {said}"}
            events.append(_event("content_block_delta", index=index, delta=signed))
        events.append(_event("content_block_stop", index=index))
    events.append(_event("message_delta", delta={"stop_reason": "end_turn"}, usage={"output_tokens": 5}))
    body = b"".join([*events, _event("message_stop")])
    return Answer(body=body, headers=(("Content-Type", "text/event-stream"),))


def _event(kind: str, **fields: object) -> bytes:
    return f"event: {kind}\ndata: {dump({'type': kind, **fields}).decode()}\n\n".encode()


def script(asked: Request) -> Answer:
    thinks = asked.page["model"] == "claude-opus-5"
    if "<tool_result name=" in str(messages(asked)[-1]["content"]):
        return anthropic(("text", "Done.")) if thinks else Answer(text="Done.")
    if thinks:
        return anthropic(("thinking", "hm"), ("text", "Let me note it. "), ("thinking", "so"), ("text", CALL))
    native = Call(name="look", arguments='{"text": "there"}', id="n1")
    return Answer(text=f'Like ```x```:\n```json\n{{"a": 1}}\n```\n{CALL}{MADE_UP}', calls=(native,))


def messages(asked: Request) -> list[Mapping[str, object]]:
    return cast("list[Mapping[str, object]]", asked.page["messages"])


@pytest.fixture(scope="module")
def harness(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Harness]:
    with Harness(tmp_path_factory.mktemp("prompt"), script) as harness:
        write_agent(harness.agent, "tool_calling: prompt")
        write_agent(harness.agents / "thinker", "tool_calling: prompt\nmodel: anthropic:claude-opus-5")
        provider = {"ANTHROPIC_BASE_URL": harness.model.root, "ANTHROPIC_API_KEY": "key"}
        command = ["recto", "serve", "--port", str(harness.port), "--data", str(harness.data)]
        with ServerProcess(command, harness.environment() | provider):
            yield harness


def write_agent(folder: Path, settings: str) -> None:
    folder.mkdir(exist_ok=True)
    (folder / "AGENT.md").write_text(f"---\n{settings}\n---\nYou are careful.\n", encoding="utf-8")
    (folder / "tools.py").write_text(TOOLS, encoding="utf-8")


def test_P11_a_call_written_after_more_thinking_is_run_and_stored_as_it_was_told(harness: Harness):
    body = ask("note milk", forwardedProps={"agent": "thinker"})
    events = stream_texts(run(harness.url, body))
    assert events == {"words": ["Let me note it.", "Done."], "calls": [NOTED], "results": ["noted milk"]}
    assert log_texts(harness.log(str(body["threadId"]))) == events
    (_, said, *_) = messages(harness.model.requests[-1])
    blocks = cast("list[Mapping[str, object]]", said["content"])
    assert [block["type"] for block in blocks] == ["thinking", "text", "thinking", "text"]


def test_P11_a_written_call_and_a_native_one_are_both_run_and_a_made_up_result_is_not_shown(harness: Harness):
    body = ask("note milk")
    events = stream_texts(run(harness.url, body))
    words = 'Like ```x```:\n```json\n{"a": 1}\n```'
    assert events["words"] == [words, "Done."]
    assert sorted(events["calls"]) == ['look {"text": "there"}', NOTED]
    assert sorted(events["results"]) == ["noted milk", "saw there"]
    assert log_texts(harness.log(str(body["threadId"]))) == events
    (said,) = [one["content"] for one in messages(harness.model.requests[-1]) if one["role"] == "assistant"]
    assert isinstance(said, str)
    assert said.startswith(f"{words}\n\n```json\n")
