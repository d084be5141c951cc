"""Error texts of failed tool results (P11), which formats have no field for."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from recto.conversation.messages import Message, Text, ToolMessage, error_text
from recto.page.draft import Draft, change_results
from recto.page.manifest import Note

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
        # As one text, because simple servers accept nothing else.
        case (Text() as words, *rest):
            shown = replace(words, text=f"{error}\n{words.text}" if words.text.strip() else error)
            return replace(message, parts=(shown, *rest))
        case parts:
            return replace(message, parts=(Text(text=error), *parts))
