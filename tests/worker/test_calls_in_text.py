"""P11: calls written as text are taken out of the words, wherever it is cut; words come as soon as they can."""

from collections.abc import AsyncGenerator, Sequence
from itertools import count

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recto.models.ports import CallDelta, CallStarted, Delta, Ended, ReasoningDelta, TextDelta, Usage
from recto.page.canonical import load_object
from recto.page.tools_prompt import parse_tool_calls
from recto.worker.calls_in_text import UNREADABLE, CallsInText, with_calls

CALL = '<tool_call>{"name": "add", "arguments": {"a": 1, "b": "x<y"}}</tool_call>'
FENCED = '```json\n{"name": "add", "arguments": {"a": 1}}\n```'


async def read(pieces: Sequence[str], finish: Ended | None = None) -> list[Delta]:
    async def deltas() -> AsyncGenerator[Delta]:
        for piece in pieces:
            yield TextDelta(text=piece)
        yield finish or Ended(finish="stop", usage=Usage(input=3))

    numbers = (f"c{number}" for number in count(1))
    return [delta async for delta in with_calls(deltas(), numbers)]


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
        (f"One {CALL} two {CALL} three", "One\n\ntwo\n\nthree", ["add", "add"]),
        (f"Here:\n{FENCED}\n", "Here:", ["add"]),
        ("a < b and <tool> and `<tool_call>` are words", "a < b and <tool> and `<tool_call>` are words", []),
        ('```json\n{"other": 1}\n```\nand more', '```json\n{"other": 1}\n```\nand more', []),
        (f"```python\nprint('{CALL}')\n```\nbye", f"```python\nprint('{CALL}')\n```\nbye", []),
        ("  \n Spaces at both ends \n ", "Spaces at both ends", []),
        ("", "", []),
    ],
)
async def test_P11_words_and_calls_are_told_apart_wherever_the_text_is_cut(text: str, said: str, names: list[str]):
    for size in (1, 2, 3, 5, 7, 1000):
        deltas = await read([text[at : at + size] for at in range(0, len(text), size)])
        assert words(deltas) == said
        assert [name for _, name, _ in calls(deltas)] == names
        assert isinstance(deltas[-1], Ended)
        assert deltas[-1].finish == ("tool_calls" if names else "stop")


async def test_P11_arguments_are_kept_letter_for_letter_and_each_call_has_an_id():
    deltas = await read([CALL, CALL])
    assert calls(deltas) == [("c1", "add", '{"a": 1, "b": "x<y"}'), ("c2", "add", '{"a": 1, "b": "x<y"}')]


@pytest.mark.parametrize("broken", ["{not json}", '{"name": 5, "arguments": {}}', '{"name": "add"}'])
async def test_P11_a_call_that_cannot_be_read_is_a_call_that_says_what_is_wrong(broken: str):
    deltas = await read([f"<tool_call>{broken}</tool_call>"])
    ((_, name, arguments),) = calls(deltas)
    assert name == UNREADABLE
    assert "A tool call could not be read" in str((load_object(arguments) or {})["problem"])


async def test_P11_a_reply_that_was_cut_off_stays_one_that_was():
    deltas = await read(['<tool_call>{"name": "add", "argum'], Ended(finish="length"))
    assert deltas[-1] == Ended(finish="length")
    assert [name for _, name, _ in calls(deltas)] == [UNREADABLE]


def test_P11_words_do_not_wait_for_the_end():
    text = CallsInText(iter(()))
    assert text.feed("Two words") == "Two words"
    assert text.feed(" and a <") == " and a"
    assert text.feed("b> tag <too") == " <b> tag"
    assert text.feed("th> and <table>") == " <tooth> and <table>"
    assert text.feed("\n```python\nx = 1\ny") == "\n```python\nx = 1"
    assert text.feed(" = 2\n```\nafter it") == "\ny = 2\n```\nafter it"
    assert text.feed('\n```json\n{"name"') == ""


async def test_P11_thoughts_pass_and_closing_closes_the_model():
    closed: list[bool] = []

    async def deltas() -> AsyncGenerator[Delta]:
        try:
            yield ReasoningDelta(text="hm")
            yield TextDelta(text="words")
            yield Ended(finish="stop")
        finally:
            closed.append(True)

    stream = with_calls(deltas(), iter(()))
    assert await anext(stream) == ReasoningDelta(text="hm")
    await stream.aclose()
    assert closed == [True]


pieces = st.lists(
    st.sampled_from(
        [CALL, FENCED, "<tool_call>", "</tool_call>", "`", "```", "\n", " ", "words", "{", "}", "<", "json", "```py\n"]
    ),
    max_size=12,
)


@given(pieces, st.lists(st.integers(1, 9), min_size=1, max_size=6))
def test_P11_however_it_is_cut_it_says_what_the_whole_text_says(parts: list[str], sizes: list[int]):
    text, told, at = "".join(parts), "", 0
    reader = CallsInText(f"c{number}" for number in count())
    for number in count():
        if at >= len(text):
            break
        size = sizes[number % len(sizes)]
        told += reader.feed(text[at : at + size])
        at += size
    deltas = reader.end(Ended(finish="stop"))
    whole = parse_tool_calls(text.lstrip())
    assert told + words(deltas) == whole.words.rstrip()
    assert len(calls(deltas)) == len(whole.calls) + len(whole.problems)
