"""What can become of a credential: a user, a no with its reason, or not yet. And which names users may have."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

from recto.api.backend import User

NAME_LENGTH = 255
READ_SCOPE, WRITE_SCOPE = "recto:read", "recto:write"


@dataclass(frozen=True, kw_only=True)
class Denied:
    """A credential that opens nothing: `reason` is for the audit log, `told` for whoever sent it. It is in neither."""

    reason: str
    told: str


@dataclass(frozen=True, kw_only=True)
class Delayed:
    """Whether a credential is good cannot be found out at present; ask again in `retry` seconds."""

    told: str
    retry: float


Verdict: TypeAlias = User | Denied | Delayed


def is_name(text: str) -> bool:
    """Whether a user may be called that. What cannot be printed could make two names look like one."""
    return 0 < len(text) <= NAME_LENGTH and text.isprintable() and text == text.strip()
