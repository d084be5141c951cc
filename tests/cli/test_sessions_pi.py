"""Sessions of pi: logs and trees, and what pi tells its model."""

from dataclasses import replace

import pytest

from recto.cli.sessions.session import Session, SessionCompaction
from recto.models.ports import Usage
from recto.page.fold.agent_tools import AgentTools
from tests.cli.session_outline import AT, TIME, Json, outline, read

TOOLS = AgentTools(
    reads=("read",),
    path_args=("path",),
    terminal=("bash",),
    search=("grep", "find"),
    edits=("edit", "write"),
    quote_args=("oldText",),
)
HEADER = {"type": "session", "version": 3, "id": "s1", "timestamp": TIME, "cwd": "/app"}
LINEAR = {"type": "session", "id": "s1", "timestamp": TIME, "cwd": "/app"}


def row(kind: str, id: str, parent: str | None, **fields: object) -> Json:
    return {"type": kind, "id": id, "parentId": parent, "timestamp": TIME, **fields}


def entry(id: str, parent: str | None, **message: object) -> Json:
    return row("message", id, parent, message=message)


def message_row(id: str, parent: str | None, text: str) -> Json:
    return entry(id, parent, role="user", content=text)


def linear(text: str) -> Json:
    return {"type": "message", "timestamp": TIME, "message": {"role": "user", "content": text}}


def test_a_session_is_read_completely():
    usage = {"input": 10, "output": 5, "cacheRead": 200, "cacheWrite": 30, "totalTokens": 245}
    call = {"type": "toolCall", "id": "c1", "name": "read", "arguments": {"path": "a.py", "limit": 5}}
    parts_shown = [{"type": "text", "text": "x = 1"}, {"type": "image", "data": "aGk=", "mimeType": "image/png"}]
    reply = {"content": [{"type": "text", "text": "I look."}, call], "provider": "p", "model": "m", "usage": usage}
    session = read(
        HEADER,
        message_row("u1", None, "What is in a.py?"),
        row("model_change", "x1", "u1", provider="p", modelId="m"),
        entry("a1", "x1", role="assistant", **reply),
        entry("t1", "a1", role="toolResult", toolCallId="c1", toolName="read", content=parts_shown, isError=False),
        entry("t2", "t1", role="toolResult", toolCallId="c2", toolName="bash", content=[], isError=True),
    )
    assert outline(session) == [
        "u1 user: What is in a.py?",
        'a1 assistant: I look. + c1 = read {"path":"a.py","limit":5}',
        "t1 result of c1: x = 1 + image aGk= image/png",
        "t2 error of c2: ",
    ]
    assert {message.time for message in session.messages} == {AT}
    assert replace(session, messages=()) == Session(
        format="pi",
        messages=(),
        root="/app",
        tools=TOOLS,
        usages={"a1": Usage(input=240, cached=200, cache_written=30, output=5)},
        models={"a1": "p:m"},
    )


def test_a_linear_log_of_version_1_names_its_messages_by_line():
    session = read(LINEAR, linear("one"), linear("two"))
    assert outline(session) == ["m2 user: one", "m3 user: two"]
    assert replace(session, messages=()) == Session(format="pi", messages=(), root="/app", tools=TOOLS)


def test_a_tree_is_read_along_the_path_to_its_last_entry():
    session = read(
        *(
            HEADER,
            message_row("u1", None, "start"),
            message_row("u2", "u1", "a way given up"),
            message_row("u3", "u2", "further"),
        ),
        message_row("u4", "u1", "the way taken"),
        row("label", "l1", "u4", targetId="u1", label="here"),
    )
    assert outline(session) == ["u1 user: start", "u4 user: the way taken"]
    assert session.notes == ("2 messages on other branches are left out.",)


def test_compactions_hide_nothing():
    cut = row("compaction", "k1", "u1", summary="s", firstKeptEntryId="u1")
    summary_row = entry("s2", "u2", role="compactionSummary", summary="s", tokensBefore=9)
    session = read(HEADER, message_row("u1", None, "one"), cut, message_row("u2", "k1", "two"), summary_row)
    assert outline(session) == ["u1 user: one", "u2 user: two"]
    assert session.notes == ("1 compaction is ignored: the whole log is read.",)
    assert session.compactions == (SessionCompaction(place=1, first_kept=0, summary="s"),)


def test_a_compaction_of_version_1_names_its_first_kept_line():
    cut = {"type": "compaction", "timestamp": TIME, "summary": "s", "tokensBefore": 9}
    for fields, first in (({"firstKeptEntryIndex": 2}, 1), ({"firstKeptEntryIndex": 99}, 2), ({}, 2)):
        session = read(LINEAR, linear("0"), linear("1"), cut | fields, linear("2"))
        assert session.compactions == (SessionCompaction(place=2, first_kept=first, summary="s"),)


def test_a_parent_that_is_missing_or_its_own_child_ends_the_path():
    assert outline(read(HEADER, message_row("u2", "u1", "two"))) == ["u2 user: two"]
    circle = read(HEADER, message_row("u1", "u2", "one"), message_row("u2", "u1", "two"))
    assert outline(circle) == ["u1 user: one", "u2 user: two"]


def test_version_4_is_read_along_its_main_lane():
    def custom_row(id: str, parent: str | None, text: str, lane: str = "main") -> Json:
        return message_row(id, parent, text) | {"kind": "entry", "lane": lane, "timestamp": 1_767_323_045_000}

    rows = [
        {"kind": "header", "version": 4, "id": "s1", "createdAt": 1, "cwd": "/app"},
        custom_row("u1", None, "one"),
        {"kind": "record", "type": "operation_started", "lane": "main", "id": "o1", "timestamp": 1},
        custom_row("u2", "u1", "two"),
        custom_row("u3", "u2", "aside", lane="helper"),
        {"kind": "fact", "seq": 5, "fact": "name", "name": "talk"},
    ]
    assert outline(read(*rows)) == ["u1 user: one", "u2 user: two"]
    assert read(*rows).root == "/app"
    assert outline(read(*rows, {"kind": "lane", "seq": 6, "lane": "main", "leafId": "u1"})) == ["u1 user: one"]


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
def test_a_user_command_has_the_text_of_pi(fields: Json, text: str):
    bash = {"role": "bashExecution", "command": "ls", "output": "", "cancelled": False, "truncated": False}
    assert outline(read(HEADER, entry("b1", None, **bash | fields))) == [f"b1 user: {text}"]


def test_a_command_excluded_from_the_context_is_skipped():
    bash = entry("b1", "u1", role="bashExecution", command="env", output="KEY=1", excludeFromContext=True)
    assert outline(read(HEADER, message_row("u1", None, "hello"), bash)) == ["u1 user: hello"]


def test_extension_messages_and_branch_summaries_have_the_text_of_pi():
    summary = "The following is a summary of a branch that this conversation came back from:"
    session = read(
        HEADER,
        row("custom_message", "x1", None, content="note", display=False),
        entry("x2", "x1", role="hookMessage", customType="t", content=[{"type": "text", "text": "old note"}]),
        row("branch_summary", "x3", "x2", summary="It failed."),
        entry("x4", "x3", role="branchSummary", summary="It failed.", fromId="x1"),
        row("custom", "x5", "x4", customType="t", data={}),
    )
    assert outline(session) == [
        "x1 user: note",
        "x2 user: old note",
        *(f"{id} user: {summary}\n\n<summary>\nIt failed.</summary>" for id in ("x3", "x4")),
    ]


def test_only_signed_anthropic_thinking_is_read():
    signed_block = {"type": "thinking", "thinking": "Hm.", "thinkingSignature": "sig"}
    redacted = {"type": "thinking", "thinking": "[redacted]", "thinkingSignature": "sealed", "redacted": True}
    unsigned = {"type": "thinking", "thinking": "cut off", "thinkingSignature": ""}
    content = [signed_block, redacted, unsigned, {"type": "text", "text": "Yes."}]
    session = read(
        HEADER,
        entry("a1", None, role="assistant", api="anthropic-messages", model="claude", content=content),
        entry("a2", "a1", role="assistant", api="openai-responses", model="gpt", content=content),
    )
    thinking = 'anthropic:claude thinking {"type":"thinking","thinking":"Hm.","signature":"sig"}'
    sealed = 'anthropic:claude redacted_thinking {"type":"redacted_thinking","data":"sealed"}'
    assert outline(session) == [f"a1 assistant: {thinking} + {sealed} + Yes.", "a2 assistant: Yes."]


def test_a_reply_that_was_broken_off_stays_and_reports_nothing():
    usage = {"input": 0, "cacheRead": 0, "cacheWrite": 0}
    session = read(HEADER, entry("a1", None, role="assistant", content=[], stopReason="aborted", usage=usage))
    assert (outline(session), session.usages) == (["a1 assistant: "], {})
