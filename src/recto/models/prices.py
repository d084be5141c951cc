"""Prices of model calls from a dated list. A model that is not listed has no price.

The list is part of the package. A file of your own replaces the whole list.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date
from decimal import Decimal
from fnmatch import fnmatchcase
from functools import lru_cache
from importlib.resources import files
from pathlib import Path
from typing import Annotated, TypeAlias

from pydantic import ConfigDict, Field, TypeAdapter, ValidationError

from recto.conversation.json import Json
from recto.errors import SettingsError
from recto.models.ports import Usage
from recto.page.fold.fold_settings import USUAL_PRICES, CachePrices

SETTING = "prices"
SHIPPED = "prices.toml"
MILLION = 1_000_000
# A snapshot date or "latest" at the end of a model name, which does not affect the price.
SNAPSHOT = re.compile(r"-(?:\d{8}|\d{4}-\d{2}-\d{2}|latest)$")
Money: TypeAlias = Annotated[Decimal, Field(ge=0, allow_inf_nan=False)]


@dataclass(frozen=True, kw_only=True)
class Price:
    """Price of a million tokens. `models` are names in which `*` matches any text.

    `up_to` is the longest prompt with this price. `cached` and `cache_write` default to the price of input.
    """

    __pydantic_config__ = ConfigDict(extra="forbid")

    models: tuple[str, ...]
    input: Money
    output: Money
    cached: Money | None = None
    cache_write: Money | None = None
    up_to: Annotated[int, Field(gt=0)] | None = None


@dataclass(frozen=True, kw_only=True)
class Prices:
    """Dated list of prices. The first match is the price of a call."""

    __pydantic_config__ = ConfigDict(extra="forbid")

    currency: str
    as_of: date
    source: str = ""
    prices: tuple[Price, ...] = ()


def price_of(model: str, usage: Usage, prices: Prices) -> Decimal | None:
    """Return the price of one call in the list's currency, or None if the model is not listed.

    `usage` must be that of a single call, because the price may depend on the length of the prompt. `model` is a name
    with its provider, such as `openai:gpt-5`.
    """
    price = _price_of(model, usage, prices)
    if price is None:
        return None
    cached = price.input if price.cached is None else price.cached
    cache_write = price.input if price.cache_write is None else price.cache_write
    # `input` includes the cached and the cache-written tokens. If they exceed `input`, they still count in full.
    fresh = max(usage.input - usage.cached - usage.cache_written, 0)
    total = (
        fresh * price.input + usage.cached * cached + usage.cache_written * cache_write + usage.output * price.output
    )
    return total / MILLION


def prices_row(model: str, tokens: int, prices: Prices) -> dict[str, Json] | None:
    """Return the prices of a million uncached and cached tokens in a prompt of this length; None if not listed."""
    price = _price_of(model, Usage(input=tokens), prices)
    if price is None:
        return None
    cached = price.input if price.cached is None else price.cached
    return {"currency": prices.currency, "input": float(price.input), "cached": float(cached)}


def cache_prices(model: str, tokens: int, prices: Prices) -> CachePrices:
    """Return the prices of reading and writing the provider's cache. Use the usual ratios for a model that is not
    listed.

    A listed model without a price for cached tokens has no cache that a changed prompt could break.
    """
    price = _price_of(model, Usage(input=tokens), prices)
    if price is None:
        return USUAL_PRICES
    read = price.input if price.cached is None else price.cached
    cache_write = price.input if price.cache_write is None else price.cache_write
    return CachePrices(read=float(read), write=float(cache_write))


def listed_name(model: str, prices: Prices) -> str | None:
    """Return the price-list name that matches a model, with the model's provider; None if none matches.

    The list bounds the number of results, so they can be metric labels.
    """
    name = SNAPSHOT.sub("", model)
    patterns = (pattern for price in prices.prices for pattern in price.models)
    match = next((pattern for pattern in patterns if fnmatchcase(name, pattern)), None)
    return f"{name.partition(':')[0]}:{match.rpartition(':')[2]}" if match else None


def _price_of(model: str, usage: Usage, prices: Prices) -> Price | None:
    name = SNAPSHOT.sub("", model)
    return next(
        (
            one
            for one in prices.prices
            if ((one.up_to is None or usage.input <= one.up_to) and _is_named(name, one.models))
        ),
        None,
    )


def load_prices(path: Path | None = None) -> Prices:
    """Read the prices of a file, or those of the package."""
    if path is None:
        text, where = (files("recto.models") / SHIPPED).read_text(encoding="utf-8"), SHIPPED
    else:
        where = str(path)
        try:
            text = path.read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as error:
            raise SettingsError(name=SETTING, value=where, allowed=f"the file cannot be read ({error})") from error
    return parse_prices(text, where)


def parse_prices(text: str, where: str) -> Prices:
    """Parse prices from TOML. `where` names the file in errors."""
    try:
        table: Mapping[str, object] = tomllib.loads(text, parse_float=Decimal)
    except tomllib.TOMLDecodeError as error:
        raise SettingsError(name=SETTING, value=where, allowed=f"the file is not valid TOML: {error}") from error
    try:
        return TypeAdapter(Prices).validate_python(table)
    except ValidationError as error:
        first = error.errors()[0]
        field = ".".join(map(str, first["loc"]))
        raise SettingsError(name=SETTING, value=where, allowed=f"{field}: {first['msg']}") from error


@lru_cache(maxsize=1_024)
def _is_named(name: str, patterns: tuple[str, ...]) -> bool:
    return any(fnmatchcase(name, pattern) for pattern in patterns)
