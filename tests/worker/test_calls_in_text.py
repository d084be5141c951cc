"""P11: calls written as text, taken out of the words however the stream is cut; words come as soon as they can."""

from collections.abc import AsyncGenerator, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from itertools import count, cycle, product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recto.conversation.messages import AssistantMessage, Opaque, Text, ToolCall
from recto.models.ports import (
    CallDelta,
    CallStarted,
    Delta,
    FinishReason,
    ReasoningDelta,
    ReplyEnd,
    ReplyUsage,
    TextDelta,
    Usage,
)
from recto.page.prompt.tools_prompt import parse_tool_calls
from recto.worker.model.reply import Reply
from recto.worker.tools.calls_in_text import NO_TOOLS, CallsInText
from recto.worker.tools.offered_tools import OfferedTools
from tests.worker.written_replies import BAZI, CALL, DEEP, ROWS, TOOLS, Row, call_row, text_row

ADD = '<tool_call>{"name": "add", "arguments": {"a": 1, "b": "x<y"}}</tool_call>'
NOW = datetime(2026, 5, 14, tzinfo=UTC)


def read(
    *pieces: str, tools: OfferedTools = NO_TOOLS, is_native: bool = False, finish: ReplyEnd | None = None
) -> tuple[CallsInText, list[Delta]]:
    """Return the reader and its deltas for a reply in pieces."""
    reader = CallsInText((f"c{number}" for number in count(1)), tools, is_native=is_native)
    reply_end = finish or ReplyEnd(finish="stop", usage=Usage(input=3))
    return reader, [one for delta in (*map(_delta, pieces), reply_end) for one in reader.add(delta)]


def _delta(text: str) -> Delta:
    return TextDelta(text=text)


def words(deltas: Sequence[Delta]) -> str:
    return "".join(delta.text for delta in deltas if isinstance(delta, TextDelta))


def calls(deltas: Sequence[Delta]) -> list[tuple[str, str, str]]:
    starts = [delta for delta in deltas if isinstance(delta, CallStarted)]
    arguments = {delta.index: delta.arguments for delta in deltas if isinstance(delta, CallDelta)}
    return [(start.id, start.name, arguments[start.index]) for start in starts]


def happens(wrote: str, *, is_native: bool, size: int, finish: FinishReason = "stop") -> Row:
    """Return the result of a reply that arrives in pieces of this size."""
    pieces = [wrote[at : at + size] for at in range(0, len(wrote), size)]
    reader, deltas = read(*pieces, tools=TOOLS, is_native=is_native, finish=ReplyEnd(finish=finish))
    if reader.problem:
        return Row(wrote, again=reader.problem)
    return Row(wrote, tuple([f"{name} {arguments}" for _, name, arguments in calls(deltas)]), words(deltas))


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.wrote[:60] if isinstance(row, Row) else "")
@pytest.mark.parametrize("mode", ["prompt", "auto"])
def test_P11_what_a_model_writes_is_its_call_or_its_answer(mode: str, row: Row):
    if row.only in ("", mode):
        for size in (1, 3, 7, 10_000):
            result = happens(row.wrote, is_native=mode == "auto", size=size)
            assert row.again in result.again
            assert result == replace(row, words=row.words.rstrip(), again=result.again, only="")
            assert bool(result.again) == bool(row.again)


HALF = '{"name": "calculator", "arguments": {"expression": "17'


@pytest.mark.parametrize(
    "row",
    [
        Row(f"I calculate. <tool_call>{HALF}", words="I calculate."),
        Row(HALF),
        Row(CALL[:-1]),
        Row(f"So:\n```json\n{HALF}", words="So:"),
        Row('calculator(expression="17'),
        call_row(f"<tool_call>{CALL}</tool_call> and <tool_call>{HALF}"),
        Row("<think>I never end"),
        Row("Action: calculator\nAction Input: 17"),
        call_row(f"{CALL}\n{HALF}"),
        call_row(f"{CALL}\n{CALL[:-1]}"),
        call_row(f"<tool_call>{CALL}"),
        Row(f"<tool_call>{{}}</tool_call> <tool_call>{HALF}", again="could not be read"),
        text_row("calculator"),
        text_row('{"name": "Ann", "age"'),
        text_row('So:\n```json\n{"name": "Ann", "age"'),
    ],
    ids=lambda row: row.wrote,
)
def test_P11_half_a_call_at_the_end_of_a_reply_that_was_cut_is_dropped_and_never_completed(row: Row):
    for is_native, size in product((True, False), (1, 7, 10_000)):
        result = happens(row.wrote, is_native=is_native, size=size, finish="length")
        assert row.again in result.again
        assert result == replace(row, again=result.again)
        assert bool(result.again) == bool(row.again)


@pytest.mark.parametrize(
    ("name", "wrote", "names"),
    [
        ("calculator", '{"expression":"1"}', 'calculator {"expression":"1"}'),
        ("functions.Calculator", '{"expression":"1"}', 'calculator {"expression":"1"}'),
        ("bazi", '{"year": 1990}', BAZI),
        ("functions.Bazi", "{}", BAZI),
        ("weather", "{}", "weather {}"),
    ],
)
def test_P11_a_native_call_means_the_same_to_readers_and_in_the_parts_of_its_reply(name: str, wrote: str, names: str):
    reader = CallsInText(iter(()), TOOLS, is_native=True)
    parts = (Text(text="So."), ToolCall(id="c1", name=name, arguments=wrote))
    deltas = [CallStarted(index=0, id="c1", name=name), CallDelta(index=0, arguments=wrote)]
    reply = Reply(id="m", reasoning_id="r")
    for delta in (TextDelta(text="So."), *deltas, ReplyEnd(finish="tool_calls", parts=parts)):
        for one in reader.add(delta):
            reply.add(one)
    assert reply.end
    calls = [part for part in reply.end.parts if isinstance(part, ToolCall)]
    (message,) = reply.entries(NOW, "k")
    assert isinstance(message, AssistantMessage)
    assert [f"{call.name} {call.arguments}" for call in (*calls, *message.tool_calls)] == [names, names]


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
        '{"input": "',
        '{"arguments": {',
        '[{"id": 1, ',
        '```json\n{"type": "object", ',
        '{"action": {"x": "',
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
    assert happens(wrote, is_native=True, size=8) != Row(wrote)


def test_P11_a_reply_with_a_call_that_cannot_be_read_is_none_and_says_what_is_wrong():
    reader, deltas = read(f"So: <tool_call>{{not json}}</tool_call>{ADD}")
    assert deltas == [TextDelta(text="So:"), ReplyUsage(usage=Usage(input=3))]
    assert reader.problem.startswith("A tool call could not be read")


@pytest.mark.parametrize(("finish", "expected"), [("stop", "tool_calls"), ("length", "length")])
def test_P11_arguments_are_kept_letter_for_letter_and_each_call_has_an_id(finish: FinishReason, expected: FinishReason):
    arguments = '{"a": 1, "b": "x<y"}'
    _, deltas = read(ADD, ADD.removesuffix("</tool_call>"), finish=ReplyEnd(finish=finish))
    assert calls(deltas) == [("c1", "add", arguments), ("c2", "add", arguments)]
    assert deltas[-1] == ReplyEnd(finish=expected)


def test_P11_words_do_not_wait_for_the_end():
    text = CallsInText(iter(()))
    assert text.feed("Two words") == "Two words"
    assert text.feed(" and a <") == " and a"
    assert text.feed("b> tag <too") == " <b> tag"
    assert text.feed("th> and <table>") == " <tooth> and <table>"
    assert text.feed("\n```python\nx = 1\ny") == "\n```python\nx = 1\ny"
    assert text.feed(" = 2\n``") == " = 2"
    assert text.feed("`\nafter it") == "\n```\nafter it"
    assert text.feed('\n```json\n{"name"') == ""


@pytest.mark.parametrize(
    "start",
    [
        'Here:\n```json\n{"a": 1}\n```\n',
        "Here:\n```\n<tool_call> is a tag\n```\n",
        "Use `<tool_call>` so. ",
        f"The <tool_call> tag is {'so ' * 200}",
        "```x``` is. ",
        f"```{'x' * 201}",
        "Here:\n```python\n",
        "<tool_result> is. ",
    ],
)
@pytest.mark.parametrize("size", [1, 4, 1000])
def test_P11_after_what_is_no_call_words_go_on_as_they_come(start: str, size: int):
    text = CallsInText(iter(()))
    passed = "".join(text.feed(start[at : at + size]) for at in range(0, len(start), size))
    assert passed + text.feed("go on ") == f"{start}go on"
    assert text.feed("and on") == " and on"


def test_P11_an_object_that_begins_as_no_call_does_streams_from_its_first_key():
    text = CallsInText(iter(()))
    assert text.feed('```json\n{\n  "') == ""
    assert text.feed("colour") == '```json\n{\n  "colour'


@pytest.mark.parametrize(
    ("text", "rest"),
    [
        ("words <tool_c", ""),
        ("words <tool_call> {", ""),
        (f"words {ADD} and more", ""),
        ('words\n```json\n{"name": "ad', ""),
        ("words\n```js", ""),
        ("words <tool_call> is a tag", " <tool_call> is a tag"),
        ("words <tool_call> is a tag, <tool", " <tool_call> is a tag,"),
        ("words\n```python\nx\n``", "\n``"),
    ],
)
def test_P11_broken_off_what_waits_is_passed_on_as_far_as_it_is_no_part_of_a_call(text: str, rest: str):
    reader = CallsInText(iter(()))
    for letter in text:
        reader.feed(letter)
    assert reader.rest() == rest
    assert reader.rest() == ""


REASONING = Opaque(provider="anthropic", model="m", place="block", name="thinking", data="{}")
LATER = Opaque(provider="anthropic", model="m", place="block", name="thinking", data='{"n":2}')


def test_P11_thinking_between_words_keeps_its_place_and_the_call_is_in_the_log_as_readers_had_it():
    parts = (REASONING, Text(text="Let me add. "), LATER, Text(text=ADD))
    _, deltas = read("Let me add. ", ADD, finish=ReplyEnd(finish="stop", parts=parts))
    reply = Reply(id="m", reasoning_id="r")
    for delta in deltas:
        reply.add(delta)
    (message,) = reply.entries(NOW, "k")
    call = ToolCall(id="c1", name="add", arguments='{"a": 1, "b": "x<y"}', runner="server")
    assert isinstance(message, AssistantMessage)
    assert message.parts == (REASONING, Text(text="Let me add."), LATER, call)
    assert calls(deltas) == [(call.id, call.name, call.arguments)]
    # Without words, the parts have no empty text.
    _, deltas = read(ADD, finish=ReplyEnd(finish="stop", parts=(Text(text=ADD[:9]), REASONING, Text(text=ADD[9:]))))
    assert deltas[-1] == ReplyEnd(finish="tool_calls", parts=(REASONING, replace(call, runner=None)))


def test_P11_calls_made_natively_all_the_same_keep_their_numbers():
    text = CallsInText(iter(["c1", "c2"]))
    native = CallStarted(index=2, id="n", name="look")
    assert text.add(native) == [native]
    assert text.feed(ADD + ADD) == ""
    deltas = text.end(ReplyEnd(finish="tool_calls"))
    assert [delta.index for delta in deltas if isinstance(delta, CallStarted)] == [3, 4]
    assert [delta.index for delta in deltas if isinstance(delta, CallDelta)] == [3, 4]


async def test_P11_thoughts_pass_and_closing_closes_the_model():
    closed: list[bool] = []

    async def deltas() -> AsyncGenerator[Delta]:
        try:
            yield ReasoningDelta(text="hm")
            yield TextDelta(text="words")
            yield ReplyEnd(finish="stop")
        finally:
            closed.append(True)

    stream = CallsInText(iter(())).read(deltas())
    assert await anext(stream) == ReasoningDelta(text="hm")
    await stream.aclose()
    assert closed == [True]


BLANKS = ("\n", "\n\n", " ", "\t", " " * 100, "\r\n")
TAGS = ("<tool_call>", "</tool_call>", "<tool_call>{", "<tool_result>", "</tool_result>", "<tool", "<")
FENCES = ("```\n", "```json\n", "```python\n", "````md\n", "\n```\n", "\n````\n", "```", "`", "``")
SCRAPS = ("words", "w" * 480, "x" * 210, "{", "}", '"name"', "\\", "'", '{"x": 1}', *BLANKS, *TAGS, *FENCES)
# What is nested beyond reason is judged late, so what stands behind it on the same line may be read with it.
PIECES = st.sampled_from(SCRAPS) | st.sampled_from([ADD, *[row.wrote for row in ROWS if row not in DEEP]])


@pytest.mark.parametrize("tools", [NO_TOOLS, TOOLS], ids=["no tools", "tools"])
@given(st.lists(PIECES, max_size=12), st.lists(st.integers(1, 30), min_size=1, max_size=6))
def test_P11_any_reply_is_the_same_however_it_is_cut(tools: OfferedTools, parts: list[str], sizes: list[int]):
    text, pieces = "".join(parts), list[str]()
    for size in cycle(sizes):
        if not text:
            break
        pieces.append(text[:size])
        text = text[size:]
    (reader, deltas), (whole, expected) = read(*pieces, tools=tools), read("".join(pieces).lstrip(), tools=tools)
    assert bool(reader.problem) == bool(whole.problem)
    assert [name for _, name, _ in calls(deltas)] == [name for _, name, _ in calls(expected)]
    if not reader.problem:
        assert words(deltas) == words(expected)


@given(st.lists(st.sampled_from((*SCRAPS, ADD)), max_size=12))
def test_P11_without_tools_a_reply_says_what_its_whole_text_says(parts: list[str]):
    text = "".join(parts)
    reader, deltas = read(*text)
    whole = parse_tool_calls(text.lstrip())
    assert bool(reader.problem) == bool(whole.problems)
    if not whole.problems:
        assert (words(deltas), len(calls(deltas))) == (whole.words.rstrip(), len(whole.calls))
