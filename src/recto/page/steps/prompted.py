"""Calls and results as words, for a model that has no native tool calls (P11)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import groupby

from recto.conversation.json import dump
from recto.conversation.memo import remember
from recto.conversation.messages import (
    FAILED,
    AssistantMessage,
    AssistantPart,
    File,
    Message,
    Opaque,
    Text,
    ToolCall,
    ToolMessage,
    ToolPart,
    UserMessage,
)
from recto.page.draft import Draft
from recto.page.manifest import Note
from recto.page.prompt.tools_prompt import CLOSE, OPEN, tool_result_text
from recto.page.steps.fit import file_mark

RULE = "P11"
CALLS = "calls written as text, for a model without native ones"
RESULT = "result written as text, for a model without native calls"
STATE_LEFT_OUT = "{name} of {maker} left out: words cannot carry it"


def as_prompted(messages: Sequence[Message]) -> Draft:
    """The conversation with calls written out, a blank line after words, and results as user messages, each noted.

    Files in results leave their mark; provider state of calls and results is left out, and the note says so.
    """
    names: dict[str, str] = {}
    shown: list[Message] = []
    notes: dict[int, Note] = {}
    for place, message in enumerate(messages):
        if isinstance(message, AssistantMessage) and message.tool_calls:
            names |= {call.id: call.name for call in message.tool_calls}
            shown.append(remember(message, _with_calls_in_words))
            notes[place] = _note(CALLS, [call.state for call in message.tool_calls])
        elif isinstance(message, ToolMessage):
            shown.append(remember(message, _result_in_words, names.get(message.tool_call_id, "")))
            notes[place] = _note(RESULT, message.parts)
        else:
            shown.append(message)
    return Draft(messages=tuple(shown), origins=range(len(shown)), notes=notes)


def _note(reason: str, parts: Sequence[ToolPart | None]) -> Note:
    states = [part for part in parts if isinstance(part, Opaque)]
    lost = [STATE_LEFT_OUT.format(name=state.name, maker=state.model or state.provider) for state in states]
    return Note(decision="repaired", rule=RULE, reason="; ".join(dict.fromkeys((reason, *lost))))


def _with_calls_in_words(message: AssistantMessage) -> AssistantMessage:
    return replace(message, parts=tuple(_joined(map(_in_words, message.parts))))


def _joined(parts: Iterable[AssistantPart]) -> Iterator[AssistantPart]:
    """Texts that stand side by side as one: what is one text goes out as a string, which simple servers need."""
    for are_texts, neighbours in groupby(parts, lambda part: isinstance(part, Text)):
        if are_texts:
            texts = (part.text for part in neighbours if isinstance(part, Text))
            yield Text(text="\n\n".join(texts))
        else:
            yield from neighbours


def _in_words(part: AssistantPart) -> AssistantPart:
    if not isinstance(part, ToolCall):
        return part
    return Text(text=f'{OPEN}{{"name": {dump(part.name).decode()}, "arguments": {part.arguments}}}{CLOSE}')


def _result_in_words(message: ToolMessage, name: str) -> UserMessage:
    text = tool_result_text(name, _content(message))
    return UserMessage(id=message.id, seq=message.seq, time=message.time, parts=(Text(text=text),))


def _content(message: ToolMessage) -> str:
    content = "\n".join(_words(part) for part in message.parts if not isinstance(part, Opaque))
    # Words have no flag for a failure.
    return content if message.error is None or content.startswith(FAILED) else f"{FAILED}{content or message.error}"


def _words(part: Text | File) -> str:
    return part.text if isinstance(part, Text) else file_mark(part)
