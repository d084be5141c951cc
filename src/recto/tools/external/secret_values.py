"""Secrets by name: `secret:NAME` in a setting is what `RECTO_SECRET_NAME` has. Nothing shows a value."""

from __future__ import annotations

from collections.abc import Mapping
from urllib.parse import quote

from recto.agents.external_tools import SECRET
from recto.conversation.json import dump
from recto.errors import SettingsError

PREFIX = "RECTO_SECRET_"
HIDDEN = "(hidden)"
# Anything shorter would be found in words that are none.
SHORTEST = 6


class SecretValues:
    """The secrets of one entry. What it put in is hidden in all that comes back."""

    def __init__(self, environment: Mapping[str, str]) -> None:
        self._environment = environment
        self._used: set[str] = set()

    def filled(self, values: Mapping[str, str]) -> dict[str, str]:
        """The values with secrets put in. One that is not set raises SettingsError, which says how to set it."""
        return {name: SECRET.sub(lambda found: self._secret(found[1]), value) for name, value in values.items()}

    def _secret(self, name: str) -> str:
        value = self._environment.get(PREFIX + name, "").strip()
        if not value:
            raise SettingsError(name=f"secret:{name}", value="(not set)", allowed=f"set {PREFIX}{name} for the server")
        self.also(value)
        return value

    def also(self, value: str) -> None:
        """Hide this too, in the forms it may come back in: as it is, in JSON, and in a url."""
        if len(value) >= SHORTEST:
            self._used |= {value, dump(value)[1:-1].decode(), quote(value, safe="")}

    def hide(self, text: str) -> str:
        """A text without them, the longest first: one may be a part of another."""
        for secret in sorted(self._used, key=len, reverse=True):
            text = text.replace(secret, HIDDEN)
        return text
