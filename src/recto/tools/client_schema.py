"""Schemas of clients' tools, and arguments checked against them. Nothing is fetched, nothing takes long.

The library holds the interpreter while it compiles and checks, so what it may cost is known before it begins; and all
of it is done one by one in a thread of its own, so that everybody else has their turn in between.
"""

from __future__ import annotations

import asyncio
import logging
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from itertools import islice
from typing import cast

import jsonschema_rs

from recto.config.run_settings import SchemaLimits
from recto.conversation.json import Json, load, scrub
from recto.conversation.messages import ToolOffer
from recto.errors import WireError
from recto.tools.function import NAME
from recto.tools.schema_cost import cost, linear, matching, size, weigh_patterns, without_patterns

LONGEST_ARGUMENTS = 1_000_000
DEEPEST_ARGUMENTS = 64
# Steps of checking, up to 0.4 microseconds each. Schemas that refer to themselves twice double them at each level.
MOST_STEPS = 300_000
# Bytes of patterns times characters of arguments, up to 0.3 nanoseconds each.
MOST_MATCHING = 256 * 2**20
# Each step may end in a problem, and each problem has a copy of the arguments: up to 16 nanoseconds for each byte.
MOST_COPIED = 8_000_000
PROBLEMS_SHOWN = 10
PROBLEM_SHOWN = 300
# What a schema takes in memory for each of its bytes.
OF_BYTE = 128
PATTERNS = "bytes of compiled patterns"
HEAD = "The arguments do not match the tool's schema:"
NOT_SHOWN = "- They are too long for what is wrong to be told."
AGAIN = "Call the tool again with arguments that match its schema."

_log = logging.getLogger("recto.tools")


@dataclass(frozen=True, kw_only=True)
class _Schema:
    """A schema ready to be used. `costs` are steps and bytes of patterns by the levels of arguments, once known."""

    value: Json
    validator: jsonschema_rs.Validator
    weights: Mapping[str, int]
    pattern_bytes: int
    bytes: int
    costs: dict[int, tuple[float, float]] = field(default_factory=dict[int, tuple[float, float]])

    def costs_at(self, depth: int) -> tuple[float, float]:
        if depth not in self.costs:
            steps = cost(self.value, depth, most=MOST_STEPS)
            self.costs[depth] = steps, matching(self.value, depth, self.weights) if self.weights else 0
        return self.costs[depth]


class Schemas:
    """Compiled schemas, as many as memory allows. Its methods that wait may be called from anywhere."""

    def __init__(self, limits: SchemaLimits | None = None) -> None:
        self._limits = limits or SchemaLimits()
        self._kept: OrderedDict[str, _Schema] = OrderedDict()
        self._bytes = 0
        self._thread = ThreadPoolExecutor(1, "schemas")

    @property
    def kept_bytes(self) -> int:
        """What the schemas kept here take, as far as that is known."""
        return self._bytes

    async def admit(self, tools: Sequence[ToolOffer]) -> None:
        """Raise a WireError for the first tool that no provider would take, or whose schema is none or too much."""
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
        """Check arguments, each with its schema: what is wrong with them, for the model; None where nothing is."""
        checked = asyncio.get_running_loop().run_in_executor
        return [await checked(self._thread, self.check_now, *call) for call in calls]

    async def forget(self) -> None:
        """Keep no schema. Those that are wanted are compiled again."""
        await asyncio.get_running_loop().run_in_executor(self._thread, self._forget_now)

    def _forget_now(self) -> None:
        self._kept.clear()
        self._bytes = 0

    def admit_now(self, tools: Sequence[ToolOffer]) -> None:
        """The same of schemas alone, here and now."""
        used, bytes_used = 0, 0
        for place, tool in enumerate(tools):
            bytes_used += len(scrub(tool.parameters).encode())
            try:
                if bytes_used > self._limits.schema_bytes:
                    raise _too_much("bytes", self._limits.schema_bytes)
                used += self._compiled(tool.parameters, self._limits.pattern_bytes - used).pattern_bytes
            except WireError as error:
                problem = f"the schema of tool {tool.name!r} {error.problem}"
                raise WireError(where=f"tools[{place}].parameters", problem=problem) from error

    def check_now(self, arguments: str, schema: str) -> str | None:
        """The same of one call, here and now. A schema that is refused today lets everything pass."""
        if len(arguments) > LONGEST_ARGUMENTS:
            count = len(arguments)
            return f"The arguments have {count} characters, {LONGEST_ARGUMENTS} are allowed. Send less at a time."
        try:
            value = load(scrub(arguments) if arguments.strip() else "{}")
        except ValueError as error:
            return f"The arguments are no valid JSON: {error}. Call the tool again with a JSON object."
        if not isinstance(value, dict):
            return "The arguments must be a JSON object with a field for each argument. Call the tool again with one."
        nodes, depth = size(value)
        if depth > DEEPEST_ARGUMENTS:
            return f"The arguments are nested {depth} levels deep, {DEEPEST_ARGUMENTS} are allowed. Nest them less."
        try:
            found = self._compiled(schema, self._limits.pattern_bytes)
        except WireError as error:
            _log.warning("A tool's schema %s. It is not used.", error.problem)
            return None
        steps, patterns = found.costs_at(depth)
        if steps * nodes > MOST_STEPS:
            _log.warning("Arguments are not checked: their schema would take too many steps.")
            return None
        if patterns * len(arguments) > MOST_MATCHING:
            _log.warning("Arguments are not held against patterns: that would take too long for so many characters.")
            found = self._without_patterns(schema, found)
        return _advice(found.validator, value, copied=steps * nodes * len(arguments))

    def _compiled(self, schema: str, pattern_bytes: int) -> _Schema:
        """A schema, compiled once. One that is none or costs too much raises a WireError."""
        found = self._kept.get(schema)
        if found is None:
            found = self._compile(schema, pattern_bytes)
            self._keep(schema, found)
        if found.pattern_bytes > pattern_bytes:
            raise _too_much(PATTERNS, self._limits.pattern_bytes)
        self._kept.move_to_end(schema)
        return found

    def _compile(self, schema: str, pattern_bytes: int) -> _Schema:
        if len(schema) > self._limits.schema_bytes:
            raise _too_much("bytes", self._limits.schema_bytes)
        try:
            value = load(scrub(schema))
        except ValueError as error:
            raise WireError(where="schema", problem=f"is no JSON: {error}; send a JSON Schema") from error
        if size(value)[1] > self._limits.schema_depth:
            raise _too_much("levels", self._limits.schema_depth)
        patterns = weigh_patterns(value, pattern_bytes)
        if patterns is None:
            raise _too_much(PATTERNS, self._limits.pattern_bytes)
        used = without_patterns(value, patterns.looking) if patterns.looking else value
        return _Schema(
            value=used,
            validator=_validator(used, self._limits.pattern_bytes),
            weights=patterns.compiled,
            pattern_bytes=patterns.total,
            bytes=OF_BYTE * len(schema) + 2 * patterns.total,
        )

    def _without_patterns(self, schema: str, found: _Schema) -> _Schema:
        """The same without its patterns, also kept. No schema has this name."""
        name = f"{schema}\0"
        if name not in self._kept:
            value = without_patterns(found.value, found.weights)
            validator = _validator(value, self._limits.pattern_bytes)
            self._keep(name, replace(found, value=value, validator=validator, weights={}, costs={}))
        return self._kept[name]

    def _keep(self, name: str, schema: _Schema) -> None:
        self._kept[name] = schema
        self._bytes += schema.bytes
        while len(self._kept) > 1 and self._bytes > self._limits.schema_cache_bytes:
            self._bytes -= self._kept.popitem(last=False)[1].bytes


def _too_much(of: str, most: int) -> WireError:
    return WireError(where="schema", problem=f"takes the tools beyond {most} {of}, which is the limit; send less")


def _validator(schema: Json, pattern_bytes: int) -> jsonschema_rs.Validator:
    try:
        return jsonschema_rs.validator_for(
            cast("dict[str, object]", schema),
            validate_formats=False,
            offline=True,
            pattern_options=linear(pattern_bytes),
        )
    except jsonschema_rs.ValidationError as error:
        where = ".".join(map(str, error.instance_path))
        problem = f"is no JSON Schema{f' at {where}' if where else ''}: {_short(error.message)}; mend it"
        raise WireError(where="schema", problem=problem) from error
    except (ValueError, TypeError, jsonschema_rs.ReferencingError) as error:
        raise WireError(where="schema", problem=f"is no JSON Schema: {_short(str(error))}; mend it") from error


def _advice(validator: jsonschema_rs.Validator, value: Mapping[str, Json], *, copied: float) -> str | None:
    """What is wrong, for the model. Saying it may cost a thousand times what finding it does."""
    if validator.is_valid(value):
        return None
    if copied > MOST_COPIED:
        return "\n".join([HEAD, NOT_SHOWN, AGAIN])
    return "\n".join([HEAD, *map(_line, islice(validator.iter_errors(value), PROBLEMS_SHOWN)), AGAIN])


def _line(error: jsonschema_rs.ValidationError) -> str:
    return f"- {'.'.join(map(str, error.instance_path)) or 'arguments'}: {_short(error.message)}"


def _short(message: str) -> str:
    return message if len(message) <= PROBLEM_SHOWN else f"{message[:PROBLEM_SHOWN]} ..."
