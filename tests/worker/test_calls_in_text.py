"""P11: calls written as text are taken out of the words, wherever it is cut; words come as soon as they can."""

from collections.abc import AsyncGenerator, Sequence
from datetime import UTC, datetime
from itertools import count, cycle

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recto.conversation.messages import AssistantMessage, Opaque, Text, ToolCall
from recto.models.ports import CallDelta, CallStarted, Delta, ReasoningDelta, ReplyEnd, TextDelta, Usage, Used
from recto.page.prompt.tools_prompt import parse_tool_calls
from recto.worker.model.reply import Reply
from recto.worker.tools.calls_in_text import CallsInText

CALL = '<tool_call>{"name": "add", "arguments": {"a": 1, "b": "x<y"}}</tool_call>'
FENCED = '```json\n{"name": "add", "arguments": {"a": 1}}\n```'


async def read(pieces: Sequence[str], finish: ReplyEnd | None = None) -> list[Delta]:
    async def deltas() -> AsyncGenerator[Delta]:
        for piece in pieces:
            yield TextDelta(text=piece)
        yield finish or ReplyEnd(finish="stop", usage=Usage(input=3))

    numbers = (f"c{number}" for number in count(1))
    return [delta async for delta in CallsInText(numbers).read(deltas())]


def words(deltas: Sequence[Delta]) -> str:
    return "".join(delta.text for delta in deltas if isinstance(delta, TextDelta))


def calls(deltas: Sequence[Delta]) -> list[tuple[str, str, str]]:
    starts = [delta for delta in deltas if isinstance(delta, CallStarted)]
    arguments = {delta.index: delta.arguments for delta in deltas if isinstance(delta, CallDelta)}
    return [(start.id, start.name, arguments[start.index]) for start in starts]


@pytest.mark.parametrize(
    ("text", "said", "names"),
    [
        ("Just words.", "Just words.", []),
        (f"Let me add.\n\n{CALL}", "Let me add.", ["add"]),
        (CALL, "", ["add"]),
        (f"{CALL}\n{CALL}", "", ["add", "add"]),
        (f"One {CALL} two {CALL} three", "One", ["add", "add"]),
        (f"Here:\n{FENCED}\n", "Here:", ["add"]),
        ("a < b and <tool> and `<tool_call>` are words", "a < b and <tool> and `<tool_call>` are words", []),
        ('```json\n{"other": 1}\n```\nand more', '```json\n{"other": 1}\n```\nand more', []),
        (f"```python\nprint('{CALL}')\n```\nbye", f"```python\nprint('{CALL}')\n```\nbye", []),
        (f"```python\nprint(1)\n{CALL}\nbye", f"```python\nprint(1)\n{CALL}\nbye", []),
        (f"```x``` is code. {CALL}", "```x``` is code.", ["add"]),
        (f"A `<tool_call>` is so: {CALL}", "A `<tool_call>` is so:", ["add"]),
        (f"It is.\n{CALL}\n<tool_result name='add'>\n5\n</tool_result>\nIt is 5.", "It is.", ["add"]),
        ("A <tool_result> is words before a call.", "A <tool_result> is words before a call.", []),
        ("  \n Spaces at both ends \n ", "Spaces at both ends", []),
        ("", "", []),
    ],
)
async def test_P11_words_and_calls_are_kept_apart_wherever_the_text_is_cut(text: str, said: str, names: list[str]):
    for size in (1, 2, 3, 5, 7, 1000):
        deltas = await read([text[at : at + size] for at in range(0, len(text), size)])
        assert words(deltas) == said
        assert [name for _, name, _ in calls(deltas)] == names
        assert isinstance(deltas[-1], ReplyEnd)
        assert deltas[-1].finish == ("tool_calls" if names else "stop")


async def test_P11_arguments_are_kept_letter_for_letter_and_each_call_has_an_id():
    deltas = await read([CALL, CALL])
    assert calls(deltas) == [("c1", "add", '{"a": 1, "b": "x<y"}'), ("c2", "add", '{"a": 1, "b": "x<y"}')]


@pytest.mark.parametrize("broken", ["{not json}", '{"name": 5, "arguments": {}}', '{"name": "add"}'])
def test_P11_a_reply_with_a_call_that_cannot_be_read_is_none_and_says_what_is_wrong(broken: str):
    text = CallsInText(iter(()))
    assert text.feed(f"So: <tool_call>{broken}</tool_call>{CALL}") == "So:"
    assert text.end(ReplyEnd(finish="stop", usage=Usage(input=3))) == [Used(usage=Usage(input=3))]
    assert text.problem.startswith("A tool call could not be read")


async def test_P11_a_reply_that_was_cut_off_stays_one_that_was():
    deltas = await read([CALL, '<tool_call>{"name": "add", "arguments": {}}'], ReplyEnd(finish="length"))
    assert deltas[-1] == ReplyEnd(finish="length")
    assert [name for _, name, _ in calls(deltas)] == ["add", "add"]


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
        'Here:\n```json\n{"name": "Ann", "age": 3}\n```\n',
        "Here:\n```json\n[1]\n```\n",
        "Here:\n```\n<tool_call> is a tag\n```\n",
        "Use `<tool_call>` so. ",
        f"The <tool_call> tag is {'so ' * 200}",
        f"One <tool_call>, one <tool_call> {'so ' * 200}",
        "```x``` is. ",
        f"```{'x' * 201}",
        "Here:\n```python\n",
        "Here:\n```python\nnever closed\n",
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


def test_P11_a_long_fenced_line_is_passed_on_piece_by_piece():
    text = CallsInText(iter(()))
    assert text.feed("```text\nx") == "```text\nx"
    assert all(text.feed("word") == "word" for _ in range(20_000))


@pytest.mark.parametrize(
    ("text", "rest"),
    [
        ("words", ""),
        ("words <tool_c", ""),
        ("words <tool_call>", ""),
        ("words <tool_call> {", ""),
        (f"words {CALL} and more", ""),
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


THOUGHT = Opaque(provider="anthropic", model="m", place="block", name="thinking", data="{}")
LATER = Opaque(provider="anthropic", model="m", place="block", name="thinking", data='{"n":2}')


async def test_P11_thinking_between_words_keeps_its_place_and_the_call_is_in_the_log_as_readers_had_it():
    parts = (THOUGHT, Text(text="Let me add. "), LATER, Text(text=CALL))
    deltas = await read(["Let me add. ", CALL], ReplyEnd(finish="stop", parts=parts))
    reply = Reply(id="m", reasoning_id="r")
    for delta in deltas:
        reply.take(delta)
    (message,) = reply.entries(datetime(2026, 5, 14, tzinfo=UTC), "k")
    call = ToolCall(id="c1", name="add", arguments='{"a": 1, "b": "x<y"}', runner="server")
    assert isinstance(message, AssistantMessage)
    assert message.parts == (THOUGHT, Text(text="Let me add."), LATER, call)
    assert calls(deltas) == [(call.id, call.name, call.arguments)]


async def test_P11_parts_without_words_but_calls_have_no_empty_text():
    parts = (Text(text=CALL[:9]), THOUGHT, Text(text=CALL[9:]))
    ended = (await read([CALL], ReplyEnd(finish="stop", parts=parts)))[-1]
    assert isinstance(ended, ReplyEnd)
    assert [type(part) for part in ended.parts] == [Opaque, ToolCall]


async def test_P11_parts_stay_empty_where_the_order_is_the_usual_one():
    assert (await read([CALL]))[-1] == ReplyEnd(finish="tool_calls", usage=Usage(input=3))


def test_P11_calls_made_natively_all_the_same_keep_their_numbers():
    text = CallsInText(iter(["c1", "c2"]))
    native = CallStarted(index=2, id="n", name="look")
    assert text.take(native) == [native]
    assert text.feed(CALL + CALL) == ""
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


FENCES = ("```\n", "```json\n", "```python\n", "```xml\n", "````md\n", "\n```\n", "\n````\n", "```", "```json")
TAGS = ("<tool_call>", "</tool_call>", "<tool_call>{", "<tool_result>", "</tool_result>", "<tool", "<")
OBJECTS = ('{"name": "a", "arguments": {}}', '{"name"', '{"x": 1}', "{", "}")
BLANKS = ("\n", "\n\n", " ", "\t", " " * 100, "\r\n")
pieces = st.lists(
    st.sampled_from((CALL, FENCED, "`", "``", "words", "w" * 480, "x" * 210, *FENCES, *TAGS, *OBJECTS, *BLANKS)),
    max_size=14,
)


@given(pieces, st.lists(st.integers(1, 30), min_size=1, max_size=6))
def test_P11_however_it_is_cut_it_says_what_the_whole_text_says(parts: list[str], sizes: list[int]):
    text, passed, at = "".join(parts), "", 0
    reader = CallsInText(f"c{number}" for number in count())
    for size in cycle(sizes):
        if at >= len(text):
            break
        passed += reader.feed(text[at : at + size])
        at += size
    deltas = reader.end(ReplyEnd(finish="stop"))
    whole = parse_tool_calls(text.lstrip())
    assert bool(reader.problem) == bool(whole.problems)
    if not whole.problems:
        assert passed + words(deltas) == whole.words.rstrip()
        assert len(calls(deltas)) == len(whole.calls)
