"""Settings of access: credentials, browsers, connections, request bodies, outbound connections, the gateway."""

from __future__ import annotations

from dataclasses import dataclass
from ipaddress import ip_network
from pathlib import Path
from typing import Literal

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
    """Accepted credentials. At most one of the three JWT settings may be set."""

    token: str | None = setting(
        None,
        "The local token. By default Recto generates one in the data folder. See [auth](auth.md).",
        SECRET,
        secrecy="whole",
    )
    api_keys: str | None = setting(
        None, "API keys, as `user:key,user:key`. Append `:read` to a read-only key.", secrecy="pairs"
    )
    jwt_secret: str | None = setting(None, "The secret that signs JWTs.", SECRET, secrecy="whole")
    jwt_public_key: str | None = setting(None, "The public key that verifies JWTs, as PEM.", secrecy="whole")
    jwt_jwks_url: str | None = setting(None, "URL of the JWK set that verifies JWTs.", secrecy="url")
    jwt_audience: str | None = setting(None, "Required audience of a JWT.")
    jwt_issuer: str | None = setting(None, "Required issuer of a JWT.")
    jwt_cache_seconds: float = setting(600.0, "Seconds that fetched keys are cached.", SECONDS)

    @property
    def has_accounts(self) -> bool:
        """True if there are users besides the local one."""
        return bool(self.api_keys) or self.has_jwt

    @property
    def has_jwt(self) -> bool:
        """True if JWTs are accepted."""
        return bool(self.jwt_secret or self.jwt_public_key or self.jwt_jwks_url)


@dataclass(frozen=True, kw_only=True)
class GateSettings:
    """The public address, CORS, and the request rate."""

    public_url: str | None = setting(None, "The address clients use, if it differs from the listening address.")
    cors_origins: str = setting("", "Comma-separated origins whose pages may use this server.")
    cors_headers: str = setting("", "Comma-separated custom headers that those pages may send.")
    cors_credentials: bool = setting(
        False, "Allow those pages to send cookies (`credentials: include`). Recto itself uses no cookies."
    )
    user_requests: int = setting(
        6_000, "Requests per user per minute; more receive 429 with `Retry-After`; 0 sets no limit.", COUNT_OR_ZERO
    )


@dataclass(frozen=True, kw_only=True)
class ConnectionLimits:
    """Limits of connections. Addresses in `proxies` are not limited by `address_connections`."""

    header_bytes: int = setting(65_536, "Bytes of a request's first line and headers.", Range(least=8_192))
    header_fields: int = setting(100, "Headers per request.", Range(least=16))
    header_seconds: float = setting(10.0, "Seconds until all headers of a request have arrived.", SECONDS)
    keep_alive_seconds: int = setting(5, "Seconds between two requests of a connection.", COUNT)
    unread_seconds: float = setting(
        60.0,
        "Seconds without the client reading any of its response before the server closes the connection. Clients "
        "can resume a stream with `Last-Event-ID`.",
        SECONDS,
    )
    address_connections: int = setting(1_024, "Connections per address (for IPv6, per /64 network).", COUNT)
    connections: int = setting(
        8_192, "Connections in total. See [operations](operations.md#what-one-client-can-cost).", COUNT
    )
    proxies: str = setting(
        "",
        "Comma-separated addresses and networks whose `X-Forwarded-For` is trusted and that may exceed "
        "`address_connections`.",
        NETWORKS,
    )


@dataclass(frozen=True, kw_only=True)
class BodyLimits:
    """Limits of JSON bodies."""

    seconds: float = setting(60.0, "Seconds until a JSON body has arrived.", SECONDS, name="body_seconds")
    chat_bytes: int = setting(2**20, "Bytes of the body of `POST /api/v1/chat`.", Range(least=262_144))
    agui_bytes: int = setting(
        32 * 2**20,
        "Bytes of the body of `POST /api/v1/agent/ag-ui`, including the client's whole history and inline files.",
        Range(least=262_144),
    )
    queued_bytes: int = setting(
        2**20,
        "Bytes of a thread's waiting requests that are read to show their messages in `queued` and in history. "
        "Later messages appear once the queue shrinks.",
        COUNT_OR_ZERO,
    )
    snapshot_bytes: int = setting(
        2**25,
        "Bytes of messages in one `MESSAGES_SNAPSHOT`. A larger thread is cut to its newest turns.",
        Range(least=65_536),
    )


@dataclass(frozen=True, kw_only=True)
class StreamLimits:
    """Limits of event streams."""

    streams: int = setting(1_000, "Open event streams; more receive 503; 0 sets no limit.", COUNT_OR_ZERO)
    user_streams: int = setting(200, "Open event streams per user; more receive 429; 0 sets no limit.", COUNT_OR_ZERO)


@dataclass(frozen=True, kw_only=True)
class NetworkSettings:
    """Proxy and certificates of all outbound connections."""

    proxy: str = setting(
        "",
        "Proxy for outbound connections, such as `http://proxy.example:3128` or `socks5://127.0.0.1:1080`; `none` uses "
        "none. By default `HTTP_PROXY`, `HTTPS_PROXY` and `ALL_PROXY` apply. See "
        "[forward proxies](server.md#forward-proxies).",
        name="outbound_proxy",
        secrecy="url",
    )
    no_proxy: str = setting(
        "",
        "Comma-separated hosts, domains and networks to reach without the proxy. By default `NO_PROXY` applies.",
        name="outbound_no_proxy",
    )
    ca_file: Path | None = setting(
        None, "File with certificates to trust besides the system's (which `SSL_CERT_FILE` replaces)."
    )


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
        32 * 2**20, "Bytes of a request to the gateway, including images.", Range(least=65_536), name="gateway_bytes"
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
