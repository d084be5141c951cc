"""Proxies and certificates of outbound connections, from settings and the usual environment variables (C6)."""

from __future__ import annotations

import ssl
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from ipaddress import ip_address, ip_network
from urllib.parse import SplitResult, unquote, urlsplit

from recto.config.access_settings import NetworkSettings
from recto.errors import NOT_SHOWN, SettingsError

PROXY_PORTS = {"http": 80, "socks4": 1080, "socks5": 1080, "socks5h": 1080}
PROXY_FORM = "it is the URL of a proxy, such as http://proxy.example:3128 or socks5://127.0.0.1:1080; `none` uses none"
CA_FORM = "it is a file with certificates in PEM form"
NO_PROXY = "none"


@dataclass(frozen=True, kw_only=True)
class Proxy:
    """A forward proxy. `setting` is the name of the setting or variable with its URL."""

    scheme: str
    host: str
    port: int
    user: str = ""
    password: str = field(default="", repr=False)
    setting: str

    @property
    def is_socks(self) -> bool:
        """Return True for SOCKS, False for HTTP."""
        return self.scheme != "http"

    @property
    def address(self) -> str:
        """Return the address for error texts, without credentials."""
        return f"{self.host}:{self.port}"


@dataclass(frozen=True, kw_only=True)
class Network:
    """Proxies by the scheme of the requested URL, hosts without a proxy, and an additional CA file."""

    proxies: Mapping[str, Proxy] = field(default_factory=dict[str, Proxy])
    no_proxy: str = ""
    ca_file: str = ""

    @classmethod
    def from_environment(cls, environment: Mapping[str, str], settings: NetworkSettings | None = None) -> Network:
        """Read the proxy variables, lower case first. Settings take precedence. Raise SettingsError for a bad value."""
        settings = settings or NetworkSettings()
        names = dict.fromkeys(("http", "https"), "RECTO_OUTBOUND_PROXY")
        values = dict.fromkeys(("http", "https"), settings.proxy)
        if not settings.proxy:
            for scheme in values:
                for name in (f"{scheme}_proxy", f"{scheme}_proxy".upper(), "all_proxy", "ALL_PROXY"):
                    if value := environment.get(name, "").strip():
                        names[scheme], values[scheme] = name, value
                        break
        proxies = {
            scheme: _parse_proxy(value, names[scheme])
            for scheme, value in values.items()
            if value and value.lower() != NO_PROXY
        }
        no_proxy = settings.no_proxy or environment.get("no_proxy") or environment.get("NO_PROXY") or ""
        network = cls(proxies=proxies, no_proxy=no_proxy, ca_file=str(settings.ca_file or ""))
        if network.ca_file:
            # Read the file now, so that a bad one is reported at the start.
            _context = network.tls
        return network

    def proxy_for(self, url: SplitResult) -> Proxy | None:
        """Return the proxy for a URL, or None. Hosts on this machine never use a proxy."""
        proxy = self.proxies.get(url.scheme)
        host = url.hostname or ""
        return None if proxy is None or is_loopback(host) or self._is_excluded(host, url.port) else proxy

    def _is_excluded(self, host: str, port: int | None) -> bool:
        for entry in filter(None, (part.strip().lower() for part in self.no_proxy.split(","))):
            name, _, excluded_port = entry.rpartition(":") if entry.count(":") == 1 else (entry, "", "")
            if excluded_port and excluded_port != str(port):
                continue
            domain = name.removeprefix("*").removeprefix(".")
            if entry == "*" or host == domain or host.endswith(f".{domain}") or _contains(name, host):
                return True
        return False

    @cached_property
    def tls(self) -> ssl.SSLContext:
        """Return the TLS context. OpenSSL reads SSL_CERT_FILE and SSL_CERT_DIR; `ca_file` adds to them."""
        context = ssl.create_default_context()
        context.set_alpn_protocols(["http/1.1"])
        if self.ca_file:
            try:
                context.load_verify_locations(self.ca_file)
            except (OSError, ssl.SSLError) as error:
                raise SettingsError(name="RECTO_CA_FILE", value=self.ca_file, allowed=CA_FORM) from error
        return context


def _parse_proxy(value: str, setting: str) -> Proxy:
    # A value without a scheme is an HTTP proxy, as for curl.
    text = value if "://" in value else f"http://{value}"
    try:
        parts = urlsplit(text)
        port = parts.port or PROXY_PORTS[parts.scheme]
    except (ValueError, KeyError):
        parts, port = urlsplit(""), 0
    if not parts.hostname or parts.path.strip("/") or parts.query:
        # The value may contain a password.
        raise SettingsError(name=setting, value=NOT_SHOWN, allowed=PROXY_FORM)
    return Proxy(
        scheme=parts.scheme,
        host=parts.hostname,
        port=port,
        user=unquote(parts.username or ""),
        password=unquote(parts.password or ""),
        setting=setting,
    )


def is_loopback(host: str) -> bool:
    """Return True if only this machine can reach the host."""
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host.lower() == "localhost"


def _contains(network: str, host: str) -> bool:
    """Return True if an address lies in a network such as 10.0.0.0/8."""
    try:
        return ip_address(host) in ip_network(network, strict=False)
    except ValueError:
        return False
