"""Web addresses: public IP ranges, URL parsing and allowed hosts. Ambiguous URLs are rejected, not repaired."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from ipaddress import IPv4Address, IPv6Address, IPv6Network, ip_address, ip_network
from urllib.parse import quote, urljoin

from recto.errors import FileRefused

PORTS = {"http": 80, "https": 443}
MOST_CHARACTERS = 4_000
HOST_CHARACTERS = 253
LARGEST_PORT = 65_535

# Our own list, because Python's `is_global` differs between versions.
_NOT_PUBLIC_4 = [
    ip_network(one)
    for one in (
        *("0.0.0.0/8", "10.0.0.0/8", "100.64.0.0/10", "127.0.0.0/8", "169.254.0.0/16", "172.16.0.0/12"),
        *("192.0.0.0/24", "192.0.2.0/24", "192.88.99.0/24", "192.168.0.0/16", "198.18.0.0/15", "198.51.100.0/24"),
        *("203.0.113.0/24", "224.0.0.0/4", "240.0.0.0/4"),
        # Azure's platform address. It looks public, but leads each machine to its host.
        "168.63.129.16/32",
    )
]
# Contains all publicly routed addresses, and no private, link-local, multicast or v4-mapped ones.
_ROUTED_6 = IPv6Network("2000::/3")
# Exceptions in that range: protocols and tunnels (Teredo, benchmarks, 6to4), and documentation.
_NOT_PUBLIC_6 = [ip_network(one) for one in ("2001::/23", "2001:db8::/32", "2002::/16", "3fff::/20")]
# A gateway translates these addresses to the IPv4 address in their last 32 bits.
_NAT64 = IPv6Network("64:ff9b::/96")

# Parsers disagree on these characters: some skip or reverse them, some end the URL there.
_DOUBTFUL = re.compile(r"[\s\\\x00-\x20\x7f-\xa0\ud800-\udfff]")
_URL = re.compile(r"[A-Za-z]+://(?P<authority>[^/?#]*)(?P<rest>[^#]*)")
_AUTHORITY = re.compile(r"(?P<host>\[[0-9A-Fa-f:.]+\]|[^\[\]:]+)(?::(?P<port>[0-9]{1,5}))?")
_LABEL = re.compile(r"[a-z0-9_](?:[a-z0-9_-]{0,61}[a-z0-9_])?")
# A numeric last label. Programs read such a host as an IPv4 address, in differing ways.
_NUMBER = re.compile(r"[0-9]+|0x[0-9a-f]*")
_AS_THEY_ARE = "!$%&'()*+,-./:;=?@_~[]"


@dataclass(frozen=True, kw_only=True)
class WebUrl:
    """A URL in normal form. The host is in lower case and ASCII; an IPv6 address has no brackets."""

    scheme: str
    host: str
    port: int
    target: str

    @property
    def url(self) -> str:
        """The complete URL."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        port = "" if self.port == PORTS[self.scheme] else f":{self.port}"
        return f"{self.scheme}://{host}{port}{self.target}"


def is_public(address: str) -> bool:
    """Return True for an address of the public internet; False for other texts and addresses with a zone."""
    try:
        ip = ip_address(address)
    except ValueError:
        return False
    if isinstance(ip, IPv4Address):
        return not any(ip in network for network in _NOT_PUBLIC_4)
    if ip.scope_id is not None:
        return False
    if ip in _NAT64:
        return is_public(str(IPv4Address(int(ip) & 0xFFFF_FFFF)))
    return ip in _ROUTED_6 and not any(ip in network for network in _NOT_PUBLIC_6)


def read_url(text: str) -> WebUrl:
    """Parse an http or https URL.

    Raise FileRefused (`bad_url`) for any other URL, and for one with an ambiguous host.
    """
    if len(text) > MOST_CHARACTERS:
        raise _bad(f"it has {len(text):,} characters; urls may have {MOST_CHARACTERS:,}")
    if _DOUBTFUL.search(text):
        raise _bad("it has a space, a backslash or a control character in it; write those in percents, such as %20")
    scheme = text.partition(":")[0].lower()
    if scheme not in PORTS:
        raise _bad("it is no url of http or https, and others are not fetched")
    match = _URL.fullmatch(text.partition("#")[0])
    if match and "@" in match["authority"]:
        raise _bad("it has a user name before its host, and none is ever sent; leave out what is before the @")
    place = _AUTHORITY.fullmatch(match["authority"]) if match else None
    if not match or not place:
        raise _bad("its host cannot be read; write it as https://example.com/file.pdf")
    port = int(place["port"] or PORTS[scheme])
    if not 0 < port <= LARGEST_PORT:
        raise _bad(f"it names port {port}; ports are 1 to {LARGEST_PORT}")
    target = quote(match["rest"], safe=_AS_THEY_ARE)
    return WebUrl(
        scheme=scheme,
        host=ascii_host(place["host"]),
        port=port,
        target=target if target.startswith("/") else f"/{target}",
    )


def check_url(text: str, hosts: Sequence[str], own: str | None = None) -> WebUrl:
    """Parse a URL and check its host. `own` is the URL of this server, which is always rejected."""
    target = read_url(text)
    if not is_allowed_host(target.host, target.port, target.scheme, hosts):
        text = f"no files are taken from {target.host[:100]} on port {target.port}; download it yourself and upload it"
        raise FileRefused(text, code="host_not_allowed")
    if own is not None and is_same_server(target, read_url(own)):
        raise FileRefused(f"{target.host[:100]} is this server, which does not ask itself", code="host_not_allowed")
    return target


def follow(at: WebUrl, location: str) -> WebUrl:
    """Return the target of a redirect. Raise FileRefused for a redirect from https to http."""
    if _DOUBTFUL.search(location):
        raise _bad("it leads on to a url with a space, a backslash or a control character in it")
    onward = read_url(urljoin(at.url, location))
    if (at.scheme, onward.scheme) == ("https", "http"):
        raise _bad("it leads on from https to http, where anybody could change the file")
    return onward


def ascii_host(host: str) -> str:
    """Return a host in lower-case ASCII (xn--...). Raise FileRefused if characters stand for others (ⓔ for e)."""
    if host.startswith("["):
        try:
            return str(IPv6Address(host[1:-1]))
        except ValueError as error:
            raise _bad("its host is in brackets and is no IPv6 address") from error
    name = "".join([one.lower() if one.isascii() else one for one in host]).removesuffix(".")
    ascii = ".".join([_ascii_label(label) for label in name.split(".")])
    if len(ascii) > HOST_CHARACTERS:
        raise _bad("its host is too long for a name")
    if not _NUMBER.fullmatch(ascii.rpartition(".")[2]):
        return ascii
    try:
        return str(IPv4Address(ascii))
    except ValueError as error:
        raise _bad("its host is a number, which programs read in different ways; write it as 192.0.2.1") from error


def is_allowed_host(host: str, port: int, scheme: str, patterns: Sequence[str]) -> bool:
    """Return True if a pattern such as `example.com`, `*.example.com:8443` or `*` allows a host and port."""
    try:
        name = ascii_host(f"[{host}]" if ":" in host else host)
    except FileRefused:
        return False
    # An IP address has no subdomains.
    is_address = ":" in name or bool(_NUMBER.fullmatch(name.rpartition(".")[2]))
    for pattern in patterns:
        host_pattern, _, port_text = pattern.lower().partition(":")
        is_below = host_pattern.startswith("*.") and name.endswith(host_pattern[1:]) and not is_address
        if (host_pattern in ("*", name) or is_below) and port == (int(port_text) if port_text else PORTS.get(scheme)):
            return True
    return False


def is_same_server(one: WebUrl, other: WebUrl) -> bool:
    """Return True if two URLs lead to the same server. Ports 80 and 443 of a host count as the same."""
    return one.host == other.host and (one.port == other.port or {one.port, other.port} <= set(PORTS.values()))


def _ascii_label(label: str) -> str:
    if not label.isascii():
        # IDNA 2003 replaces some characters: reject a label that does not decode to itself.
        try:
            encoded = label.encode("idna")
            unchanged = encoded.decode("idna") == label
        except UnicodeError:
            encoded, unchanged = b"", False
        if not unchanged or not encoded.startswith(b"xn--"):
            raise _bad(
                "its host has characters that stand for others; write the host in ASCII, such as xn--bcher-kva.de"
            )
        label = encoded.decode()
    if not _LABEL.fullmatch(label):
        raise _bad("its host is no name; names are letters, digits and hyphens between dots")
    return label


def _bad(problem: str) -> FileRefused:
    return FileRefused(f"its url cannot be used: {problem}", code="bad_url")
