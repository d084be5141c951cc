"""The API as it describes itself: every method of every path, and how its parameters are filled for a test."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import pairwise
from typing import cast
from urllib.parse import quote

from recto.conversation.json import Json
from tests.support.client import request

METHODS = ("get", "post", "put", "patch", "delete", "head", "options", "trace")


@dataclass(frozen=True, kw_only=True)
class Operation:
    """One method of one path. A parameter is named by its place: `runs/{id}`, `?threadId`, `last-event-id:`."""

    method: str
    path: str
    route: Mapping[str, Json]

    @property
    def name(self) -> str:
        return f"{self.method} {self.path}"

    @property
    def is_open(self) -> bool:
        return self.route.get("security") == []

    @property
    def has_body(self) -> bool:
        return "requestBody" in self.route

    @property
    def places(self) -> list[str]:
        """The parameters of its path, each with what stands before it."""
        return [f"{before}/{part}" for before, part in pairwise(self.path.split("/")) if part.startswith("{")]

    @property
    def queries(self) -> list[str]:
        return [f"?{one['name']}" for one in self._parameters if one["in"] == "query"]

    @property
    def headers(self) -> list[str]:
        return [f"{one['name']}:" for one in self._parameters if one["in"] == "header"]

    @property
    def _parameters(self) -> list[Mapping[str, Json]]:
        return list(cast("list[Mapping[str, Json]]", self.route.get("parameters", [])))

    def at(self, values: Mapping[str, str], query: str = "") -> str:
        """Its path with these values in their places."""
        parts = self.path.split("/")
        filled_parts = [
            values[f"{before}/{part}"] if part.startswith("{") else part for before, part in pairwise(parts)
        ]
        return "/" + "/".join(quote(part, safe="") for part in filled_parts) + (f"?{query}" if query else "")


def operations(url: str) -> Iterator[Operation]:
    """All a server says it has."""
    paths = cast("Mapping[str, Mapping[str, Mapping[str, Json]]]", request(url, "GET", "/openapi.json").json["paths"])
    for path, methods in paths.items():
        for method in METHODS:
            if method in methods:
                yield Operation(method=method.upper(), path=path, route=methods[method])
