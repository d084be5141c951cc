"""JSON Schemas reduced to keywords that take little time to check. The result accepts all that the schema accepts.

A pattern can take years to match, and so can a schema that refers to itself.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import cast

from recto.conversation.json import Json, Object

MOST_NODES = 20_000
MOST_REFERENCES = 40
# Their values map names to schemas.
NAMED = frozenset({"properties", "patternProperties", "dependentSchemas", "dependencies", "$defs", "definitions"})
# Their values are data, not schemas.
DATA = frozenset({"const", "enum", "default", "examples", "required"})
# They change no result, or are reachable by reference only. An `$id` would change the target of references.
UNCHECKED = frozenset(
    {
        *("$defs", "definitions", "default", "examples", "title", "description", "$comment"),
        *("$schema", "$id", "id", "$anchor", "$dynamicAnchor", "$recursiveAnchor"),
    }
)
# Dropped: they are slow, or their result depends on other keywords that may be dropped.
SLOW = frozenset({"pattern", "unevaluatedProperties", "unevaluatedItems", "$dynamicRef", "$recursiveRef"})
# Accepting more inside them would accept less outside.
INVERTING = frozenset({"not", "if", "contains"})


class SchemaTooLarge(Exception):
    """A schema that has too many values once its references are expanded."""


def without_patterns(schema: Json) -> Json:
    """Return the schema without patterns. References stay, and so do the subschemas of `patternProperties`."""
    match schema:
        case dict():
            result = dict[str, Json]()
            for name, value in schema.items():
                if name == "pattern" and isinstance(value, str):
                    continue
                if name == "patternProperties" and isinstance(value, dict):
                    result[name] = {str(place): without_patterns(inner) for place, inner in enumerate(value.values())}
                elif name in NAMED and isinstance(value, dict):
                    result[name] = {key: without_patterns(inner) for key, inner in value.items()}
                else:
                    result[name] = value if name in DATA else without_patterns(value)
            return result
        case list():
            return [without_patterns(inner) for inner in schema]
        case _:
            return schema


def checked_schema(schema: Json) -> Json:
    """Return the schema with its references expanded and without slow keywords. Raise SchemaTooLarge.

    A reference back to itself, or one that is not a JSON Pointer into the schema, accepts any value.
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
        """Return the part, and False if it may accept more than the original. `path` has the references to it."""
        if not isinstance(part, dict | list):
            return part, True
        self.nodes += 1
        if self.nodes > MOST_NODES:
            raise SchemaTooLarge
        if isinstance(part, list):
            pairs = [self.expand(inner, path) for inner in part]
            return [inner for inner, _ in pairs], all(is_exact for _, is_exact in pairs)
        return self._expand_object({"$ref": part["$ref"]} if "$ref" in part and self._is_old else part, path)

    @property
    def _is_old(self) -> bool:
        """True for drafts in which a reference replaces the keywords beside it."""
        return isinstance(self.root, dict) and "/draft-0" in str(self.root.get("$schema"))

    def _expand_object(self, part: Object, path: tuple[str, ...]) -> tuple[Json, bool]:
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
                # Every name matches it, so `additionalProperties` rejects none.
                return {"": True}, False
            case _, dict() if name in NAMED:
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
