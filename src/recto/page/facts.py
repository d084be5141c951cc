"""All that shapes a page: the log, the target, the turn, and how much is shown.

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
from recto.conversation.messages import Data, ToolCalling, ToolOffer, Url, WrittenAs
from recto.page.fold.cost_settings import USUAL_PRICES, CachePrices
from recto.page.fold.fold_settings import FoldSettings
from recto.page.prompt.quote import Quote, Quoted
from recto.page.prompt.reminder import Dataset
from recto.page.prompt.system_prompt import Prompt
from recto.page.text.tokens import OFFLINE, Calibration, TokenCounter
from recto.page.wire.base import Target


@dataclass(frozen=True, kw_only=True)
class Phase:
    """How much a page shows: messages of history and tokens of system prompt; None sets no limit."""

    name: Literal["select", "execute"]
    history: int | None
    budget: int | None


SELECT = Phase(name="select", history=5, budget=2_000)
EXECUTE = Phase(name="execute", history=10, budget=8_000)


@dataclass(frozen=True, kw_only=True)
class Turn:
    """What is true of the current turn, from its admission to its end.

    `response_id` is the id of its first assistant message and the prefix of its file ids. `admitted` is the time the
    reminder names, in `zone`; without it there is none in it.
    """

    response_id: str = ""
    admitted: datetime | None = None
    zone: tzinfo = UTC
    datasets: tuple[Dataset, ...] = ()
    context: tuple[ContextItem, ...] = ()


@dataclass(frozen=True, kw_only=True)
class Facts:
    """All that shapes a page. Only `log` is needed.

    `options` are fields of the request beside the conversation (`stream`, `temperature` ...). `now` decides what is
    old; where it is not given, the newest time in the log does. `last` is what the provider reported of the last page.
    `history` is how many messages before the current turn are shown, `budget` the tokens of the system prompt; None
    sets no limit. With a `turn`, user messages carry reminders and files go by their ids; without one they are shown
    as they are. `urls` has a signed url for each storage key. `pictures` has, by storage key, the images that are
    shown and how; what is not in it is not shown. Without it every one is shown by its url. `correction` is what the
    model is told of its last reply, which could not be used. Folding by cost goes by `cache_prices`, and by which model
    the last page was `sent_to`, where that is known.
    """

    log: Sequence[Entry]
    target: Target = Target()
    prompt: Prompt | None = None
    budget: int | None = None
    history: int | None = None
    tools: tuple[ToolOffer, ...] = ()
    tool_calling: ToolCalling = "native"
    call_form: WrittenAs = "fenced"
    correction: str = ""
    turn: Turn | None = None
    quote: Quoted | Quote = ()
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
