"""Inputs of a page: the log, the target, the turn and the limits.

The same facts give the same bytes, on every platform and run (R1).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, tzinfo
from typing import Literal

from recto.conversation.input.run_input import ContextItem
from recto.conversation.json import Json
from recto.conversation.log import Entry
from recto.conversation.messages import CallForm, Data, ToolCalling, ToolOffer, Url
from recto.page.fold.fold_settings import USUAL_PRICES, CachePrices, FoldSettings
from recto.page.prompt.quote import Quote, QuoteSource
from recto.page.prompt.reminder import Dataset
from recto.page.prompt.system_prompt import Prompt
from recto.page.text.tokens import OFFLINE, Calibration, TokenCounter
from recto.page.wire.base import Target


@dataclass(frozen=True, kw_only=True)
class Phase:
    """Limits of a skill phase: messages of history and tokens of system prompt. None means no limit."""

    name: Literal["select", "execute"]
    history: int | None
    budget: int | None


SELECT = Phase(name="select", history=5, budget=2_000)
EXECUTE = Phase(name="execute", history=10, budget=8_000)


@dataclass(frozen=True, kw_only=True)
class Turn:
    """Data of the current turn that stays the same until it ends.

    `response_id` is the id of its first assistant message and the prefix of its file ids. `admitted_at` is the time in
    the reminder, shown in `zone`; None omits it.
    """

    response_id: str = ""
    admitted_at: datetime | None = None
    zone: tzinfo = UTC
    datasets: tuple[Dataset, ...] = ()
    context: tuple[ContextItem, ...] = ()


@dataclass(frozen=True, kw_only=True)
class Facts:
    """Inputs of a page. Only `log` is required.

    `options` are request fields besides the conversation (`stream`, `temperature` ...). `now` is the reference for
    ages; it defaults to the newest time in the log. `last` is the usage that the provider reported for the last page.
    `history` limits the messages before the current turn, `budget` the tokens of the system prompt; None sets no limit.
    With a `turn`, user messages carry reminders and files have ids. `urls` maps storage keys to signed urls. `pictures`
    maps storage keys to the images to show; without it, images are shown by url. `correction` tells the model why its
    last reply was unusable. Folding by cost uses `cache_prices` and `sent_to`, the model of the last page if known.
    """

    log: Sequence[Entry]
    target: Target = Target()
    prompt: Prompt | None = None
    budget: int | None = None
    history: int | None = None
    tools: tuple[ToolOffer, ...] = ()
    tool_calling: ToolCalling = "native"
    call_form: CallForm = "fenced"
    correction: str = ""
    turn: Turn | None = None
    quote: QuoteSource | Quote = ()
    quote_budget: int = 20_000
    urls: Mapping[str, str] = field(default_factory=dict[str, str])
    pictures: Mapping[str, Url | Data] | None = None
    max_files: int = 10
    locale: str = "zh"
    options: Mapping[str, Json] = field(default_factory=dict[str, Json])
    fold: FoldSettings = FoldSettings()
    cache_prices: CachePrices = USUAL_PRICES
    sent_to: str = ""
    now: datetime | None = None
    counter: TokenCounter = OFFLINE
    last: Calibration | None = None
