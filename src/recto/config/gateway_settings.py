"""Settings of the gateway (X3): whose keys it takes, how it folds, what a request of another agent may cost."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from recto.config.setting import COUNT, COUNT_OR_ZERO, SECONDS, Range, setting


@dataclass(frozen=True, kw_only=True)
class GatewaySettings:
    """How requests of other agents are relayed."""

    keys: Literal["users", "callers", "both"] = setting(
        "users",
        "Who may use the [gateway](gateway.md): `users` of this server, whose requests go on with its own key of the "
        "provider; `callers` with a provider's key of theirs, which is passed on; or `both`.",
        name="gateway_keys",
    )
    fold: Literal["cost", "eager", "none"] = setting(
        "cost", "How the gateway [folds](gateway.md#what-is-changed).", name="gateway_fold"
    )
    locale: Literal["en", "zh"] = setting(
        "en", "The language of the lines that stand for what the gateway folds.", name="gateway_locale"
    )
    body_bytes: int = setting(
        32 * 2**20,
        "Bytes of a request to the gateway, images in it included.",
        Range(least=65_536),
        name="gateway_bytes",
    )
    calls: int = setting(1_000, "Requests that the gateway relays at once; beyond it 503.", COUNT, name="gateway_calls")
    user_calls: int = setting(
        250, "Requests of one user or key that it relays at once; beyond it 429.", COUNT, name="gateway_user_calls"
    )
    first_byte: float = setting(
        600.0,
        "Seconds until a reply begins that goes through the gateway: one that does not stream comes all at once.",
        SECONDS,
        name="gateway_first_byte_seconds",
    )
    memory_bytes: int = setting(
        128 * 2**20,
        "Bytes of messages and pages that the gateway keeps in memory, so that a request that continues a "
        "conversation costs only its new messages.",
        COUNT_OR_ZERO,
        name="gateway_memory_bytes",
    )

    @property
    def takes_callers(self) -> bool:
        """Whether keys of callers are passed on."""
        return self.keys != "users"
