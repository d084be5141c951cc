"""What models write, and what happens (P11): one row a reply, for `prompt` and `auto`, however the stream is cut."""

from dataclasses import replace
from datetime import UTC, datetime
from itertools import count, cycle, product
from typing import Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recto.conversation.messages import AssistantMessage, Text, ToolCall
from recto.models.ports import CallDelta, CallStarted, Delta, ReplyEnd, TextDelta
from recto.worker.model.reply import Reply
from recto.worker.tools.calls_in_text import CallsInText
from tests.worker.written_replies import BAZI, CALL, DEEP, ROWS, TOOLS, Row, called, said


def happens(wrote: str, *, is_native: bool, size: int, finish: Literal["stop", "length"] = "stop") -> Row:
    """What becomes of a reply that comes in pieces of a size."""
    reader = CallsInText((f"c{number}" for number in count()), TOOLS, is_native=is_native)
    pieces = [TextDelta(text=wrote[at : at + size]) for at in range(0, len(wrote), size)]
    deltas = [one for piece in (*pieces, ReplyEnd(finish=finish)) for one in reader.take(piece)]
    if reader.problem:
        return Row(wrote, again=reader.problem)
    words = "".join(delta.text for delta in deltas if isinstance(delta, TextDelta))
    names = {delta.index: delta.name for delta in deltas if isinstance(delta, CallStarted)}
    calls = [f"{names[delta.index]} {delta.arguments}" for delta in deltas if isinstance(delta, CallDelta)]
    return Row(wrote, tuple(calls), words)


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.wrote[:60] if isinstance(row, Row) else "")
@pytest.mark.parametrize("mode", ["prompt", "auto"])
def test_P11_what_a_model_writes_is_its_call_or_its_answer(mode: str, row: Row):
    if row.only in ("", mode):
        for size in (1, 3, 7, 10_000):
            found = happens(row.wrote, is_native=mode == "auto", size=size)
            assert row.again in found.again
            assert found == replace(row, words=row.words.rstrip(), again=found.again, only="")
            assert bool(found.again) == bool(row.again)


HALF = '{"name": "calculator", "arguments": {"expression": "17'


@pytest.mark.parametrize(
    "row",
    [
        Row(f"I calculate. <tool_call>{HALF}", words="I calculate."),
        Row(HALF),
        Row(CALL[:-1]),
        Row(f"So:\n```json\n{HALF}", words="So:"),
        Row('calculator(expression="17'),
        called(f"<tool_call>{CALL}</tool_call> and <tool_call>{HALF}"),
        Row("<think>I never end"),
        Row("Action: calculator\nAction Input: 17"),
        called(f"{CALL}\n{HALF}"),
        called(f"{CALL}\n{CALL[:-1]}"),
        called(f"<tool_call>{CALL}"),
        Row(f"<tool_call>{{}}</tool_call> <tool_call>{HALF}", again="could not be read"),
        said("calculator"),
        said('{"name": "Ann", "age"'),
        said('So:\n```json\n{"name": "Ann", "age"'),
    ],
    ids=lambda row: row.wrote,
)
def test_P11_half_a_call_at_the_end_of_a_reply_that_was_cut_is_dropped_and_never_completed(row: Row):
    for is_native, size in product((True, False), (1, 7, 10_000)):
        found = happens(row.wrote, is_native=is_native, size=size, finish="length")
        assert row.again in found.again
        assert found == replace(row, again=found.again)
        assert bool(found.again) == bool(row.again)


def test_P11_the_table_has_many_rows():
    assert len({row.wrote for row in ROWS}) >= 180


@pytest.mark.parametrize(
    ("name", "wrote", "meant"),
    [
        ("calculator", '{"expression":"1"}', 'calculator {"expression":"1"}'),
        ("functions.Calculator", '{"expression":"1"}', 'calculator {"expression":"1"}'),
        ("bazi", '{"year": 1990}', BAZI),
        ("functions.Bazi", "{}", BAZI),
        ("weather", "{}", "weather {}"),
    ],
)
def test_P11_a_native_call_means_the_same_to_readers_and_in_the_parts_of_its_reply(name: str, wrote: str, meant: str):
    reader = CallsInText(iter(()), TOOLS, is_native=True)
    parts = (Text(text="So."), ToolCall(id="c1", name=name, arguments=wrote))
    deltas = [CallStarted(index=0, id="c1", name=name), CallDelta(index=0, arguments=wrote)]
    reply = Reply(id="m", reasoning_id="r")
    for delta in (TextDelta(text="So."), *deltas, ReplyEnd(finish="tool_calls", parts=parts)):
        for one in reader.take(delta):
            reply.take(one)
    assert reply.ended
    said = [part for part in reply.ended.parts if isinstance(part, ToolCall)]
    (message,) = reply.entries(datetime(2026, 5, 14, tzinfo=UTC), "k")
    assert isinstance(message, AssistantMessage)
    assert [f"{call.name} {call.arguments}" for call in (*said, *message.tool_calls)] == [meant, meant]


@pytest.mark.parametrize(
    ("pieces", "passed"),
    [
        (["It", " is"], ["It", " is"]),
        (["calc", "ulus is"], ["", "calculus is"]),
        (["calculator", " is a tool"], ["", "calculator is a tool"]),
        (['{"na', 'me": "An', 'n", "age"'], ["", "", '{"name": "Ann", "age"']),
        (['{"answer"', ": 391}"], ['{"answer"', ": 391}"]),
        (["[TO", "DAY] it"], ["", "[TODAY] it"]),
        (["<to", "day>"], ["", "<today>"]),
        (["<th", "is>"], ["", "<this>"]),
        (["<response>", "It", " is"], ["", "<response>It", " is"]),
        (["~~", "~\nIt", " is"], ["", "~~~\nIt", " is"]),
        (["<calculator>", "is"], ["", "<calculator>is"]),
        (['{"thought": "a', '", "an', 'swer": '], ["", '{"thought": "a", "an', 'swer":']),
        (["现在", "是三点"], ["现在", "是三点"]),
    ],
)
def test_P11_words_that_begin_as_a_call_does_stream_as_soon_as_they_are_none(pieces: list[str], passed: list[str]):
    reader = CallsInText(iter(()), TOOLS, is_native=True)
    assert [reader.feed(piece) for piece in pieces] == passed


@pytest.mark.parametrize(
    "start",
    [
        '{"type": "object", ',
        '{"id": 1, "x": ',
        '{"input": "',
        '{"arguments": {',
        '[{"id": 1, ',
        '```json\n{"type": "object", ',
        '{"action": {"x": "',
        '{"index": 0, ',
        '{"function": "f(x)=x", ',
        '[\n  {\n    "id": 1,\n    "name": "Ann",',
    ],
)
def test_P11_an_answer_in_json_streams_though_its_first_keys_are_those_of_a_call(start: str):
    reader = CallsInText(iter(()), TOOLS, is_native=True)
    passed = reader.feed(start) + "".join(reader.feed('"abc": "def", ') for _ in range(400))
    assert len(passed) > 5_000


@pytest.mark.parametrize(
    ("opening", "is_shown"),
    [
        ('{"input": "What I was told, and what I make of it, in a few wor', True),
        ("calcu", True),
        ('calculator(expression="17*2', False),
        ('{"arguments": {"expression": "17*23, and so on, and on"}, "name": "calculator"', False),
        ('{"na', False),
    ],
)
def test_P11_broken_off_an_opening_that_names_no_tool_is_words(opening: str, is_shown: bool):
    reader = CallsInText(iter(()), TOOLS, is_native=True)
    assert (reader.feed(opening), reader.rest()) == ("", opening if is_shown else "")


@pytest.mark.parametrize(
    "piece",
    ['{"name": "calculator", "x": [', "calculator(", "<tools>", "[", "{", "```json\n", "a,", "'", '{"calculator": "\\'],
)
def test_P11_a_long_reply_of_any_shape_is_read_to_its_end(piece: str):
    wrote = piece * (300_000 // len(piece))
    assert happens(wrote, is_native=True, size=8).wrote == wrote


PIECES = [
    # What is nested beyond reason is judged late, so what stands behind it on the same line may be read with it.
    *[row.wrote for row in ROWS if row not in DEEP],
    "words ",
    "\n",
    "```",
    "```json\n",
    "<tool_call>",
    "{",
    "}",
    '"name"',
    "\\",
    "'",
]


@given(st.lists(st.sampled_from(PIECES), max_size=4), st.lists(st.integers(1, 20), min_size=1, max_size=4))
def test_P11_any_reply_is_the_same_however_it_is_cut(parts: list[str], sizes: list[int]):
    text, at, deltas = "".join(parts), 0, list[Delta]()
    reader = CallsInText((f"c{number}" for number in count()), TOOLS)
    for size in cycle(sizes):
        if at >= len(text):
            break
        deltas += reader.take(TextDelta(text=text[at : at + size]))
        at += size
    deltas += reader.take(ReplyEnd(finish="stop"))
    words = "".join(delta.text for delta in deltas if isinstance(delta, TextDelta))
    whole = happens(text.lstrip(), is_native=False, size=max(1, len(text)))
    names = [delta.name for delta in deltas if isinstance(delta, CallStarted)]
    assert (bool(reader.problem), names) == (bool(whole.again), [call.partition(" ")[0] for call in whole.calls])
    if not reader.problem:
        assert words == whole.words
