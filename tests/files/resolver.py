"""Names and their addresses from a table, for tests of what is fetched. A name may stand for another each time."""

import socket
from collections.abc import Mapping, Sequence
from typing import cast

from aiohttp.abc import AbstractResolver, ResolveResult

# What a name stands for: the first time, the second time ...; the last stays.
Table = Mapping[str, Sequence[Sequence[str]]]


class TableResolver(AbstractResolver):
    """`asked` are the names that were looked for, in order."""

    def __init__(self, table: Table) -> None:
        self._table = table
        self.asked = list[str]()

    async def resolve(
        self, host: str, port: int = 0, family: socket.AddressFamily = socket.AF_UNSPEC
    ) -> list[ResolveResult]:
        self.asked.append(host)
        answers = self._table.get(host)
        if answers is None:
            raise OSError(f"no such name: {host}")
        place = min(self.asked.count(host), len(answers)) - 1
        return [result(host, port, address) for address in answers[place]]

    async def close(self) -> None:
        pass


class TurningResolver(TableResolver):
    """Its answers have one address when they are looked at first, and the next in the table after that."""

    async def resolve(
        self, host: str, port: int = 0, family: socket.AddressFamily = socket.AF_UNSPEC
    ) -> list[ResolveResult]:
        first, second = self._table[host]
        return [_turning(result(host, port, one), other) for one, other in zip(first, second, strict=True)]


def result(host: str, port: int, address: str) -> ResolveResult:
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    return ResolveResult(hostname=host, host=address, port=port, family=family, proto=0, flags=socket.AI_NUMERICHOST)


class _Turning(dict[str, object]):
    """A row that has another host once that was read."""

    def __init__(self, row: Mapping[str, object], later: str) -> None:
        super().__init__(row)
        self._later = later

    def __getitem__(self, key: str) -> object:
        found = super().__getitem__(key)
        if key == "host":
            self["host"] = self._later
        return found


def _turning(row: ResolveResult, later: str) -> ResolveResult:
    return cast("ResolveResult", _Turning(cast("Mapping[str, object]", row), later))
