"""Rollouts of Codex: both forms, calls of every kind, failures and usage."""

import json
from dataclasses import replace

import pytest

from recto.cli.sessions.session import Session, SessionCompaction
from recto.conversation.messages import ToolMessage
from recto.models.ports import Usage
from recto.page.fold.agent_tools import AgentTools
from tests.cli.session_outline import AT, TIME, Json, outline, read

TOOLS = AgentTools(
    terminal=("shell", "shell_command", "exec_command", "local_shell", "container.exec"), edits=("apply_patch",)
)


def row(kind: str, **payload: object) -> Json:
    return {"timestamp": TIME, "type": kind, "payload": payload}


def item(kind: str, **fields: object) -> Json:
    return row("response_item", type=kind, **fields)


def message_row(role: str, text: str) -> Json:
    kind = "output_text" if role == "assistant" else "input_text"
    return item("message", role=role, content=[{"type": kind, "text": text}])


def call_row(call: str) -> Json:
    return item("function_call", name="shell", arguments='{"command":["ls"]}', call_id=call)


def output_row(call: str, output: object = "a.py") -> Json:
    return item("function_call_output", call_id=call, output=output)


def usage_row(tokens: int, total: int) -> Json:
    info = {"total_token_usage": {"total_tokens": total}, "last_token_usage": {"input_tokens": tokens}}
    return row("event_msg", type="token_count", info=info)


def shell(call: str) -> str:
    return f'{call} = shell {{"command":["ls"]}}'


def test_a_rollout_is_read_completely():
    session = read(
        row("session_meta", id="s1", timestamp=TIME, cwd="/app"),
        message_row("developer", "Be careful."),
        row("turn_context", cwd="/elsewhere", model="gpt"),
        message_row("user", "What is here?"),
        row("event_msg", type="user_message", message="What is here?"),
        item("reasoning", summary=[], content=None, encrypted_content="sealed"),
        *(message_row("assistant", "I look."), call_row("c1"), call_row("c2"), usage_row(1000, 1100)),
        *(output_row("c1"), output_row("c2")),
        item("web_search_call", status="completed", action={"type": "search", "query": "x"}),
        *(message_row("assistant", "One file."), usage_row(1200, 2400)),
    )
    assert outline(session) == [
        "m2 developer: Be careful.",
        "m4 user: What is here?",
        f"m7 assistant: I look. + {shell('c1')} + {shell('c2')}",
        "m11 result of c1: a.py",
        "m12 result of c2: a.py",
        "m14 assistant: One file.",
    ]
    assert {message.time for message in session.messages} == {AT}
    assert replace(session, messages=()) == Session(
        format="codex",
        messages=(),
        root="/app",
        tools=TOOLS,
        usages={"m7": Usage(input=1000), "m14": Usage(input=1200)},
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
    assert outline(session) == ["u1 user: go", f"f1 assistant: {shell('c1')}", "m5 result of c1: a.py"]
    assert replace(session, messages=()) == Session(format="codex", messages=(), tools=TOOLS)


def test_calls_of_every_kind_are_calls():
    action = {"type": "exec", "command": ["ls"], "timeout_ms": None}
    session = read(
        item("custom_tool_call", status="completed", call_id="c1", name="apply_patch", input="*** Begin Patch"),
        item("local_shell_call", id="lsh", call_id="c2", status="completed", action=action),
        item("local_shell_call", id="c3", call_id=None, status="completed", action=action),
        item("custom_tool_call_output", call_id="c1", output="Success."),
        output_row("c2"),
        output_row("c3", {"content": "a.py", "success": True}),
    )
    local = 'local_shell {"type":"exec","command":["ls"],"timeout_ms":null}'
    assert outline(session) == [
        f'm1 assistant: c1 = apply_patch {{"input":"*** Begin Patch"}} + c2 = {local} + c3 = {local}',
        "m4 result of c1: Success.",
        "m5 result of c2: a.py",
        "m6 result of c3: a.py",
    ]


def test_images_and_system_messages_are_read():
    session = read(
        message_row("system", "Be brief."),
        item("message", role="user", content=[{"type": "input_image", "image_url": "data:image/png;base64,aGk="}]),
        output_row(
            "c1", [{"type": "input_text", "text": "a"}, {"type": "input_image", "image_url": "https://x.org/a"}]
        ),
    )
    assert outline(session) == [
        "m1 system: Be brief.",
        "m2 user: image aGk= image/png",
        "m3 result of c1: a + image https://x.org/a",
    ]


@pytest.mark.parametrize(
    ("output", "error"),
    [
        ("plain text", None),
        ("Exit code: 0\nWall time: 0.1 seconds\nOutput:\nok", None),
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
    (message,) = read(output_row("c1", output)).messages
    assert isinstance(message, ToolMessage)
    assert message.error == error


def test_repeated_usage_and_usage_before_a_reply_is_ignored():
    session = read(
        *(usage_row(900, 1000), message_row("user", "go"), message_row("assistant", "one")),
        *(usage_row(900, 1000), usage_row(1100, 2200), usage_row(1300, 3600)),
    )
    assert session.usages == {"m3": Usage(input=1100)}


def test_compactions_and_rollbacks_hide_nothing():
    session = read(
        message_row("user", "one"),
        row("compacted", message="a summary", replacement_history=[]),
        message_row("user", "two"),
        row("event_msg", type="thread_rolled_back", num_turns=1),
    )
    assert outline(session) == ["m1 user: one", "m3 user: two"]
    assert session.compactions == (SessionCompaction(place=1, first_kept=1, summary="a summary"),)
    assert session.notes == (
        "1 compaction is ignored: the whole log is read.",
        "1 rollback is ignored: the whole log is read.",
    )


def test_the_replacement_history_is_the_summary_of_a_compaction():
    payloads = [message_row("user", words)["payload"] for words in ("one", "a summary")]
    session = read(message_row("user", "one"), row("compacted", message="", replacement_history=payloads))
    assert session.compactions == (SessionCompaction(place=1, first_kept=1, summary="one\n\na summary"),)


def test_the_working_folder_may_stand_in_the_first_turn():
    assert read(row("turn_context", cwd="/app", model="gpt"), message_row("user", "go")).root == "/app"
