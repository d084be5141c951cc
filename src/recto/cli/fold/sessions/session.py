"""A conversation read from a file, and what the file says about the agent that had it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal, TypeAlias

from recto.conversation.messages import Message

SessionFormat: TypeAlias = Literal["openai", "pi", "claude-code", "codex"]


@dataclass(frozen=True, kw_only=True)
class SessionTools:
    """What an agent calls its tools that read files, run commands and search, and the arguments that hold a path."""

    reads: tuple[str, ...] = ()
    path_args: tuple[str, ...] = ()
    terminal: tuple[str, ...] = ()
    search: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True)
class Session:
    """A conversation with its working folder, its tools and its provider's own counts.

    `reported` holds, by the id of an assistant's message, the input tokens of the call that made it, cached ones
    included. `notes` are lines for people: what was left out, and why.
    """

    format: SessionFormat
    messages: tuple[Message, ...]
    root: str | None = None
    tools: SessionTools = SessionTools()
    reported: Mapping[str, int] = field(default_factory=dict[str, int])
    notes: tuple[str, ...] = ()
