"""Parameters of paths and queries that several routes take: ids, pages of lists, time zones."""

from __future__ import annotations

from datetime import tzinfo
from typing import Annotated

from fastapi import Query

from recto.config.zones import find_zone
from recto.conversation.input.input_rules import UUID
from recto.errors import NotFound, WireError

Cursor = Annotated[str | None, Query(description="`next` of the page before.")]
PageLimit = Annotated[int, Query(ge=1, le=100, description="How many at most.")]


def stored_id(id: str, what: str) -> str:
    """The id of a thing as it is stored. What is no UUID is no thing's."""
    if not UUID.fullmatch(id):
        raise NotFound(what=what, id=id)
    return id.lower()


def zone_of(name: str, where: str) -> tzinfo:
    """A time zone by its name."""
    try:
        return find_zone(name)
    except ValueError as error:
        raise WireError(where=where, problem=str(error)) from error
