"""What a JSON Schema may cost, known before it is used: a small one can take years, and gigabytes."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import cast

import jsonschema_rs

from recto.conversation.json import Json, parts_of

# Applied to what is inside the value, one level down.
INSIDE = frozenset(
    {
        *("properties", "patternProperties", "additionalProperties", "propertyNames", "unevaluatedProperties"),
        *("items", "prefixItems", "additionalItems", "contains", "unevaluatedItems"),
    }
)
# Schemas by names that are no keywords.
NAMED = frozenset({"properties", "patternProperties", "dependentSchemas", "dependencies", "$defs", "definitions"})
# Checked only where something refers to them, or never.
UNCHECKED = frozenset({"$defs", "definitions", "default", "examples", "title", "description"})
# Values, not schemas.
VALUES = frozenset({"const", "enum", "default", "examples"})
# With them, what a reference points to depends on the way there.
UNKNOWN_TARGET = frozenset({"$dynamicRef", "$recursiveRef", "$id", "id"})
# Fractions are divided digit by digit.
OF_MULTIPLE = 5
# A pattern is tried within twice the bytes each time, from the first on. Around a compiled one there is that much more.
FIRST_BYTES, AROUND = 1_024, 8_192
# What a compiled pattern may remember while it matches; without a limit it is 2 MB each.
MATCHING_BYTES = 65_536
# What it costs to find out that a pattern cannot be matched in linear time, and that for each of its characters.
TO_LOOK, TO_LOOK_AT = 131_072, 512


def size(value: Json) -> tuple[int, int]:
    """How many values there are in a value, itself included, and how many levels."""
    count, depth, level = 0, -1, [value]
    while level:
        count += len(level)
        depth += 1
        level = [inner for one in level for inner in parts_of(one)]
    return count, depth


# Patterns


@dataclass(frozen=True, kw_only=True)
class Patterns:
    """The patterns of a schema: the bytes each compiles to, and those that look around, which takes no linear time.

    `total` is what all of them together cost, each as often as it is there.
    """

    compiled: Mapping[str, int]
    looking: frozenset[str]
    total: int


def weigh_patterns(schema: Json, most: int) -> Patterns | None:
    """What the patterns of a schema cost, wherever they stand: a reference may lead anywhere. None: more than `most`.

    What is no pattern is none of these, and may be a value that is only called so.
    """
    counts = Counter(_patterns(schema))
    compiled, looking, total = dict[str, int](), set[str](), AROUND * counts.total()
    for pattern, count in counts.items():
        if _is_linear(pattern):
            weight = _weight(pattern, (most - total) // count)
            compiled[pattern] = weight or 0
            total = total + weight * count if weight else most + 1
        else:
            total += TO_LOOK + TO_LOOK_AT * len(pattern)
            looking |= {pattern} if total <= most and _looks_around(pattern) else set()
        if total > most:
            return None
    return Patterns(compiled=compiled, looking=frozenset(looking), total=total)


def linear(most: int) -> jsonschema_rs.RegexOptions:
    """Patterns that take time in proportion to the text, and no more than so many bytes each."""
    return jsonschema_rs.RegexOptions(size_limit=most, dfa_size_limit=MATCHING_BYTES)


def without_patterns(schema: Json, unused: Collection[str]) -> Json:
    """The schema without some of its patterns; what they would have said of a property is not said."""
    return _without(schema, unused, are_names=False)


def _patterns(schema: Json) -> Iterator[str]:
    level = [schema]
    while level:
        for one in level:
            if isinstance(one, dict):
                part = cast("Mapping[str, Json]", one)
                named = part.get("patternProperties")
                yield from (pattern for pattern in (part.get("pattern"),) if isinstance(pattern, str))
                yield from named if isinstance(named, Mapping) else ()
        level = [inner for one in level for inner in parts_of(one)]


def _weight(pattern: str, most: int) -> int | None:
    """The bytes a pattern compiles to, up to twice too many; None when it does not within `most`."""
    weight = FIRST_BYTES
    while weight <= most:
        if _compiles(pattern, linear(weight)):
            return weight
        weight *= 2
    return None


def _is_linear(pattern: str) -> bool:
    """Whether it is a pattern that can be matched in linear time. Repeated never, it costs nothing to compile."""
    return _compiles(f"(?:{pattern}){{0}}", linear(FIRST_BYTES))


def _looks_around(pattern: str) -> bool:
    """Whether it is a pattern all the same."""
    return _compiles(pattern, jsonschema_rs.FancyRegexOptions(size_limit=MATCHING_BYTES))


def _compiles(pattern: str, options: jsonschema_rs.RegexOptions | jsonschema_rs.FancyRegexOptions) -> bool:
    try:
        jsonschema_rs.validator_for({"pattern": pattern}, validate_formats=False, pattern_options=options)
    except ValueError:
        return False
    return True


def _without(part: Json, unused: Collection[str], *, are_names: bool) -> Json:
    match part:
        case list():
            return [_without(inner, unused, are_names=False) for inner in part]
        case dict() if are_names:
            return {name: _without(inner, unused, are_names=False) for name, inner in part.items()}
        case dict():
            kept = {name: value for name, value in part.items() if not (name == "pattern" and value in unused)}
            return {name: _keyword_without(name, value, unused) for name, value in kept.items()}
        case _:
            return part


def _keyword_without(name: str, value: Json, unused: Collection[str]) -> Json:
    if name in VALUES:
        return value
    if name == "patternProperties" and isinstance(value, dict) and any(one in unused for one in value):
        kept: dict[str, Json] = {one: inner for one, inner in value.items() if one not in unused}
        # One that every name matches: no property is one too many by itself.
        value = {**kept, "": True}
    return _without(value, unused, are_names=name in NAMED)


# Steps


def cost(schema: Json, depth: int, *, most: int) -> float:
    """Steps per value for values of that many levels; infinite when they are more than `most` or cannot be known."""
    return _cost(_Cost(root=schema, most=most), depth)


def matching(schema: Json, depth: int, weights: Mapping[str, int]) -> float:
    """The same in bytes of patterns, by how often each of them may be held against one text."""
    return _cost(_Cost(root=schema, most=math.inf, step=0, weights=weights), depth)


def _cost(cost: _Cost, depth: int) -> float:
    try:
        return cost.of(cost.root, depth)
    except RecursionError:
        return math.inf


@dataclass(frozen=True, kw_only=True)
class _Cost:
    """The steps of each part of a schema at each depth, worked out once. One that is being worked out is infinite."""

    root: Json
    most: float
    step: int = 1
    weights: Mapping[str, int] = field(default_factory=dict[str, int])
    known: dict[tuple[int, int], float] = field(default_factory=dict[tuple[int, int], float])

    def of(self, part: Json, depth: int) -> float:
        if not isinstance(part, dict | list) or depth < 0:
            return self.step
        key = (id(part), depth)
        if key not in self.known:
            if len(self.known) >= self.most:
                return math.inf
            self.known[key] = math.inf
            steps = self._of_object(part, depth) if isinstance(part, dict) else self._of_all(part, depth)
            self.known[key] = steps if steps <= self.most else math.inf
        return self.known[key]

    def _of_all(self, parts: Iterable[Json], depth: int) -> float:
        return self.step + sum(self.of(part, depth) for part in parts)

    def _of_object(self, part: Mapping[str, Json], depth: int) -> float:
        # The name of the whole changes nothing: references into it are found all the same.
        skipped = UNCHECKED | {"$id", "id"} if part is self.root else UNCHECKED
        inner = sum(self._of_keyword(name, value, depth) for name, value in part.items() if name not in skipped)
        # What was evaluated is found by evaluating it again.
        return (self.step + inner) * (2 if any(name.startswith("unevaluated") for name in part) else 1)

    def _of_keyword(self, name: str, value: Json, depth: int) -> float:
        inside = depth - 1 if name in INSIDE else depth
        match name, value:
            case "$ref", str():
                return self.of(target, depth) if (target := self._target(value)) is not None else math.inf
            case _, str() if name in UNKNOWN_TARGET:
                return math.inf
            case "pattern", str():
                return self.step + self.weights.get(value, 0)
            case "patternProperties", dict():
                weights = sum(self.weights.get(pattern, 0) for pattern in value)
                return weights + self._of_all(value.values(), inside)
            case "multipleOf", _:
                return OF_MULTIPLE * self.step
            case _, dict() if name in NAMED:
                return self._of_all(value.values(), inside)
            case _:
                return self.of(value, inside)

    def _target(self, reference: str) -> Json:
        """What a reference into the schema itself points to; None for all others."""
        if reference != "#" and not reference.startswith("#/"):
            return None
        found = self.root
        for step in reference[1:].split("/")[1:]:
            name = step.replace("~1", "/").replace("~0", "~")
            match found:
                case dict():
                    found = cast("Mapping[str, Json]", found).get(name)
                case list() if name.isdecimal() and int(name) < len(found):
                    found = found[int(name)]
                case _:
                    return None
        return found
