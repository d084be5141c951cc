"""The JSON Schema of a user's profile: whether it is one, and what a profile says against it, field by field.

A profile grows as it is filled and is shared by all agents: that a field is missing, or is another agent's, is no
fault, and fields a schema does not know are free. What is said of a field itself counts whole.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator, Mapping
from functools import lru_cache
from itertools import islice
from typing import TYPE_CHECKING

from recto.config.checked import dotted, line_of, short
from recto.config.problem import Fault
from recto.config.yaml_values import Values, YamlPath
from recto.conversation.json import Json, load_object

# Imported where it is used: few agents have a schema, and every command would wait for it.
if TYPE_CHECKING:
    import jsonschema_rs

PROBLEMS_SHOWN = 10
PROBLEM_SHOWN = 300
MOST_BACKTRACKING = 10_000
# All errors are found before the first is given, each with a copy of what is wrong: of a longer profile only the first.
LONGEST_CHECKED_WHOLE = 16_384
_log = logging.getLogger("recto.agents")


def schema_faults(schema: Mapping[str, object], values: Values, where: YamlPath) -> Iterator[Fault]:
    """What makes a schema none. It stands at a place of what was found."""
    import jsonschema_rs

    try:
        jsonschema_rs.validator_for(dict(schema), offline=True)
    except jsonschema_rs.ValidationError as error:
        place: YamlPath = (*where, *error.instance_path)
        yield Fault(
            line=line_of(values, place), text=f"{_format_path(place)} is no JSON Schema: {short(error.message)}"
        )
    except (ValueError, TypeError, jsonschema_rs.ReferencingError) as error:
        yield Fault(line=line_of(values, where), text=f"{_format_path(where)} is no JSON Schema: {short(str(error))}")


def check_profile(fields: Mapping[str, Json], schema: str) -> str | None:
    """None where the fields are as the schema wants them, else which is not and what is allowed."""
    validation = _validator(schema)
    if validation is None:
        return None
    names, validator = validation
    profile = {name: value for name, value in fields.items() if name in names}
    # What has no path is said of the profile as a whole: that a field is missing.
    errors = (error for error in _errors(validator, profile) if error.instance_path)
    problems: list[str] = []
    for error in islice(errors, PROBLEMS_SHOWN):
        end = " ..." if len(error.message) > PROBLEM_SHOWN else ""
        problems.append(f"{'.'.join(map(str, error.instance_path))}: {error.message[:PROBLEM_SHOWN]}{end}")
    return "; ".join(problems) or None


def _format_path(place: YamlPath) -> str:
    return dotted(place) or "it"


def _errors(validator: jsonschema_rs.Validator, profile: Mapping[str, Json]) -> Iterable[jsonschema_rs.ValidationError]:
    import jsonschema_rs

    if len(str(profile)) <= LONGEST_CHECKED_WHOLE:
        return validator.iter_errors(profile)
    try:
        validator.validate(profile)
    except jsonschema_rs.ValidationError as error:
        return (error,)
    return ()


@lru_cache(maxsize=64)
def _validator(schema: str) -> tuple[frozenset[str], jsonschema_rs.Validator] | None:
    """The fields a schema knows, and what holds them against it. One that is none checks nothing."""
    import jsonschema_rs

    properties_schema = load_object(schema) or {}
    properties = properties_schema.get("properties")
    if not isinstance(properties, Mapping):
        return None
    options = jsonschema_rs.FancyRegexOptions(backtrack_limit=MOST_BACKTRACKING)
    try:
        validator = jsonschema_rs.validator_for(
            {name: value for name, value in properties_schema.items() if name != "required"},
            validate_formats=False,
            offline=True,
            pattern_options=options,
        )
    except (ValueError, TypeError, jsonschema_rs.ReferencingError) as error:
        _log.warning("The schema of a profile is none, and is not used: %s", str(error)[:PROBLEM_SHOWN])
        return None
    return frozenset(properties), validator
