"""What a run has used: tokens add up, prices too while all are known, and the row says what was written into it."""

from datetime import UTC, date, datetime
from decimal import Decimal

from hypothesis import given
from hypothesis import strategies as st
from prometheus_client import CollectorRegistry

from recto.conversation.json import dump
from recto.models.ports import Usage
from recto.models.prices import Price, Prices
from recto.telemetry import Telemetry
from recto.worker.account import Account, charge, encode_usage, parse_account, report_usage

PRICES = Prices(
    currency="EUR",
    as_of=date(2026, 5, 14),
    prices=(Price(models=("known",), input=Decimal(3), output=Decimal("0.1"), cached=Decimal(1)),),
)
NOW = datetime(2026, 5, 14, tzinfo=UTC)
counts = st.integers(0, 10**9)
usages = st.builds(Usage, input=counts, output=counts, reasoning=counts, cached=counts, cache_written=counts)
accounts = st.builds(charge, st.sampled_from(["known", "unknown"]), st.none() | usages, st.just(PRICES))


@given(usages)
def test_P8_a_call_of_a_known_model_has_its_price(usage: Usage):
    account = charge("known", usage, PRICES)
    fresh = max(usage.input - usage.cached - usage.cache_written, 0)
    millionths = fresh * 3 + usage.cached + usage.cache_written * 3 + usage.output * Decimal("0.1")
    assert account.price == millionths / 1_000_000
    assert account.nanos == round(millionths * 1_000)
    assert account.row()["currency"] == "EUR"


@given(usages)
def test_P8_an_unknown_model_or_no_usage_has_no_price(usage: Usage):
    for account in (charge("unknown", usage, PRICES), charge("known", None, PRICES)):
        assert (account.price, account.nanos) == (None, None)
        assert not {"price", "currency"} & account.row().keys()


@given(st.lists(accounts, min_size=1, max_size=5))
def test_P8_accounts_add_up_and_one_unknown_price_makes_the_whole_unknown(calls: list[Account]):
    whole = Account()
    for call in calls:
        whole = whole.plus(call)
    assert whole.usage.input == sum(call.usage.input for call in calls)
    assert whole.usage.cached == sum(call.usage.cached for call in calls)
    prices = [call.price for call in calls if call.price is not None]
    assert whole.price == (sum(prices) if len(prices) == len(calls) else None)


@given(st.lists(accounts, min_size=1, max_size=4), accounts)
def test_X4_who_takes_a_run_over_goes_on_with_its_account(calls: list[Account], last: Account):
    whole = Account()
    for call in calls:
        whole = whole.plus(call)
    taken_over = parse_account(dump(whole.row()))
    assert taken_over.plus(last).row() == whole.plus(last).row()


def test_X4_a_run_nobody_has_spent_anything_for_begins_at_nothing():
    assert parse_account(None) == Account()
    assert parse_account(b"no json") == Account()
    assert Account().plus(charge("known", Usage(input=1_000_000), PRICES)).price == 3


def test_P8_tokens_have_the_names_that_events_have_for_them():
    assert encode_usage(Usage(input=10, output=5, reasoning=2, cached=4, cache_written=1)) == {
        "inputTokens": 10,
        "outputTokens": 5,
        "reasoningTokens": 2,
        "cachedInputTokens": 4,
        "cacheWriteInputTokens": 1,
        "totalTokens": 15,
    }


def test_R11_a_call_is_counted_with_its_tokens_and_its_price_where_it_has_one():
    registry = CollectorRegistry()
    report_usage(Telemetry(registry), "known", charge("known", Usage(input=1_000_000, output=5), PRICES), 0.5)
    report_usage(Telemetry(CollectorRegistry()), "unknown", charge("unknown", Usage(input=1), PRICES), None)
    tokens = {kind: registry.get_sample_value("recto_tokens_total", {"model": "known", "kind": kind}) for kind in KINDS}
    assert tokens == {"input": 1_000_000, "output": 5, "cached": None, "reasoning": None}
    assert registry.get_sample_value("recto_price_total", {"model": "known", "currency": "EUR"}) == 3.0000005
    assert registry.get_sample_value("recto_first_token_seconds_sum", {"model": "known"}) == 0.5


KINDS = ("input", "output", "cached", "reasoning")
