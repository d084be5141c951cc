"""What commands lead to that this room may not import: the composition root hands it in."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TypeAlias

from recto.cli.server_settings import ServerSettings

# Told the url once the server answers, and the token of this machine's own user, if there is one.
Announce: TypeAlias = Callable[[str, str | None], None]


@dataclass(frozen=True, kw_only=True)
class Doors:
    """Serve; or say what would be served."""

    serve: Callable[[ServerSettings, Announce], None]
    check: Callable[[ServerSettings], Mapping[str, str]]
