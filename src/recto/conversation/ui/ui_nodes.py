"""Compilation of hints to nodes of `uiSchema` (P14). Each node reads only the fields it knows.

A field of a wrong type and an unsafe URL raise a WireError. The caller then shows the hints as text.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping, Sequence
from typing import TypeAlias, TypeGuard

from recto.conversation.json import Json
from recto.conversation.ui.ui_schema import (
    APPEARANCES,
    CHARTS,
    DIRECTIONS,
    IMAGE_URL,
    LANGUAGE,
    LINK_URL,
    ROLES,
    STATUSES,
    STYLES,
)
from recto.errors import WireError

# The maximum number of cells. Rows may omit cells, so a small hint could make a large table.
MOST_CELLS = 10_000
_LANGUAGE = re.compile(LANGUAGE)


def compile_node(value: object) -> Node:
    """Return a node from a text, from the fields of a node (`type` ...), or from simple hints (`title`, `body` ...)."""
    if isinstance(value, str):
        return {"type": "text", "content": plain_text(value)}
    hints = an_object(value, "a node")
    if "type" not in hints:
        return {"type": "stack", "children": compile_hints(hints)}
    kind = choice(hints, "type", tuple(_MAKERS))
    return _MAKERS[kind](hints)


def compile_hints(hints: Hints) -> list[Json]:
    """Return the nodes of simple hints in reading order. A status without other hints becomes a badge."""
    children = [make(hints[name], hints) for name, make in _PARTS.items() if is_given(hints, name)]
    if not children and not is_given(hints, "status"):
        raise WireError(where="ui_hints", problem="nothing in them is known")
    return list(children) or [_badge_part(True, hints)]


def document_status(hints: Hints) -> str:
    """Return the status in the hints, or info."""
    return choice(hints, "status", STATUSES) if is_given(hints, "status") else STATUSES[0]


# Simple hints, each a part of a card


def _badge_part(value: object, hints: Hints) -> Node:
    """Return the badge of the status for True, of a text, or of an object with a label and its own status."""
    status = document_status(hints)
    if value is True or value in STATUSES:
        status = status if value is True else str(value)
        return {"type": "badge", "label": status.upper(), "status": status}
    if isinstance(value, str):
        return {"type": "badge", "label": plain_text(value), "status": status}
    return _badge({"status": status, **an_object(value, "badge")})


_PARTS: Mapping[str, Callable[[object, Hints], Node]] = {
    "title": lambda value, _: {"type": "text", "content": plain_text(a_string(value, "title")), "role": "title"},
    "badge": _badge_part,
    "body": lambda value, _: compile_node(value) | ({"role": "body"} if isinstance(value, str) else {}),
    "image": lambda value, _: _image({"url": value} if isinstance(value, str) else an_object(value, "image")),
    "fields": lambda value, _: _fields({"items": value}),
    "items": lambda value, _: _list({"items": value}),
    "table": lambda value, _: _table(value if is_object(value) else {"rows": value}),
    "actions": lambda value, _: {
        "type": "stack",
        "direction": "horizontal",
        "children": [_button(an_object(one, "an action")) for one in a_list(value, "actions")],
    },
}


# Nodes of a tree


def _stack(hints: Hints) -> Node:
    options = optional_choice(hints, "appearance", APPEARANCES) | optional_choice(hints, "direction", DIRECTIONS)
    children = [compile_node(child) for child in a_list(hints.get("children"), "children")]
    return {"type": "stack", **options, "children": children}


def _badge(hints: Hints) -> Node:
    return {"type": "badge", "label": words(hints, "label"), "status": document_status(hints)}


def _image(hints: Hints) -> Node:
    texts = {**optional_words(hints, "alt"), **optional_words(hints, "caption")}
    return {"type": "image", "url": url(hints, is_image), **texts}


def _button(hints: Hints) -> Node:
    if is_given(hints, "url") == is_given(hints, "message"):
        raise WireError(where="button", problem="it has both a url and a message, or none of them. Give one.")
    does: Node = {"url": url(hints, is_link)} if is_given(hints, "url") else {"message": words(hints, "message")}
    return {"type": "button", "label": words(hints, "label"), **does, **optional_choice(hints, "style", STYLES)}


def _list(hints: Hints) -> Node:
    items = [compile_node(item) for item in a_list(hints.get("items"), "items")]
    return {"type": "list", **optional_flag(hints, "ordered"), "items": items}


def _table(hints: Hints) -> Node:
    """Return a table of rows that are lists, or objects by column. Without `columns`, the keys of objects name them."""
    rows = a_list(hints.get("rows"), "rows")
    if is_given(hints, "columns"):
        names = [a_string(column, "columns") for column in a_list(hints["columns"], "columns")]
    else:
        names = list(dict.fromkeys(key for row in rows for key in an_object(row, "a row without columns")))
    if not names or len(names) * len(rows) > MOST_CELLS:
        raise WireError(
            where="table", problem=f"{len(names)} columns by {len(rows)} rows. Give 1 to {MOST_CELLS} cells."
        )
    table_rows = list[Json]()
    for row in rows:
        cells = [row.get(name) for name in names] if is_object(row) else a_list(row, "a row")
        if len(cells) != len(names):
            problem = f"a row has {len(cells)} cells for {len(names)} columns. Give one each."
            raise WireError(where="table", problem=problem)
        table_rows.append(list(map(a_scalar, cells)))
    return {"type": "table", "columns": list(map(plain_text, names)), "rows": table_rows}


def _fields(hints: Hints) -> Node:
    """Return fields from objects with a label and a value, or from one object whose keys are the labels."""
    items = hints.get("items")
    pairs: list[tuple[object, object]]
    if is_object(items):
        pairs = list(items.items())
    else:
        objects = [an_object(item, "items") for item in a_list(items, "items")]
        pairs = [(item.get("label"), item.get("value")) for item in objects]
    rows: list[Json] = [
        {"label": plain_text(a_string(name, "label")), "value": a_scalar(value)} for name, value in pairs
    ]
    return {"type": "fields", "items": rows}


def _code(hints: Hints) -> Node:
    language = hints.get("language")
    if language is not None and not _LANGUAGE.fullmatch(a_string(language, "language")):
        raise WireError(where="code", problem=f"language is {language!r}. Give a name such as python.")
    content = verbatim_text(a_string(hints.get("content"), "content"))
    return {"type": "code", "content": content, **({} if language is None else {"language": str(language)})}


def _progress(hints: Hints) -> Node:
    value, most = a_number(hints.get("value"), "value"), a_number(hints["max"] if is_given(hints, "max") else 1, "max")
    if not 0 <= value <= most or most == 0:
        raise WireError(where="progress", problem=f"value {value} is not between 0 and {most}. Give one that is.")
    return {"type": "progress", "value": value, "max": most, **optional_words(hints, "label")}


def _chart(hints: Hints) -> Node:
    labels = [plain_text(a_string(label, "labels")) for label in a_list(hints.get("labels"), "labels")]
    series = list[Json]()
    for row in [an_object(value, "series") for value in a_list(hints.get("series"), "series")]:
        values = [None if one is None else a_number(one, "values") for one in a_list(row.get("values"), "values")]
        if len(values) != len(labels):
            problem = f"a series has {len(values)} values for {len(labels)} labels. Give one each."
            raise WireError(where="chart", problem=problem)
        series.append({"name": words(row, "name"), "values": values})
    title = {"kind": choice(hints, "kind", CHARTS), **optional_words(hints, "title")}
    return {"type": "chart", **title, "labels": labels, "series": series}


_MAKERS: Mapping[str, Callable[[Hints], Node]] = {
    "stack": _stack,
    "text": lambda hints: {"type": "text", "content": words(hints, "content"), **optional_choice(hints, "role", ROLES)},
    "badge": _badge,
    "markdown": lambda hints: {"type": "markdown", "content": markdown_text(a_string(hints.get("content"), "content"))},
    "image": _image,
    "link": lambda hints: {"type": "link", "label": words(hints, "label"), "url": url(hints, is_link)},
    "button": _button,
    "list": _list,
    "table": _table,
    "fields": _fields,
    "code": _code,
    "divider": lambda _: {"type": "divider"},
    "progress": _progress,
    "chart": _chart,
}


Hints: TypeAlias = Mapping[str, object]
Node: TypeAlias = dict[str, Json]

# Some JSON readers round larger integers.
LARGEST = 2**53 - 1
EMPTY: tuple[object, ...] = ("", [], (), {})


def is_given(hints: Hints, name: str) -> bool:
    """Return True unless the field is missing, null, false or empty."""
    value = hints.get(name)
    return value is not None and value is not False and value not in EMPTY


def is_object(value: object) -> TypeGuard[Hints]:
    """Return True for an object. The check of all hints ensures that its keys are texts."""
    return isinstance(value, dict)


def is_list(value: object) -> TypeGuard[Sequence[object]]:
    """Return True for a list."""
    return isinstance(value, list | tuple)


def an_object(value: object, where: str) -> Hints:
    """Return the value as an object."""
    if not is_object(value):
        raise WireError(where=where, problem=f"{type(value).__name__} instead of an object")
    return value


def a_list(value: object, where: str) -> Sequence[object]:
    """Return the value as a list."""
    if not is_list(value):
        raise WireError(where=where, problem=f"{type(value).__name__} instead of a list")
    return value


def a_string(value: object, where: str) -> str:
    """Return the value as a text that is not yet safe to show."""
    if not isinstance(value, str):
        raise WireError(where=where, problem=f"{type(value).__name__} instead of a text")
    return value


def a_number(value: object, where: str) -> int | float:
    """Return the value as a number that every JSON reader reads alike."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise WireError(where=where, problem=f"{type(value).__name__} instead of a number")
    if abs(value) > LARGEST if isinstance(value, int) else not math.isfinite(value):
        raise WireError(where=where, problem="a number JSON cannot carry everywhere")
    return value


def a_scalar(value: object) -> Json:
    """Return the value of a cell or a field: a text, a number, a boolean, or None."""
    if value is None or isinstance(value, bool):
        return value
    return plain_text(value) if isinstance(value, str) else a_number(value, "a value")


def words(hints: Hints, name: str) -> str:
    """Return a text field as plain text."""
    return plain_text(a_string(hints.get(name), name))


def choice(hints: Hints, name: str, allowed: Sequence[str]) -> str:
    """Return a field with one of the allowed words."""
    value = hints.get(name)
    if not isinstance(value, str) or value not in allowed:
        raise WireError(where=name, problem=f"{value!r} is none of {', '.join(allowed)}")
    return value


def url(hints: Hints, is_safe: Callable[[str], bool]) -> str:
    """Return the URL field if it is safe."""
    value = a_string(hints.get("url"), "url")
    if not is_safe(value):
        raise WireError(where="url", problem=f"{value!r} leads where no hint may lead")
    return value


def optional_choice(hints: Hints, name: str, allowed: Sequence[str]) -> Node:
    """Return the field with one of the allowed words, or no field."""
    return {name: choice(hints, name, allowed)} if hints.get(name) is not None else {}


def optional_words(hints: Hints, name: str) -> Node:
    """Return the field as plain text, or no field."""
    return {name: words(hints, name)} if hints.get(name) is not None else {}


def optional_flag(hints: Hints, name: str) -> Node:
    """Return the boolean field, or no field."""
    value = hints.get(name)
    if value is not None and not isinstance(value, bool):
        raise WireError(where=name, problem=f"{type(value).__name__} instead of true or false")
    return {} if value is None else {name: value}


_LINE_ENDS = re.compile(r"\r\n?|[\x85\u2028\u2029]")
_CONTROLS = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")
_TAG = re.compile(r"<(?=[A-Za-z/!?])")
_SCHEMES = "|".join(r"\s*".join(scheme) for scheme in ("javascript", "vbscript"))
# `Data: 42 rows` is no URL: a URL that can contain a page names its type before the first comma.
_SCHEME = re.compile(rf"\A(\s*(?:{_SCHEMES}|d\s*a\s*t\s*a(?=\s*:[^,/]*/[^,]*,)))\s*:", re.IGNORECASE)

INLINE_IMAGE = "data:image/"
_LINK = re.compile(LINK_URL)
_IMAGE = re.compile(IMAGE_URL)

# None of these contains brackets, so no match hides another link.
_TARGET = r"[ \t]*(?P<url>[^\s()\[\]<>\\\"]*(?:\([^\s()\[\]<>\\\"]*\)[^\s()\[\]<>\\\"]*)*)"
_TITLE = r"(?:[ \t]+\"[^\"\[\]\\\n]*\")?[ \t]*"
_WHOLE_LINK = re.compile(r"!?\[(?P<label>[^\[\]]*)\]\((?P<inside>[^()]*(?:\([^()]*\)[^()]*)*)\)")
_INSIDE = re.compile(rf"{_TARGET}{_TITLE}")
_LINK_START = re.compile(rf"(?P<label>\])(?P<sign>\()(?P<rest>{_TARGET}{_TITLE}\))?")
_DEFINITION = re.compile(
    r"^(?P<label>[ \t>*+\-\d.)]*\[[^\[\]]*(?:\\[\[\]][^\[\]]*)*\])(?P<sign>:)(?P<rest>[ \t]+(?P<url>\S+))?",
    re.MULTILINE,
)


def is_link(url: str) -> bool:
    """Return True for a safe link: printable, and http, https, mailto, or Recto's own under /api/."""
    return url.isprintable() and _LINK.search(url) is not None


def is_image(url: str) -> bool:
    """Return True for a safe source of a picture: http, https, Recto's own, or bytes of a format without scripts."""
    return url.isprintable() and _IMAGE.search(url) is not None


def is_script(text: str) -> bool:
    """Return True if a browser would treat the text as a URL that runs code or contains a page."""
    return _SCHEME.match(verbatim_text(text)) is not None


def verbatim_text(text: str) -> str:
    """Return the text without control characters and with line feeds only."""
    return _CONTROLS.sub("", _LINE_ENDS.sub("\n", text))


def plain_text(text: str) -> str:
    """Return a text that is neither HTML nor a script URL, even for a renderer that interprets it.

    A space after the `<` of a tag and before the colon of a script scheme leaves the text readable.
    """
    return _TAG.sub("< ", _without_scheme(text))


def markdown_text(text: str) -> str:
    """Return Markdown in which HTML is text and only safe links work; an unsafe link becomes its label.

    Code is treated the same, because renderers disagree on where it ends: the `<` of a tag becomes `&lt;` there too.
    """

    def check_link(link: re.Match[str]) -> str:
        inside = _INSIDE.fullmatch(link["inside"])
        return link[0] if inside and is_link(inside["url"]) else link["label"]

    def check_rest(match: re.Match[str]) -> str:
        if match["rest"] and is_link(match["url"]):
            return match[0]
        return rf"{match['label']}\{match['sign']}{match['rest'] or ''}"

    labels = _WHOLE_LINK.sub(check_link, _without_scheme(text))
    # Escape the parenthesis of the remaining nested and broken links. Then escape the colon of unsafe definitions.
    return _TAG.sub("&lt;", _DEFINITION.sub(check_rest, _LINK_START.sub(check_rest, labels)))


def _without_scheme(text: str) -> str:
    return _SCHEME.sub(r"\1 :", verbatim_text(text))
