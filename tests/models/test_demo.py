"""The demo model: what it does with a page, and that it never pretends."""

import asyncio
import json

import pytest

from recto.agents.agent import Sampling
from recto.conversation.json import Json
from recto.conversation.messages import AssistantMessage, Message, Text, UserMessage
from recto.conversation.messages import words_of as said_by
from recto.models.demo.demo_model import CARE, DemoModel
from recto.models.ports import CallDelta, CallStarted, Delta, Model, ReplyEnd, TextDelta
from recto.page.prompt.summarise import INSTRUCTIONS, SummarySettings, summary_pieces, summary_request
from recto.page.text.tokens import OFFLINE

BOTH = ("calculator", "current_time")


def page(*messages: Json, tools: tuple[str, ...] = BOTH) -> bytes:
    offers = [{"type": "function", "function": {"name": name, "parameters": True}} for name in tools]
    return json.dumps({"model": "demo", "messages": messages, "tools": offers}).encode()


def user(words: Json) -> Json:
    return {"role": "user", "content": words}


def called(name: str, arguments: str, id: str = "c1") -> Json:
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
    ("words", "expression"),
    [
        ("what is (3+4)*5?", "(3+4)*5"),
        ("算一下12×7等于多少", "12*7"),
        ("2^10?", "2**10"),
        ("1 - (2 - 3).", "1 - (2 - 3)"),
        ("on 2026-11-06 I ate 3 apples", None),
        ("gpt-4 or v1.2-3", None),
        ("hello", None),
    ],
)
def test_arithmetic_is_found_in_words(words: str, expression: str | None):
    sums = [json.loads(arguments)["expression"] for _, arguments in calls_of(page(user(words), tools=BOTH[:1]))]
    assert sums == ([expression] if expression else [])


def test_arithmetic_is_given_to_the_calculator():
    deltas = stream(page(user("what is 12*7?")))
    assert [type(delta) for delta in deltas] == [CallStarted, CallDelta, ReplyEnd]
    assert calls_of(page(user("what is 12*7?"))) == [("calculator", '{"expression":"12*7"}')]


@pytest.mark.parametrize("words", ["What time is it?", "现在几点"])
def test_the_time_is_asked_of_its_tool(words: str):
    assert calls_of(page(user(words))) == [("current_time", "{}")]


def test_both_are_called_at_once_under_different_ids():
    deltas = stream(page(user("what time is it, and what is 3+4?")))
    started = [delta for delta in deltas if isinstance(delta, CallStarted)]
    assert [(call.index, call.name) for call in started] == [(0, "calculator"), (1, "current_time")]
    assert len({call.id for call in started}) == 2
    end = deltas[-1]
    assert isinstance(end, ReplyEnd)
    assert end.finish == "tool_calls"


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ('stock({"item": "milk"})', [("stock", '{"item":"milk"}')]),
        ('Try stock({"a": {"b": 1}}), current_time().', [("stock", '{"a":{"b":1}}'), ("current_time", "{}")]),
        ("nobody({}) knows 2 + 2", [("calculator", '{"expression":"2 + 2"}')]),
        ("stock({not JSON})", []),
    ],
)
def test_a_call_that_is_written_out_is_made(words: str, expected: list[tuple[str, str]]):
    assert calls_of(page(user(words), tools=(*BOTH, "stock"))) == expected


def test_a_tool_that_is_not_offered_is_not_called():
    assert calls_of(page(user("what is 12*7 at this time?"), tools=("current_time",))) == [("current_time", "{}")]
    assert calls_of(page(user("what is 12*7?"), tools=())) == []


def test_a_result_is_used_in_the_answer():
    body = page(user("what is 12*7?"), called("calculator", '{"expression":"12*7"}'), result("84"))
    assert words_of(body) == "12*7 = 84."


def test_results_of_an_earlier_question_are_not():
    earlier = (user("12*7"), called("calculator", '{"expression":"12*7"}'), result("84"))
    assert calls_of(page(*earlier, {"role": "assistant", "content": "84"}, user("1+1"))) == [
        ("calculator", '{"expression":"1+1"}')
    ]


def test_an_answer_in_chinese_to_chinese_words():
    body = page(user("现在几点"), called("current_time", "{}"), result("2026-11-06 08:49:37 Friday, UTC"))
    assert words_of(body) == "现在的时间是 2026-11-06 08:49:37 Friday, UTC。"


@pytest.mark.parametrize(
    ("words", "call", "said"),
    [
        ("1/0", called("calculator", '{"expression":"1/0"}'), "'1/0' divides by zero."),
        ("what time is it", called("current_time", "{}"), "There is no time zone 'Mars'."),
    ],
)
def test_what_a_tool_says_that_failed_is_repeated_as_it_is(words: str, call: Json, said: str):
    assert words_of(page(user(words), call, result(said))).endswith(f" answered: {said}")


def test_the_result_of_any_other_tool_is_told_as_it_is():
    body = page(user("hello"), called("search", "{}"), result("Tea is a drink; errors happen."))
    assert words_of(body) == "search answered: Tea is a drink; errors happen."


def test_without_a_trick_it_says_what_it_is_and_how_to_get_a_real_model():
    text = words_of(page(user("Tell me about tea.")))
    for part in ("demo model", "Tell me about tea.", "RECTO_MODEL=openai:NAME", "OPENAI_API_KEY", "compatible:NAME"):
        assert part in text
    assert "演示模型" in words_of(page(user("讲讲茶")))


def test_a_reminder_before_the_words_is_not_theirs():
    reminder = "<system-reminder>\nThe time is 12*7.\n</system-reminder>\n\nhello"
    assert calls_of(page(user(reminder))) == []
    assert '"hello"' in words_of(page(user(reminder)))


def test_words_in_blocks_are_read():
    assert calls_of(page(user([{"type": "text", "text": "3+4"}]))) == [("calculator", '{"expression":"3+4"}')]


def test_long_words_are_repeated_shortly():
    assert len(words_of(page(user("tea " * 5000)))) < 800


@pytest.mark.parametrize("language", ["en", "zh"])
def test_a_summary_is_an_extract(language: str):
    said = '<message role="user">\nWe build a boat, 12*7 feet.\n</message>'
    text = words_of(page({"role": "system", "content": INSTRUCTIONS[language]}, user(f"The conversation:\n{said}")))
    assert "- user: We build a boat, 12*7 feet." in text


def test_R13_a_summary_carries_on_what_was_known_and_is_in_the_users_language():
    settings, name = SummarySettings(locale="zh"), "Hello, I am Ann from Lyon."
    steps = [AssistantMessage(parts=(Text(text=f"Step {n}."),)) for n in range(99)]
    summary: str | None = None
    for messages in ((said(name), *steps), (said("Plan the boat trip."),)):
        (piece,) = summary_pieces(messages, settings=settings, counter=OFFLINE)
        asked = summary_request(piece, so_far=summary, settings=settings, counter=OFFLINE)
        summary = words_of(page({"role": "system", "content": asked[0].text}, user(said_by(asked[1]))))
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


def said(words: str) -> Message:
    return UserMessage(parts=(Text(text=words),))


def test_it_streams_in_small_pieces_and_ends_with_usage():
    deltas = stream(page(user("讲讲茶 please")))
    assert len(deltas) > 20
    end = deltas[-1]
    assert isinstance(end, ReplyEnd)
    assert end.finish == "stop"
    assert end.usage
    assert end.usage.input > 0
    assert end.usage.output > 0


def test_the_same_page_gives_the_same_reply():
    body = page(user("what is 12*7?"))
    assert stream(body) == stream(body)


@pytest.mark.parametrize("body", [b"", b"[]", b"{}", b'{"messages":[{"role":"user"}]}', b'{"messages":7,"tools":{}}'])
def test_a_page_of_any_form_gets_an_answer(body: bytes):
    assert "demo model" in words_of(body)


def test_it_is_a_model():
    model: Model = DemoModel()
    assert (model.name, model.target.model, model.target.wire) == ("demo", "demo", "openai")


def test_what_is_asked_of_it_changes_nothing():
    model = DemoModel()
    assert model.options_for(Sampling(temperature=0.5, max_tokens=9), has_tools=True) == model.options


def test_it_names_the_tools_it_has_and_no_others():
    assert "(calculator, current_time)" in words_of(page(user("Sing to me")))
    assert "（current_time）" in words_of(page(user("唱首歌"), tools=("current_time",)))


@pytest.mark.parametrize(("words", "said"), [("我不想活了", CARE["zh"]), ("I want to die", CARE["en"])])
def test_who_is_in_need_gets_no_demonstration(words: str, said: str):
    assert words_of(page(user(words))) == said
