"""Headers that the gateway forwards to providers and to callers. Values stay byte for byte."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

CONNECTION = "connection"
# Headers of one connection.
HOP_BY_HOP = frozenset(
    {
        *(CONNECTION, "keep-alive", "proxy-connection", "proxy-authenticate", "proxy-authorization", "te", "trailer"),
        *("transfer-encoding", "content-length", "upgrade", "http2-settings"),
    }
)
# Credentials, encodings and proxy headers are not for the provider.
NOT_TO_PROVIDERS = HOP_BY_HOP | frozenset(
    {
        *("authorization", "x-api-key", "api-key", "cookie", "host", "expect", "accept-encoding", "content-encoding"),
        *("origin", "referer", "forwarded", "via", "x-real-ip", "x-client-ip", "true-client-ip", "fastly-client-ip"),
    }
)
PROXIES_AND_BROWSERS = ("x-forwarded-", "x-original-", "cf-", "sec-")
# Set by this server, or unsafe for pages from another one.
NOT_TO_CALLERS = HOP_BY_HOP | {"date", "server", "set-cookie", "alt-svc", "strict-transport-security"}
FOR_BROWSERS = "access-control-"


def headers_for_provider(headers: Sequence[tuple[str, str]], credential: str | None) -> dict[str, str]:
    """Return the headers to forward, without those that contain this server's credential."""
    fields = {name.lower(): value for name, value in headers}
    kept_back = NOT_TO_PROVIDERS | _named(",".join([value for name, value in headers if name.lower() == CONNECTION]))
    return {
        name: value
        for name, value in fields.items()
        if not (name in kept_back or name.startswith(PROXIES_AND_BROWSERS) or (credential and credential in value))
    }


def headers_for_caller(headers: Mapping[bytes, bytes]) -> list[tuple[bytes, bytes]]:
    """Return the response headers to send back."""
    kept_back = NOT_TO_CALLERS | _named(headers.get(CONNECTION.encode(), b"").decode("latin-1"))
    named = [(name.decode("latin-1"), name, value) for name, value in headers.items()]
    return [(name, value) for text, name, value in named if text not in kept_back and not text.startswith(FOR_BROWSERS)]


def _named(connection: str) -> frozenset[str]:
    """Return the headers that the Connection header names."""
    return frozenset(name.strip().lower() for name in connection.split(","))
