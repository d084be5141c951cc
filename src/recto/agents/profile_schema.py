"""What is kept of a user held against the agent's JSON Schema, field by field. Fields it does not know are free.

A profile grows as it is filled and is shared by all agents: that a field is missing, or is another agent's, is no
fault. What is said of a field itself counts whole.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping
from datetime import datetime
from functools import lru_cache
from itertools import islice
from typing import NamedTuple

import jsonschema_rs

from recto.almanac.birth import check_birth
from recto.errors import ToolError
from recto.page.canonical import Json, load_object

PROBLEMS_SHOWN = 10
PROBLEM_SHOWN = 300
MOST_BACKTRACKING = 10_000
BIRTH = "birth"
# All errors are found before the first is told, each with a copy of what is wrong: of a longer profile only the first.
MOST_TOLD_OF = 16_384

_log = logging.getLogger("recto.agents")


def check_profile(fields: Mapping[str, Json], schema: str, now: datetime) -> str | None:
    """None where the fields are as the schema wants them, else which is not and what is allowed.

    A field with `birth: true` is a birth: its date and time are ones there are, and not in the future.
    """
    found = _validator(schema)
    if found is None:
        return None
    known = {name: value for name, value in fields.items() if name in found.names}
    # What has no path is said of the profile as a whole: that a field is missing.
    errors = (error for error in _errors(found.validator, known) if error.instance_path)
    births = {name: value for name, value in known.items() if name in found.births}
    return "; ".join([_told(error) for error in islice(errors, PROBLEMS_SHOWN)]) or _birth_problem(births, now)


def _birth_problem(births: Mapping[str, Json], now: datetime) -> str | None:
    for name, info in births.items():
        try:
            if isinstance(info, Mapping):
                check_birth(info, now)
        except ToolError as error:
            return f"{name}: {error}".rstrip(".")
    return None


class _Checked(NamedTuple):
    """The fields a schema knows, those of them that are births, and what holds them against it."""

    names: frozenset[str]
    births: frozenset[str]
    validator: jsonschema_rs.Validator


def _errors(validator: jsonschema_rs.Validator, known: Mapping[str, Json]) -> Iterable[jsonschema_rs.ValidationError]:
    if len(str(known)) <= MOST_TOLD_OF:
        return validator.iter_errors(known)
    try:
        validator.validate(known)
    except jsonschema_rs.ValidationError as error:
        return (error,)
    return ()


@lru_cache(maxsize=64)
def _validator(schema: str) -> _Checked | None:
    """A schema as it is asked. One that is none checks nothing."""
    found = load_object(schema) or {}
    named = found.get("properties")
    if not isinstance(named, Mapping):
        return None
    options = jsonschema_rs.FancyRegexOptions(backtrack_limit=MOST_BACKTRACKING)
    try:
        validator = jsonschema_rs.validator_for(
            {name: value for name, value in found.items() if name != "required"},
            validate_formats=False,
            offline=True,
            pattern_options=options,
        )
    except (ValueError, TypeError, jsonschema_rs.ReferencingError) as error:
        _log.warning("The schema of a profile is none, and is not used: %s", str(error)[:PROBLEM_SHOWN])
        return None
    births = frozenset(name for name, one in named.items() if isinstance(one, Mapping) and one.get(BIRTH) is True)
    return _Checked(names=frozenset(named), births=births, validator=validator)


def _told(error: jsonschema_rs.ValidationError) -> str:
    message = error.message if len(error.message) <= PROBLEM_SHOWN else f"{error.message[:PROBLEM_SHOWN]} ..."
    return f"{'.'.join(map(str, error.instance_path))}: {message}"
