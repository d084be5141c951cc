"""Offers of external tools with schemas that all providers accept. Tools without such a schema are left out."""

from __future__ import annotations

import hashlib
import re
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from typing import cast

from recto.agents.external_tools import BETWEEN
from recto.conversation.json import Json, dump
from recto.conversation.messages import ToolOffer
from recto.errors import WireError
from recto.tools.client_schema import Schemas

LONGEST = 64
HASH = 8
_INVALID = re.compile(r"[^a-zA-Z0-9_-]")
# Keywords to drop from the root of a parameter schema because providers reject them there. The external service still
# validates the arguments.
ROOT_REFUSED = frozenset({"anyOf", "oneOf", "allOf", "not", "if", "then", "else", "enum", "const"})
# Keywords to drop from the root because they only identify the schema.
ROOT_NAMES = frozenset({"$schema", "$id", "id", "$anchor", "$comment"})
PROPERTY = re.compile(r"[a-zA-Z0-9_.-]{1,64}")
CUT = " ..."


def tool_names(server: str, own_names: Sequence[str], used_names: Collection[str] = ()) -> Mapping[str, str]:
    """Map each tool name of a server to the name offered to the model, which is not in `used_names`.

    A name that is too long, or that collides after invalid characters are replaced, ends in a hash of the original
    name. So it does not depend on the order of tools.
    """
    plain = {own: f"{server}{BETWEEN}{_INVALID.sub('_', own)}" for own in own_names}
    count = Counter(plain.values())
    names = dict[str, str]()
    for own, name in plain.items():
        original = f"{server}{BETWEEN}{own}"
        is_unique = name == original or count[name] == 1
        suffix = f"_{hashlib.sha256(original.encode()).hexdigest()[:HASH]}"
        is_usable = len(name) <= LONGEST and name not in used_names and is_unique
        names[own] = name if is_usable else name[: LONGEST - len(suffix)] + suffix
    return names


class CannotOffer(Exception):
    """A tool that no provider would accept; the text is the reason."""


async def normalise_offer(offer: ToolOffer, schema: Json, characters: int, schemas: Schemas) -> ToolOffer:
    """Return the tool with its schema normalised and its description shortened. Raise CannotOffer if that fails."""
    mended = ToolOffer(
        name=offer.name,
        description=shorten_text(offer.description, characters),
        parameters=dump(normalise_schema(schema)).decode(),
    )
    try:
        await schemas.admit((mended,))
    except WireError as error:
        raise CannotOffer(error.problem) from error
    return mended


def shorten_text(text: str, characters: int) -> str:
    """Cut a text to at most `characters`."""
    text = text.strip()
    return text if len(text) <= characters else text[: max(characters - len(CUT), 0)].rstrip() + CUT


def normalise_schema(schema: Json) -> dict[str, Json]:
    """Return a schema whose root is one object with named properties."""
    if not isinstance(schema, Mapping):
        raise CannotOffer("its schema is no object")
    root = _resolve_root(cast("Mapping[str, Json]", schema))
    result = {key: value for key, value in root.items() if key not in ROOT_NAMES | ROOT_REFUSED}
    kind = result.get("type", "object")
    if kind != "object" and not (isinstance(kind, list) and "object" in kind):
        raise CannotOffer(f"its arguments are of type {kind}, and no object")
    properties = result.get("properties", {})
    if not isinstance(properties, Mapping):
        raise CannotOffer("its properties are no object")
    wrong = [name for name in properties if not PROPERTY.fullmatch(name)]
    if wrong:
        raise CannotOffer(f"it has an argument {wrong[0][:64]!r}; providers take letters, digits, _, . and -, up to 64")
    return {**result, "type": "object", "properties": dict(properties)}


def _resolve_root(schema: Mapping[str, Json]) -> Mapping[str, Json]:
    """Resolve a root that is a reference into its own definitions."""
    references: set[str] = set()
    while isinstance(reference := schema.get("$ref"), str):
        target: Json = dict(schema)
        for step in reference[2:].split("/"):
            name = step.replace("~1", "/").replace("~0", "~")
            target = target.get(name) if isinstance(target, Mapping) else None
        if not reference.startswith("#/") or not isinstance(target, Mapping) or reference in references:
            raise CannotOffer(f"its schema refers to {reference[:100]!r}, which is not in it")
        references.add(reference)
        definitions = {key: schema[key] for key in ("$defs", "definitions") if key in schema}
        schema = {**definitions, **target}
    return schema
