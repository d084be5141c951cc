"""A conversation read from a file, with facts about its agent."""

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
    """A compaction. From the message at `place` on, pages contain the summary and the messages from `first_kept` on."""

    place: int
    first_kept: int
    summary: str


@dataclass(frozen=True, kw_only=True)
class Session:
    """A conversation with its project root, tools and provider counts.

    `usages` and `models` map the assistant message of a call to its usage and to the model's name in price lists.
    `model` applies to calls without an entry. `notes` tell the user about dropped content.
    """

    format: SessionFormat
    messages: tuple[Message, ...]
    root: str | None = None
    tools: AgentTools = AgentTools()
    usages: Mapping[str, Usage] = field(default_factory=dict[str, Usage])
    model: str = ""
    models: Mapping[str, str] = field(default_factory=dict[str, str])
    compactions: tuple[SessionCompaction, ...] = ()
    notes: tuple[str, ...] = ()
