"""How the model is asked in one call of a turn."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from recto.agents.agent import Agent, Sampling
from recto.page import ToolOffer, View

FREE, REQUIRED = (None, "auto", "none"), "required"


def sampled(agent: Agent, seen: View, offers: Sequence[ToolOffer]) -> Sampling:
    """How the model is asked now. Made to call a tool once in a turn, it may answer then; one there is not, never."""
    sampling = agent.sampling
    has_acted = any(message.role == "tool" for message in seen.messages[seen.turn_start :])
    is_there = sampling.tool_choice == REQUIRED or sampling.tool_choice in [offer.name for offer in offers]
    if sampling.tool_choice in FREE or (is_there and not has_acted):
        return sampling
    return replace(sampling, tool_choice="auto")
