"""Settings of the gateway (X3): accepted keys, folding, limits."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from recto.config.setting import COUNT, COUNT_OR_ZERO, SECONDS, Range, setting


@dataclass(frozen=True, kw_only=True)
class GatewaySettings:
    """Gateway limits and modes."""

    keys: Literal["users", "callers", "both"] = setting(
        "users",
        "Accepted keys of the [gateway](gateway.md): `users` of this server, whose requests are sent with the "
        "server's provider key; `callers`, whose own provider keys are forwarded; or `both`.",
        name="gateway_keys",
    )
    fold: Literal["cost", "eager", "none"] = setting(
        "cost", "How the gateway [folds](gateway.md#what-is-changed).", name="gateway_fold"
    )
    locale: Literal["en", "zh"] = setting("en", "Language of the gateway's fold placeholders.", name="gateway_locale")
    body_bytes: int = setting(
        32 * 2**20,
        "Bytes of a request to the gateway, including images.",
        Range(least=65_536),
        name="gateway_bytes",
    )
    calls: int = setting(
        1_000, "Concurrent requests through the gateway; more receive 503.", COUNT, name="gateway_calls"
    )
    user_calls: int = setting(
        250,
        "Concurrent requests through the gateway per user or key; more receive 429.",
        COUNT,
        name="gateway_user_calls",
    )
    first_byte: float = setting(
        600.0,
        "Seconds until a reply through the gateway begins. A reply that does not stream arrives as a whole.",
        SECONDS,
        name="gateway_first_byte_seconds",
    )
    memory_bytes: int = setting(
        128 * 2**20,
        "Bytes of messages, requests and pages that the gateway caches, so that the next request of a "
        "conversation costs only its new messages.",
        COUNT_OR_ZERO,
        name="gateway_memory_bytes",
    )

    @property
    def takes_callers(self) -> bool:
        """True if callers' provider keys are forwarded."""
        return self.keys != "users"
