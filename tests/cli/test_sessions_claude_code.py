"""Sessions of Claude Code: replies in pieces, trees with sidechains, parallel calls and compactions."""

import json
from datetime import UTC, datetime

import pytest

from recto.cli.sessions.detect import read_session
from recto.cli.sessions.session import Session
from recto.conversation.messages import (
    AssistantMessage,
    Data,
    File,
    Message,
    Opaque,
    Text,
    ToolCall,
    ToolMessage,
    UserMessage,
)
from recto.errors import NotAConversation
from recto.models.ports import Usage
from recto.page.fold.agent_tools import AgentTools

TOOLS = AgentTools(
    reads=("Read",),
    path_args=("file_path",),
    terminal=("Bash",),
    search=("Grep", "Glob"),
    edits=("Edit", "MultiEdit", "Write"),
    quote_args=("old_string",),
)
TIME = "2026-01-02T03:04:05.000Z"
AT = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)

Json = dict[str, object]


def read(*rows: object) -> Session:
    return read_session("".join(json.dumps(row) + "\n" for row in rows).encode(), source="session.jsonl")


def row(kind: str, uuid: str, parent: str | None, **fields: object) -> Json:
    envelope = {"parentUuid": parent, "isSidechain": False, "sessionId": "s1", "cwd": "/app", "timestamp": TIME}
    return envelope | {"type": kind, "uuid": uuid} | fields


def said(uuid: str, parent: str | None, content: object, **fields: object) -> Json:
    return row("user", uuid, parent, message={"role": "user", "content": content}, **fields)


def replied(uuid: str, parent: str | None, reply: str, *blocks: object, **fields: object) -> Json:
    usage = {"input_tokens": 3, "cache_creation_input_tokens": 40, "cache_read_input_tokens": 500, "output_tokens": 6}
    message = {"id": reply, "type": "message", "role": "assistant", "model": "claude", "content": blocks}
    return row("assistant", uuid, parent, message=message | {"usage": usage}, **fields)


def answered(uuid: str, parent: str, call: str, content: object = "done", **fields: object) -> Json:
    block = {"type": "tool_result", "tool_use_id": call, "content": content} | fields
    return said(uuid, parent, [block], toolUseResult={"stdout": "done"}, sourceToolAssistantUUID=parent)


def text(words: str) -> Json:
    return {"type": "text", "text": words}


def use(call: str) -> Json:
    return {"type": "tool_use", "id": call, "name": "Bash", "input": {"command": "ls"}, "caller": {"type": "direct"}}


def user(id: str, words: str) -> UserMessage:
    return UserMessage(id=id, time=AT, parts=(Text(text=words),))


def reply(id: str, *parts: Text | ToolCall | Opaque) -> AssistantMessage:
    return AssistantMessage(id=id, time=AT, parts=parts)


def call(id: str) -> ToolCall:
    return ToolCall(id=id, name="Bash", arguments='{"command":"ls"}')


def result(id: str, call: str) -> ToolMessage:
    return ToolMessage(id=id, time=AT, tool_call_id=call, parts=(Text(text="done"),))


PARALLEL: tuple[Message, ...] = (
    user("u1", "go"),
    reply("a1", call("t1"), call("t2")),
    result("r1", "t1"),
    result("r2", "t2"),
    reply("a3", Text(text="both done")),
)


def test_one_reply_in_several_rows_is_one_message():
    thinking = {"type": "thinking", "thinking": "Hm.", "signature": "sig"}
    session = read(
        {"type": "file-history-snapshot", "messageId": "u1", "snapshot": {}, "isSnapshotUpdate": False},
        said("u1", None, "go"),
        row("attachment", "x1", "u1", attachment={"type": "skill_listing", "content": "..."}),
        replied("a1", "x1", "msg1", thinking),
        replied("a2", "a1", "msg1", text("I look.")),
        replied("a3", "a2", "msg1", use("t1")),
        row("progress", "p1", "a3", data={"type": "hook_progress"}),
        answered("r1", "a3", "t1"),
        row("system", "y1", "r1", subtype="turn_duration", durationMs=5),
        {"type": "last-prompt", "lastPrompt": "go", "sessionId": "s1"},
    )
    signed = Opaque(
        provider="anthropic",
        model="claude",
        place="block",
        name="thinking",
        data='{"type":"thinking","thinking":"Hm.","signature":"sig"}',
    )
    assert session == Session(
        format="claude-code",
        messages=(user("u1", "go"), reply("a1", signed, Text(text="I look."), call("t1")), result("r1", "t1")),
        root="/app",
        tools=TOOLS,
        reported={"a1": Usage(input=543, cached=500, cache_written=40, output=6)},
        models={"a1": "anthropic:claude"},
    )


@pytest.mark.parametrize(
    ("rows", "order"),
    [
        pytest.param(
            [
                replied("a1", "u1", "msg1", use("t1")),
                answered("r1", "a1", "t1"),
                replied("a2", "r1", "msg1", use("t2")),
                answered("r2", "a2", "t2"),
                replied("a3", "r2", "msg2", text("both done")),
            ],
            [0, 1, 2, 3, 4],
            id="a result between its rows",
        ),
        pytest.param(
            [
                replied("a1", "u1", "msg1", use("t1")),
                replied("a2", "a1", "msg1", use("t2")),
                answered("r1", "a1", "t1"),
                answered("r2", "a2", "t2"),
                replied("a3", "r2", "msg2", text("both done")),
            ],
            [0, 1, 2, 3, 4],
            id="a result beside the path",
        ),
        pytest.param(
            [
                replied("a1", "u1", "msg1", use("t1")),
                replied("a2", "a1", "msg1", use("t2")),
                answered("r2", "a2", "t2"),
                answered("r1", "a1", "t1"),
                replied("a3", "r1", "msg2", text("both done")),
            ],
            [0, 1, 3, 2, 4],
            id="a row of the reply beside the path",
        ),
    ],
)
def test_a_reply_with_parallel_calls_is_one_message_and_all_results_are_read(rows: list[Json], order: list[int]):
    session = read(said("u1", None, "go"), *rows)
    assert session.messages == tuple(PARALLEL[place] for place in order)
    assert session.notes == ()


def test_the_path_to_the_newest_message_is_read_and_other_branches_are_left_out():
    session = read(
        said("u1", None, "start"),
        said("u2", "u1", "a way given up"),
        replied("a2", "u2", "msg1", use("t1")),
        answered("r2", "a2", "t1"),
        said("u3", "u1", "the way taken"),
    )
    assert session.messages == (user("u1", "start"), user("u3", "the way taken"))
    assert session.notes == ("3 messages on other branches are left out.",)


def test_sidechains_are_no_part_of_the_conversation():
    session = read(
        said("u1", None, "go"),
        said("s1", None, "a task for a subagent", isSidechain=True),
        replied("s2", "s1", "msg9", text("done"), isSidechain=True),
    )
    assert session.messages == (user("u1", "go"),)
    assert session.notes == ()


def test_compactions_hide_nothing_and_their_summaries_are_left_out():
    session = read(
        said("u1", None, "one"),
        row("system", "b1", None, subtype="compact_boundary", logicalParentUuid="u1", content="Conversation compacted"),
        said("k1", "b1", "a summary", isCompactSummary=True, isVisibleInTranscriptOnly=True),
        said("u2", "k1", "two"),
        row("system", "b2", None, subtype="compact_boundary", logicalParentUuid="gone"),
        said("k2", "b2", "a summary", isCompactSummary=True),
        said("u3", "k2", "three"),
    )
    assert session.messages == (user("u1", "one"), user("u2", "two"), user("u3", "three"))
    assert session.notes == ("2 compactions are ignored: the whole log is read.",)
    assert [(cut.place, cut.kept) for cut in session.compactions] == [(1, 1), (2, 2)]


@pytest.mark.parametrize("written_before", [True, False])
def test_messages_a_compaction_keeps_and_writes_again_stay_in_their_place(written_before: bool):
    kept = [replied("a1", "u1", "msg1", text("kept"))] if written_before else []
    session = read(
        said("u1", None, "one"),
        *kept,
        row("system", "b1", None, subtype="compact_boundary", logicalParentUuid="a1"),
        said("k1", "b1", "a summary", isCompactSummary=True),
        replied("a1", "k1", "msg1", text("kept")),
        said("u2", "a1", "two"),
    )
    assert session.messages == (user("u1", "one"), reply("a1", Text(text="kept")), user("u2", "two"))
    assert session.notes == ("1 compaction is ignored: the whole log is read.",)


def test_a_log_whose_rows_have_no_parents_is_read_as_it_stands():
    session = read(said("u1", None, "one"), replied("a1", None, "msg1", text("so")), said("u2", None, "two"))
    assert session.messages == (user("u1", "one"), reply("a1", Text(text="so")), user("u2", "two"))


def test_a_summary_without_a_boundary_is_a_compaction_too():
    session = read(
        said("u1", None, "one"), said("k1", None, "a summary", isCompactSummary=True), said("u2", "k1", "two")
    )
    assert session.messages == (user("u1", "one"), user("u2", "two"))
    assert session.notes == ("1 compaction is ignored: the whole log is read.",)


def test_rows_without_a_tree_are_read_as_they_stand():
    session = read(
        {"type": "system", "subtype": "init", "cwd": "/app", "session_id": "s1"},
        {"type": "user", "message": {"role": "user", "content": "go"}},
        {"type": "assistant", "message": {"role": "assistant", "content": [use("t1")]}},
        {"type": "assistant", "message": {"role": "assistant", "content": [use("t9")]}, "parent_tool_use_id": "t1"},
        {"type": "user", "message": {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "t1"}]}},
        {"type": "result", "subtype": "success", "session_id": "s1"},
    )
    assert session == Session(
        format="claude-code",
        messages=(
            UserMessage(id="m2", parts=(Text(text="go"),)),
            AssistantMessage(id="m3", parts=(call("t1"),)),
            ToolMessage(id="m5", tool_call_id="t1"),
        ),
        root="/app",
        tools=TOOLS,
    )


def test_errors_of_the_service_are_left_out_and_meta_rows_kept():
    session = read(
        said("u1", None, "caveat", isMeta=True),
        replied("a1", "u1", "msg1", text("API Error: 529"), isApiErrorMessage=True),
        said("u2", "a1", "again"),
    )
    assert session.messages == (user("u1", "caveat"), user("u2", "again"))


def test_words_typed_while_the_model_worked_are_messages():
    prompt = {"type": "queued_command", "prompt": "and the tests", "commandMode": "prompt"}
    session = read(said("u1", None, "go"), row("attachment", "x1", "u1", attachment=prompt), said("u2", "x1", "well?"))
    assert session.messages == (user("u1", "go"), user("x1", "and the tests"), user("u2", "well?"))


def test_a_row_with_results_and_words_gives_a_message_for_each():
    image = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "aGk="}}
    failed = {"type": "tool_result", "tool_use_id": "t2", "content": [text(""), image], "is_error": True}
    session = read(
        replied("a1", None, "msg1", use("t1"), use("t2")),
        said(
            "u1", "a1", [{"type": "tool_result", "tool_use_id": "t1", "content": ""}, failed, text("go on"), text("")]
        ),
    )
    picture = File(kind="image", source=Data(base64="aGk="), mime_type="image/png")
    assert session.messages[1:] == (
        ToolMessage(id="u1", time=AT, tool_call_id="t1"),
        ToolMessage(id="u1.1", time=AT, tool_call_id="t2", parts=(picture,), error="error"),
        user("u1.2", "go on"),
    )


def test_a_row_written_again_replaces_the_older_one():
    session = read(
        said("u1", None, "go"),
        replied("a1", "u1", "msg1", text("half")),
        said("u2", "a1", "well?"),
        replied("a1", "u1", "msg1", text("whole")),
    )
    assert session.messages == (user("u1", "go"), reply("a1", Text(text="whole")), user("u2", "well?"))


def test_a_call_repeated_in_a_later_row_is_one_call():
    session = read(replied("a1", None, "msg1", use("t1")), replied("a2", "a1", "msg1", use("t1"), text("so")))
    assert session.messages == (reply("a1", call("t1"), Text(text="so")),)


def test_unsigned_thinking_and_empty_texts_are_dropped():
    blocks = [{"type": "thinking", "thinking": "Hm.", "signature": ""}, text(""), text("so") | {"citations": None}]
    assert read(replied("a1", None, "msg1", *blocks)).messages == (reply("a1", Text(text="so")),)


def test_a_malformed_row_is_named_by_its_line():
    with pytest.raises(NotAConversation) as caught:
        read(said("u1", None, "go"), replied("a1", "u1", "msg1", {"type": "tool_use", "name": "Bash"}))
    assert str(caught.value) == (
        "session.jsonl: it cannot be read as a conversation: "
        "line 2: message.content[0].id: is missing; a string is needed"
    )
