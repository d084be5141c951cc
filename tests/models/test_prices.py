"""Prices of calls by the list."""

from datetime import date
from decimal import Decimal
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recto.errors import SettingsError
from recto.models.ports import Usage
from recto.models.prices import Price, Prices, load_prices, parse_prices, price_of

HEAD = 'currency = "EUR"\nas_of = 2026-01-02\n'
LIST = Prices(
    currency="USD",
    as_of=date(2026, 1, 2),
    prices=(
        Price(models=("a:small",), up_to=1_000, input=Decimal(1), output=Decimal(2)),
        Price(models=("a:small",), input=Decimal(3), output=Decimal(4)),
        Price(models=("a:short",), up_to=1_000, input=Decimal(1), output=Decimal(2)),
        Price(
            models=("a:big", "b:big*"),
            input=Decimal(10),
            output=Decimal(50),
            cached=Decimal("0.25"),
            cache_write=Decimal("12.5"),
        ),
    ),
)
counts = st.integers(0, 10_000_000)


def test_a_call_costs_what_its_tokens_cost():
    assert price_of("a:big", Usage(input=1_000_000, output=100_000), LIST) == Decimal(15)


def test_cached_tokens_are_part_of_the_input_and_have_their_own_price():
    usage = Usage(input=1_000_000, cached=600_000, cache_written=300_000)
    assert price_of("a:big", usage, LIST) == Decimal("0.1") * 10 + Decimal("0.6") * Decimal("0.25") + Decimal("3.75")


def test_without_a_price_of_their_own_cached_tokens_cost_what_input_costs():
    assert price_of("a:small", Usage(input=1_000, cached=400, cache_written=100), LIST) == Decimal("0.001")


def test_reasoning_is_part_of_the_output_and_not_paid_twice():
    assert price_of("a:big", Usage(output=1_000_000, reasoning=900_000), LIST) == Decimal(50)


@pytest.mark.parametrize("name", ["", "big", "c:big", "a:bigger", "demo", "A:big", "a:big-2026"])
def test_a_model_that_is_not_listed_has_no_price(name: str):
    assert price_of(name, Usage(input=1), LIST) is None


@pytest.mark.parametrize("name", ["a:big-20260102", "a:big-2026-01-02", "a:big-latest", "b:big-and-tall"])
def test_a_snapshot_costs_what_its_model_costs_and_a_star_stands_for_anything(name: str):
    assert price_of(name, Usage(input=1_000_000), LIST) == Decimal(10)


@pytest.mark.parametrize(("tokens", "price"), [(1_000, "0.001"), (1_001, "0.003003")])
def test_a_long_prompt_has_the_price_of_long_prompts(tokens: int, price: str):
    assert price_of("a:small", Usage(input=tokens), LIST) == Decimal(price)


def test_beyond_the_last_price_there_is_none():
    assert price_of("a:short", Usage(input=1_001), LIST) is None


@given(input=counts, cached=counts)
def test_reading_from_a_cache_never_costs_more(input: int, cached: int):
    some = price_of("a:big", Usage(input=input, cached=min(cached, input)), LIST)
    none = price_of("a:big", Usage(input=input), LIST)
    assert some is not None
    assert none is not None
    assert some <= none


def test_the_list_of_the_package_says_when_it_was_made_and_lists_each_model_once_for_each_length():
    prices = load_prices()
    assert prices.currency == "USD"
    assert prices.as_of >= date(2026, 11, 1)
    assert prices.source
    names = [(name, price.up_to) for price in prices.prices for name in price.models]
    assert len(set(names)) == len(names)
    assert all(name.startswith(("openai*:", "anthropic:", "gemini:")) for name, _ in names)
    assert all(price.input < price.output for price in prices.prices)
    assert all((price.cached or price.input) <= price.input for price in prices.prices)


def test_a_model_costs_the_same_over_chat_and_over_responses():
    usage, prices = Usage(input=1_000, cached=200, output=100), load_prices()
    costs = {price_of(f"{provider}:gpt-5-mini", usage, prices) for provider in ("openai", "openai-responses")}
    assert len(costs) == 1
    assert None not in costs


def test_a_file_of_ones_own_stands_for_all_of_the_list(tmp_path: Path):
    own = tmp_path / "prices.toml"
    own.write_text(HEAD + '[[prices]]\nmodels = ["compatible:*"]\ninput = 0.1\noutput = 1\n', encoding="utf-8")
    prices = load_prices(own)
    assert prices.currency == "EUR"
    assert price_of("compatible:qwen", Usage(input=3_000_000), prices) == Decimal("0.3")
    assert price_of("openai:gpt-5", Usage(input=1), prices) is None


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("currency = ", "not valid TOML"),
        ("", "currency"),
        (HEAD + "[[prices]]\ninput = 1\noutput = 1\n", r"prices\.0\.models"),
        (HEAD + '[[prices]]\nmodels = ["x"]\ninput = -1\noutput = 1\n', r"prices\.0\.input"),
        (HEAD + '[[prices]]\nmodels = ["x"]\ninput = inf\noutput = 1\n', r"prices\.0\.input"),
        (HEAD + '[[prices]]\nmodels = ["x"]\ninput = 1\noutput = 1\nup_to = 0\n', r"prices\.0\.up_to"),
        (HEAD + '[[prices]]\nmodels = ["x"]\ninput = 1\noutput = 1\ncache = 1\n', r"prices\.0\.cache"),
        (HEAD + "extra = 1\n", "extra"),
    ],
)
def test_a_list_with_a_mistake_is_refused_by_its_file_and_field(text: str, expected: str):
    with pytest.raises(SettingsError, match=rf"my\.toml.*{expected}"):
        parse_prices(text, "my.toml")


def test_a_file_that_is_not_there_is_refused_by_name(tmp_path: Path):
    with pytest.raises(SettingsError, match=r"none\.toml.*cannot be read"):
        load_prices(tmp_path / "none.toml")
