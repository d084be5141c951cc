"""Calls and results as words, for a model that has no native tool calls (P11)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from recto.page.canonical import dump
from recto.page.draft import Draft
from recto.page.messages import (
    AssistantMessage,
    AssistantPart,
    Message,
    Text,
    ToolCall,
    ToolMessage,
    UserMessage,
    remember,
)
from recto.page.tools_prompt import CLOSE, OPEN, tool_result_text


def as_prompted(messages: Sequence[Message]) -> Draft:
    """The conversation with calls written out as text and results as user messages. Nothing is left out."""
    names: dict[str, str] = {}
    shown: list[Message] = []
    for message in messages:
        if isinstance(message, AssistantMessage):
            names |= {call.id: call.name for call in message.tool_calls}
            shown.append(remember(message, _with_calls_in_words) if message.tool_calls else message)
        elif isinstance(message, ToolMessage):
            shown.append(remember(message, _result_in_words, names.get(message.tool_call_id, "")))
        else:
            shown.append(message)
    return Draft(messages=tuple(shown), origins=range(len(shown)), notes={})


def _with_calls_in_words(message: AssistantMessage) -> AssistantMessage:
    return replace(message, parts=tuple(map(_in_words, message.parts)))


def _in_words(part: AssistantPart) -> AssistantPart:
    if not isinstance(part, ToolCall):
        return part
    return Text(text=f'{OPEN}{{"name": {dump(part.name).decode()}, "arguments": {part.arguments}}}{CLOSE}')


def _result_in_words(message: ToolMessage, name: str) -> UserMessage:
    content = "\n".join(part.text for part in message.parts if isinstance(part, Text))
    text = tool_result_text(name, content)
    return UserMessage(id=message.id, seq=message.seq, time=message.time, parts=(Text(text=text),))
