"""Settings of who comes in and how: credentials, browsers, connections, bodies of requests."""

from __future__ import annotations

from dataclasses import dataclass
from ipaddress import ip_network

from recto.config.setting import COUNT, COUNT_OR_ZERO, SECONDS, SECRET, Range, setting


def _check_networks(text: str) -> str:
    for part in filter(None, text.split(",")):
        try:
            ip_network(part.strip())
        except ValueError:
            raise ValueError(f"{part.strip()!r} is no address; name addresses or networks, by commas") from None
    return text


NETWORKS = Range(check=_check_networks)


@dataclass(frozen=True, kw_only=True)
class AuthSettings:
    """Credentials a server takes. At most one of the three ways to check a JWT."""

    token: str | None = setting(
        None,
        "The local token; by default one is made in the data folder. See [auth](auth.md).",
        SECRET,
        secrecy="whole",
    )
    api_keys: str | None = setting(
        None, "API keys, as `user:key,user:key`, with `:read` after one that may only look.", secrecy="pairs"
    )
    jwt_secret: str | None = setting(None, "The secret that JWTs are signed with.", SECRET, secrecy="whole")
    jwt_public_key: str | None = setting(None, "The public key JWTs are checked with, as PEM.", secrecy="whole")
    jwt_jwks_url: str | None = setting(None, "Where the keys are fetched that JWTs are checked with.", secrecy="url")
    jwt_audience: str | None = setting(None, "The audience a JWT has to name.")
    jwt_issuer: str | None = setting(None, "The issuer a JWT has to name.")
    jwt_cache_seconds: float = setting(600.0, "How long keys that were fetched are used.", SECONDS)

    @property
    def has_accounts(self) -> bool:
        """Whether there are users beside the local one."""
        return bool(self.api_keys) or self.has_jwt

    @property
    def has_jwt(self) -> bool:
        """Whether JWTs are taken."""
        return bool(self.jwt_secret or self.jwt_public_key or self.jwt_jwks_url)


@dataclass(frozen=True, kw_only=True)
class GateSettings:
    """Addresses and how often: where clients find this server, which pages of others may use it, requests a minute."""

    public_url: str | None = setting(None, "The address clients use, where it is another than the one listened on.")
    cors_origins: str = setting("", "Origins, by commas, whose pages may use this server.")
    cors_headers: str = setting("", "Headers of their own, by commas, that those pages may send.")
    cors_credentials: bool = setting(
        False,
        "Whether those pages may send cookies along (`credentials: include`). None means anything here.",
    )
    user_requests: int = setting(
        6_000, "Requests of one user a minute; beyond it 429 with `Retry-After`; 0 is no limit.", COUNT_OR_ZERO
    )


@dataclass(frozen=True, kw_only=True)
class ConnectionLimits:
    """What connections may cost. `proxies` may have any number of them.

    A head (the request's first line and its headers) has bytes, fields and seconds.
    """

    header_bytes: int = setting(65_536, "Bytes of a request's first line and headers.", Range(least=8_192))
    header_fields: int = setting(100, "Headers of a request.", Range(least=16))
    header_seconds: float = setting(10.0, "Seconds until the headers of a request are whole.", SECONDS)
    keep_alive_seconds: int = setting(5, "Seconds between two requests of a connection.", COUNT)
    unread_seconds: float = setting(
        60.0,
        "After how long a connection is ended that takes nothing of its answer; "
        "a stream may be read on with `Last-Event-ID`.",
        SECONDS,
    )
    address_connections: int = setting(1_024, "Connections of one address (of IPv6, one network of 64 bits).", COUNT)
    connections: int = setting(
        8_192, "Connections in all. See [operations](operations.md#what-one-client-can-cost).", COUNT
    )
    proxies: str = setting(
        "",
        "Addresses and networks, by commas, whose `X-Forwarded-For` is believed, and who may have more than "
        "`address_connections`.",
        NETWORKS,
    )


@dataclass(frozen=True, kw_only=True)
class BodyLimits:
    """What a body of JSON may cost."""

    seconds: float = setting(60.0, "Seconds until all of a JSON body has come.", SECONDS, name="body_seconds")
    chat_bytes: int = setting(2**20, "Bytes of the body of `POST /api/v1/chat`.", Range(least=262_144))
    agui_bytes: int = setting(
        32 * 2**20,
        "Bytes of the body of `POST /api/v1/agent/ag-ui`: all that a client shows, with the bytes of its files.",
        Range(least=262_144),
    )
    queued_bytes: int = setting(
        2**20,
        "Bytes of the requests that wait in a thread which are read to tell their messages, in `queued` and in "
        "history; the messages of later ones are told once these are fewer.",
        COUNT_OR_ZERO,
    )
    snapshot_bytes: int = setting(
        2**25,
        "Bytes of a thread's messages that one `MESSAGES_SNAPSHOT` tells; of a larger thread the newest turns.",
        Range(least=65_536),
    )


@dataclass(frozen=True, kw_only=True)
class StreamLimits:
    """Readers of events."""

    streams: int = setting(1_000, "Event streams open at once; beyond it 503; 0 is no limit.", COUNT_OR_ZERO)
    user_streams: int = setting(200, "Event streams of one user; beyond it 429; 0 is no limit.", COUNT_OR_ZERO)
