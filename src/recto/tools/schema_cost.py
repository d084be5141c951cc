"""How many steps a JSON Schema may take to check, told before it is used: a small one can take years."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import cast

from recto.page.canonical import Json, parts_of

# Applied to what is inside the value, one level down.
INSIDE = frozenset(
    {
        *("properties", "patternProperties", "additionalProperties", "propertyNames", "unevaluatedProperties"),
        *("items", "prefixItems", "additionalItems", "contains", "unevaluatedItems"),
    }
)
# Schemas by names that are no keywords.
NAMED = frozenset({"properties", "patternProperties", "dependentSchemas", "dependencies"})
# Checked only where something refers to them, or never.
ASIDE = frozenset({"$defs", "definitions", "default", "examples", "title", "description"})
# With them, what a reference points to depends on the way there.
UNTOLD = frozenset({"$dynamicRef", "$recursiveRef", "$id", "id"})


def size(value: Json) -> tuple[int, int]:
    """How many values there are in a value, itself included, and how many levels."""
    count, depth, level = 0, -1, [value]
    while level:
        count += len(level)
        depth += 1
        level = [inner for one in level for inner in parts_of(one)]
    return count, depth


def cost(schema: Json, depth: int, *, most: int) -> float:
    """Steps per value for values of that many levels; infinite when they are more than `most` or cannot be told."""
    try:
        return _Cost(root=schema, most=most).of(schema, depth)
    except RecursionError:
        return math.inf


@dataclass(frozen=True, kw_only=True)
class _Cost:
    """The steps of each part of a schema at each depth, worked out once. One that is being worked out is infinite."""

    root: Json
    most: int
    known: dict[tuple[int, int], float] = field(default_factory=dict[tuple[int, int], float])

    def of(self, part: Json, depth: int) -> float:
        if not isinstance(part, dict | list) or depth < 0:
            return 1
        key = (id(part), depth)
        if key not in self.known:
            if len(self.known) >= self.most:
                return math.inf
            self.known[key] = math.inf
            steps = self._of_object(part, depth) if isinstance(part, dict) else self._of_all(part, depth)
            self.known[key] = steps if steps <= self.most else math.inf
        return self.known[key]

    def _of_all(self, parts: Iterable[Json], depth: int) -> float:
        return 1 + sum(self.of(part, depth) for part in parts)

    def _of_object(self, part: Mapping[str, Json], depth: int) -> float:
        # The name of the whole changes nothing: references into it are found all the same.
        aside = ASIDE | {"$id", "id"} if part is self.root else ASIDE
        steps = 1 + sum(self._of_keyword(name, value, depth) for name, value in part.items() if name not in aside)
        # What was evaluated is found by evaluating it again.
        return 2 * steps if any(name.startswith("unevaluated") for name in part) else steps

    def _of_keyword(self, name: str, value: Json, depth: int) -> float:
        if name in UNTOLD and isinstance(value, str):
            return math.inf
        if name == "$ref" and isinstance(value, str):
            return self.of(target, depth) if (target := self._target(value)) is not None else math.inf
        inside = depth - 1 if name in INSIDE else depth
        if name in NAMED and isinstance(value, dict):
            return self._of_all(value.values(), inside)
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
