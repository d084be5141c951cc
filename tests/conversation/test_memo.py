"""What was worked out is kept: found again by the value it came of, and forgotten when somebody is deleted."""

from collections.abc import Sequence

from recto.conversation.log import View, view
from recto.conversation.memo import cache_by_identity, clear_caches, memoise_prefix
from recto.conversation.messages import Message, SystemMessage, Text, UserMessage


def count_calls(calls: list[int]):
    @cache_by_identity(2)
    def double(value: tuple[int, ...]) -> tuple[int, ...]:
        calls.append(len(value))
        return value * 2

    return double


def test_R1_what_was_said_of_the_newest_values_is_kept_by_their_identity_and_until_somebody_is_deleted():
    calls: list[int] = []
    double, one, two, three = count_calls(calls), (1,), (1, 2), (1, 2, 3)
    assert (double(one), double(one), double(two), double(one)) == ((1, 1), (1, 1), (1, 2, 1, 2), (1, 1))
    assert calls == [1, 2]
    double(three)
    double(one)
    assert calls == [1, 2, 3, 1]
    clear_caches()
    double(one)
    assert calls == [1, 2, 3, 1, 1]


def test_R1_a_log_that_can_be_changed_is_looked_at_each_time():
    log: list[Message] = [UserMessage(id="u1", parts=(Text(text="a"),))]
    assert view(log) == View(entries=tuple(log))
    log.append(UserMessage(id="u2", parts=(Text(text="b"),)))
    assert [message.id for message in view(log).messages] == ["u1", "u2"]
    whole = tuple(log)
    assert view(whole) is view(whole)


def test_R1_a_log_and_a_page_of_it_with_a_preamble_are_carried_on_side_by_side():
    log: list[Message] = [UserMessage(id=f"u{number}", parts=(Text(text="a"),)) for number in range(9)]
    looked: list[int] = []

    def count(previous: int | None, messages: Sequence[Message]) -> int:
        looked.append(len(messages))
        return (previous or 0) + len(messages)

    for length in range(3, 10):
        page = (SystemMessage(text="you are it"), *log[:length])
        assert (memoise_prefix(tuple(log[:length]), count), memoise_prefix(page, count)) == (length, length + 1)
    # Each message is looked at once in the log and once in the page, with what stands before it.
    assert sum(looked) == 9 + 10
