"""Calls and results as text, for models without native tool calls (P11)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import groupby

from recto.conversation.locale import language
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
    WrittenAs,
)
from recto.page.draft import Draft
from recto.page.manifest import Note
from recto.page.prompt.tools_prompt import RESULTS_COME_SO, call_text, tool_result_text
from recto.page.steps.fit import file_mark

RULE = "P11"
CALLS = "calls written as text, for a model without native ones"
RESULT = "result written as text, for a model without native calls"
STATE_LEFT_OUT = "{name} of {maker} left out: words cannot carry it"


def as_prompted(messages: Sequence[Message], locale: str = "en", form: WrittenAs = "fenced") -> Draft:
    """Write calls as text after a blank line, and results as user messages, each with a note.

    The first result comes with an explanation of the format. Files in results become marks. Provider state of calls and
    results is left out, and the note says so.
    """
    names: dict[str, str] = {}
    told = RESULTS_COME_SO[language(locale)]
    shown: list[Message] = []
    notes: dict[int, Note] = {}
    for place, message in enumerate(messages):
        if isinstance(message, AssistantMessage) and message.tool_calls:
            names |= {call.id: call.name for call in message.tool_calls}
            shown.append(remember(message, _with_calls_in_words, form))
            notes[place] = _note(CALLS, [call.state for call in message.tool_calls])
        elif isinstance(message, ToolMessage):
            shown.append(remember(message, _result_in_words, names.get(message.tool_call_id, ""), told))
            told = ""
            notes[place] = _note(RESULT, message.parts)
        else:
            shown.append(message)
    return Draft(messages=tuple(shown), origins=range(len(shown)), notes=notes)


def _note(reason: str, parts: Sequence[ToolPart | None]) -> Note:
    states = [part for part in parts if isinstance(part, Opaque)]
    lost = [STATE_LEFT_OUT.format(name=state.name, maker=state.model or state.provider) for state in states]
    return Note(decision="repaired", rule=RULE, reason="; ".join(dict.fromkeys((reason, *lost))))


def _with_calls_in_words(message: AssistantMessage, form: WrittenAs) -> AssistantMessage:
    return replace(message, parts=tuple(_joined([_in_words(part, form) for part in message.parts])))


def _joined(parts: Iterable[AssistantPart]) -> Iterator[AssistantPart]:
    """Merge neighbouring texts: a single text is sent as a string, which simple servers need."""
    for are_texts, neighbours in groupby(parts, lambda part: isinstance(part, Text)):
        if are_texts:
            texts = (part.text for part in neighbours if isinstance(part, Text))
            yield Text(text="\n\n".join(texts))
        else:
            yield from neighbours


def _in_words(part: AssistantPart, form: WrittenAs) -> AssistantPart:
    return Text(text=call_text(part.name, part.arguments, form)) if isinstance(part, ToolCall) else part


def _result_in_words(message: ToolMessage, name: str, told: str) -> UserMessage:
    text = "\n\n".join(filter(None, (told, tool_result_text(name, _content(message)))))
    return UserMessage(id=message.id, seq=message.seq, time=message.time, parts=(Text(text=text),))


def _content(message: ToolMessage) -> str:
    content = "\n".join(_words(part) for part in message.parts if not isinstance(part, Opaque))
    # Text has no flag for a failure.
    return content if message.error is None or content.startswith(FAILED) else f"{FAILED}{content or message.error}"


def _words(part: Text | File) -> str:
    return part.text if isinstance(part, Text) else file_mark(part)
