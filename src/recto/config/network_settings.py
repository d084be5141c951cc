"""Settings of outbound connections."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from recto.config.setting import setting


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
