"""The `uiSchema` that goes with a result or an answer (P14), for history and events alike. Never raises for hints."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from recto.conversation.events import Event, UiUpdate
from recto.conversation.json import Json, load_object, parts_of
from recto.conversation.ui.compile_ui import DEFAULT_LOCALE, compile_ui

HINTS = "ui_hints"
# What an agent calls its language, and what a schema calls it.
LOCALES = {"zh": DEFAULT_LOCALE, "en": "en-US"}
_MARK = f'"{HINTS}"'


def ui_of(content: Json, locale: str = DEFAULT_LOCALE) -> dict[str, Json] | None:
    """The schema of what was said: JSON text that is an object with `ui_hints`, or AG-UI parts with such a text.

    None where there are no hints, or all they have is empty. `locale` may be an agent's.
    """
    answer = hinted(_words(content))
    if answer is None or _is_empty(answer[HINTS]):
        return None
    return compile_ui(answer[HINTS], locale=LOCALES.get(locale, locale))


def hinted(words: str) -> Mapping[str, Json] | None:
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


def ui_events(message_id: str, content: Json, locale: str) -> tuple[Event, ...]:
    """What readers hear right after a result or an answer: its schema, if it has one."""
    schema = ui_of(content, locale)
    return (UiUpdate(message=message_id, schema=schema),) if schema else ()


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
