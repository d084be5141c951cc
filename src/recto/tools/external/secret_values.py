"""Secrets by name: `secret:NAME` in a setting is the value of `RECTO_SECRET_NAME`. Values are never shown."""

from __future__ import annotations

from collections.abc import Mapping
from urllib.parse import quote

from recto.agents.external_tools import SECRET
from recto.conversation.json import dump
from recto.errors import SettingsError

PREFIX = "RECTO_SECRET_"
HIDDEN = "(hidden)"
# A shorter value would match inside ordinary words.
SHORTEST = 6


class SecretValues:
    """The secrets of one settings entry. Used values are hidden in everything that comes back."""

    def __init__(self, environment: Mapping[str, str]) -> None:
        self._environment = environment
        self._used: set[str] = set()

    def filled(self, values: Mapping[str, str]) -> dict[str, str]:
        """Return the values with secrets filled in. Raises SettingsError for a secret that is not set."""
        return {name: SECRET.sub(lambda found: self._secret(found[1]), value) for name, value in values.items()}

    def _secret(self, name: str) -> str:
        value = self._environment.get(PREFIX + name, "").strip()
        if not value:
            raise SettingsError(name=f"secret:{name}", value="(not set)", allowed=f"set {PREFIX}{name} for the server")
        self.also(value)
        return value

    def also(self, value: str) -> None:
        """Hide this value in all forms it may come back in: plain, in JSON, and in a url."""
        if len(value) >= SHORTEST:
            self._used |= {value, dump(value)[1:-1].decode(), quote(value, safe="")}

    def hide(self, text: str) -> str:
        """Remove the secrets from a text, longest first: one may contain another."""
        for secret in sorted(self._used, key=len, reverse=True):
            text = text.replace(secret, HIDDEN)
        return text
