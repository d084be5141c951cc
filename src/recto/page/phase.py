"""Phases (S1): a thread without a skill gets a lean page, one with a skill the expert's."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

@dataclass(frozen=True, kw_only=True)
class Phase:
    """How much a page shows: messages of history and tokens of system prompt; None sets no limit."""

    name: Literal["select", "execute"]
    history: int | None
    budget: int | None


SELECT = Phase(name="select", history=5, budget=2_000)
EXECUTE = Phase(name="execute", history=10, budget=8_000)
