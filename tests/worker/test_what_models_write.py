"""What models write, and what happens (P11): one row a reply, for `prompt` and `auto`, however the stream is cut."""

import time
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from itertools import count, cycle, product
from typing import Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recto.conversation.messages import AssistantMessage, Text, ToolCall, ToolOffer
from recto.models.ports import CallDelta, CallStarted, ReplyEnd, TextDelta
from recto.worker.model.reply import Reply
from recto.worker.tools.calls_in_text import CallsInText
from recto.worker.tools.offered_tools import OfferedTools

TOOLS = OfferedTools(
    (
        ToolOffer(
            name="use_skill",
            description="",
            parameters='{"properties": {"skill": {"enum": ["bazi", "tarot"]}, "scenario": {"type": "string"}}}',
        ),
        ToolOffer(
            name="calculator",
            description="",
            parameters='{"properties": {"expression": {"type": "string"}}, "required": ["expression"]}',
        ),
        ToolOffer(name="current_time", description="", parameters='{"properties": {"timezone": {"type": "string"}}}'),
        ToolOffer(
            name="read_files",
            description="",
            parameters='{"properties": {"ids": {"type": "array"}, "limit": {"type": "integer"}}, "required": ["ids"]}',
        ),
    ),
    chooser="use_skill",
)


@dataclass(frozen=True)
class Row:
    """What becomes of a reply: the words that a user reads, the calls that are made; or it is asked for again."""

    wrote: str
    calls: tuple[str, ...] = ()
    words: str = ""
    again: str = ""
    only: Literal["prompt", "auto", ""] = ""


def called(wrote: str, *calls: str, words: str = "") -> Row:
    return Row(wrote, calls or (SUM,), words)


def said(wrote: str) -> Row:
    return Row(wrote, words=wrote)


SUM = 'calculator {"expression": "17*23"}'
NOW = "current_time {}"
BAZI = 'use_skill {"skill": "bazi"}'
ARGUMENTS = '{"expression": "17*23"}'
CALL = f'{{"name": "calculator", "arguments": {ARGUMENTS}}}'
WEATHER = '{"name": "weather", "arguments": {}}'
NEST = '{"call": ' * 900 + "1" + "}" * 900
STRING = '{"name": "calculator", "arguments": "{\\"expression\\": \\"17*23\\"}"}'

# Qwen2.5, Qwen3, Hermes: JSON in tags, of theirs or made up from the prompt of their tools.
HERMES = [
    called(f"<tool_call>\n{CALL}\n</tool_call>"),
    called(f"<tool_call>\n{CALL}"),
    called(f"<tool_call>{CALL}</tool_call>\n<tool_call>{CALL}</tool_call>", SUM, SUM),
    called(f"<tool_call>[{CALL}]</tool_call>"),
    called(f"<tool_call>{CALL}}}</tool_call>"),
    called('<tool_call>{"name": "calculator", "parameters": {"expression": "17*23"}}</tool_call>'),
    called(f"<tool_call>{STRING}</tool_call>"),
    called("<tool_call>{'name': 'calculator', 'arguments': {'expression': '17*23'}}</tool_call>"),
    called(f"<tools>\n{CALL}\n</tools>"),
    called(f"<tools>{CALL}"),
    called(f"<tool_calls>[{CALL}, {CALL}]</tool_calls>", SUM, SUM),
    called(f"<function_call>{CALL}</function_call>"),
    called(f"<functioncall> {CALL} </functioncall>"),
    called(f"```xml\n<tool_call>{CALL}</tool_call>\n```"),
    called(f"<tool_call>{CALL}</tool_call><|im_end|>"),
    called(
        "<tool_call>\n<function=calculator>\n<parameter=expression>\n17*23\n</parameter>\n</function>\n</tool_call>"
    ),
    called(f"I will calculate that.\n<tool_call>{CALL}</tool_call>", words="I will calculate that."),
    called(f"Let me see.\n<tool_call>{STRING}</tool_call>", words="Let me see."),
]
# Llama 3.
LLAMA = [
    called('{"name": "calculator", "parameters": {"expression": "17*23"}}'),
    called('<|python_tag|>{"name": "calculator", "parameters": {"expression": "17*23"}}<|eom_id|>'),
    called('{"type": "function", "name": "calculator", "parameters": {"expression": "17*23"}}'),
    called(f"<function=calculator>{ARGUMENTS}</function>"),
    called(f'<function name="calculator">{ARGUMENTS}</function>'),
    called('[calculator(expression="17*23")]'),
    called('[calculator(expression="17*23"), current_time()]', SUM, NOW),
    called(f'{CALL}; {{"name": "current_time", "parameters": {{}}}}', SUM, NOW),
]
# Mistral.
MISTRAL = [
    called(f"[TOOL_CALLS] [{CALL}]"),
    called(f"[TOOL_CALLS][{CALL}, {CALL}]</s>", SUM, SUM),
    called(f"[TOOL_CALLS]calculator[ARGS]{ARGUMENTS}"),
    called(f"[TOOL_CALLS]calculator{ARGUMENTS}"),
]
# DeepSeek, Gemma, Phi, and those that know ReAct or another vendor's tags.
OTHERS = [
    called(
        "<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>function<｜tool▁sep｜>calculator\n"
        f"```json\n{ARGUMENTS}\n```<｜tool▁call▁end｜><｜tool▁calls▁end｜>"
    ),
    called(f"<｜tool▁call▁begin｜>calculator<｜tool▁sep｜>{ARGUMENTS}<｜tool▁call▁end｜>"),
    called('```tool_code\ncalculator(expression="17*23")\n```'),
    called('```tool_code\nprint(default_api.calculator(expression="17*23"))\n```'),
    called('```python\ncalculator("17*23")\n```'),
    called(f"functools[{CALL}]"),
    called(f"Action: calculator\nAction Input: {ARGUMENTS}"),
    called('<invoke name="calculator"><parameter name="expression">17*23</parameter></invoke>'),
    called(
        '<function_calls><invoke name="read_files"><parameter name="ids">["a"]</parameter>'
        '<parameter name="limit">5</parameter></invoke></function_calls>',
        'read_files {"ids": ["a"], "limit": 5}',
    ),
]
# JSON, fenced or bare, under whatever keys.
JSON = [
    called(CALL),
    called(f"```json\n{CALL}\n```"),
    called(f"```\n{CALL}\n```\n"),
    called(f"```tool_call\n{CALL}\n```"),
    called(f"```json\n[{CALL}, {CALL}]\n```", SUM, SUM),
    called(f"{CALL}\n{CALL}", SUM, SUM),
    called(f"```json\n{CALL}\n```\n```json\n{CALL}\n```", SUM, SUM),
    called(STRING),
    called(f'{{"type": "function", "function": {CALL}}}'),
    called(f'{{"id": "call_1", "type": "function", "function": {STRING}}}'),
    called(f'{{"function": {CALL}}}'),
    called(f'{{"tool_calls": [{{"id": "c", "function": {STRING}}}]}}'),
    called('{"function": "calculator", "args": {"expression": "17*23"}}'),
    called('{"tool": "calculator", "tool_input": {"expression": "17*23"}}'),
    called('{"action": "calculator", "action_input": {"expression": "17*23"}}'),
    called('{"arguments": {"expression": "17*23"}, "name": "calculator"}'),
    called('{"calculator": {"expression": "17*23"}}'),
    called('{"name": "calculator", "expression": "17*23"}'),
    called('{"name": "functions.calculator", "arguments": {"expression": "17*23"}}'),
    called('{"name": "Calculator", "arguments": {"expression": "17*23"}}'),
    called('{"name": "current-time"}', NOW),
    called('{"name": "current_time", "arguments": null}', NOW),
    called("{'name': 'calculator', 'arguments': {'expression': '17*23'}}"),
    called('{"name": "calculator", "arguments": {"expression": "17*23",},}'),
    called('Sure:\n```json\n{"name": "calculator", "parameters": {"expression": "17*23"}}\n```', words="Sure:"),
    called(f"Sure, one moment.\n\n```json\n{CALL}\n```", words="Sure, one moment."),
    called(f"```json\n{CALL}\n```\nThen I tell you."),
    called(f'```json\n{CALL}\n```\n```json\n{{"result": 391}}\n```\nThe result is 391.'),
    called(f"So:\n```json\n{CALL}\n```\nIt is 391.", words="So:"),
]
# As code has it, where it can only mean one thing.
PYTHON = [
    called('calculator(expression="17*23")'),
    called('calculator("17*23")'),
    called(f"calculator({ARGUMENTS})"),
    called(f"calculator {ARGUMENTS}"),
    called(f"calculator\n{ARGUMENTS}"),
    called("current_time()", NOW),
    said('read_files("a", 5)'),
    said("calculator(17 * x)"),
    said("calculator(expression=open('x'))"),
    said('calculator(expression="17*23") gives you the product.'),
]
# A call named like a skill takes it up.
SKILLS = [
    called('use_skill(skill="bazi")', BAZI),
    called('{"name": "bazi", "arguments": {"birth": "1990-05-14"}}', BAZI),
    called('<tool_call>{"name": "bazi", "arguments": {}}</tool_call>', BAZI),
    called(
        '```json\n{"name": "bazi", "arguments": {"scenario": "career"}}\n```', f'{BAZI[:-1]}, "scenario": "career"}}'
    ),
    called('bazi({"year": 1990})', BAZI),
    called("bazi()", BAZI),
    called('Bazi("career")', BAZI),
    said("bazi is one of my skills."),
    said('{"skill": "bazi"}'),
]
# Half a call: what is only not closed is whole, what lacks a piece is none.
HALVES = [
    called(CALL[:-1]),
    called(f"```json\n{CALL[:-2]}\n```"),
    called(f"{CALL}}}"),
    Row('<tool_call>{"name": "calculator", "argu', again="no JSON"),
    Row("Let me see. <tool_call>calculator 17*23</tool_call>", again="no JSON"),
    said('{"name": "calculator", "arguments": {"expression": "17'),
    said("{"),
    said("calculator"),
    said("```json\n"),
]
# A tool that is not offered: a call where no answer looks so, and the tools tell the model; else words.
UNKNOWN = [
    called('<tool_call>{"name": "weather", "arguments": {}}</tool_call>', "weather {}"),
    called('```json\n{"name": "weather", "arguments": {}}\n```', "weather {}"),
    called('{"name": "weather", "parameters": {"city": "Rome"}}', 'weather {"city": "Rome"}'),
    called(f'[{CALL}, {{"name": "weather", "arguments": {{}}}}]', SUM, "weather {}"),
    replace(called(f"Look:\n```json\n{WEATHER}\n```\nSo.", "weather {}", words="Look:"), only="prompt"),
    replace(said(f"Look:\n```json\n{WEATHER}\n```\nSo."), only="auto"),
    said(f"{WEATHER} is how it is called."),
    said('{"name": "weather", "city": "Rome"}'),
    said('{"name": "Anna Maria", "arguments": {}}'),
    said("weather(city='Rome')"),
    said("<tools>none</tools>"),
]
# Results that no tool has given.
INVENTED = [
    Row("<system-reminder>\n# Compute sqrt(7056)\n26.14\n</system-reminder>", again="wrote the result"),
    Row("<tool_response>\n391\n</tool_response>\nIt is 391.", again="wrote the result"),
    Row('I looked.\n<tool_result name="calculator">\n391\n</tool_result>', again="wrote the result"),
    Row(f'<tool_result name="x">1</tool_result>\n<tool_call>{CALL}</tool_call>', again="wrote the result"),
    called(f"<tool_call>{CALL}</tool_call>\n<tool_response>\n391\n</tool_response>\nIt is 391."),
    called(f"{CALL}\n<tool_response>391</tool_response>"),
    called(f"{CALL}\n\nThe result is 391."),
    called(f"Action: calculator\nAction Input: {ARGUMENTS}\nObservation: 391\nIt is 391."),
    *[
        Row(text, again="wrote the result")
        for text in (
            'It says <tool_result name="note">391</tool_result>, so 391.',
            "```\n<tool_result>\n391\n</tool_result>\n```",
            "Look:\n```xml\n\n  <Tool_Response>391</Tool_Response>\n```\nIt is 391.",
            "- <tool_result>391</tool_result>",
            "> <tool_result>391</tool_result>",
            "**<tool_result>**\n391",
            "<TOOL_RESULT>391</TOOL_RESULT>",
            "Action: calculator\nAction Input: 17*23\nObservation: 391\nFinal Answer: 391",
            "[TOOL_RESULTS] 391 [/TOOL_RESULTS] It is 391.",
            "```tool_output\n391\n```\nIt is 391.",
            "I ran it: <function_response>391</function_response>",
            f"I know: <tool_result>1</tool_result>.\n```json\n{CALL}\n```",
        )
    ],
    called(f"<tool_call>{CALL}</tool_call>\n```tool_output\n391\n```\nIt is 391."),
    called(f"<tool_call>{CALL}</tool_call>\nObservation: 391"),
    said("Results stand between `<tool_result>` and `</tool_result>`."),
    said("`<tool_result>1</tool_result>` is one."),
    said("Action: none.\nIt was my observation: 391."),
    said("What a <tool_result> is, I may tell."),
    said("```text\n<tool_result>\n1\n</tool_result>\n```\nis an example."),
]
# However deep it is nested.
DEEP = [
    called(f"[[[{CALL}]]]"),
    *[said("[" * depth + CALL + "]" * depth) for depth in (9, 100, 480, 700, 2_000)],
    *[said('{"function":' * depth + CALL + "}" * depth) for depth in (9, 100, 480, 600, 2_000)],
    called('{"name": "current_time", "timezone": ' + NEST + "}", f'current_time {{"timezone": {NEST}}}'),
    said('{"name": "calculator", "arguments": ' + '{"a": ' * 5_000 + "1" + "}" * 5_001),
    said("calculator(" + "[" * 5_000 + "]" * 5_000 + ")"),
]
# Answers.
ANSWERS = [
    said("It is 391."),
    said('{"name": "Ann", "age": 3}'),
    said('{"answer": 391, "name": "calculator"}'),
    said('{"name": "calculator", "rating": 5}'),
    said('```json\n{"name": "Ann", "arguments": "none"}\n```'),
    said('Here is some JSON:\n```json\n{"result": 391}\n```\nDone.'),
    said(f"A call looks like this: {CALL}"),
    said(f"`{CALL}`"),
    said("[1, 2, 3]"),
    said("[See the docs](https://example.com)"),
    said("<b>391</b>"),
    said("```python\nprint(17*23)\n```"),
    said("calculators are useful"),
    said("Action is what counts."),
    said("Print it."),
    said("八字是一种传统。"),
]
# Of Qwen2.5-Coder-1.5B-Instruct behind llama.cpp, as they came.
RECORDED = [
    called(
        '```json\n{\n  "name": "calculator",\n  "arguments": {\n    "expression": "(17 * 23)"\n  }\n}\n```',
        'calculator {\n    "expression": "(17 * 23)"\n  }',
    ),
    called(
        '<tools>\n{"name": "current_time", "arguments": {"timezone": "Asia/Tokyo"}}\n</tools>',
        'current_time {"timezone": "Asia/Tokyo"}',
    ),
    called(
        '{{"name": "read_files", "arguments": {"ids": ["01a1-0"], "format": "text"}}}}',
        'read_files {"ids": ["01a1-0"], "format": "text"}',
    ),
    called(f"Here is the call in JSON format:\n\n```json\n{CALL}\n```", words="Here is the call in JSON format:"),
    Row(
        "<system-reminder>\n# Current time\n2026-11-18 00:41:22 Wednesday\n# Time in New York: 12:41 AM\n"
        "</system-reminder>\n\nDoes this help?",
        again="wrote the result",
    ),
    said("I hear. How can I help you with your bazi?"),
    said("<response>\nI'm sorry, but I can't assist with that.\n</response>"),
    said("To calculate \\(4812 \\div 16\\), we perform the division:\n\n\\[ 4812 \\div 16 = 300.75 \\]"),
]
ROWS = [
    *HERMES,
    *LLAMA,
    *MISTRAL,
    *OTHERS,
    *JSON,
    *PYTHON,
    *SKILLS,
    *HALVES,
    *UNKNOWN,
    *INVENTED,
    *DEEP,
    *ANSWERS,
    *RECORDED,
]


def happens(wrote: str, *, is_native: bool, size: int, finish: Literal["stop", "length"] = "stop") -> Row:
    """What becomes of a reply that comes in pieces of a size."""
    reader = CallsInText((f"c{number}" for number in count()), TOOLS, is_native=is_native)
    words = "".join(reader.feed(wrote[at : at + size]) for at in range(0, len(wrote), size))
    deltas = reader.end(ReplyEnd(finish=finish))
    if reader.problem:
        return Row(wrote, again=reader.problem)
    words += "".join(delta.text for delta in deltas if isinstance(delta, TextDelta))
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
        called(f"<tool_call>{CALL}</tool_call> and <tool_call>{HALF}", words="and"),
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
    assert len({row.wrote for row in ROWS}) >= 100


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
def test_P11_a_long_reply_of_any_shape_is_read_in_a_moment(piece: str):
    started = time.perf_counter()
    happens(piece * (300_000 // len(piece)), is_native=True, size=8)
    assert time.perf_counter() - started < 5


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
    text, at, words = "".join(parts), 0, ""
    reader = CallsInText((f"c{number}" for number in count()), TOOLS)
    for size in cycle(sizes):
        if at >= len(text):
            break
        words += reader.feed(text[at : at + size])
        at += size
    deltas = reader.end(ReplyEnd(finish="stop"))
    words += "".join(delta.text for delta in deltas if isinstance(delta, TextDelta))
    whole = happens(text.lstrip(), is_native=False, size=max(1, len(text)))
    names = [delta.name for delta in deltas if isinstance(delta, CallStarted)]
    assert (bool(reader.problem), names) == (bool(whole.again), [call.partition(" ")[0] for call in whole.calls])
    if not reader.problem:
        assert words == whole.words
