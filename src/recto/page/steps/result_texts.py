"""Removal of `ui_hints` from tool results (P14): they are for clients only."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from operator import is_

from recto.conversation.json import dump
from recto.conversation.messages import Message, Text, ToolMessage, error_text
from recto.conversation.ui.compile_ui import HINTS, load_hinted
from recto.page.draft import Draft, change_results
from recto.page.manifest import Note
from recto.page.prompt.reminder import FRAME_TAGS, neutralise

HINTS_LEFT_OUT = Note(
    decision="cut", rule="P14", reason="without its ui_hints, which are for clients; they get them all"
)


def strip_ui_hints(messages: Sequence[Message]) -> Draft:
    """Remove hints from tool results. The log keeps them, and clients receive their compiled form."""
    return change_results(messages, _without_hints, HINTS_LEFT_OUT)


def _without_hints(message: ToolMessage) -> ToolMessage:
    """Remove the hints from texts that are a JSON object. Keep a text with anything around the object unchanged."""
    parts = list(message.parts)
    for place, part in enumerate(parts):
        if isinstance(part, Text) and (answer := load_hinted(part.text)) is not None:
            rest = {name: value for name, value in answer.items() if name != HINTS}
            parts[place] = replace(part, text=dump(rest).decode())
    return message if all(map(is_, parts, message.parts)) else replace(message, parts=tuple(parts))


NEUTRALISED = Note(decision="repaired", rule="F3", reason="text in it that looks like ours is made harmless")


def guard(messages: Sequence[Message]) -> Draft:
    """Neutralise Recto's own tags in all tool results (F3)."""
    return change_results(messages, _neutralised, NEUTRALISED)


def _neutralised(message: ToolMessage) -> ToolMessage:
    parts = list(message.parts)
    for place, part in enumerate(parts):
        if isinstance(part, Text) and (text := neutralise(part.text, FRAME_TAGS)) is not part.text:
            parts[place] = replace(part, text=text)
    return message if all(map(is_, parts, message.parts)) else replace(message, parts=tuple(parts))


ERROR_ADDED = Note(
    decision="repaired", rule="P11", reason="the error of the tool put into its words, for the model to read"
)


def add_error_texts(messages: Sequence[Message]) -> Draft:
    """Put the error of each failed result before its text, unless the text already contains it."""
    return change_results(messages, _with_error, ERROR_ADDED)


def _with_error(message: ToolMessage) -> ToolMessage:
    error = error_text(message)
    if error is None:
        return message
    match message.parts:
        # Put the error into the first text, because simple servers accept only one text.
        case (Text() as words, *rest):
            first_text = replace(words, text=f"{error}\n{words.text}" if words.text.strip() else error)
            return replace(message, parts=(first_text, *rest))
        case parts:
            return replace(message, parts=(Text(text=error), *parts))
