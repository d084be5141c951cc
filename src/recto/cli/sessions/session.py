"""A conversation read from a file, and what the file says about the agent that had it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal, TypeAlias

from recto.conversation.messages import Message
from recto.models.ports import Usage
from recto.page.fold.agent_tools import AgentTools

SessionFormat: TypeAlias = Literal["openai", "pi", "claude-code", "codex", "opencode"]


@dataclass(frozen=True, kw_only=True)
class SessionCompaction:
    """Where an agent cut its own page: from the message at `place` on, it was a summary and what follows `kept`."""

    place: int
    kept: int
    summary: str


@dataclass(frozen=True, kw_only=True)
class Session:
    """A conversation with its working folder, its tools and its provider's own counts.

    `reported` holds, by the id of an assistant's message, the tokens of the call that made it, and `models` the model,
    as prices name it; `model` is that of calls which are not in there. `notes` are lines for people: what was left out,
    and why.
    """

    format: SessionFormat
    messages: tuple[Message, ...]
    root: str | None = None
    tools: AgentTools = AgentTools()
    reported: Mapping[str, Usage] = field(default_factory=dict[str, Usage])
    model: str = ""
    models: Mapping[str, str] = field(default_factory=dict[str, str])
    compactions: tuple[SessionCompaction, ...] = ()
    notes: tuple[str, ...] = ()
