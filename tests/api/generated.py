"""Requests generated from a description of an API, and its answers held against it: schemathesis, as far as we use it.

The types of that library are not whole, so it is met through the protocols here.
"""

from collections.abc import Mapping
from importlib import import_module
from typing import Protocol, cast

import requests
from hypothesis.strategies import SearchStrategy

from recto.conversation.json import Json

# Every request comes as its user; credentials have tests of their own.
CONFIG = {"generation": {"with-security-parameters": False}}


class Response(Protocol):
    """An answer to a generated request."""

    status_code: int


class Case(Protocol):
    """A generated request."""

    path_parameters: dict[str, object]
    query: dict[str, object]
    body: object

    def call(
        self, base_url: str, session: requests.Session, headers: Mapping[str, str], *, timeout: float
    ) -> Response: ...

    def validate_response(self, response: Response, checks: list[object]) -> None: ...


class Generated(Protocol):
    """One method of one path, and the requests that can be made for it."""

    def as_strategy(self, generation_mode: object) -> SearchStrategy[Case]: ...


def generated(description: Mapping[str, Json]) -> Mapping[str, Mapping[str, Generated]]:
    """All methods of all paths of a description."""
    library = import_module("schemathesis")
    schema = library.openapi.from_dict(dict(description), config=library.Config.from_dict(CONFIG))
    return cast("Mapping[str, Mapping[str, Generated]]", schema)


def cases_of(operation: Generated) -> SearchStrategy[Case]:
    """What the description says can be sent, and what it says can not."""
    mode = import_module("schemathesis").GenerationMode
    return operation.as_strategy(mode.POSITIVE) | operation.as_strategy(mode.NEGATIVE)


def assert_as_described(case: Case, answer: Response) -> None:
    """No failure of the server; a status, a media type and a shape that the description has."""
    server, described = import_module("schemathesis.checks"), import_module("schemathesis.specs.openapi.checks")
    checks = [
        server.not_a_server_error,
        described.status_code_conformance,
        described.content_type_conformance,
        described.response_schema_conformance,
    ]
    case.validate_response(answer, checks)
