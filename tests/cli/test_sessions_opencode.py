"""Sessions of opencode, as it exports them: steps of a reply, states of calls, files, summaries, usage."""

import json
from dataclasses import replace
from typing import TypeAlias

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recto.cli.sessions.reader import read_session
from recto.cli.sessions.session import Session, SessionCompaction
from recto.conversation.json import Json
from recto.models.ports import Usage
from recto.page.fold.agent_tools import AgentTools
from tests.cli.session_outline import AT, outline
from tests.cli.test_sessions import VALUES, damaged, places, refused_or_read

MILLISECONDS = round(AT.timestamp() * 1000)
TOOLS = AgentTools(
    reads=("read",),
    path_args=("filePath",),
    terminal=("bash",),
    search=("grep", "glob", "list"),
    edits=("edit", "multiedit", "write", "patch", "apply_patch"),
    quote_args=("oldString",),
)
TOKENS: Json = {"input": 10, "output": 5, "reasoning": 2, "cache": {"read": 200, "write": 30}}
USAGE = Usage(input=240, cached=200, cache_written=30, output=7)
PICTURE = "data:image/png;base64,aGk="

Part: TypeAlias = dict[str, Json]
BEGIN: Part = {"type": "step-start"}


def read(*messages: Json) -> Session:
    return read_session(json.dumps(exported(*messages), indent=2).encode(), source="export.json")


def exported(*messages: Json) -> Json:
    return {"info": {"id": "ses_1", "directory": "/app", "title": "a talk"}, "messages": list(messages)}


def row(id: str, role: str, *parts: Json, **fields: Json) -> Json:
    info = {"id": id, "sessionID": "ses_1", "role": role, "time": {"created": MILLISECONDS}, **fields}
    return {
        "info": info,
        "parts": [{"id": f"{id}-{n}", **part} for n, part in enumerate(parts) if isinstance(part, dict)],
    }


def reply(id: str, *parts: Part, **fields: Json) -> Json:
    return row(id, "assistant", *parts, **{"providerID": "anthropic", "modelID": "claude", **fields})


def text(words: str, **fields: Json) -> Part:
    return {"type": "text", "text": words, **fields}


def tool_part(call: str, status: str, **state: Json) -> Part:
    times: Json = {"start": MILLISECONDS, "end": MILLISECONDS}
    return {
        "type": "tool",
        "callID": call,
        "tool": "read",
        "state": {"status": status, "input": {"filePath": "a.py"}, "time": times, **state},
    }


def finished() -> Part:
    return {"type": "step-finish", "reason": "tool-calls", "cost": 0, "tokens": TOKENS}


def test_an_export_is_read_completely_with_a_message_per_step():
    picture: Part = {"type": "file", "mime": "image/png", "url": PICTURE, "filename": "a.png"}
    session = read(
        row("u1", "user", text("go"), picture),
        reply(
            "a1", BEGIN, text("I look."), tool_part("c1", "completed", output="x = 1"), finished(), BEGIN, text("Done.")
        ),
    )
    assert outline(session) == [
        "u1 user: go + image aGk= image/png a.png",
        'a1 assistant: I look. + c1 = read {"filePath":"a.py"}',
        "a1-2 result of c1: x = 1",
        "a1.1 assistant: Done.",
    ]
    assert {message.time for message in session.messages} == {AT}
    assert replace(session, messages=()) == Session(
        format="opencode",
        messages=(),
        root="/app",
        tools=TOOLS,
        usages={"a1": USAGE},
        models={"a1": "anthropic:claude", "a1.1": "anthropic:claude"},
    )


def test_messages_as_the_server_lists_them_are_a_session_too():
    session_rows = [row("u1", "user", text("go")), reply("a1", text("so"), tokens=TOKENS, path={"cwd": "/src"})]
    session = read_session(json.dumps(session_rows).encode(), source="messages.json")
    assert (session.root, session.usages) == ("/src", {"a1": USAGE})
    assert outline(session) == ["u1 user: go", "a1 assistant: so"]


@pytest.mark.parametrize(
    ("part", "result"),
    [
        (tool_part("c1", "completed", output=""), "result of c1: "),
        (tool_part("c1", "error", error="no such file"), "error of c1: no such file"),
        (tool_part("c1", "running"), "error of c1: [Tool execution was interrupted]"),
    ],
)
def test_every_call_has_a_result_as_opencode_tells_it_to_the_model(part: Part, result: str):
    assert outline(read(reply("a1", part)))[1:] == [f"a1-0 {result}"]


def test_rows_that_the_model_never_received_are_skipped():
    file: Part = {"type": "file", "mime": "text/plain", "url": "file:///app/a.py"}
    session = read(
        row("u1", "user", text("go"), text("ignored", ignored=True), file),
        reply("a1", {"type": "reasoning", "text": "Hm."}, {"type": "patch", "hash": "h", "files": []}, text("so")),
        reply("a2", BEGIN),
    )
    assert outline(session) == ["u1 user: go", "a1 assistant: so"]


def test_a_summary_cuts_the_page_behind_it_and_hides_nothing():
    rows = [row("u1", "user", text("go")), reply("a1", text("one")), reply("a2", text("two"))]
    compaction_row = row("u2", "user", {"type": "compaction", "auto": True, "tail_start_id": "a2"})
    session = read(
        *rows,
        compaction_row,
        reply("a3", text("a summary"), summary=True, parentID="u2"),
        row("u3", "user", text("on")),
    )
    assert [message.id for message in session.messages] == ["u1", "a1", "a2", "u2", "a3", "u3"]
    assert outline(session)[3] == "u2 user: What did we do so far?"
    assert session.compactions == (SessionCompaction(place=5, first_kept=2, summary="a summary"),)
    assert session.notes == ("1 compaction is ignored: the whole log is read.",)


WHOLE = exported(
    row("u1", "user", text("go"), {"type": "file", "mime": "image/png", "url": PICTURE}, {"type": "compaction"}),
    reply(
        "a1", BEGIN, text("I look."), tool_part("c1", "completed", output="x"), finished(), summary=True, parentID="u1"
    ),
)


@given(st.sampled_from(list(places(WHOLE))), VALUES)
def test_no_damaged_export_raises_anything_but_not_a_conversation(place: tuple[str | int, ...], new: Json):
    assert refused_or_read(json.dumps(damaged(WHOLE, place, new)).encode())
