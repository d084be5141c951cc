"""R13: the conversation as texts to summarise, none too large for its request, and the requests themselves."""

from collections.abc import Sequence

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from recto.page.messages import (
    ActivityMessage,
    AssistantMessage,
    DeveloperMessage,
    File,
    Key,
    Message,
    Opaque,
    ReasoningMessage,
    SystemMessage,
    Text,
    ToolCall,
    ToolMessage,
    UserMessage,
)
from recto.page.summarise import SummarySettings, summary_pieces, summary_request
from recto.page.tokens import OFFLINE, TokenCounter
from tests.page.counters import WordCounter
from tests.page.talk import says, user

ZH = (
    "你在为一段对话写摘要，之后的对话只能看到这份摘要。写明：用户的目标和约束、已做的决定及原因、已完成和未完成的工作、"
    "涉及的文件路径和标识符(原样保留)、出现过的错误及其解决办法、下一步。只写对话中出现过的内容，不要回答或继续对话。"
)
EN = (
    "You summarise a conversation; what follows will see only this summary. Say: what the user wants and what "
    "limits it, what was decided and why, what is done and what is not, paths and identifiers involved (verbatim), "
    "errors met and how they were solved, the next step. Only what was said; do not answer the conversation or go "
    "on with it."
)


class CharacterCounter:
    """A token for each character: nothing is free, not even what stands between two messages."""

    name = "characters"

    def count(self, texts: Sequence[str]) -> Sequence[int]:
        return [len(text) for text in texts]


WORDS, CHARACTERS = WordCounter(), CharacterCounter()


# The texts


def test_R13_a_conversation_is_told_as_one_text():
    state = Opaque(provider="anthropic", model=None, place="block", name="thinking", data='{"signature": "s"}')
    spoken: tuple[Message, ...] = (
        SystemMessage(text="Be kind."),
        DeveloperMessage(text="Be brief."),
        UserMessage(
            parts=(
                Text(text="Read this."),
                File(kind="document", source=Key(key="k"), name="a.pdf"),
                File(kind="image", source=Key(key="k"), id="R-1"),
                File(kind="audio", source=Key(key="k")),
            )
        ),
        ReasoningMessage(text="hm"),
        AssistantMessage(
            parts=(state, Text(text="I will."), ToolCall(id="c1", name="read", arguments='{"path": "a.pdf"}'))
        ),
        ToolMessage(tool_call_id="c1", parts=(Text(text="page one"), Text(text="page two"))),
        ActivityMessage(activity_type="PLAN", content='{"step": 1}'),
        AssistantMessage(parts=(state,)),
    )
    assert summary_pieces(spoken, settings=SummarySettings(), counter=OFFLINE) == (
        "[system] Be kind.\n\n"
        "[developer] Be brief.\n\n"
        "[user] Read this.\n[document: a.pdf]\n[image: R-1]\n[audio: no name]\n\n"
        "[reasoning] hm\n\n"
        '[assistant] I will.\nread({"path": "a.pdf"})\n\n'
        "[tool] page one\npage two\n\n"
        '[activity] {"step": 1}\n\n'
        "[assistant] ",
    )


def test_R13_nothing_to_summarise_is_no_text():
    assert summary_pieces((), settings=SummarySettings(), counter=OFFLINE) == ()


def test_R13_a_conversation_too_large_for_one_request_is_told_in_pieces():
    spoken = (user("u1", "one two"), says("a1", "three four"), user("u2", "five six"), says("a2", "seven"))
    assert summary_pieces(spoken, settings=SummarySettings(tokens=6), counter=WORDS) == (
        "[user] one two\n\n[assistant] three four",
        "[user] five six\n\n[assistant] seven",
    )


@pytest.mark.parametrize(
    ("tokens", "pieces"),
    [
        pytest.param(len("\n\n[user] a\n\n[user] b"), ("[user] a\n\n[user] b",), id="enough"),
        pytest.param(len("[user] a\n\n[user] b") - 1, ("[user] a", "[user] b"), id="one too few"),
    ],
)
def test_R13_what_stands_between_two_messages_counts(tokens: int, pieces: tuple[str, ...]):
    settings = SummarySettings(tokens=tokens)
    assert summary_pieces((user("u1", "a"), user("u2", "b")), settings=settings, counter=CHARACTERS) == pieces


def test_R13_a_message_shows_its_beginning_and_its_end_where_it_is_too_long():
    text = "a" * 50 + "b" * 50
    pieces = summary_pieces((user("u1", text),), settings=SummarySettings(characters_per_message=27), counter=OFFLINE)
    # Twenty-six characters stay, seven of them the role.
    assert pieces == ("[user] aaaaaa\n[... 81 characters left out ...]\nbbbbbbbbbbbbb",)


def test_R13_a_message_too_large_for_one_request_is_shortened_until_it_fits():
    giant, short = user("u1", "x" * 1_000), user("u2", "y")
    settings = SummarySettings(tokens=100, characters_per_message=800)
    pieces = summary_pieces((giant, short), settings=settings, counter=CHARACTERS)
    shown = f"[user] {'x' * 18}\n[... 957 characters left out ...]\n{'x' * 25}"
    assert pieces == (f"{shown}\n\n[user] y",)


# The requests


@pytest.mark.parametrize(
    ("so_far", "locale", "request_"),
    [
        (None, "zh", (ZH, "对话:\n[user] hi")),
        ("", "zh", (ZH, "对话:\n[user] hi")),
        ("They met.", "zh-CN", (ZH, "此前的摘要:\nThey met.\n\n对话:\n[user] hi")),
        (None, "en", (EN, "The conversation:\n[user] hi")),
        ("They met.", "EN-us", (EN, "The summary so far:\nThey met.\n\nThe conversation:\n[user] hi")),
        ("{text}", "en", (EN, "The summary so far:\n{text}\n\nThe conversation:\n[user] hi")),
    ],
)
def test_R13_a_request_carries_the_summary_so_far_and_the_next_piece(
    so_far: str | None, locale: str, request_: tuple[str, str]
):
    system, words = request_
    said = UserMessage(parts=(Text(text=words),))
    assert summary_request("[user] hi", so_far=so_far, locale=locale) == (SystemMessage(text=system), said)


def test_R13_a_request_is_in_chinese_unless_said_otherwise():
    assert summary_request("x", so_far=None) == summary_request("x", so_far=None, locale="zh")


# Whatever was said

spoken = st.text(st.characters(exclude_categories=["Cs"]), max_size=60) | st.sampled_from(
    ("", "\n", "\n\n\n", "   ", "words " * 12, "!\n", "字" * 30)
)
talks = st.lists(st.tuples(st.sampled_from((user, says)), spoken), max_size=12).map(
    lambda found: [make(f"m{place}", text) for place, (make, text) in enumerate(found)]
)


@pytest.mark.parametrize("counter", [OFFLINE, WORDS, CHARACTERS], ids=lambda counter: counter.name)
@given(talks, st.integers(16, 60), st.integers(0, 3))
@example([user(f"m{n}", "a") for n in range(60)], 16, 0)
@example([user("m0", "giant " * 5_000)], 16, 0)
def test_R13_every_piece_is_within_the_tokens_of_a_request(
    counter: TokenCounter, messages: list[Message], tokens: int, giant: int
):
    more = [user("g", "giant " * 400 * giant)] if giant else []
    # The mark alone has forty characters.
    limit = tokens + (40 if counter is CHARACTERS else 0)
    pieces = summary_pieces([*messages, *more], settings=SummarySettings(tokens=limit), counter=counter)
    assert [count for count in counter.count(pieces) if count > limit] == []


@given(st.integers(0, 30), st.integers(20, 60), st.integers(0, 30))
def test_R13_every_short_message_is_told_once_and_in_order(count: int, tokens: int, giant: int):
    said: list[Message] = [says(f"m{place}", f"<{place}>") for place in range(count)]
    said.insert(min(giant, count), user("giant", "giant " * 500))
    told = "\n\n".join(summary_pieces(said, settings=SummarySettings(tokens=tokens), counter=OFFLINE))
    places = [told.find(f"[assistant] <{place}>") for place in range(count)]
    assert -1 not in places
    assert places == sorted(places)
    assert [told.count(f"<{place}>") for place in range(count)] == [1] * count
