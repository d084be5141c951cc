"""What a model call cost, by a dated list of prices. Refuses to guess: a model that is not listed has no price.

The list comes with the package or from a file of one's own, which stands for all of it.
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
from recto.page.fold.cost_settings import USUAL_PRICES, CachePrices

SETTING = "prices"
SHIPPED = "prices.toml"
MILLION = 1_000_000
# The day a model was made, or "latest", at the end of its name: the price is that of the model.
SNAPSHOT = re.compile(r"-(?:\d{8}|\d{4}-\d{2}-\d{2}|latest)$")
Money: TypeAlias = Annotated[Decimal, Field(ge=0, allow_inf_nan=False)]


@dataclass(frozen=True, kw_only=True)
class Price:
    """What a million tokens cost. `models` are names, `*` stands for anything in them.

    `up_to` is the longest prompt this price is for. `cached` and `cache_write` are what input costs where not given.
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
    """A list of prices, as it was on a day. The first that fits a call is its price."""

    __pydantic_config__ = ConfigDict(extra="forbid")

    currency: str
    as_of: date
    source: str = ""
    prices: tuple[Price, ...] = ()


def price_of(model: str, usage: Usage, prices: Prices) -> Decimal | None:
    """What one call of the model cost, in the list's currency; None where the list does not say.

    Of one call: prices may depend on how long its prompt was. `model` is its whole name, such as `openai:gpt-5`.
    """
    price = _price_of(model, usage, prices)
    if price is None:
        return None
    cached = price.input if price.cached is None else price.cached
    written = price.input if price.cache_write is None else price.cache_write
    # Input holds both of them. A provider whose figures do not add up is charged for what it says it read and wrote.
    fresh = max(usage.input - usage.cached - usage.cache_written, 0)
    total = fresh * price.input + usage.cached * cached + usage.cache_written * written + usage.output * price.output
    return total / MILLION


def prices_row(model: str, tokens: int, prices: Prices) -> dict[str, Json] | None:
    """What a million tokens of a prompt of so many tokens cost, read anew and from the provider's cache.

    None where the list does not say.
    """
    price = _price_of(model, Usage(input=tokens), prices)
    if price is None:
        return None
    cached = price.input if price.cached is None else price.cached
    return {"currency": prices.currency, "input": float(price.input), "cached": float(cached)}


def cache_prices(model: str, tokens: int, prices: Prices) -> CachePrices:
    """What a prompt of so many tokens costs, from the provider's cache and into it; the usual shares where not listed.

    A model whose list has no price for cached tokens has no cache that a changed prompt could break.
    """
    price = _price_of(model, Usage(input=tokens), prices)
    if price is None:
        return USUAL_PRICES
    read = price.input if price.cached is None else price.cached
    written = price.input if price.cache_write is None else price.cache_write
    return CachePrices(read=float(read), write=float(written))


def listed_name(model: str, prices: Prices) -> str | None:
    """What the list calls a model, with its provider: there are no more such names than entries. None: it has none."""
    name = SNAPSHOT.sub("", model)
    patterns = (pattern for price in prices.prices for pattern in price.models)
    found = next((pattern for pattern in patterns if fnmatchcase(name, pattern)), None)
    return f"{name.partition(':')[0]}:{found.rpartition(':')[2]}" if found else None


def _price_of(model: str, usage: Usage, prices: Prices) -> Price | None:
    name = SNAPSHOT.sub("", model)
    return next((one for one in prices.prices if _fits(one, name, usage)), None)


def load_prices(path: Path | None = None) -> Prices:
    """The prices of a file, or those of the package."""
    if path is None:
        text, where = (files("recto.models") / SHIPPED).read_text(encoding="utf-8"), SHIPPED
    else:
        text, where = _read(path), str(path)
    return parse_prices(text, where)


def parse_prices(text: str, where: str) -> Prices:
    """Prices from TOML. `where` names the file in what is said of its mistakes."""
    try:
        found: Mapping[str, object] = tomllib.loads(text, parse_float=Decimal)
    except tomllib.TOMLDecodeError as error:
        raise SettingsError(name=SETTING, value=where, allowed=f"the file is no TOML: {error}") from error
    try:
        return TypeAdapter(Prices).validate_python(found)
    except ValidationError as error:
        first = error.errors()[0]
        field = ".".join(map(str, first["loc"]))
        raise SettingsError(name=SETTING, value=where, allowed=f"{field}: {first['msg']}") from error


def _read(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise SettingsError(name=SETTING, value=str(path), allowed=f"the file cannot be read ({error})") from error


def _fits(price: Price, name: str, usage: Usage) -> bool:
    is_short = price.up_to is None or usage.input <= price.up_to
    return is_short and _is_named(name, price.models)


@lru_cache(maxsize=1_024)
def _is_named(name: str, patterns: tuple[str, ...]) -> bool:
    return any(fnmatchcase(name, pattern) for pattern in patterns)
