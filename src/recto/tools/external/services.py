"""What all tools that live elsewhere work with, and what each place they are found in has to show."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Protocol

from recto.agents.external_tools import SettingsPlace
from recto.config.run_settings import ExternalSettings
from recto.files.ports import WebSession
from recto.tools.client_schema import Schemas
from recto.tools.external.sandbox import Sandbox
from recto.tools.ports import Tool


@dataclass(frozen=True, kw_only=True)
class ExternalServices:
    """`environment` has the secrets; `open_web` gives a session with a host, which may be internal or not."""

    settings: ExternalSettings
    environment: Mapping[str, str]
    open_web: Callable[[bool], WebSession]
    sandbox: Sandbox
    schemas: Schemas


@dataclass(kw_only=True)
class Found:
    """What a place has at present: tools, or the `problem` that keeps it from having any; and what else is wrong.

    `version` is another number whenever that changes; `tried` is set once it is known at all.
    """

    tools: tuple[Tool, ...]
    problem: str | None
    warnings: tuple[str, ...]
    version: int
    tried: asyncio.Event

    @classmethod
    def nothing_yet(cls) -> Found:
        """Before anybody has looked."""
        return cls(tools=(), problem="it was not reached yet", warnings=(), version=0, tried=asyncio.Event())

    def now(self, tools: tuple[Tool, ...], warnings: tuple[str, ...]) -> None:
        """These are its tools from now on."""
        self.tools, self.warnings, self.problem = tools, warnings, None
        self.version += 1
        self.tried.set()

    def lost(self, problem: str) -> None:
        """It cannot be used at present. Tools that were known stay: it may be back before one is called."""
        self.version += problem != self.problem
        self.problem = problem
        self.tried.set()


class ToolSource(Protocol):
    """A place elsewhere that an agent has tools from."""

    @property
    def name(self) -> str:
        """What it is called in the settings."""
        ...

    @property
    def place(self) -> SettingsPlace:
        """Where the settings say so."""
        ...

    @property
    def found(self) -> Found:
        """What it has."""
        ...

    async def keep(self) -> None:
        """Find its tools and keep them usable, until this is cancelled."""
        ...
