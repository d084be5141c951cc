"""Events of a run as what is seen of it: the state behind each, and the blocks that are settled by them."""

import re

import pytest

from recto.cli.chat.one_answer import pending_lines
from recto.cli.chat.rendering.block_views import (
    TerminalRenderer,
    block_view,
    call_view,
    clean,
    diff_counts,
    summarize_arguments,
)
from recto.cli.chat.rendering.live_run import (
    MOST_CALLS,
    Block,
    CallBlock,
    DiscardBlock,
    EndBlock,
    FailureBlock,
    LiveCall,
    LiveRun,
    ReasoningBlock,
    TextBlock,
    UserBlock,
    apply_event,
    apply_messages,
)
from recto.conversation.json import Json, Object

DIFF = "Changed a.py.\n--- a/a.py\n+++ b/a.py\n@@ -1,2 +1,2 @@\n-old\n+new\n+more\n"


def text(text: str, message: str = "m1") -> Object:
    return {"type": "TEXT_MESSAGE_CONTENT", "messageId": message, "delta": text}


def text_started(message: str = "m1") -> Object:
    return {"type": "TEXT_MESSAGE_START", "messageId": message}


def call_started(id: str, name: str) -> Object:
    return {"type": "TOOL_CALL_START", "toolCallId": id, "toolCallName": name, "parentMessageId": "m1"}


def arguments(id: str, text: str) -> Object:
    return {"type": "TOOL_CALL_ARGS", "toolCallId": id, "delta": text}


def call_result(id: str, content: Json) -> Object:
    return {"type": "TOOL_CALL_RESULT", "messageId": "r", "toolCallId": id, "content": content}


def play(*events: Object) -> tuple[LiveRun, list[Block]]:
    """What is left behind events, each a second after the one before, and all that they settled."""
    run, blocks = LiveRun(), list[Block]()
    for second, event in enumerate(events, start=1):
        run, more = apply_event(run, event, float(second))
        blocks += more
    return run, blocks


END: Object = {"type": "TEXT_MESSAGE_END", "messageId": "m1"}
FINISHED: Object = {"type": "RUN_FINISHED", "outcome": {"type": "success"}}


@pytest.mark.parametrize(
    ("events", "blocks"),
    [
        ([text_started(), text("A\n\nB"), END, FINISHED], [TextBlock(text="A\n"), TextBlock(text="B\n")]),
        ([text_started(), text("A")], []),
        ([text_started(), text("A"), FINISHED], [TextBlock(text="A\n")]),
        ([{"type": "REASONING_MESSAGE_CONTENT", "delta": "Hm"}, text_started(), text("A"), END], [
            ReasoningBlock(text="Hm\n"), TextBlock(text="A\n")
        ]),
        ([
            text_started(),
            text("A\n\nB"),
            {"type": "CUSTOM", "name": "recto.discarded", "value": {"messageId": "m1"}},
        ], [TextBlock(text="A\n"), DiscardBlock()]),
        ([text_started(), text("B"), {"type": "CUSTOM", "name": "recto.discarded", "value": {"messageId": "m1"}}], []),
        ([{"type": "RUN_ERROR", "message": "No.", "code": "x"}], [FailureBlock(message="No.")]),
        ([{"type": "RUN_FINISHED", "outcome": {"type": "cancelled"}}], [EndBlock(how="cancelled")]),
        ([{**FINISHED, "result": {"finish": "length"}}], [EndBlock(how="length")]),
        ([{"type": "SOMETHING_NEW"}, {}], []),
    ],
)  # fmt: skip
def test_streamed_text_becomes_blocks(events: list[Object], blocks: list[Block]) -> None:
    assert play(*events)[1] == blocks


def test_a_call_shows_name_progress_and_result() -> None:
    shows: Object = {
        "type": "ACTIVITY_SNAPSHOT",
        "messageId": "c1-progress",
        "content": {"label": "make", "status": "running", "done": 1, "unit": "lines", "text": "building"},
    }
    begins = [
        call_started("c1", "terminal-execute"),
        arguments("c1", '{"command":'),
        arguments("c1", ' "make"}'),
        shows,
    ]
    run, blocks = play(*begins)
    assert blocks == []
    assert [(call.output, summarize_arguments(call)) for call in run.running_calls] == [("building", "make")]
    run, blocks = play(*begins, call_result("c1", '{"stdout": "ok", "stderr": "", "exitCode": 2}'))
    assert run.running_calls == []
    assert [(block.call.seconds, block.call.has_failed) for block in blocks if isinstance(block, CallBlock)] == [
        (4.0, True)
    ]


def test_a_call_that_waited_for_a_person_is_timed_from_when_it_may_begin() -> None:
    waits: Object = {"type": "RUN_FINISHED", "outcome": {"type": "interrupt", "interrupts": []}}
    run, blocks = play(call_started("c1", "send"), waits, {"type": "RUN_STARTED"}, call_result("c1", "sent"))
    assert [block.call.seconds for block in blocks if isinstance(block, CallBlock)] == [1.0]
    assert run.calls["c1"].result == "sent"


def test_memory_stays_bounded_during_long_runs() -> None:
    run = LiveRun()
    for number in range(3_000):
        for event in (
            text(f"line {number}\n"),
            call_started(str(number), "x"),
            call_result(str(number), "y" * 100_000),
        ):
            run, _ = apply_event(run, event, 1.0)
    assert len(run.calls) == MOST_CALLS
    assert sum(len(call.result) for call in run.calls.values()) <= MOST_CALLS * 40_000
    assert len(run.answer.text) < 5_000


def test_stored_messages_give_the_same_blocks_as_their_events() -> None:
    call: Object = {"id": "c1", "type": "function", "function": {"name": "send", "arguments": '{"to": "Anna"}'}}
    document: Object = {"type": "document", "metadata": {"filename": "a.csv"}}
    run, blocks = apply_messages(
        LiveRun(),
        [
            {"id": "u", "role": "user", "content": [{"type": "text", "text": "Hi"}, document, {"type": "image"}]},
            {"id": "a", "role": "assistant", "content": "Well.", "toolCalls": [call]},
            {"id": "t", "role": "tool", "toolCallId": "c1", "content": [{"text": "sent"}, {"type": "image"}]},
            {"id": "b", "role": "assistant", "content": "", "toolCalls": [{**call, "id": "c2"}]},
            {"id": "x", "role": "activity", "content": {}},
        ],
    )  # fmt: skip
    done = LiveCall(id="c1", name="send", arguments='{"to": "Anna"}', result="sent\n[image]", is_settled=True)
    assert blocks == (UserBlock(text="Hi", files=("a.csv", "image")), TextBlock(text="Well."), CallBlock(call=done))
    assert [call.id for call in run.running_calls] == ["c2"]


def draw(block: Block, width: int = 60, **environment: str) -> str:
    return TerminalRenderer(environment).render(block_view(block), width)


@pytest.mark.parametrize(
    ("call", "line"),
    [
        ({"name": "edit", "arguments": '{"filePath": "a.py"}', "result": DIFF}, "● edit a.py +2 -1"),
        ({"name": "filesystem-read", "arguments": '{"filePath": ["a", {"path": "b"}]}'}, "● filesystem-read a, b"),
        ({"name": "x", "arguments": '{"n": 1, "to": "Anna"}', "result": "Error: no\nmore"}, "✗ x Anna Error: no more"),
        ({"name": "run", "arguments": '{"command": "ls\\nls"}', "result": '{"exitCode": 3}'}, "✗ run ls ls exit 3"),
        ({"name": "half", "arguments": '{"a": '}, "● half"),
        ({"name": "文件读取", "arguments": '{"a": "' + "很" * 60 + '"}'}, "● 文件读取 " + "很" * 24 + "…"),
    ],
)  # fmt: skip
def test_a_call_is_one_line(call: dict[str, str], line: str) -> None:
    done = CallBlock(call=LiveCall(id="c", is_settled=True, **call))  # pyright: ignore[reportArgumentType] - texts alone
    assert re.sub(r"\x1b\[[\d;]*m", "", draw(done)).rstrip("\n") == line


def test_nothing_that_was_written_means_anything_to_the_terminal() -> None:
    evil = "a\x1b[2Jb\x07\x9b31mc\u202ed\r\ne"
    odd = "\N{REPLACEMENT CHARACTER}"
    assert clean(evil) == f"a{odd}[2Jb{odd}{odd}31mc{odd}d\ne"
    call = LiveCall(id="c", name=evil, arguments='{"a": "\\u001b[2J"}', result=evil, output=evil, is_settled=True)
    for block in (
        UserBlock(text=evil, files=(evil,)),
        TextBlock(text=evil),
        ReasoningBlock(text=evil),
        CallBlock(call=call),
    ):
        assert "\x1b[2J" not in draw(block)
    assert "\x1b[2J" not in TerminalRenderer({}).render(call_view(call), 60)
    waiting: Object = {"id": "c", "tool": evil, "arguments": "{}"}
    assert "\x1b" not in "".join(pending_lines([waiting], "t"))


def test_an_opened_call_shows_its_diff_in_colour_and_without_colour_where_asked() -> None:
    call = LiveCall(id="c", name="filesystem-edit", arguments='{"filePath": "a.py"}', result=DIFF, is_settled=True)
    output = TerminalRenderer({"TERM": "xterm-256color"}).render(call_view(call), 60)
    assert "\x1b[32m    +new\x1b[0m" in output or "\x1b[32m+new" in output
    plain = TerminalRenderer({"TERM": "xterm-256color", "NO_COLOR": "1"}).render(call_view(call), 60)
    assert "\x1b[32m" not in plain
    assert diff_counts("no diff\n+x") == (0, 0)
