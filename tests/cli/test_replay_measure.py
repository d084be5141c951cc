"""What a replay measures, counted by hand: prices of pages, the worst point, when a window is full, cold calls."""

from dataclasses import replace
from decimal import Decimal

import pytest

from recto.cli.replay.results import NONE, Evidence, PolicyRun, replay_session, worst_point
from recto.conversation.messages import Message
from tests.cli.test_replay_simulation import SETTINGS, make_call, result, session_of, user

READ, WRITE = Decimal("0.5"), Decimal("6.25")
MESSAGES = (user("word " * 50), make_call("1"), result("1", "word " * 30), make_call("2"), result("2"), make_call("3"))


def test_C1_the_price_of_a_page_is_cache_reads_plus_cache_writes():
    run = replay_session(session_of(*MESSAGES), "s", replace(SETTINGS, policies=())).runs[NONE]
    first, second, third = run.pages
    expected = [first * WRITE, first * READ + (second - first) * WRITE, second * READ + (third - second) * WRITE]
    assert [price * 1_000_000 for price in run.prices] == expected


def run_of(*prices: int) -> PolicyRun:
    none = Evidence()
    each = tuple(map(Decimal, prices))
    return PolicyRun(prices=each, pages=prices, breaks=0, folds=0, evidence=none, read_again=0, full_at=None)


@pytest.mark.parametrize(
    ("prices", "worst"), [((2, 2, 2), 0.0), ((2, 4, 0), 0.5), ((2, 0, 7), 0.5), ((2, 1, 1), 0.0), ((3, 3, 0), 0.5)]
)
def test_C1_the_worst_point_is_the_largest_loss_up_to_any_call(prices: tuple[int, ...], worst: float):
    assert worst_point(run_of(*prices), run_of(2, 2, 2)) == worst


def test_C1_a_window_is_full_at_the_first_call_whose_page_is_larger():
    def full_at(window: int) -> int | None:
        settings = replace(SETTINGS, policies=(), window=window)
        return replay_session(session_of(*MESSAGES), "s", settings).runs[NONE].full_at

    pages = replay_session(session_of(*MESSAGES), "s", replace(SETTINGS, policies=())).runs[NONE].pages
    assert [full_at(size) for size in pages] == [2, 3, None]
    assert full_at(pages[2] - 1) == 3


def test_X2_where_the_session_rested_folding_by_cost_is_free():
    # Behind the result stands so much that folding it does not pay, as long as that is in the cache.
    messages: list[Message] = [user(), make_call("0", "bash", command="ls"), result("0", "word " * 31_000)]
    messages.append(user("word " * 90_000))
    for number in range(1, 12):
        messages += [make_call(str(number), "poem"), result(str(number), "x")]
    settings = replace(SETTINGS, policies=("cost",))
    warm = replay_session(session_of(*messages, make_call("end")), "s", settings).runs["cost"]
    rested = replay_session(session_of(*messages, user(minute=30), make_call("end")), "s", settings).runs["cost"]
    assert (warm.folds, rested.folds) == (0, 1)
