"""The JSON Schema of `uiSchema` v2.0 (P14) for renderers: the only list of nodes and their fields.

Recto sends no other fields. A renderer shows every string as plain text, except `markdown`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeAlias

from recto.conversation.json import Json

Schema: TypeAlias = Mapping[str, Json]

VERSION = "2.0"
STATUSES = ("info", "success", "warning", "error", "pending")
THEMES = ("default", "light", "dark")
META = ("requestId", "toolId", "traceId", "userId")
APPEARANCES = ("plain", "card")
DIRECTIONS = ("vertical", "horizontal")
ROLES = ("title", "subtitle", "body", "caption")
STYLES = ("primary", "secondary", "danger")
CHARTS = ("bar", "line", "area", "pie")

# URLs without blanks, backslashes, quotes and angle brackets, without a user before the host, and without `..` in
# /api/.
_WEB = r"[Hh][Tt][Tt][Pp][Ss]?://[^\s/?#@\\<>\"]+(?:[/?#][^\s\\<>\"]*)?"
_OURS = r"/api/(?![^?#]*(?:\.|%2[Ee]){2})[^\s\\<>\"]*"
_MAIL = r"[Mm][Aa][Ii][Ll][Tt][Oo]:[^\s\\<>\"]+"
_INLINE = r"data:image/(?:png|jpeg|gif|webp);base64,[A-Za-z0-9+/]+={0,2}"
LINK_URL = rf"^(?:{_WEB}|{_OURS}|{_MAIL})$"
IMAGE_URL = rf"^(?:{_WEB}|{_OURS}|{_INLINE})$"
LOCALE = r"^[A-Za-z]{1,8}(?:[-_][A-Za-z0-9]{1,8})*$"
LANGUAGE = r"^[A-Za-z0-9+#._-]{1,40}$"

_TEXT: Schema = {"type": "string"}
_SCALAR: Schema = {"type": ["string", "number", "boolean", "null"]}
_STATUS: Schema = {"enum": STATUSES}
_LINK: Schema = {"type": "string", "pattern": LINK_URL}
_NODE: Schema = {"$ref": "#/$defs/node"}


def _list(items: Schema, least: int = 0) -> Schema:
    return {"type": "array", "items": items} | ({"minItems": least} if least else {})


def _object(properties: Schema, *required: str) -> Schema:
    return {"type": "object", "properties": properties, "required": required, "additionalProperties": False}


def _node(kind: str, description: str, properties: Schema, *required: str) -> Schema:
    fields = {"type": {"const": kind}, **properties}
    return {"description": description, **_object(fields, "type", *required)}


NODES: Mapping[str, Schema] = {
    "stack": _node(
        "stack",
        "Children one after another; a card has a border. Without direction: vertical.",
        {"appearance": {"enum": APPEARANCES}, "direction": {"enum": DIRECTIONS}, "children": _list(_NODE)},
        "children",
    ),
    "text": _node("text", "Plain words.", {"content": _TEXT, "role": {"enum": ROLES}}, "content"),
    "badge": _node(
        "badge", "A short word in the colour of a status.", {"label": _TEXT, "status": _STATUS}, "label", "status"
    ),
    "markdown": _node(
        "markdown",
        "Markdown without HTML. Its links are safe; `<` before a tag is `&lt;`, so code is better in a code node.",
        {"content": _TEXT},
        "content",
    ),
    "image": _node(
        "image",
        "A picture: on the web, ours, or inside the url. `alt` stands for it where it is not seen.",
        {"url": {"type": "string", "pattern": IMAGE_URL}, "alt": _TEXT, "caption": _TEXT},
        "url",
    ),
    "link": _node("link", "Words that lead to a url.", {"label": _TEXT, "url": _LINK}, "label", "url"),
    "button": {
        **_node(
            "button",
            "Opens `url`, or says `message` in the user's name; one of the two.",
            {"label": _TEXT, "url": _LINK, "message": _TEXT, "style": {"enum": STYLES}},
            "label",
        ),
        "oneOf": [{"required": ["url"]}, {"required": ["message"]}],
    },
    "list": _node(
        "list", "Points, numbered if ordered.", {"ordered": {"type": "boolean"}, "items": _list(_NODE)}, "items"
    ),
    "table": _node(
        "table",
        "A cell for every column in every row; null is an empty cell.",
        {"columns": _list(_TEXT, 1), "rows": _list(_list(_SCALAR, 1))},
        "columns",
        "rows",
    ),
    "fields": _node(
        "fields",
        "Names and what they are; null is not known.",
        {"items": _list(_object({"label": _TEXT, "value": _SCALAR}, "label", "value"))},
        "items",
    ),
    "code": _node(
        "code",
        "Letter for letter, never interpreted.",
        {"content": _TEXT, "language": {"type": "string", "pattern": LANGUAGE}},
        "content",
    ),
    "divider": _node("divider", "A line between.", {}),
    "progress": _node(
        "progress",
        "How far it is: value out of max.",
        {"value": {"type": "number", "minimum": 0}, "max": {"type": "number", "exclusiveMinimum": 0}, "label": _TEXT},
        "value",
        "max",
    ),
    "chart": _node(
        "chart",
        "Series of numbers, one for each label; null is a gap.",
        {
            "kind": {"enum": CHARTS},
            "title": _TEXT,
            "labels": _list(_TEXT),
            "series": _list(_object({"name": _TEXT, "values": _list({"type": ["number", "null"]})}, "name", "values")),
        },
        "kind",
        "labels",
        "series",
    ),
}

UI_SCHEMA: Schema = {
    "$schema": "https://json-schema.org/draft/2020-12/schema",
    "title": "uiSchema 2.0",
    **_object(
        {
            "version": {"const": VERSION},
            "locale": {"type": "string", "pattern": LOCALE},
            "status": _STATUS,
            "theme": {"enum": THEMES},
            "meta": {**_object(dict.fromkeys(META, _TEXT)), "minProperties": 1},
            "root": {"$ref": "#/$defs/stack"},
        },
        *("version", "locale", "status", "theme", "root"),
    ),
    "$defs": {**NODES, "node": {"oneOf": [{"$ref": f"#/$defs/{kind}"} for kind in NODES]}},
}
