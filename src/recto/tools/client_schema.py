"""JSON Schemas of client tools and external tools, and validation of arguments. No reference is fetched.

The validator holds the interpreter lock, so a deadline could not stop it. Instead, check the number of steps before it
starts: the values in the expanded schema times the values in the arguments.
"""

from __future__ import annotations

import asyncio
import logging
from collections import OrderedDict
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import islice
from typing import cast

import jsonschema_rs

from recto.config.run_settings import SchemaLimits
from recto.conversation.json import Json, Object, load, parts_of, scrub
from recto.conversation.messages import ToolOffer
from recto.errors import WireError
from recto.tools.function import NAME

MOST_NODES = 20_000
MOST_REFERENCES = 40
# Keywords whose values map names to schemas.
SCHEMA_MAPS = frozenset({"properties", "patternProperties", "dependentSchemas", "dependencies", "$defs", "definitions"})
# Keywords whose values are data, not schemas.
DATA = frozenset({"const", "enum", "default", "examples", "required"})
# Keywords to drop. Most change no result. Definitions are inserted where they are referenced. An `$id` would change the
# target of references.
UNCHECKED = frozenset(
    {
        *("$defs", "definitions", "default", "examples", "title", "description", "$comment"),
        *("$schema", "$id", "id", "$anchor", "$dynamicAnchor", "$recursiveAnchor"),
    }
)
# Keywords to drop, because they are slow or depend on other keywords that may be dropped.
SLOW = frozenset({"pattern", "unevaluatedProperties", "unevaluatedItems", "$dynamicRef", "$recursiveRef"})
# Keywords under which a looser subschema makes the whole schema stricter.
INVERTING = frozenset({"not", "if", "contains"})
LONGEST_ARGUMENTS = 1_000_000
DEEPEST_ARGUMENTS = 64
# Limit of steps: values in the schema times values in the arguments. A step takes up to 3 microseconds (fractions in
# `multipleOf`).
MOST_STEPS = 100_000
# Limit of steps times characters of the arguments, because each step may report a problem with a copy of the arguments.
MOST_COPIED = 8_000_000
PROBLEMS_SHOWN = 10
PROBLEM_CHARACTERS = 300
# Estimated memory per value of a compiled schema.
VALUE_BYTES = 512
HEAD = "The arguments do not match the tool's schema:"
NOT_SHOWN = "- They are too long for what is wrong to be told."
RETRY = "Call the tool again with arguments that match its schema."

_log = logging.getLogger("recto.tools")


class SchemaTooLarge(Exception):
    """A schema with too many values after its references are expanded."""


def without_patterns(schema: Json) -> Json:
    """Return the schema without patterns. Keep references and the subschemas of `patternProperties`."""
    match schema:
        case dict():
            result = dict[str, Json]()
            for name, value in schema.items():
                if name == "pattern" and isinstance(value, str):
                    continue
                if name == "patternProperties" and isinstance(value, dict):
                    result[name] = {str(place): without_patterns(inner) for place, inner in enumerate(value.values())}
                elif name in SCHEMA_MAPS and isinstance(value, dict):
                    result[name] = {key: without_patterns(inner) for key, inner in value.items()}
                else:
                    result[name] = value if name in DATA else without_patterns(value)
            return result
        case list():
            return [without_patterns(inner) for inner in schema]
        case _:
            return schema


def checked_schema(schema: Json) -> Json:
    """Return the schema with its references expanded and without slow keywords. Raise SchemaTooLarge if the result is
    too large.

    A circular reference, or one that is not a JSON Pointer into the schema, accepts any value.
    """
    try:
        result, _ = _Expander(root=schema).expand(schema, ())
    except RecursionError as error:
        raise SchemaTooLarge from error
    draft = schema.get("$schema") if isinstance(schema, dict) else None
    return {**cast("Object", result), "$schema": draft} if draft else result


@dataclass(kw_only=True)
class _Expander:
    """Expander of one schema. `nodes` counts the objects and lists of the result."""

    root: Json
    nodes: int = 0

    def expand(self, part: Json, path: tuple[str, ...]) -> tuple[Json, bool]:
        """Return the expanded part, and False if it may accept more than the original. `path` lists the references that
        lead to the part.
        """
        if not isinstance(part, dict | list):
            return part, True
        self.nodes += 1
        if self.nodes > MOST_NODES:
            raise SchemaTooLarge
        if isinstance(part, list):
            pairs = [self.expand(inner, path) for inner in part]
            return [inner for inner, _ in pairs], all(is_exact for _, is_exact in pairs)
        # Early drafts ignore the keywords beside a reference.
        if "$ref" in part and isinstance(self.root, dict) and "/draft-0" in str(self.root.get("$schema")):
            part = {"$ref": part["$ref"]}
        result, more, is_exact = dict[str, Json](), list[Json](), not SLOW & part.keys()
        for name, value in part.items():
            if name in UNCHECKED | SLOW:
                continue
            inner, is_same = self._expand_keyword(name, value, path)
            is_exact = is_exact and is_same
            if name == "$ref":
                more.append(inner)
            elif name == "oneOf" and not is_same:
                more.append({"anyOf": inner})
            elif is_same or name not in INVERTING:
                result[name] = inner
        if more:
            result["allOf"] = [*cast("Sequence[Json]", result.get("allOf", ())), *more]
        return result, is_exact

    def _expand_keyword(self, name: str, value: Json, path: tuple[str, ...]) -> tuple[Json, bool]:
        match name, value:
            case "$ref", str():
                target = None if value in path or len(path) == MOST_REFERENCES else self._target(value)
                return ({}, False) if target is None else self.expand(target, (*path, value))
            case "patternProperties", _:
                # Without patterns, match every name, so that `additionalProperties` rejects none.
                return {"": True}, False
            case _, dict() if name in SCHEMA_MAPS:
                pairs = {key: self.expand(inner, path) for key, inner in value.items()}
                return {key: inner for key, (inner, _) in pairs.items()}, all(is_same for _, is_same in pairs.values())
            case _:
                return (value, True) if name in DATA else self.expand(value, path)

    def _target(self, reference: str) -> Json:
        """Return the target of a JSON Pointer into the schema, or None."""
        if reference != "#" and not reference.startswith("#/"):
            return None
        target = self.root
        for step in reference[1:].split("/")[1:]:
            name = step.replace("~1", "/").replace("~0", "~")
            match target:
                case dict():
                    target = cast("Object", target).get(name)
                case list() if name.isdecimal() and int(name) < len(target):
                    target = target[int(name)]
                case _:
                    return None
        return target


@dataclass(frozen=True, kw_only=True)
class _Schema:
    """A compiled schema. `size` counts the values in it."""

    validator: jsonschema_rs.Validator
    size: int


class Schemas:
    """Cache of compiled schemas. One thread runs all checks, so that other threads get a turn between two checks."""

    def __init__(self, limits: SchemaLimits | None = None) -> None:
        self._limits = limits or SchemaLimits()
        self._schemas: OrderedDict[str, _Schema | None] = OrderedDict()
        self._bytes = 0
        self._thread = ThreadPoolExecutor(1, "schemas")

    @property
    def cached_bytes(self) -> int:
        """The estimated memory of the cache."""
        return self._bytes

    async def admit(self, tools: Sequence[ToolOffer]) -> None:
        """Raise WireError for the first tool with an unusable name, or with a schema that is invalid or too large."""
        if len(tools) > self._limits.client_tools:
            problem = f"are {len(tools)}, {self._limits.client_tools} are allowed; send fewer"
            raise WireError(where="tools", problem=problem)
        for place, tool in enumerate(tools):
            if not NAME.fullmatch(tool.name):
                problem = f"{tool.name[:64]!r} is no name of a tool; write 1 to 64 letters, digits, `_` and `-`"
                raise WireError(where=f"tools[{place}].name", problem=problem)
        if tools:
            await asyncio.get_running_loop().run_in_executor(self._thread, self.admit_now, tools)

    async def check(self, calls: Sequence[tuple[str, str]]) -> list[str | None]:
        """Check pairs of arguments and schema. Return the problems of each pair as text for the model, or None."""
        execute = asyncio.get_running_loop().run_in_executor
        return [await execute(self._thread, self.check_now, *call) for call in calls]

    async def clear(self) -> None:
        """Empty the cache."""

        def clear_now() -> None:
            self._schemas.clear()
            self._bytes = 0

        await asyncio.get_running_loop().run_in_executor(self._thread, clear_now)

    def admit_now(self, tools: Sequence[ToolOffer]) -> None:
        """Raise WireError for the first tool whose schema is invalid or too large. Blocks."""
        total_bytes = 0
        for place, tool in enumerate(tools):
            total_bytes += len(scrub(tool.parameters).encode())
            try:
                if total_bytes > self._limits.schema_bytes:
                    raise _too_large("bytes", self._limits.schema_bytes)
                self._compiled(tool.parameters)
            except WireError as error:
                problem = f"the schema of tool {tool.name!r} {error.problem}"
                raise WireError(where=f"tools[{place}].parameters", problem=problem) from error

    def check_now(self, arguments: str, schema: str) -> str | None:
        """Return the problems of the arguments as text for the model, or None. Blocks.

        A schema beyond the limits is not applied.
        """
        if len(arguments) > LONGEST_ARGUMENTS:
            count = len(arguments)
            return f"The arguments have {count} characters, {LONGEST_ARGUMENTS} are allowed. Send less at a time."
        try:
            value = load(scrub(arguments) if arguments.strip() else "{}")
        except ValueError as error:
            return f"The arguments are no valid JSON: {error}. Call the tool again with a JSON object."
        if not isinstance(value, dict):
            return "The arguments must be a JSON object with a field for each argument. Call the tool again with one."
        size, depth = measure_json(value)
        if depth > DEEPEST_ARGUMENTS:
            return f"The arguments are nested {depth} levels deep, {DEEPEST_ARGUMENTS} are allowed. Nest them less."
        try:
            compiled = self._compiled(schema)
        except WireError as error:
            _log.warning("A tool's schema %s. It is not used.", error.problem)
            return None
        if compiled is None or compiled.size * size > MOST_STEPS:
            _log.warning("Arguments are not checked: their schema would take too many steps.")
            return None
        if compiled.validator.is_valid(value):
            return None
        if compiled.size * size * len(arguments) > MOST_COPIED:
            return "\n".join([HEAD, NOT_SHOWN, RETRY])
        problems = [
            f"- {'.'.join(map(str, error.instance_path)) or 'arguments'}: {_shorten(error.message)}"
            for error in islice(compiled.validator.iter_errors(value), PROBLEMS_SHOWN)
        ]
        return "\n".join([HEAD, *problems, RETRY])

    def _compiled(self, schema: str) -> _Schema | None:
        """Return a compiled schema, or None if it is too large to check with. Raise WireError for an invalid one."""
        if schema in self._schemas:
            self._schemas.move_to_end(schema)
            return self._schemas[schema]
        compiled = self._schemas[schema] = self._compile(schema)
        self._bytes += _memory(schema, compiled)
        while len(self._schemas) > 1 and self._bytes > self._limits.schema_cache_bytes:
            self._bytes -= _memory(*self._schemas.popitem(last=False))
        return compiled

    def _compile(self, schema: str) -> _Schema | None:
        if len(schema) > self._limits.schema_bytes:
            raise _too_large("bytes", self._limits.schema_bytes)
        try:
            value = load(scrub(schema))
        except ValueError as error:
            raise WireError(where="schema", problem=f"is no JSON: {error}; send a JSON Schema") from error
        if measure_json(value)[1] > self._limits.schema_depth:
            raise _too_large("levels", self._limits.schema_depth)
        _validator(without_patterns(value))
        try:
            reduced = checked_schema(value)
            return _Schema(validator=_validator(reduced), size=measure_json(reduced)[0])
        # The schema is valid, but its expanded form is too large or too deep.
        except (SchemaTooLarge, WireError):
            return None


def measure_json(value: Json) -> tuple[int, int]:
    """Return the number of values in a value, itself included, and its levels of nesting."""
    count, depth, level = 0, -1, [value]
    while level:
        count += len(level)
        depth += 1
        level = [inner for one in level for inner in parts_of(one)]
    return count, depth


def _memory(text: str, schema: _Schema | None) -> int:
    return len(text) + (VALUE_BYTES * schema.size if schema else 0)


def _too_large(unit: str, most: int) -> WireError:
    return WireError(where="schema", problem=f"takes the tools beyond {most} {unit}, which is the limit; send less")


def _validator(schema: Json) -> jsonschema_rs.Validator:
    value = cast("dict[str, object]", schema)
    try:
        return jsonschema_rs.validator_for(value, validate_formats=False, offline=True)
    except jsonschema_rs.ValidationError as error:
        where = ".".join(map(str, error.instance_path))
        problem = f"is no JSON Schema{f' at {where}' if where else ''}: {_shorten(error.message)}; mend it"
        raise WireError(where="schema", problem=problem) from error
    except (ValueError, TypeError, jsonschema_rs.ReferencingError) as error:
        raise WireError(where="schema", problem=f"is no JSON Schema: {_shorten(str(error))}; mend it") from error


def _shorten(message: str) -> str:
    return message if len(message) <= PROBLEM_CHARACTERS else f"{message[:PROBLEM_CHARACTERS]} ..."
