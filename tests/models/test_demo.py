"""The demo model: calls and answers for a page."""

import asyncio
import json

import pytest

from recto.conversation.json import Json
from recto.conversation.messages import AssistantMessage, Message, Text, UserMessage
from recto.conversation.messages import words_of as said_by
from recto.models.demo.demo_model import CARE, DemoModel
from recto.models.ports import CallDelta, CallStarted, Delta, ReplyEnd, TextDelta
from recto.page.prompt.summarise import INSTRUCTIONS, SummarySettings, summary_pieces, summary_request
from recto.page.text.tokens import OFFLINE

BOTH = ("calculator", "current_time")


def page(*messages: Json, tools: tuple[str, ...] = BOTH) -> bytes:
    offers = [{"type": "function", "function": {"name": name, "parameters": True}} for name in tools]
    return json.dumps({"model": "demo", "messages": messages, "tools": offers}).encode()


def user(words: Json) -> Json:
    return {"role": "user", "content": words}


def call_row(name: str, arguments: str, id: str = "c1") -> Json:
    return {
        "role": "assistant",
        "content": None,
        "tool_calls": [{"id": id, "type": "function", "function": {"name": name, "arguments": arguments}}],
    }


def result(text: str, id: str = "c1") -> Json:
    return {"role": "tool", "tool_call_id": id, "content": text}


def stream(body: bytes) -> list[Delta]:
    async def collect() -> list[Delta]:
        return [delta async for delta in DemoModel().stream(body)]

    return asyncio.run(collect())


def words_of(body: bytes) -> str:
    return "".join(delta.text for delta in stream(body) if isinstance(delta, TextDelta))


def calls_of(body: bytes) -> list[tuple[str, str]]:
    deltas = stream(body)
    names = [delta.name for delta in deltas if isinstance(delta, CallStarted)]
    return list(zip(names, [delta.arguments for delta in deltas if isinstance(delta, CallDelta)], strict=True))


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ("what is (3+4)*5?", [("calculator", '{"expression":"(3+4)*5"}')]),
        ("算一下12×7等于多少", [("calculator", '{"expression":"12*7"}')]),
        ("现在几点", [("current_time", "{}")]),
        ("gpt-4 or v1.2-3 on 2026-11-06", []),
        ('Try stock({"a": {"b": 1}}), current_time().', [("stock", '{"a":{"b":1}}'), ("current_time", "{}")]),
        ("nobody({}) knows 2 + 2", [("calculator", '{"expression":"2 + 2"}')]),
        ("stock({not JSON})", []),
        ("<system-reminder>\nThe time is 12*7.\n</system-reminder>\n\nhello", []),
        ([{"type": "text", "text": "3+4"}], [("calculator", '{"expression":"3+4"}')]),
    ],
)
def test_words_become_calls_of_the_tools_they_need(words: Json, expected: list[tuple[str, str]]):
    assert calls_of(page(user(words), tools=(*BOTH, "stock"))) == expected
    assert calls_of(page(user(words), tools=())) == []


@pytest.mark.parametrize(
    ("words", "call", "answer", "expected"),
    [
        ("12*7?", call_row("calculator", '{"expression":"12*7"}'), "84", "12*7 = 84."),
        (
            "现在几点",
            call_row("current_time", "{}"),
            "2026-11-06 08:49:37 Friday, UTC",
            "现在的时间是 2026-11-06 08:49:37 Friday, UTC。",
        ),
        (
            "1/0",
            call_row("calculator", '{"expression":"1/0"}'),
            "'1/0' divides by zero.",
            "calculator answered: '1/0' divides by zero.",
        ),
        ("hello", call_row("search", "{}"), "Tea; errors happen.", "search answered: Tea; errors happen."),
    ],
)
def test_the_answer_uses_the_result_of_a_tool(words: str, call: Json, answer: str, expected: str):
    messages = (user(words), call, result(answer))
    assert words_of(page(*messages)) == expected
    later = page(*messages, {"role": "assistant", "content": expected}, user("1+1"))
    assert calls_of(later) == [("calculator", '{"expression":"1+1"}')]


def test_both_are_called_at_once_under_different_ids():
    deltas = stream(page(user("what time is it, and what is 3+4?")))
    started = [delta for delta in deltas if isinstance(delta, CallStarted)]
    assert [(call.index, call.name) for call in started] == [(0, "calculator"), (1, "current_time")]
    assert len({call.id for call in started}) == 2
    end = deltas[-1]
    assert isinstance(end, ReplyEnd)
    assert end.finish == "tool_calls"


def test_without_a_trick_it_says_what_it_is_and_how_to_get_a_real_model():
    text = words_of(page(user("Tell me about tea.")))
    for part in ("demo model", "Tell me about tea.", "RECTO_MODEL=openai:NAME", "OPENAI_API_KEY", "compatible:NAME"):
        assert part in text
    assert "演示模型" in words_of(page(user("讲讲茶")))


def test_R13_a_summary_carries_on_what_was_known_and_is_in_the_users_language():
    settings, name = SummarySettings(locale="zh"), "Hello, I am Ann from Lyon."
    steps = [AssistantMessage(parts=(Text(text=f"Step {n}."),)) for n in range(99)]
    summary: str | None = None
    for messages in ((user_message(name), *steps), (user_message("Plan the boat trip."),)):
        (piece,) = summary_pieces(messages, settings=settings, counter=OFFLINE)
        summary_messages = summary_request(piece, so_far=summary, settings=settings, counter=OFFLINE)
        summary = words_of(
            page({"role": "system", "content": summary_messages[0].text}, user(said_by(summary_messages[1])))
        )
    assert summary == "\n".join(
        (
            "In short (by the demo model, an extract only):",
            f"- user: {name}",
            *[f"- assistant: Step {n}." for n in range(93, 99)],
            "- user: Plan the boat trip.",
        )
    )
    many = "".join(f'<message role="user">\nLine {n}.\n</message>\n' for n in range(999))
    long = words_of(page({"role": "system", "content": INSTRUCTIONS["en"]}, user(f"The conversation:\n{many}")))
    assert (long.count("\n"), "Line 0." in long, "Line 998." in long) == (24, True, True)


def user_message(words: str) -> Message:
    return UserMessage(parts=(Text(text=words),))


def test_it_streams_in_small_pieces_and_ends_with_usage():
    *deltas, end = stream(page(user("讲讲茶 please")))
    assert len(deltas) > 20
    assert isinstance(end, ReplyEnd)
    assert (end.finish, end.usage and end.usage.input > 0 < end.usage.output) == ("stop", True)


@pytest.mark.parametrize("body", [b"", b"[]", b"{}", b'{"messages":[{"role":"user"}]}', b'{"messages":7,"tools":{}}'])
def test_a_page_of_any_form_gets_an_answer(body: bytes):
    assert "demo model" in words_of(body)


@pytest.mark.parametrize(("words", "expected"), [("我不想活了", CARE["zh"]), ("I want to die", CARE["en"])])
def test_who_is_in_need_gets_no_demonstration(words: str, expected: str):
    assert words_of(page(user(words))) == expected
