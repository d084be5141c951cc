"""Arguments checked against a bare JSON Schema, as a client's tools have. Nothing is fetched, nothing takes long."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from functools import lru_cache
from itertools import islice
from typing import cast

import jsonschema_rs

from recto.page.canonical import Json, load, scrub
from recto.tools.schema_cost import cost, size

LONGEST_ARGUMENTS = 1_000_000
LONGEST_SCHEMA = 100_000
DEEPEST_ARGUMENTS = 64
# Steps of checking, some hundred nanoseconds each. Schemas that refer to themselves twice double them at each level.
MOST_STEPS = 1_000_000
MOST_BACKTRACKING = 10_000
PROBLEMS_SHOWN = 10
PROBLEM_SHOWN = 300
# What a pattern that was given up on is reported as: no fault of the arguments.
GIVEN_UP = (
    jsonschema_rs.ValidationErrorKind.BacktrackLimitExceeded,
    jsonschema_rs.ValidationErrorKind.RegexEngineFailure,
)

_log = logging.getLogger("recto.tools")


def check_arguments(arguments: str, schema: str) -> str | None:
    """None when the arguments match the schema, else what is wrong, for the model. Bad schemas let everything pass."""
    if len(arguments) > LONGEST_ARGUMENTS:
        return f"The arguments have {len(arguments)} characters, {LONGEST_ARGUMENTS} are allowed. Send less at a time."
    try:
        value = load(scrub(arguments) if arguments.strip() else "{}")
    except ValueError as error:
        return f"The arguments are no valid JSON: {error}. Call the tool again with a JSON object."
    if not isinstance(value, dict):
        return "The arguments must be a JSON object with a field for each argument. Call the tool again with one."
    nodes, depth = size(value)
    if depth > DEEPEST_ARGUMENTS:
        return f"The arguments are nested {depth} levels deep, {DEEPEST_ARGUMENTS} are allowed. Nest them less."
    return _advice(_problems(value, schema, nodes=nodes, depth=depth))


def _problems(value: Mapping[str, Json], schema: str, *, nodes: int, depth: int) -> Sequence[str]:
    validator = _validator(schema)
    if validator is None:
        return ()
    steps = nodes * cost(load(scrub(schema)), depth, most=MOST_STEPS // nodes)
    if steps > MOST_STEPS:
        _log.warning("Arguments are not checked: their schema would take too many steps.")
        return ()
    errors = (error for error in validator.iter_errors(value) if not isinstance(error.kind, GIVEN_UP))
    return [_line(error) for error in islice(errors, PROBLEMS_SHOWN)]


@lru_cache(maxsize=256)
def _validator(schema: str) -> jsonschema_rs.Validator | None:
    if len(schema) > LONGEST_SCHEMA:
        _log.warning("A tool's schema has %d characters, %d are allowed. It is not used.", len(schema), LONGEST_SCHEMA)
        return None
    try:
        return jsonschema_rs.validator_for(
            cast("dict[str, object]", load(scrub(schema))),
            validate_formats=False,
            offline=True,
            pattern_options=jsonschema_rs.FancyRegexOptions(backtrack_limit=MOST_BACKTRACKING),
        )
    # Both no JSON and no schema are ValueErrors.
    except (ValueError, TypeError, jsonschema_rs.ReferencingError) as error:
        _log.warning("A tool's schema is none, and is not used: %s", str(error)[:PROBLEM_SHOWN])
        return None


def _line(error: jsonschema_rs.ValidationError) -> str:
    where = ".".join(map(str, error.instance_path)) or "arguments"
    message = error.message if len(error.message) <= PROBLEM_SHOWN else f"{error.message[:PROBLEM_SHOWN]} ..."
    return f"- {where}: {message}"


def _advice(problems: Sequence[str]) -> str | None:
    if not problems:
        return None
    head = "The arguments do not match the tool's schema:"
    return "\n".join([head, *problems, "Call the tool again with arguments that match its schema."])
