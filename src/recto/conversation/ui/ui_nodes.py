"""Nodes of `uiSchema` (P14), made from hints: each from the fields it knows, nothing else is read.

What has the wrong type or leads to the wrong place is refused with a WireError; the caller says it in words instead.
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

# A row may leave cells out, so a small hint could make a large table.
MOST_CELLS = 10_000
_LANGUAGE = re.compile(LANGUAGE)


def compile_node(value: object) -> Node:
    """A node from words, from a node's fields (`type` and more), or from the simple hints (`title`, `body` ...)."""
    if isinstance(value, str):
        return {"type": "text", "content": plain_text(value)}
    hints = an_object(value, "a node")
    if "type" not in hints:
        return {"type": "stack", "children": compile_hints(hints)}
    kind = choice(hints, "type", tuple(_MAKERS))
    return _MAKERS[kind](hints)


def compile_hints(hints: Hints) -> list[Json]:
    """The nodes of the simple hints, in the order people read them. A status alone is shown by its badge."""
    children = [make(hints[name], hints) for name, make in _PARTS.items() if is_given(hints, name)]
    if not children and not is_given(hints, "status"):
        raise WireError(where="ui_hints", problem="nothing in them is known")
    return list(children) or [_badge_part(True, hints)]


def document_status(hints: Hints) -> str:
    """The status the hints name, else info."""
    return choice(hints, "status", STATUSES) if is_given(hints, "status") else STATUSES[0]


# Simple hints, each a part of a card


def _title_part(value: object, _: Hints) -> Node:
    return {"type": "text", "content": plain_text(a_string(value, "title")), "role": "title"}


def _badge_part(value: object, hints: Hints) -> Node:
    """True: the status itself. A word: that word. An object: its label and its own status."""
    status = document_status(hints)
    if value is True or value in STATUSES:
        status = status if value is True else str(value)
        return {"type": "badge", "label": status.upper(), "status": status}
    if isinstance(value, str):
        return {"type": "badge", "label": plain_text(value), "status": status}
    return _badge({"status": status, **an_object(value, "badge")})


def _body_part(value: object, _: Hints) -> Node:
    if isinstance(value, str):
        return {"type": "text", "content": plain_text(value), "role": "body"}
    return compile_node(value)


def _image_part(value: object, _: Hints) -> Node:
    return _image({"url": value} if isinstance(value, str) else an_object(value, "image"))


def _fields_part(value: object, _: Hints) -> Node:
    return _fields({"items": value})


def _items_part(value: object, _: Hints) -> Node:
    return _list({"items": value})


def _table_part(value: object, _: Hints) -> Node:
    return _table(value if is_object(value) else {"rows": value})


def _actions_part(value: object, _: Hints) -> Node:
    buttons = [_button(an_object(one, "an action")) for one in a_list(value, "actions")]
    return {"type": "stack", "direction": "horizontal", "children": buttons}


_PARTS: Mapping[str, Callable[[object, Hints], Node]] = {
    "title": _title_part,
    "badge": _badge_part,
    "body": _body_part,
    "image": _image_part,
    "fields": _fields_part,
    "items": _items_part,
    "table": _table_part,
    "actions": _actions_part,
}


# Nodes of a tree


def _stack(hints: Hints) -> Node:
    options = optional_choice(hints, "appearance", APPEARANCES) | optional_choice(hints, "direction", DIRECTIONS)
    children = [compile_node(child) for child in a_list(hints.get("children"), "children")]
    return {"type": "stack", **options, "children": children}


def _text(hints: Hints) -> Node:
    return {"type": "text", "content": words(hints, "content"), **optional_choice(hints, "role", ROLES)}


def _badge(hints: Hints) -> Node:
    return {"type": "badge", "label": words(hints, "label"), "status": document_status(hints)}


def _markdown(hints: Hints) -> Node:
    return {"type": "markdown", "content": markdown_text(a_string(hints.get("content"), "content"))}


def _image(hints: Hints) -> Node:
    return {
        "type": "image",
        "url": url(hints, is_image),
        **optional_words(hints, "alt"),
        **optional_words(hints, "caption"),
    }


def _link(hints: Hints) -> Node:
    return {"type": "link", "label": words(hints, "label"), "url": url(hints, is_link)}


def _button(hints: Hints) -> Node:
    if is_given(hints, "url") == is_given(hints, "message"):
        raise WireError(where="button", problem="it has both a url and a message, or none of them. Give one.")
    does: Node = {"url": url(hints, is_link)} if is_given(hints, "url") else {"message": words(hints, "message")}
    return {"type": "button", "label": words(hints, "label"), **does, **optional_choice(hints, "style", STYLES)}


def _list(hints: Hints) -> Node:
    items = [compile_node(item) for item in a_list(hints.get("items"), "items")]
    return {"type": "list", **optional_flag(hints, "ordered"), "items": items}


def _table(hints: Hints) -> Node:
    """Rows are lists, or objects by column; then columns not named are the keys, in the order they come."""
    rows = a_list(hints.get("rows"), "rows")
    if is_given(hints, "columns"):
        names = [a_string(column, "columns") for column in a_list(hints["columns"], "columns")]
    else:
        names = list(dict.fromkeys(key for row in rows for key in an_object(row, "a row without columns")))
    if not names or len(names) * len(rows) > MOST_CELLS:
        raise WireError(
            where="table", problem=f"{len(names)} columns by {len(rows)} rows. Give 1 to {MOST_CELLS} cells."
        )
    return {"type": "table", "columns": list(map(plain_text, names)), "rows": [_row(row, names) for row in rows]}


def _row(row: object, names: Sequence[str]) -> list[Json]:
    if is_object(row):
        return [a_scalar(row.get(name)) for name in names]
    cells = a_list(row, "a row")
    if len(cells) != len(names):
        raise WireError(where="table", problem=f"a row has {len(cells)} cells for {len(names)} columns. Give one each.")
    return [a_scalar(cell) for cell in cells]


def _fields(hints: Hints) -> Node:
    """Items are objects of label and value; or one object, whose keys are the labels."""
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


def _divider(_: Hints) -> Node:
    return {"type": "divider"}


def _progress(hints: Hints) -> Node:
    value, most = a_number(hints.get("value"), "value"), a_number(hints["max"] if is_given(hints, "max") else 1, "max")
    if not 0 <= value <= most or most == 0:
        raise WireError(where="progress", problem=f"value {value} is not between 0 and {most}. Give one that is.")
    return {"type": "progress", "value": value, "max": most, **optional_words(hints, "label")}


def _chart(hints: Hints) -> Node:
    labels = [plain_text(a_string(label, "labels")) for label in a_list(hints.get("labels"), "labels")]
    series: list[Json] = [_series(one, len(labels)) for one in a_list(hints.get("series"), "series")]
    title = {"kind": choice(hints, "kind", CHARTS), **optional_words(hints, "title")}
    return {"type": "chart", **title, "labels": labels, "series": series}


def _series(value: object, size: int) -> Node:
    hints = an_object(value, "series")
    values = [None if one is None else a_number(one, "values") for one in a_list(hints.get("values"), "values")]
    if len(values) != size:
        raise WireError(where="chart", problem=f"a series has {len(values)} values for {size} labels. Give one each.")
    return {"name": words(hints, "name"), "values": values}


_MAKERS: Mapping[str, Callable[[Hints], Node]] = {
    "stack": _stack,
    "text": _text,
    "badge": _badge,
    "markdown": _markdown,
    "image": _image,
    "link": _link,
    "button": _button,
    "list": _list,
    "table": _table,
    "fields": _fields,
    "code": _code,
    "divider": _divider,
    "progress": _progress,
    "chart": _chart,
}


Hints: TypeAlias = Mapping[str, object]
Node: TypeAlias = dict[str, Json]

# Whole numbers beyond this are not the same in every JSON reader.
LARGEST = 2**53 - 1
EMPTY: tuple[object, ...] = ("", [], (), {})


def is_given(hints: Hints, name: str) -> bool:
    """Whether the hint says anything: nothing, false and what is empty do not."""
    value = hints.get(name)
    return value is not None and value is not False and value not in EMPTY


def is_object(value: object) -> TypeGuard[Hints]:
    """Whether the value is an object. That its keys are texts is known of hints once they were looked through."""
    return isinstance(value, dict)


def is_list(value: object) -> TypeGuard[Sequence[object]]:
    """Whether the value is a list."""
    return isinstance(value, list | tuple)


def an_object(value: object, where: str) -> Hints:
    """The value as an object."""
    if not is_object(value):
        raise WireError(where=where, problem=f"{type(value).__name__} instead of an object")
    return value


def a_list(value: object, where: str) -> Sequence[object]:
    """The value as a list."""
    if not is_list(value):
        raise WireError(where=where, problem=f"{type(value).__name__} instead of a list")
    return value


def a_string(value: object, where: str) -> str:
    """The value as the text it is, not yet safe to show."""
    if not isinstance(value, str):
        raise WireError(where=where, problem=f"{type(value).__name__} instead of a text")
    return value


def a_number(value: object, where: str) -> int | float:
    """The value as a number that is the same in every JSON reader."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise WireError(where=where, problem=f"{type(value).__name__} instead of a number")
    if abs(value) > LARGEST if isinstance(value, int) else not math.isfinite(value):
        raise WireError(where=where, problem="a number JSON cannot carry everywhere")
    return value


def a_scalar(value: object) -> Json:
    """The value of a cell or a field: words, a number, yes or no, or nothing."""
    if value is None or isinstance(value, bool):
        return value
    return plain_text(value) if isinstance(value, str) else a_number(value, "a value")


def words(hints: Hints, name: str) -> str:
    """Words to show."""
    return plain_text(a_string(hints.get(name), name))


def choice(hints: Hints, name: str, allowed: Sequence[str]) -> str:
    """One of the words allowed."""
    value = hints.get(name)
    if not isinstance(value, str) or value not in allowed:
        raise WireError(where=name, problem=f"{value!r} is none of {', '.join(allowed)}")
    return value


def url(hints: Hints, is_safe: Callable[[str], bool]) -> str:
    """The url, where it is safe."""
    value = a_string(hints.get("url"), "url")
    if not is_safe(value):
        raise WireError(where="url", problem=f"{value!r} leads where no hint may lead")
    return value


def optional_choice(hints: Hints, name: str, allowed: Sequence[str]) -> Node:
    """The field with one of the words allowed, or no field."""
    return {name: choice(hints, name, allowed)} if hints.get(name) is not None else {}


def optional_words(hints: Hints, name: str) -> Node:
    """The field with words to show, or no field."""
    return {name: words(hints, name)} if hints.get(name) is not None else {}


def optional_flag(hints: Hints, name: str) -> Node:
    """The field with yes or no, or no field."""
    value = hints.get(name)
    if value is not None and not isinstance(value, bool):
        raise WireError(where=name, problem=f"{type(value).__name__} instead of true or false")
    return {} if value is None else {name: value}


_LINE_ENDS = re.compile(r"\r\n?|[\x85\u2028\u2029]")
_CONTROLS = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")
_TAG = re.compile(r"<(?=[A-Za-z/!?])")
_SCHEMES = "|".join(r"\s*".join(scheme) for scheme in ("javascript", "vbscript"))
# `Data: 42 rows` is no url: one that can hold a page names its type before the first comma.
_SCHEME = re.compile(rf"\A(\s*(?:{_SCHEMES}|d\s*a\s*t\s*a(?=\s*:[^,/]*/[^,]*,)))\s*:", re.IGNORECASE)

INLINE_IMAGE = "data:image/"
_LINK = re.compile(LINK_URL)
_IMAGE = re.compile(IMAGE_URL)

# Brackets are in none of these, so what one match passes over hides no other link.
_TARGET = r"[ \t]*(?P<url>[^\s()\[\]<>\\\"]*(?:\([^\s()\[\]<>\\\"]*\)[^\s()\[\]<>\\\"]*)*)"
_TITLE = r"(?:[ \t]+\"[^\"\[\]\\\n]*\")?[ \t]*"
_WHOLE_LINK = re.compile(r"!?\[(?P<label>[^\[\]]*)\]\((?P<inside>[^()]*(?:\([^()]*\)[^()]*)*)\)")
_INSIDE = re.compile(rf"{_TARGET}{_TITLE}")
_LINK_START = re.compile(rf"\]\((?P<rest>{_TARGET}{_TITLE}\))?")
_DEFINITION = re.compile(
    r"^(?P<label>[ \t>*+\-\d.)]*\[[^\[\]]*(?:\\[\[\]][^\[\]]*)*\]):(?P<rest>[ \t]+(?P<url>\S+))?", re.MULTILINE
)


def is_link(url: str) -> bool:
    """A url a person may follow: http, https, mailto, or our own under /api/. Unseen characters spoil it."""
    return url.isprintable() and _LINK.search(url) is not None


def is_image(url: str) -> bool:
    """A url a picture may come from: http, https, our own, or the bytes of a picture that can hold no script."""
    return url.isprintable() and _IMAGE.search(url) is not None


def is_script(text: str) -> bool:
    """Whether the text, taken for a url, would run or hold a page; as browsers see it, blanks and all."""
    return _SCHEME.match(verbatim_text(text)) is not None


def verbatim_text(text: str) -> str:
    """The text letter for letter, but for control characters; every line ends with a line feed."""
    return _CONTROLS.sub("", _LINE_ENDS.sub("\n", text))


def plain_text(text: str) -> str:
    """Words that are no HTML and no script url, even to a reader who takes them for such.

    A blank after the `<` of a tag, a blank before the colon of a script scheme: people read the same.
    """
    return _TAG.sub("< ", _without_scheme(text))


def markdown_text(text: str) -> str:
    """Markdown in which HTML is text and only safe links lead anywhere; of others the label stays.

    Code inside is treated alike, since renderers differ on where it ends: `<` of a tag is `&lt;` there too.
    """
    labels = _WHOLE_LINK.sub(_without_bad_target, _without_scheme(text))
    links = _LINK_START.sub(_without_bad_link, labels)
    return _TAG.sub("&lt;", _DEFINITION.sub(_without_bad_definition, links))


def _without_scheme(text: str) -> str:
    return _SCHEME.sub(r"\1 :", verbatim_text(text))


def _without_bad_target(link: re.Match[str]) -> str:
    inside = _INSIDE.fullmatch(link["inside"])
    return link[0] if inside and is_link(inside["url"]) else link["label"]


def _without_bad_link(start: re.Match[str]) -> str:
    """What the step before left: nested or broken links. Their parenthesis is text."""
    return start[0] if start["rest"] and is_link(start["url"]) else rf"]\({start['rest'] or ''}"


def _without_bad_definition(definition: re.Match[str]) -> str:
    if definition["rest"] and is_link(definition["url"]):
        return definition[0]
    return rf"{definition['label']}\:{definition['rest'] or ''}"
