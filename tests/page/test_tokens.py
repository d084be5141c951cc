"""Counting: as text, never twice, and honest about what is an estimate."""

import sys
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from types import FrameType

import pytest

import recto
from recto.conversation.messages import Data, File, Message, Text, ToolMessage, UserMessage
from recto.errors import SettingsError
from recto.page.facts import Facts
from recto.page.fold.observations import read_paths
from recto.page.fold.rules import READS, TERMINAL, is_failed_command
from recto.page.text.tokens import (
    PART_CHARACTERS,
    Calibration,
    OfflineCounter,
    TokenCount,
    calibrate,
    count_new,
    tokens_of,
)
from tests.page.conversations import Row, answers, asks, at, reads, runs, user
from tests.page.counters import WordCounter

OFFLINE = OfflineCounter()
COMMANDS = replace(TERMINAL, tools=("terminal-execute",), keep=1, max_age=timedelta(0), placeholder="(old)")
KEEP_ONE = recto.FoldSettings(reads=replace(READS, keep=1, placeholder="(stale)"), terminal=COMMANDS)


# The offline counter


def test_texts_count_as_their_vocabulary_has_them():
    texts = ["hello world", "", "tiktoken is great!", "你好,世界", " ", "a" * 8]
    assert OfflineCounter("o200k_base").count(texts) == [2, 0, 6, 3, 1, 1]
    assert OfflineCounter("cl100k_base").count(["hello world", "tiktoken is great!"]) == [2, 6]


@pytest.mark.parametrize("text", ["<|endoftext|>", "a <|endoftext|> b", "<|fim_prefix|><|endofprompt|>"])
def test_a_control_token_spelled_out_counts_as_text_alone_and_among_many(text: str):
    (alone,) = OFFLINE.count([text])
    assert OFFLINE.count(["before", text, "<|endoftext|>", text] * 10) == [1, alone, 7, alone] * 10
    assert alone >= 5


def test_halves_of_surrogate_pairs_count_as_the_mark_they_are_written_as():
    assert OFFLINE.count(["a \ud800 b", "\udfff"]) == OFFLINE.count(["a � b", "�"])


@pytest.mark.parametrize("text", ["a few words ", " ", "好", "x", "👩🏽‍🔬 <|endoftext|>"])
def test_D7_a_long_text_counts_as_its_parts_do_and_about_as_much_as_the_whole(text: str):
    repeats = 3 * PART_CHARACTERS // len(text)
    (many,) = OFFLINE.count([text * repeats])
    (some,) = OFFLINE.count([text * (repeats // 6)])
    assert abs(many - 6 * some) <= 0.01 * many + 10
    assert OFFLINE.count(["hello world", text * repeats, ""]) == [2, many, 0]


def test_an_unknown_vocabulary_is_refused():
    refusal = r"^Setting tokenizer is 'gpt2'; it is one of o200k_base, cl100k_base\.$"
    with pytest.raises(SettingsError, match=refusal):
        OfflineCounter("gpt2")  # pyright: ignore[reportArgumentType] - a value from outside


# Messages


def test_a_message_costs_its_texts_its_frame_and_its_files():
    counter = WordCounter()
    picture = File(kind="image", source=Data(base64="aGk="))
    message = UserMessage(parts=(Text(text="two words"), picture, Text(text=""), Text(text="one")))
    assert tokens_of(message, counter) == 4 + 2 + 1_300 + 1
    assert counter.asked == ["two words", "one"]


def test_a_call_costs_its_name_and_its_arguments():
    counter = WordCounter()
    (call_message,) = recto.decode([asks("c", "tool", '{"a": 1, "b": 2}')])
    assert tokens_of(call_message, counter) == 4 + 1 + 4


def test_each_message_is_counted_once_by_each_counter():
    counter, same_name = WordCounter(), WordCounter()
    message = UserMessage(parts=(Text(text="two words"),))
    count_new((message,), counter)
    count_new((message, message), counter)
    assert [tokens_of(message, counter), tokens_of(message, same_name), tokens_of(message, OFFLINE)] == [6, 6, 6]
    assert (counter.asked, same_name.asked) == (["two words"], [])


# Nothing is done again


def long_talk() -> list[Row]:
    parts = [{"type": "text", "text": "part a", "path": "a.py"}, {"type": "text", "text": "part b", "path": "b.py"}]
    return [
        user("first words", timestamp=at(0)),
        *reads("batch", ["a.py", "b.py"], parts, 1),
        *reads("whole", ["a.py", "b.py"], "both in one", 2),
        *[row for n in range(3) for row in reads(f"a{n}", "a.py", f"a {n}", 3 + n)],
        *[row for n in range(3) for row in reads(f"b{n}", "b.py", f"b {n}", 3 + n)],
        *[row for n in range(3) for row in runs(f"t{n}", f"out {n}", 3 + n)],
        *[asks("lost", "filesystem-read", "{broken"), answers("lost", "lost")],
    ]


def one_more() -> tuple[Message, ...]:
    return recto.decode([*reads("new", ["a.py", "b.py"], "new in both", 60), *runs("t9", "new out", 61)])


def test_folding_a_longer_conversation_counts_nothing_again():
    counter = WordCounter()
    log = recto.decode(long_talk())
    recto.fold(log, settings=KEEP_ONE, counter=counter)
    before = Counter(counter.asked)
    assert {"part a", "part b", "both in one", "a 0", "b 1", "out 1", "(stale)", "(old)"} <= set(before)
    recto.fold((*log, *one_more()), settings=KEEP_ONE, counter=counter)
    # What was newest is folded now, so it is counted for the first time; what stands in its place never again.
    news = ["a 2", "b 2", "out 2"]
    assert sorted((Counter(counter.asked) - before).elements()) == sorted(news)


def test_setting_the_page_of_a_longer_conversation_counts_only_what_is_new():
    counter = WordCounter()
    log = recto.decode(long_talk())
    recto.assemble(Facts(log=log, fold=KEEP_ONE, counter=counter))
    before = set(counter.asked)
    count = len(counter.asked)
    recto.assemble(Facts(log=(*log, UserMessage(parts=(Text(text="next words"),))), fold=KEEP_ONE, counter=counter))
    new = [text for text in counter.asked[count:] if text not in before]
    assert new == ["next words"]
    assert not {"first words", "part a", "both in one", "a 0", "out 0"} & set(counter.asked[count:])


def test_folding_a_longer_conversation_parses_nothing_again():
    log = recto.decode(long_talk())
    recto.fold(log, settings=KEEP_ONE)
    longer = (*log, *one_more())
    again = calls_during(lambda: recto.fold(log, settings=KEEP_ONE))
    assert (again[read_paths.__name__], again[is_failed_command.__name__]) == (0, 0)
    more = calls_during(lambda: recto.fold(longer, settings=KEEP_ONE))
    assert (more[read_paths.__name__], more[is_failed_command.__name__]) == (1, 1)


def test_a_first_fold_parses_each_call_and_command_once():
    log = recto.decode(long_talk())
    first = calls_during(lambda: recto.fold(log, settings=KEEP_ONE))
    assert (first[read_paths.__name__], first[is_failed_command.__name__]) == (9, 3)


def calls_during(work: Callable[[], object]) -> Counter[str]:
    """How often each function of recto.page was called, by name."""
    counts = Counter[str]()

    def note(frame: FrameType, event: str, argument: object) -> None:
        if event == "call" and "recto" in frame.f_code.co_filename:
            counts[frame.f_code.co_name] += 1

    previous = sys.getprofile()
    sys.setprofile(note)
    try:
        work()
    finally:
        sys.setprofile(previous)
    return counts


def test_a_folded_message_costs_what_its_placeholder_does():
    log = recto.decode(long_talk())
    result = recto.fold(log, settings=KEEP_ONE, counter=WordCounter()).messages[4]
    assert isinstance(result, ToolMessage)
    assert tokens_of(result, WordCounter()) == 4 + 1


# Calibration


def test_a_count_is_exact_only_by_the_report_of_the_very_same_page():
    last, nothing = (Calibration(digest="d", own_count=own_count, reported_count=123) for own_count in (100, 0))
    assert calibrate(own_count=100, digest="d", last=last) == TokenCount(tokens=123, estimated=False)
    for unhelpful in (None, nothing):
        assert calibrate(own_count=100, digest="d", last=unhelpful) == TokenCount(tokens=100, estimated=True)


@pytest.mark.parametrize(
    ("count", "reported_of_100", "tokens"),
    [
        *((200, 120, 240), (50, 120, 60), (200, 80, 160), (200, 1_000, 1_200)),
        *((200, 200, 400), (200, 10, 60), (200, 0, 50), (10, 10, 0)),
    ],
)
def test_the_difference_to_the_last_page_is_priced_by_a_bounded_ratio(count: int, reported_of_100: int, tokens: int):
    last = Calibration(digest="before", own_count=100, reported_count=reported_of_100)
    assert calibrate(own_count=count, digest="after", last=last) == TokenCount(tokens=tokens, estimated=True)
