"""`uiSchema` v2.0 of what was said (P14): from the `ui_hints` in a tool result or an answer, whatever they are.

Hints are outside input: they are looked through first, then compiled; where either refuses, their words are said as
one text. What comes out is safe. Nothing is raised and nothing is fetched.
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
# Fields that steer a renderer; what they hold is never shown as words.
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
    """How large hints may be: depth and number of nodes, and of the hints themselves, whatever they mean.

    `text` is for one string but a picture's bytes, `characters` for all of them together, keys included.
    """

    depth: int = 16
    nodes: int = 500
    values: int = 10_000
    text: int = 20_000
    characters: int = 262_144
    meta: int = 200

    @property
    def levels(self) -> int:
        """How deep values may stand in one another: a node and its list are two, a cell in a table three more."""
        return 2 * self.depth + 4


DEFAULTS = UiLimits()


def ui_events(message_id: str, content: Json, locale: str) -> tuple[Event, ...]:
    """What readers hear right after a result or an answer: its schema, if it has one."""
    schema = ui_of(content, locale)
    return (UiUpdate(message=message_id, schema=schema),) if schema else ()


def ui_of(content: Json, locale: str = DEFAULT_LOCALE) -> dict[str, Json] | None:
    """The schema of what was said: JSON text that is an object with `ui_hints`, or AG-UI parts with such a text.

    None where there are no hints, or all they have is empty. `locale` may be an agent's.
    """
    answer = load_hinted(_words(content))
    if answer is None or _is_empty(answer[HINTS]):
        return None
    return compile_ui(answer[HINTS], locale=LOCALES.get(locale, locale))


def _words(content: Json) -> str:
    """The text of what AG-UI calls content."""
    match content:
        case str():
            return content
        case Sequence():
            parts = [part for part in content if isinstance(part, Mapping) and part.get("type") == "text"]
            return "".join([text for part in parts if isinstance(text := part.get("text"), str)])
        case _:
            return ""


def load_hinted(words: str) -> Mapping[str, Json] | None:
    """What a text says as data, if that has hints."""
    answer = load_object(words) if _MARK in words else None
    return answer if answer and HINTS in answer else None


def _is_empty(hints: Json) -> bool:
    """Whether there is nothing but nulls, blanks, and what holds no more. Without recursion: hints may be deep."""
    waiting = [hints]
    while waiting:
        match waiting.pop():
            case None:
                pass
            case str() as text if not text.strip():
                pass
            case dict() | list() as inner:
                waiting += parts_of(inner)
            case _:
                return False
    return True


def compile_ui(
    hints: object,
    *,
    locale: str = DEFAULT_LOCALE,
    meta: Mapping[str, str] | None = None,
    limits: UiLimits = DEFAULTS,
) -> dict[str, Json] | None:
    """The `uiSchema` of the hints; None where there are none (None, or an empty object).

    Hints are simple ones (`title`, `body` ...), or a tree: `root`, or a node itself; beside `root` only `status` and
    `theme` are read. Fields nobody knows are left out. Hints that are hostile, of a wrong type or too large become
    one text of what can be said.
    """
    if hints is None or (is_object(hints) and not hints):
        return None
    try:
        root, status, theme = _compiled(hints, limits)
    except WireError:
        # One text of what can be said: every text and number once, a line each
        text = plain_text("\n".join(dict.fromkeys(_lines(hints, limits)))) or NOTHING_TO_SAY[language(locale)]
        content = text if len(text) <= limits.text else f"{text[: limits.text]}{CUT}"
        root, status, theme = _card([{"type": "text", "content": content, "role": "body"}]), *_look_of(hints)
    document_meta = _meta(meta or {}, limits)
    return {
        "version": VERSION,
        "locale": locale if _LOCALE.fullmatch(locale) else DEFAULT_LOCALE,
        "status": status,
        "theme": theme,
        **({"meta": document_meta} if document_meta else {}),
        "root": root,
    }


def _compiled(hints: object, limits: UiLimits) -> tuple[Node, str, str]:
    # Refuses what JSON cannot carry and what is too large. A ring has no end, so it is too deep.
    characters = 0
    for count, hint in enumerate(_walk(_Hint("", 1, hints), limits.levels)):
        characters += _check(hint.value, limits)
        if count >= limits.values or characters > limits.characters or hint.depth > limits.levels:
            raise WireError(where=HINTS, problem=f"too many or too deep values. The limits are {limits}.")
    checked_hints = an_object(hints, HINTS)
    root = _root(checked_hints)
    depths = tuple(_depths(root))
    if len(depths) > limits.nodes or max(depths) > limits.depth:
        raise WireError(where=HINTS, problem=f"{len(depths)} nodes, {max(depths)} deep. The limits are {limits}.")
    return (
        root,
        document_status(checked_hints),
        choice(checked_hints, "theme", THEMES) if is_given(checked_hints, "theme") else THEMES[0],
    )


class _Hint(NamedTuple):
    """A value in the hints, how deep it stands, and the key it stands under; of a list's item, the list's."""

    key: object
    depth: int
    value: object


def _walk(hint: _Hint, levels: int) -> Iterator[_Hint]:
    """Every value in the order written, down to the first level too many."""
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
    """How many characters the value itself has, its keys if it is an object; refuses what is no JSON."""
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


def _root(hints: Hints) -> Node:
    if not is_given(hints, "root") and "type" not in hints:
        return _card(compile_hints(hints))
    node = compile_node(hints["root"] if is_given(hints, "root") else hints)
    return node if node["type"] == "stack" else _card([node])


def _card(children: Sequence[Json]) -> Node:
    return {"type": "stack", "appearance": "card", "children": children}


def _depths(node: Json, depth: int = 1) -> Iterator[int]:
    """The depth of every node of a tree."""
    yield depth
    fields = cast("Mapping[str, Json]", node)
    inner = fields.get("items" if fields["type"] == "list" else "children", ())
    for child in cast("Sequence[Json]", inner):
        yield from _depths(child, depth + 1)


# Where the hints were refused


def _lines(hints: object, limits: UiLimits) -> Iterator[str]:
    size = 0
    for key, _, value in islice(_walk(_Hint("", 1, hints), limits.levels), limits.values):
        line = "" if key in SILENT else _line(value, limits)
        size += len(line)
        if line:
            yield line
        if size > limits.text:
            return


def _line(value: object, limits: UiLimits) -> str:
    """What a value says by itself. A script url says nothing, and so does what is no text and no number."""
    if isinstance(value, str):
        text = plain_text(scrub(value.strip()[: limits.text + 1]))
        return text if text.strip() and not is_script(value) else ""
    if isinstance(value, int | float) and not isinstance(value, bool) and abs(value) <= LARGEST:
        return str(value)
    return ""


def _look_of(hints: object) -> tuple[str, str]:
    fields: Hints = hints if is_object(hints) else {}
    status, theme = fields.get("status"), fields.get("theme")
    return (
        status if isinstance(status, str) and status in STATUSES else STATUSES[0],
        theme if isinstance(theme, str) and theme in THEMES else THEMES[0],
    )


def _meta(meta: Mapping[str, str], limits: UiLimits) -> dict[str, Json]:
    return {key: plain_text(scrub(meta[key]))[: limits.meta] for key in META if meta.get(key)}
