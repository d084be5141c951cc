"""Validation of user profiles against an agent's JSON Schema, field by field.

All agents share a profile, which grows over time. Therefore missing and unknown fields are valid, and each known field
must match its schema.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator, Mapping
from functools import lru_cache
from itertools import islice
from typing import TYPE_CHECKING

from recto.config.problem import Fault
from recto.config.table_check import dotted, line_of, short
from recto.config.yaml_values import Values, YamlPath
from recto.conversation.json import Json, load_object

# Imported on use, because the import is slow and few agents have a schema.
if TYPE_CHECKING:
    import jsonschema_rs

PROBLEMS_SHOWN = 10
PROBLEM_SHOWN = 300
MOST_BACKTRACKING = 10_000
# Maximum size of a profile for which all errors are reported. The validator copies the value for each error, so only
# the first error of a larger profile is reported.
LONGEST_CHECKED_WHOLE = 16_384
_log = logging.getLogger("recto.agents")


def schema_faults(schema: Mapping[str, object], values: Values, where: YamlPath) -> Iterator[Fault]:
    """Yield the fault of an invalid JSON Schema at a path of the values."""
    import jsonschema_rs

    try:
        jsonschema_rs.validator_for(dict(schema), offline=True)
    except jsonschema_rs.ValidationError as error:
        place: YamlPath = (*where, *error.instance_path)
        yield Fault(
            line=line_of(values, place), text=f"{_format_path(place)} is not a JSON Schema: {short(error.message)}"
        )
    except (ValueError, TypeError, jsonschema_rs.ReferencingError) as error:
        text = f"{_format_path(where)} is not a JSON Schema: {short(str(error))}"
        yield Fault(line=line_of(values, where), text=text)


def check_profile(fields: Mapping[str, Json], schema: str) -> str | None:
    """Return the fields that do not match the schema, with reasons; None if all match."""
    import jsonschema_rs

    validation = _validator(schema)
    if validation is None:
        return None
    names, validator = validation
    profile = {name: value for name, value in fields.items() if name in names}
    # Ignore errors without a path, which concern the whole profile, such as missing fields.
    errors: Iterable[jsonschema_rs.ValidationError] = ()
    if len(str(profile)) <= LONGEST_CHECKED_WHOLE:
        errors = validator.iter_errors(profile)
    else:
        try:
            validator.validate(profile)
        except jsonschema_rs.ValidationError as error:
            errors = (error,)
    problems: list[str] = []
    for error in islice((error for error in errors if error.instance_path), PROBLEMS_SHOWN):
        end = " ..." if len(error.message) > PROBLEM_SHOWN else ""
        problems.append(f"{'.'.join(map(str, error.instance_path))}: {error.message[:PROBLEM_SHOWN]}{end}")
    return "; ".join(problems) or None


def _format_path(place: YamlPath) -> str:
    return dotted(place) or "it"


@lru_cache(maxsize=64)
def _validator(schema: str) -> tuple[frozenset[str], jsonschema_rs.Validator] | None:
    """Return the field names of a schema and its validator; None for an invalid schema."""
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
