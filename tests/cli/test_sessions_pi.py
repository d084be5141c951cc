"""Sessions of pi: logs and trees, and what pi tells its model."""

import json
from datetime import UTC, datetime

import pytest

from recto.cli.sessions.detect import read_session
from recto.cli.sessions.session import Session, SessionCompaction
from recto.conversation.messages import AssistantMessage, Data, File, Opaque, Text, ToolCall, ToolMessage, UserMessage
from recto.models.ports import Usage
from recto.page.fold.agent_tools import AgentTools

TOOLS = AgentTools(
    reads=("read",),
    path_args=("path",),
    terminal=("bash",),
    search=("grep", "find"),
    edits=("edit", "write"),
    quote_args=("oldText",),
)
TIME = "2026-01-02T03:04:05.000Z"
AT = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
HEADER = {"type": "session", "version": 3, "id": "s1", "timestamp": TIME, "cwd": "/app"}


def read(*rows: object) -> Session:
    return read_session("".join(json.dumps(row) + "\n" for row in rows).encode(), source="session.jsonl")


def entry(id: str, parent: str | None, **message: object) -> dict[str, object]:
    return {"type": "message", "id": id, "parentId": parent, "timestamp": TIME, "message": message}


def said(id: str, parent: str | None, text: str) -> dict[str, object]:
    return entry(id, parent, role="user", content=text)


def user(id: str, text: str) -> UserMessage:
    return UserMessage(id=id, time=AT, parts=(Text(text=text),))


def text_of_bash(**fields: object) -> str:
    bash = {"role": "bashExecution", "command": "ls", "output": "", "cancelled": False, "truncated": False}
    (message,) = read(HEADER, entry("b1", None, **bash | fields)).messages
    assert isinstance(message, UserMessage)
    (part,) = message.parts
    assert isinstance(part, Text)
    return part.text


def test_a_session_is_read_whole():
    usage = {"input": 10, "output": 5, "cacheRead": 200, "cacheWrite": 30, "totalTokens": 245}
    blocks = [
        {"type": "text", "text": "I look."},
        {"type": "toolCall", "id": "c1", "name": "read", "arguments": {"path": "a.py", "limit": 5}},
    ]
    shown = [{"type": "text", "text": "x = 1"}, {"type": "image", "data": "aGk=", "mimeType": "image/png"}]
    session = read(
        HEADER,
        said("u1", None, "What is in a.py?"),
        {"type": "model_change", "id": "x1", "parentId": "u1", "timestamp": TIME, "provider": "p", "modelId": "m"},
        entry("a1", "x1", role="assistant", content=blocks, provider="p", model="m", usage=usage),
        entry("t1", "a1", role="toolResult", toolCallId="c1", toolName="read", content=shown, isError=False),
        entry("t2", "t1", role="toolResult", toolCallId="c2", toolName="bash", content=[], isError=True),
    )
    assert session == Session(
        format="pi",
        messages=(
            user("u1", "What is in a.py?"),
            AssistantMessage(
                id="a1",
                time=AT,
                parts=(
                    Text(text="I look."),
                    ToolCall(id="c1", name="read", arguments='{"path":"a.py","limit":5}'),
                ),
            ),
            ToolMessage(
                id="t1",
                time=AT,
                tool_call_id="c1",
                parts=(Text(text="x = 1"), File(kind="image", source=Data(base64="aGk="), mime_type="image/png")),
            ),
            ToolMessage(id="t2", time=AT, tool_call_id="c2", error="error"),
        ),
        root="/app",
        tools=TOOLS,
        reported={"a1": Usage(input=240, cached=200, cache_written=30, output=5)},
        models={"a1": "p:m"},
    )


def test_a_linear_log_of_version_1_names_its_messages_by_line():
    session = read(
        {"type": "session", "id": "s1", "timestamp": TIME, "cwd": "/app"},
        {"type": "message", "timestamp": TIME, "message": {"role": "user", "content": "one"}},
        {"type": "message", "timestamp": TIME, "message": {"role": "user", "content": "two"}},
    )
    assert session == Session(format="pi", messages=(user("m2", "one"), user("m3", "two")), root="/app", tools=TOOLS)


def test_a_tree_is_read_along_the_path_to_its_last_entry():
    session = read(
        HEADER,
        said("u1", None, "start"),
        said("u2", "u1", "a way given up"),
        said("u3", "u2", "further along it"),
        said("u4", "u1", "the way taken"),
        {"type": "label", "id": "l1", "parentId": "u4", "timestamp": TIME, "targetId": "u1", "label": "here"},
    )
    assert session == Session(
        format="pi",
        messages=(user("u1", "start"), user("u4", "the way taken")),
        root="/app",
        tools=TOOLS,
        notes=("2 messages on other branches are left out.",),
    )


def test_compactions_hide_nothing():
    session = read(
        HEADER,
        said("u1", None, "one"),
        {
            "type": "compaction",
            "id": "k1",
            "parentId": "u1",
            "timestamp": TIME,
            "summary": "s",
            "firstKeptEntryId": "u1",
        },
        said("u2", "k1", "two"),
        entry("s2", "u2", role="compactionSummary", summary="s", tokensBefore=9),
    )
    assert session.messages == (user("u1", "one"), user("u2", "two"))
    assert session.notes == ("1 compaction is ignored: the whole log is read.",)
    assert session.compactions == (SessionCompaction(place=1, kept=0, summary="s"),)


def test_a_compaction_of_version_1_names_the_line_that_is_kept_first():
    rows = [{"type": "message", "timestamp": TIME, "message": {"role": "user", "content": str(n)}} for n in range(3)]
    cut = {"type": "compaction", "timestamp": TIME, "summary": "s", "tokensBefore": 9}
    header = {"type": "session", "id": "s1", "timestamp": TIME, "cwd": "/app"}
    for kept, first in (({"firstKeptEntryIndex": 2}, 1), ({"firstKeptEntryIndex": 99}, 2), ({}, 2)):
        session = read(header, *rows[:2], cut | kept, rows[2])
        assert session.compactions == (SessionCompaction(place=2, kept=first, summary="s"),)


def test_a_parent_that_is_missing_or_its_own_child_ends_the_path():
    assert read(HEADER, said("u2", "u1", "two")).messages == (user("u2", "two"),)
    assert read(HEADER, said("u1", "u2", "one"), said("u2", "u1", "two")).messages == (
        user("u1", "one"),
        user("u2", "two"),
    )


def test_version_4_is_read_along_its_main_lane():
    def row(id: str, parent: str | None, text: str, lane: str = "main") -> dict[str, object]:
        return said(id, parent, text) | {"kind": "entry", "lane": lane, "timestamp": 1_767_323_045_000}

    rows = [
        {"kind": "header", "version": 4, "id": "s1", "createdAt": 1, "cwd": "/app"},
        row("u1", None, "one"),
        {"kind": "record", "type": "operation_started", "lane": "main", "id": "o1", "timestamp": 1},
        row("u2", "u1", "two"),
        row("u3", "u2", "aside", lane="helper"),
        {"kind": "fact", "seq": 5, "fact": "name", "name": "talk"},
    ]
    assert read(*rows).messages == (user("u1", "one"), user("u2", "two"))
    assert read(*rows).root == "/app"
    moved = read(*rows, {"kind": "lane", "seq": 6, "lane": "main", "leafId": "u1"})
    assert moved.messages == (user("u1", "one"),)


@pytest.mark.parametrize(
    ("fields", "text"),
    [
        ({"exitCode": 0, "output": "a.py"}, "Ran `ls`\n```\na.py\n```"),
        ({"exitCode": 0}, "Ran `ls`\n(no output)"),
        ({"exitCode": 2, "output": "bad"}, "Ran `ls`\n```\nbad\n```\n\nCommand exited with code 2"),
        ({"exitCode": None, "cancelled": True}, "Ran `ls`\n(no output)\n\n(command cancelled)"),
        (
            {"exitCode": 0, "output": "x", "truncated": True, "fullOutputPath": "/tmp/all.log"},
            "Ran `ls`\n```\nx\n```\n\n[Output truncated. Full output: /tmp/all.log]",
        ),
    ],
)
def test_a_command_a_person_ran_is_told_as_pi_tells_it(fields: dict[str, object], text: str):
    assert text_of_bash(**fields) == text


def test_a_command_kept_from_the_model_is_left_out():
    bash = entry("b1", "u1", role="bashExecution", command="env", output="KEY=1", excludeFromContext=True)
    assert read(HEADER, said("u1", None, "hello"), bash).messages == (user("u1", "hello"),)


def test_messages_of_extensions_and_summaries_of_branches_are_told_as_pi_tells_them():
    summary = (
        "The following is a summary of a branch that this conversation came back from:\n\n"
        "<summary>\nIt failed.</summary>"
    )
    session = read(
        HEADER,
        {
            "type": "custom_message",
            "id": "x1",
            "parentId": None,
            "timestamp": TIME,
            "content": "note",
            "display": False,
        },
        entry("x2", "x1", role="hookMessage", customType="t", content=[{"type": "text", "text": "old note"}]),
        {"type": "branch_summary", "id": "x3", "parentId": "x2", "timestamp": TIME, "summary": "It failed."},
        entry("x4", "x3", role="branchSummary", summary="It failed.", fromId="x1"),
        {"type": "custom", "id": "x5", "parentId": "x4", "timestamp": TIME, "customType": "t", "data": {}},
    )
    assert session.messages == (user("x1", "note"), user("x2", "old note"), user("x3", summary), user("x4", summary))


def test_signed_thinking_of_anthropic_is_kept_and_all_other_thinking_dropped():
    signed = {"type": "thinking", "thinking": "Hm.", "thinkingSignature": "sig"}
    redacted = {"type": "thinking", "thinking": "[redacted]", "thinkingSignature": "sealed", "redacted": True}
    unsigned = {"type": "thinking", "thinking": "cut off", "thinkingSignature": ""}
    content = [signed, redacted, unsigned, {"type": "text", "text": "Yes."}]
    session = read(
        HEADER,
        entry("a1", None, role="assistant", api="anthropic-messages", model="claude", content=content),
        entry("a2", "a1", role="assistant", api="openai-responses", model="gpt", content=content),
    )
    thinking = Opaque(
        provider="anthropic",
        model="claude",
        place="block",
        name="thinking",
        data='{"type":"thinking","thinking":"Hm.","signature":"sig"}',
    )
    sealed = Opaque(
        provider="anthropic",
        model="claude",
        place="block",
        name="redacted_thinking",
        data='{"type":"redacted_thinking","data":"sealed"}',
    )
    assert session.messages == (
        AssistantMessage(id="a1", time=AT, parts=(thinking, sealed, Text(text="Yes."))),
        AssistantMessage(id="a2", time=AT, parts=(Text(text="Yes."),)),
    )


def test_a_reply_that_was_broken_off_stays_and_reports_nothing():
    usage = {"input": 0, "cacheRead": 0, "cacheWrite": 0}
    session = read(HEADER, entry("a1", None, role="assistant", content=[], stopReason="aborted", usage=usage))
    assert session.messages == (AssistantMessage(id="a1", time=AT),)
    assert session.reported == {}
