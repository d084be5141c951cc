"""Tunnels through forward proxies: CONNECT of HTTP proxies, and SOCKS."""

from __future__ import annotations

import asyncio
import re
import socket
from base64 import b64encode

from recto.http.network import Proxy

MAX_REPLY_BYTES = 64 * 1024
CONNECTED = re.compile(rb"HTTP/1\.[01] 2\d\d[ \r]")
STATUS = re.compile(rb"HTTP/1\.[01] (\d{3})")


class ProxyRefused(ConnectionError):
    """The proxy cannot be reached, or does not connect to the host. `summary` omits its address, for users."""

    def __init__(self, proxy: Proxy, problem: str) -> None:
        super().__init__(f"the proxy {proxy.address} ({proxy.setting}) {problem}")
        self.summary = f"the proxy of {proxy.setting} {problem}"


def proxy_authorization(proxy: Proxy) -> dict[str, str]:
    """Return the header with the proxy's credentials, if it has any."""
    if not proxy.user:
        return {}
    credentials = b64encode(f"{proxy.user}:{proxy.password}".encode()).decode()
    return {"Proxy-Authorization": f"Basic {credentials}"}


async def open_tunnel(sock: socket.socket, proxy: Proxy, host: str, port: int) -> socket.socket:
    """Ask a proxy for a connection to a host, over a socket that is connected to an HTTP proxy."""
    loop = asyncio.get_running_loop()
    authority = f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
    fields = {"Host": authority, **proxy_authorization(proxy)}
    head = "".join(f"{name}: {value}\r\n" for name, value in fields.items())
    await loop.sock_sendall(sock, f"CONNECT {authority} HTTP/1.1\r\n{head}\r\n".encode("ascii"))
    reply = b""
    # A TLS server waits for the client, so nothing follows the head of the reply.
    while b"\r\n\r\n" not in reply:
        data = await loop.sock_recv(sock, MAX_REPLY_BYTES)
        reply += data
        if not data or len(reply) > MAX_REPLY_BYTES:
            raise ProxyRefused(proxy, "closed the connection")
    if not CONNECTED.match(reply):
        status = STATUS.match(reply)
        raise ProxyRefused(proxy, f"answered with status {status[1].decode()}" if status else "answered with no HTTP")
    return sock


async def open_socks_tunnel(proxy: Proxy, host: str, port: int) -> socket.socket:
    """Return a socket that a SOCKS proxy has connected to a host. `socks5h` leaves the lookup to the proxy."""
    from python_socks import ProxyError, ProxyType  # here: few use SOCKS
    from python_socks.async_.asyncio import Proxy as SocksProxy

    kind = ProxyType.SOCKS4 if proxy.scheme == "socks4" else ProxyType.SOCKS5
    tunnel = SocksProxy(
        kind, proxy.host, proxy.port, proxy.user or None, proxy.password or None, rdns=proxy.scheme != "socks4"
    )
    try:
        return await tunnel.connect(host, port)
    except ProxyError as error:
        raise ProxyRefused(proxy, "refused the connection") from error
