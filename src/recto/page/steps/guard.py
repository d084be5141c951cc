"""Neutralising of Recto's own tags in tool results (F3)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from operator import is_

from recto.conversation.messages import Message, Text, ToolMessage, ToolPart
from recto.page.draft import Draft, change_results
from recto.page.manifest import Note
from recto.page.prompt.reminder import FRAME_TAGS, neutralise

NEUTRALISED = Note(decision="repaired", rule="F3", reason="text in it that looks like ours is made harmless")


def guard(messages: Sequence[Message]) -> Draft:
    """Neutralise Recto's own tags in all tool results (F3)."""
    return change_results(messages, _neutralised, NEUTRALISED)


def _neutralised(message: ToolMessage) -> ToolMessage:
    parts = [_neutral_part(part) for part in message.parts]
    return message if all(map(is_, parts, message.parts)) else replace(message, parts=tuple(parts))


def _neutral_part(part: ToolPart) -> ToolPart:
    if not isinstance(part, Text):
        return part
    text = neutralise(part.text, FRAME_TAGS)
    return part if text is part.text else replace(part, text=text)
