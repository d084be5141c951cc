"""A resolver with a table of names. The addresses of a name may differ at each lookup."""

import socket
from collections.abc import Mapping, Sequence

from recto.http.client import Address

# The addresses of a name at its first lookup, its second ...; the last entry stays.
Table = Mapping[str, Sequence[Sequence[str]]]


class TableResolver:
    """Resolves names from a table and records its lookups. An address is its own name."""

    def __init__(self, table: Table) -> None:
        self._table = table
        self.lookups = list[str]()

    async def __call__(self, host: str, port: int) -> Sequence[Address]:
        self.lookups.append(host)
        if host not in self._table:
            return socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_NUMERICHOST)
        answers = self._table[host]
        addresses = answers[min(self.lookups.count(host), len(answers)) - 1]
        return [row for one in addresses for row in socket.getaddrinfo(one, port, type=socket.SOCK_STREAM)]
