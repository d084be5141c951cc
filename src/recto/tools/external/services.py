"""Shared services of external tools, and the state of each source."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Protocol
from urllib.parse import quote

from recto.agents.external_tools import SECRET, SettingsPlace
from recto.config.run_settings import ExternalSettings
from recto.conversation.json import dump
from recto.errors import SettingsError
from recto.files.ports import WebSession
from recto.tools.client_schema import Schemas
from recto.tools.external.sandbox import Sandbox
from recto.tools.ports import Tool

PREFIX = "RECTO_SECRET_"
HIDDEN = "(hidden)"
# Shortest secret to hide. A shorter value would match inside ordinary words.
SHORTEST = 6


class SecretValues:
    """The secrets of one settings entry. Used values are hidden in everything that comes back."""

    def __init__(self, environment: Mapping[str, str]) -> None:
        self._environment = environment
        self._secrets: set[str] = set()

    def fill_in(self, values: Mapping[str, str]) -> dict[str, str]:
        """Return the values with secrets filled in. Raises SettingsError for a secret that is not set."""
        return {name: SECRET.sub(lambda match: self._secret(match[1]), value) for name, value in values.items()}

    def _secret(self, name: str) -> str:
        value = self._environment.get(PREFIX + name, "").strip()
        if not value:
            raise SettingsError(name=f"secret:{name}", value="(not set)", allowed=f"set {PREFIX}{name} for the server")
        self.add(value)
        return value

    def add(self, value: str) -> None:
        """Hide this value from now on in all forms it may come back in: plain, in JSON, and in a URL."""
        if len(value) >= SHORTEST:
            self._secrets |= {value, dump(value)[1:-1].decode(), quote(value, safe="")}

    def hide(self, text: str) -> str:
        """Remove the secrets from a text, the longest first, because one may contain another."""
        for secret in sorted(self._secrets, key=len, reverse=True):
            text = text.replace(secret, HIDDEN)
        return text


@dataclass(frozen=True, kw_only=True)
class ExternalServices:
    """Services shared by external tools. `environment` has the secrets; `open_web` opens a session."""

    settings: ExternalSettings
    environment: Mapping[str, str]
    open_web: Callable[[bool], WebSession]
    sandbox: Sandbox
    schemas: Schemas


@dataclass(kw_only=True)
class SourceState:
    """The current tools of a source, its warnings, and the `problem` that makes it unavailable.

    `version` changes with any of them; `first_try` is set after the first attempt.
    """

    tools: tuple[Tool, ...] = ()
    problem: str | None = "it was not reached yet"
    warnings: tuple[str, ...] = ()
    version: int = 0
    first_try: asyncio.Event = field(default_factory=asyncio.Event)

    def set_tools(self, tools: tuple[Tool, ...], warnings: tuple[str, ...]) -> None:
        """Store the current tools."""
        self.tools, self.warnings, self.problem = tools, warnings, None
        self.version += 1
        self.first_try.set()

    def set_problem(self, problem: str) -> None:
        """Mark the source as unavailable. Keep its tools, because it may be back before one is called."""
        self.version += problem != self.problem
        self.problem = problem
        self.first_try.set()


class ToolSource(Protocol):
    """An external source of an agent's tools."""

    @property
    def name(self) -> str:
        """The name in the settings."""
        ...

    @property
    def place(self) -> SettingsPlace:
        """The place in the settings."""
        ...

    @property
    def state(self) -> SourceState:
        """The current tools and problems."""
        ...

    async def run(self) -> None:
        """Find the tools and keep them usable, until cancelled."""
        ...


def describe_failure(web: WebSession, host: str, error: Exception) -> str:
    """Return why a host was not reached, without revealing more than its name."""
    if web.has_refused:
        return f"{host} is at an address that is not public. If it is meant to be, say internal: true"
    match error:
        case ssl.SSLCertVerificationError():
            return f"the certificate of {host} is not valid"
        case TimeoutError():
            return f"{host} did not answer in time"
        case _:
            return f"{host} cannot be reached"
