"""Sessions of Claude Code: replies in pieces, trees with sidechains, parallel calls and compactions."""

from dataclasses import replace

import pytest

from recto.cli.sessions.session import Session
from recto.errors import NotAConversation
from recto.models.ports import Usage
from recto.page.fold.agent_tools import AgentTools
from tests.cli.session_outline import AT, TIME, Json, outline, read

TOOLS = AgentTools(
    reads=("Read",),
    path_args=("file_path",),
    terminal=("Bash",),
    search=("Grep", "Glob"),
    edits=("Edit", "MultiEdit", "Write"),
    quote_args=("old_string",),
)
ONE_COMPACTION = "1 compaction is ignored: the whole log is read."


def row(kind: str, uuid: str | None, parent: str | None, **fields: object) -> Json:
    envelope = {"parentUuid": parent, "isSidechain": False, "sessionId": "s1", "cwd": "/app", "timestamp": TIME}
    return envelope | {"type": kind, "uuid": uuid} | fields


def message_row(uuid: str, parent: str | None, content: object, **fields: object) -> Json:
    return row("user", uuid, parent, message={"role": "user", "content": content}, **fields)


def replied(uuid: str, parent: str | None, reply: str, *blocks: object, **fields: object) -> Json:
    usage = {"input_tokens": 3, "cache_creation_input_tokens": 40, "cache_read_input_tokens": 500, "output_tokens": 6}
    message = {"id": reply, "type": "message", "role": "assistant", "model": "claude", "content": blocks}
    return row("assistant", uuid, parent, message=message | {"usage": usage}, **fields)


def result_row(uuid: str, parent: str, call: str) -> Json:
    block = {"type": "tool_result", "tool_use_id": call, "content": "done"}
    return message_row(uuid, parent, [block], toolUseResult={"stdout": "done"}, sourceToolAssistantUUID=parent)


def boundary(uuid: str, before: str) -> Json:
    return row("system", uuid, None, subtype="compact_boundary", logicalParentUuid=before)


def summary(uuid: str, parent: str | None) -> Json:
    return message_row(uuid, parent, "a summary", isCompactSummary=True, isVisibleInTranscriptOnly=True)


def text(words: str) -> Json:
    return {"type": "text", "text": words}


def use(call: str) -> Json:
    return {"type": "tool_use", "id": call, "name": "Bash", "input": {"command": "ls"}, "caller": {"type": "direct"}}


def bash(call: str) -> str:
    return f'{call} = Bash {{"command":"ls"}}'


def test_one_reply_in_several_rows_is_one_message():
    thinking = {"type": "thinking", "thinking": "Hm.", "signature": "sig"}
    session = read(
        {"type": "file-history-snapshot", "messageId": "u1", "snapshot": {}, "isSnapshotUpdate": False},
        message_row("u1", None, "go"),
        row("attachment", "x1", "u1", attachment={"type": "skill_listing", "content": "..."}),
        replied("a1", "x1", "msg1", thinking),
        replied("a2", "a1", "msg1", text("I look.")),
        replied("a3", "a2", "msg1", use("t1")),
        row("progress", "p1", "a3", data={"type": "hook_progress"}),
        result_row("r1", "a3", "t1"),
        row("system", "y1", "r1", subtype="turn_duration", durationMs=5),
        {"type": "last-prompt", "lastPrompt": "go", "sessionId": "s1"},
    )
    signed_text = 'anthropic:claude thinking {"type":"thinking","thinking":"Hm.","signature":"sig"}'
    assert outline(session) == [
        "u1 user: go",
        f"a1 assistant: {signed_text} + I look. + {bash('t1')}",
        "r1 result of t1: done",
    ]
    assert {message.time for message in session.messages} == {AT}
    assert replace(session, messages=()) == Session(
        format="claude-code",
        messages=(),
        root="/app",
        tools=TOOLS,
        usages={"a1": Usage(input=543, cached=500, cache_written=40, output=6)},
        models={"a1": "anthropic:claude"},
    )


GO, DONE = message_row("u1", None, "go"), ("r1 result of t1: done", "r2 result of t2: done")
CALL_ROWS = (replied("a1", "u1", "msg1", use("t1")), replied("a2", "a1", "msg1", use("t2")))
CALLED_LATE = CALL_ROWS[1] | {"parentUuid": "r1"}
REPLY = replied("a3", "r2", "msg2", text("both done"))
PARALLEL = ("u1 user: go", f"a1 assistant: {bash('t1')} + {bash('t2')}")
REWRITTEN = [
    boundary("b1", "a1"),
    summary("k1", "b1"),
    replied("a1", "k1", "msg1", text("kept")),
    message_row("u2", "a1", "two"),
]
KEPT_LINES = ("u1 user: go", "a1 assistant: kept", "u2 user: two")
ROWS: dict[str, tuple[list[Json], tuple[str, ...], tuple[str, ...]]] = {
    "a result between the rows of a reply with parallel calls": (
        [GO, CALL_ROWS[0], result_row("r1", "a1", "t1"), CALLED_LATE, result_row("r2", "a2", "t2"), REPLY],
        (*PARALLEL, *DONE, "a3 assistant: both done"),
        (),
    ),
    "a result beside the path": (
        [GO, *CALL_ROWS, result_row("r1", "a1", "t1"), result_row("r2", "a2", "t2"), REPLY],
        (*PARALLEL, *DONE, "a3 assistant: both done"),
        (),
    ),
    "a row of the reply beside the path": (
        [GO, *CALL_ROWS, result_row("r2", "a2", "t2"), result_row("r1", "a1", "t1"), REPLY | {"parentUuid": "r1"}],
        (*PARALLEL, *reversed(DONE), "a3 assistant: both done"),
        (),
    ),
    "branches: the path to the newest message": (
        [
            GO,
            message_row("u2", "u1", "a way given up"),
            replied("a2", "u2", "msg1", use("t1")),
            result_row("r2", "a2", "t1"),
            message_row("u3", "u1", "the way taken"),
        ],
        ("u1 user: go", "u3 user: the way taken"),
        ("3 messages on other branches are left out.",),
    ),
    "sidechains, which are no part of it": (
        [
            GO,
            message_row("s1", None, "a task for a subagent", isSidechain=True),
            replied("s2", "s1", "msg9", text("done"), isSidechain=True),
        ],
        ("u1 user: go",),
        (),
    ),
    "a compaction that writes what it keeps again": ([GO, *REWRITTEN], KEPT_LINES, (ONE_COMPACTION,)),
    "a compaction that keeps what stands before it": (
        [GO, replied("a1", "u1", "msg1", text("kept")), *REWRITTEN],
        KEPT_LINES,
        (ONE_COMPACTION,),
    ),
    "a summary without a boundary": (
        [GO, summary("k1", None), message_row("u2", "k1", "two")],
        ("u1 user: go", "u2 user: two"),
        (ONE_COMPACTION,),
    ),
    "rows without parents": (
        [GO, replied("a1", None, "msg1", text("so")), message_row("u2", None, "two")],
        ("u1 user: go", "a1 assistant: so", "u2 user: two"),
        (),
    ),
    "an error of the service, left out, and a meta row, kept": (
        [
            message_row("u1", None, "caveat", isMeta=True),
            replied("a1", "u1", "msg1", text("API Error: 529"), isApiErrorMessage=True),
            message_row("u2", "a1", "again"),
        ],
        ("u1 user: caveat", "u2 user: again"),
        (),
    ),
    "words typed while the model worked": (
        [
            GO,
            row("attachment", "x1", "u1", attachment={"type": "queued_command", "prompt": "and the tests"}),
            message_row("u2", "x1", "well?"),
        ],
        ("u1 user: go", "x1 user: and the tests", "u2 user: well?"),
        (),
    ),
    "a row written again": (
        [
            GO,
            replied("a1", "u1", "msg1", text("half")),
            message_row("u2", "a1", "well?"),
            replied("a1", "u1", "msg1", text("whole")),
        ],
        ("u1 user: go", "a1 assistant: whole", "u2 user: well?"),
        (),
    ),
    "a call repeated in a later row": (
        [replied("a1", None, "msg1", use("t1")), replied("a2", "a1", "msg1", use("t1"), text("so"))],
        (f"a1 assistant: {bash('t1')} + so",),
        (),
    ),
    "unsigned thinking and empty texts, dropped": (
        [
            replied(
                *("a1", None, "msg1"),
                {"type": "thinking", "thinking": "Hm.", "signature": ""},
                text(""),
                text("so") | {"citations": None},
            )
        ],
        ("a1 assistant: so",),
        (),
    ),
}


@pytest.mark.parametrize(("rows", "lines", "notes"), ROWS.values(), ids=ROWS)
def test_a_session_has(rows: list[Json], lines: tuple[str, ...], notes: tuple[str, ...]):
    session = read(*rows)
    assert (outline(session), session.notes) == ([*lines], notes)


def test_compactions_hide_nothing_and_their_summaries_are_left_out():
    session = read(
        *(GO, boundary("b1", "u1"), summary("k1", "b1"), message_row("u2", "k1", "two")),
        *(boundary("b2", "gone"), summary("k2", "b2"), message_row("u3", "k2", "three")),
    )
    assert outline(session) == ["u1 user: go", "u2 user: two", "u3 user: three"]
    assert session.notes == ("2 compactions are ignored: the whole log is read.",)
    assert [(cut.place, cut.first_kept) for cut in session.compactions] == [(1, 1), (2, 2)]


def test_rows_without_a_tree_are_read_as_they_stand():
    session = read(
        {"type": "system", "subtype": "init", "cwd": "/app", "session_id": "s1"},
        {"type": "user", "message": {"role": "user", "content": "go"}},
        {"type": "assistant", "message": {"role": "assistant", "content": [use("t1")]}},
        {"type": "assistant", "message": {"role": "assistant", "content": [use("t9")]}, "parent_tool_use_id": "t1"},
        {"type": "user", "message": {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "t1"}]}},
        {"type": "result", "subtype": "success", "session_id": "s1"},
    )
    assert outline(session) == ["m2 user: go", f"m3 assistant: {bash('t1')}", "m5 result of t1: "]
    assert replace(session, messages=()) == Session(format="claude-code", messages=(), root="/app", tools=TOOLS)


def test_a_row_with_results_and_words_gives_a_message_for_each():
    image = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "aGk="}}
    empty: Json = {"type": "tool_result", "tool_use_id": "t1", "content": ""}
    failed: Json = {"type": "tool_result", "tool_use_id": "t2", "content": [text(""), image], "is_error": True}
    session = read(
        replied("a1", None, "msg1", use("t1"), use("t2")),
        message_row("u1", "a1", [empty, failed, text("go on"), text("")]),
    )
    assert outline(session)[1:] == ["u1 result of t1: ", "u1.1 error of t2: image aGk= image/png", "u1.2 user: go on"]


def test_a_malformed_row_is_named_by_its_line():
    with pytest.raises(NotAConversation) as caught_error:
        read(GO, replied("a1", "u1", "msg1", {"type": "tool_use", "name": "Bash"}))
    assert str(caught_error.value) == (
        "session.jsonl: it cannot be read as a conversation: "
        "line 2: message.content[0].id: is missing; a string is needed"
    )
