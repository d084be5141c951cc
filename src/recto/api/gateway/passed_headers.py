"""Which headers a gateway passes on, to a provider and back: not those of one connection, nor what others may not know.

Values are passed on as the bytes they were.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

CONNECTION = "connection"
# Of the connection between two.
HOP_BY_HOP = frozenset(
    {
        *(CONNECTION, "keep-alive", "proxy-connection", "proxy-authenticate", "proxy-authorization", "te", "trailer"),
        *("transfer-encoding", "content-length", "upgrade", "http2-settings"),
    }
)
# Credentials, how it is packed, and who is behind a proxy: none of it is for the provider.
NOT_TO_PROVIDERS = HOP_BY_HOP | frozenset(
    {
        *("authorization", "x-api-key", "api-key", "cookie", "host", "expect", "accept-encoding", "content-encoding"),
        *("origin", "referer", "forwarded", "via", "x-real-ip", "x-client-ip", "true-client-ip", "fastly-client-ip"),
    }
)
PROXIES_AND_BROWSERS = ("x-forwarded-", "x-original-", "cf-", "sec-")
# Ours to say, or nothing that a page may be told by somebody else.
NOT_TO_CALLERS = HOP_BY_HOP | {"date", "server", "set-cookie", "alt-svc", "strict-transport-security"}
FOR_BROWSERS = "access-control-"


def headers_for_provider(headers: Sequence[tuple[str, str]], credential: str | None) -> dict[str, str]:
    """Headers of a client as they go on, without those that a credential of this server stands in."""
    fields = {name.lower(): value for name, value in headers}
    kept_back = NOT_TO_PROVIDERS | _named(",".join([value for name, value in headers if name.lower() == CONNECTION]))
    return {
        name: value
        for name, value in fields.items()
        if not (name in kept_back or name.startswith(PROXIES_AND_BROWSERS) or (credential and credential in value))
    }


def headers_for_caller(headers: Mapping[bytes, bytes]) -> list[tuple[bytes, bytes]]:
    """Headers of an answer as they go back."""
    kept_back = NOT_TO_CALLERS | _named(headers.get(CONNECTION.encode(), b"").decode("latin-1"))
    named = [(name.decode("latin-1"), name, value) for name, value in headers.items()]
    return [(name, value) for text, name, value in named if text not in kept_back and not text.startswith(FOR_BROWSERS)]


def _named(connection: str) -> frozenset[str]:
    """Headers that are of one connection because its own says so."""
    return frozenset(name.strip().lower() for name in connection.split(","))
