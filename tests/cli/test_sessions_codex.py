"""Rollouts of Codex: both forms, calls of every kind, failures and usage."""

import json
from datetime import UTC, datetime

import pytest

from recto.cli.sessions.detect import read_session
from recto.cli.sessions.session import Session, SessionCompaction
from recto.conversation.messages import (
    AssistantMessage,
    Data,
    DeveloperMessage,
    File,
    SystemMessage,
    Text,
    ToolCall,
    ToolMessage,
    Url,
    UserMessage,
)
from recto.models.ports import Usage
from recto.page.fold.agent_tools import AgentTools

TOOLS = AgentTools(
    terminal=("shell", "shell_command", "exec_command", "local_shell", "container.exec"), edits=("apply_patch",)
)
TIME = "2026-01-02T03:04:05.678Z"
AT = datetime(2026, 1, 2, 3, 4, 5, 678_000, tzinfo=UTC)
META = {"timestamp": TIME, "type": "session_meta", "payload": {"id": "s1", "timestamp": TIME, "cwd": "/app"}}

Json = dict[str, object]


def read(*rows: object) -> Session:
    return read_session("".join(json.dumps(row) + "\n" for row in rows).encode(), source="rollout.jsonl")


def item(kind: str, **fields: object) -> Json:
    return {"timestamp": TIME, "type": "response_item", "payload": {"type": kind, **fields}}


def said(role: str, text: str) -> Json:
    kind = "output_text" if role == "assistant" else "input_text"
    return item("message", role=role, content=[{"type": kind, "text": text}])


def called(call: str) -> Json:
    return item("function_call", name="shell", arguments='{"command":["ls"]}', call_id=call)


def answered(call: str, output: object = "a.py") -> Json:
    return item("function_call_output", call_id=call, output=output)


def counted(tokens: int, total: int) -> Json:
    info = {"total_token_usage": {"total_tokens": total}, "last_token_usage": {"input_tokens": tokens}}
    return {"timestamp": TIME, "type": "event_msg", "payload": {"type": "token_count", "info": info}}


def call(id: str) -> ToolCall:
    return ToolCall(id=id, name="shell", arguments='{"command":["ls"]}')


def error_of(output: object) -> str | None:
    (message,) = read(answered("c1", output)).messages
    assert isinstance(message, ToolMessage)
    return message.error


def test_a_rollout_is_read_whole():
    session = read(
        META,
        said("developer", "Be careful."),
        {"timestamp": TIME, "type": "turn_context", "payload": {"cwd": "/elsewhere", "model": "gpt"}},
        said("user", "What is here?"),
        {"timestamp": TIME, "type": "event_msg", "payload": {"type": "user_message", "message": "What is here?"}},
        item("reasoning", summary=[], content=None, encrypted_content="sealed"),
        said("assistant", "I look."),
        called("c1"),
        called("c2"),
        counted(1000, 1100),
        answered("c1"),
        answered("c2"),
        item("web_search_call", status="completed", action={"type": "search", "query": "x"}),
        said("assistant", "One file."),
        counted(1200, 2400),
    )
    assert session == Session(
        format="codex",
        messages=(
            DeveloperMessage(id="m2", time=AT, text="Be careful."),
            UserMessage(id="m4", time=AT, parts=(Text(text="What is here?"),)),
            AssistantMessage(id="m7", time=AT, parts=(Text(text="I look."), call("c1"), call("c2"))),
            ToolMessage(id="m11", time=AT, tool_call_id="c1", parts=(Text(text="a.py"),)),
            ToolMessage(id="m12", time=AT, tool_call_id="c2", parts=(Text(text="a.py"),)),
            AssistantMessage(id="m14", time=AT, parts=(Text(text="One file."),)),
        ),
        root="/app",
        tools=TOOLS,
        reported={"m7": Usage(input=1000), "m14": Usage(input=1200)},
        models={"m7": "openai:gpt", "m14": "openai:gpt"},
    )


def test_the_old_form_has_bare_items():
    session = read(
        {"id": "s1", "timestamp": TIME, "instructions": None, "git": {}},
        {"record_type": "state"},
        {"type": "message", "id": "u1", "role": "user", "content": [{"type": "input_text", "text": "go"}]},
        {"type": "function_call", "id": "f1", "name": "shell", "arguments": '{"command":["ls"]}', "call_id": "c1"},
        {"type": "function_call_output", "call_id": "c1", "output": "a.py"},
    )
    assert session == Session(
        format="codex",
        messages=(
            UserMessage(id="u1", parts=(Text(text="go"),)),
            AssistantMessage(id="f1", parts=(call("c1"),)),
            ToolMessage(id="m5", tool_call_id="c1", parts=(Text(text="a.py"),)),
        ),
        tools=TOOLS,
    )


def test_calls_of_every_kind_are_calls():
    action = {"type": "exec", "command": ["ls"], "timeout_ms": None}
    session = read(
        item("custom_tool_call", status="completed", call_id="c1", name="apply_patch", input="*** Begin Patch"),
        item("local_shell_call", id="lsh", call_id="c2", status="completed", action=action),
        item("local_shell_call", id="c3", call_id=None, status="completed", action=action),
        item("custom_tool_call_output", call_id="c1", output="Success."),
        answered("c2"),
        answered("c3", {"content": "a.py", "success": True}),
    )
    shell = '{"type":"exec","command":["ls"],"timeout_ms":null}'
    assert session.messages == (
        AssistantMessage(
            id="m1",
            time=AT,
            parts=(
                ToolCall(id="c1", name="apply_patch", arguments='{"input":"*** Begin Patch"}'),
                ToolCall(id="c2", name="local_shell", arguments=shell),
                ToolCall(id="c3", name="local_shell", arguments=shell),
            ),
        ),
        ToolMessage(id="m4", time=AT, tool_call_id="c1", parts=(Text(text="Success."),)),
        ToolMessage(id="m5", time=AT, tool_call_id="c2", parts=(Text(text="a.py"),)),
        ToolMessage(id="m6", time=AT, tool_call_id="c3", parts=(Text(text="a.py"),)),
    )


def test_images_and_system_messages_are_read():
    session = read(
        said("system", "Be brief."),
        item("message", role="user", content=[{"type": "input_image", "image_url": "data:image/png;base64,aGk="}]),
        answered(
            "c1", [{"type": "input_text", "text": "see"}, {"type": "input_image", "image_url": "https://x.org/a"}]
        ),
    )
    assert session.messages == (
        SystemMessage(id="m1", time=AT, text="Be brief."),
        UserMessage(id="m2", time=AT, parts=(File(kind="image", source=Data(base64="aGk="), mime_type="image/png"),)),
        ToolMessage(
            id="m3",
            time=AT,
            tool_call_id="c1",
            parts=(Text(text="see"), File(kind="image", source=Url(url="https://x.org/a"))),
        ),
    )


@pytest.mark.parametrize(
    ("output", "error"),
    [
        ("", None),
        ("plain text", None),
        ("Exit code: 0\nWall time: 0.1 seconds\nOutput:\nok", None),
        ("Exit code: 101\nWall time: 0.1 seconds\nOutput:\nno", "error"),
        ("Exit code: -1\nWall time: 0.1 seconds\nOutput:\nno", "error"),
        ("The docs say\nExit code: 1\n", None),
        ("Wall time: 0.2 seconds\nProcess exited with code 0\nOutput:\nok", None),
        ("Chunk ID: ab12\nWall time: 0.2 seconds\nProcess exited with code 2\nOutput:\nno", "error"),
        ("Chunk ID: ab12\nWall time: 0.2 seconds\nProcess running with session ID 7\nOutput:\nok", None),
        (json.dumps({"output": "ok", "metadata": {"exit_code": 0, "duration_seconds": 0.1}}), None),
        (json.dumps({"output": "no", "metadata": {"exit_code": 1, "duration_seconds": 0.1}}), "error"),
        (json.dumps({"exit_code": 1}), None),
        ([{"type": "input_text", "text": "Exit code: 2\nOutput:\nno"}], "error"),
    ],
)
def test_a_command_that_failed_is_an_error(output: object, error: str | None):
    assert error_of(output) == error


def test_usage_told_twice_or_before_any_reply_belongs_to_no_reply():
    session = read(
        counted(900, 1000),
        said("user", "go"),
        said("assistant", "one"),
        counted(900, 1000),
        counted(1100, 2200),
        counted(1300, 3600),
    )
    assert session.reported == {"m3": Usage(input=1100)}


def test_compactions_and_rollbacks_hide_nothing():
    session = read(
        said("user", "one"),
        {"timestamp": TIME, "type": "compacted", "payload": {"message": "a summary", "replacement_history": []}},
        said("user", "two"),
        {"timestamp": TIME, "type": "event_msg", "payload": {"type": "thread_rolled_back", "num_turns": 1}},
    )
    assert session == Session(
        format="codex",
        messages=(
            UserMessage(id="m1", time=AT, parts=(Text(text="one"),)),
            UserMessage(id="m3", time=AT, parts=(Text(text="two"),)),
        ),
        tools=TOOLS,
        compactions=(SessionCompaction(place=1, kept=1, summary="a summary"),),
        notes=(
            "1 compaction is ignored: the whole log is read.",
            "1 rollback is ignored: the whole log is read.",
        ),
    )


def test_what_a_compaction_left_of_the_history_stands_for_all_before_it():
    kept = [said(role, words)["payload"] for role, words in (("user", "one"), ("user", "a summary"))]
    session = read(
        said("user", "one"),
        {"timestamp": TIME, "type": "compacted", "payload": {"message": "", "replacement_history": kept}},
    )
    assert session.compactions == (SessionCompaction(place=1, kept=1, summary="one\n\na summary"),)


def test_the_working_folder_may_stand_in_the_first_turn():
    turn = {"timestamp": TIME, "type": "turn_context", "payload": {"cwd": "/app", "model": "gpt"}}
    assert read(turn, said("user", "go")).root == "/app"
