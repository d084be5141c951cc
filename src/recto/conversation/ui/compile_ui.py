"""Compilation of the `ui_hints` in a tool result or an answer to a `uiSchema` v2.0 (P14).

Hints are outside input. They are checked, then compiled. Invalid hints become one text with their words. The result is
always safe, and nothing is raised or fetched.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import NamedTuple, cast

from recto.conversation.events import Event, UiUpdate
from recto.conversation.json import Json, load_object, parts_of, scrub
from recto.conversation.locale import DEFAULT_LOCALE, LOCALES, language
from recto.conversation.ui.ui_nodes import (
    INLINE_IMAGE,
    LARGEST,
    Hints,
    Node,
    a_number,
    an_object,
    choice,
    compile_hints,
    compile_node,
    document_status,
    is_given,
    is_list,
    is_object,
    is_script,
    plain_text,
)
from recto.conversation.ui.ui_schema import LOCALE, META, STATUSES, THEMES, VERSION
from recto.errors import WireError

HINTS = "ui_hints"
NOTHING_TO_SAY = {"zh": "（这里的内容无法显示）", "en": "(This content cannot be shown)"}
CUT = "…"
# Fields for the renderer. Their values are never shown as words.
SILENT = frozenset(
    {
        *("type", "role", "status", "theme", "appearance", "direction", "style", "kind", "language", "url", "href"),
        *("src", "image", "version", "locale", "meta"),
    }
)
_MARK = f'"{HINTS}"'
_LOCALE = re.compile(LOCALE)


@dataclass(frozen=True, kw_only=True)
class UiLimits:
    """Limits of hints: depth and number of nodes, and number and size of all values.

    `text` limits one string except the bytes of a picture, `characters` all strings together, including keys.
    """

    depth: int = 16
    nodes: int = 500
    values: int = 10_000
    text: int = 20_000
    characters: int = 262_144
    meta: int = 200

    @property
    def levels(self) -> int:
        """The maximum nesting of values: a node and its list are two levels, a cell in a table three more."""
        return 2 * self.depth + 4


DEFAULTS = UiLimits()


def ui_events(message_id: str, content: Json, locale: str) -> tuple[Event, ...]:
    """Return the event with the schema of a result or an answer, if it has one."""
    schema = ui_of(content, locale)
    return (UiUpdate(message=message_id, schema=schema),) if schema else ()


def ui_of(content: Json, locale: str = DEFAULT_LOCALE) -> dict[str, Json] | None:
    """Return the schema of an AG-UI content: a JSON object with `ui_hints` as text, or parts with such a text.

    Return None if there are no hints or only empty ones. `locale` may be the language of an agent profile.
    """
    words = content if isinstance(content, str) else ""
    if isinstance(content, Sequence) and not isinstance(content, str):
        parts = [part for part in content if isinstance(part, Mapping) and part.get("type") == "text"]
        words = "".join([text for part in parts if isinstance(text := part.get("text"), str)])
    answer = load_hinted(words)
    # Without recursion, because hints may be deep
    values = [answer[HINTS]] if answer else []
    while answer and values:
        value = values.pop()
        if isinstance(value, (dict, list)):
            values += parts_of(value)
        elif value is not None and not (isinstance(value, str) and not value.strip()):
            return compile_ui(answer[HINTS], locale=LOCALES.get(locale, locale))
    return None


def load_hinted(words: str) -> Mapping[str, Json] | None:
    """Return the JSON object in a text if it has hints, else None."""
    answer = load_object(words) if _MARK in words else None
    return answer if answer and HINTS in answer else None


def compile_ui(
    hints: object, *, locale: str = DEFAULT_LOCALE, meta: Mapping[str, str] | None = None, limits: UiLimits = DEFAULTS
) -> dict[str, Json] | None:
    """Return the `uiSchema` of the hints, or None for None and for an empty object.

    Hints are simple (`title`, `body` ...) or a tree: `root`, or a node itself. Besides `root`, only `status` and
    `theme` are read. Unknown fields are ignored. Hints that are hostile, too large or of a wrong type become one text.
    """
    if hints is None or (is_object(hints) and not hints):
        return None
    try:
        root, status, theme = _compile(hints, limits)
    except WireError:
        # Show every text and number once, one per line
        text = plain_text("\n".join(dict.fromkeys(_lines(hints, limits)))) or NOTHING_TO_SAY[language(locale)]
        content = text if len(text) <= limits.text else f"{text[: limits.text]}{CUT}"
        root = _card([{"type": "text", "content": content, "role": "body"}])
        fields: Hints = hints if is_object(hints) else {}
        status = next((one for one in STATUSES if one == fields.get("status")), STATUSES[0])
        theme = next((one for one in THEMES if one == fields.get("theme")), THEMES[0])
    document_meta = {key: plain_text(scrub(meta[key]))[: limits.meta] for key in META if meta.get(key)} if meta else {}
    return {
        "version": VERSION,
        "locale": locale if _LOCALE.fullmatch(locale) else DEFAULT_LOCALE,
        "status": status,
        "theme": theme,
        **({"meta": document_meta} if document_meta else {}),
        "root": root,
    }


def _compile(hints: object, limits: UiLimits) -> tuple[Node, str, str]:
    # Reject values that JSON cannot carry and values over the limits. A cycle exceeds the depth limit.
    characters = 0
    for count, hint in enumerate(_walk(_Hint("", 1, hints), limits.levels)):
        characters += _check(hint.value, limits)
        if count >= limits.values or characters > limits.characters or hint.depth > limits.levels:
            raise WireError(where=HINTS, problem=f"too many or too deep values. The limits are {limits}.")
    fields = an_object(hints, HINTS)
    if not is_given(fields, "root") and "type" not in fields:
        root = _card(compile_hints(fields))
    else:
        root = compile_node(fields["root"] if is_given(fields, "root") else fields)
        root = root if root["type"] == "stack" else _card([root])
    depths = tuple(_depths(root))
    if len(depths) > limits.nodes or max(depths) > limits.depth:
        raise WireError(where=HINTS, problem=f"{len(depths)} nodes, {max(depths)} deep. The limits are {limits}.")
    theme = choice(fields, "theme", THEMES) if is_given(fields, "theme") else THEMES[0]
    return root, document_status(fields), theme


class _Hint(NamedTuple):
    """A value in the hints, its depth, and its key. An item of a list has the key of the list."""

    key: object
    depth: int
    value: object


def _walk(hint: _Hint, levels: int) -> Iterator[_Hint]:
    """Yield every value in its order, down to the first level over the limit."""
    yield hint
    if hint.depth > levels:
        return
    inner: Iterable[tuple[object, object]] = ()
    if is_object(hint.value):
        inner = hint.value.items()
    elif is_list(hint.value):
        inner = ((hint.key, item) for item in hint.value)
    for key, value in inner:
        yield from _walk(_Hint(key, hint.depth + 1, value), levels)


def _check(value: object, limits: UiLimits) -> int:
    """Return the number of characters of a value, or of the keys of an object. Reject anything that is not JSON."""
    if is_object(value):
        return sum(_check_text(key, limits.text) for key in value)
    if value is None or isinstance(value, bool) or is_list(value):
        return 0
    if isinstance(value, str):
        return _check_text(value, limits.characters if value.startswith(INLINE_IMAGE) else limits.text)
    a_number(value, HINTS)
    return 0


def _check_text(text: object, most: int) -> int:
    if not isinstance(text, str) or len(text) > most or scrub(text) != text:
        raise WireError(where=HINTS, problem=f"a key or a value that is no text of up to {most} characters")
    return len(text)


def _card(children: Sequence[Json]) -> Node:
    return {"type": "stack", "appearance": "card", "children": children}


def _depths(node: Json, depth: int = 1) -> Iterator[int]:
    """Yield the depth of every node of a tree."""
    yield depth
    fields = cast("Mapping[str, Json]", node)
    inner = fields.get("items" if fields["type"] == "list" else "children", ())
    for child in cast("Sequence[Json]", inner):
        yield from _depths(child, depth + 1)


def _lines(hints: object, limits: UiLimits) -> Iterator[str]:
    """Yield the texts and numbers of rejected hints, without script URLs."""
    size = 0
    for key, _, value in islice(_walk(_Hint("", 1, hints), limits.levels), limits.values):
        line = ""
        if key in SILENT:
            continue
        if isinstance(value, str):
            line = "" if is_script(value) else plain_text(scrub(value.strip()[: limits.text + 1]))
        elif isinstance(value, int | float) and not isinstance(value, bool) and abs(value) <= LARGEST:
            line = str(value)
        if line.strip():
            size += len(line)
            yield line
        if size > limits.text:
            return
