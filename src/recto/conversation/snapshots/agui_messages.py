"""A thread's messages as AG-UI clients get them: whole, each file by a url that is signed when it is told.

They go by the log's own ids: those a client gave may stand for several messages.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate
from typing import TypeAlias

from recto.conversation.attachment import FileRef, file_of, refs_in
from recto.conversation.history import FileUrlSigner, file_row, history_row, statuses_of, time_text
from recto.conversation.input import agui
from recto.conversation.input_files import arguments_for, clean_files
from recto.conversation.json import Json, load_object
from recto.conversation.locale import DEFAULT_LOCALE
from recto.conversation.log import Interrupted, View
from recto.conversation.messages import (
    ActivityMessage,
    AssistantMessage,
    File,
    Message,
    ReasoningMessage,
    Text,
    ToolCall,
    ToolMessage,
    Url,
    UserMessage,
    words_of,
)

MessageRow: TypeAlias = Mapping[str, Json]
_Encoded: TypeAlias = tuple[Message, bytes]


@dataclass(frozen=True, kw_only=True)
class RenderContext:
    """How files are rendered: the url of each, what the ids in calls stand for, and whose calls keep their ids.

    `locale` is the agent's, for what is shown by hints. `most_bytes` is how much of a thread is told
    at once; None: all of it.
    """

    url_of: FileUrlSigner
    refs: Sequence[FileRef] = ()
    own_tools: frozenset[str] = frozenset()
    locale: str = DEFAULT_LOCALE
    most_bytes: int | None = None

    def arguments_of(self, call: ToolCall) -> str:
        """The arguments of a call as its tool gets them: those of clients' tools with urls (F8)."""
        if not call.is_for_client(otherwise=call.name not in self.own_tools):
            return call.arguments
        found = [(ref, self.url_of(file_of(ref))) for ref in refs_in(call.name, call.arguments, self.refs)]
        return arguments_for(call.name, call.arguments, {ref.id: url for ref, url in found if url is not None})


def message_rows(seen: View, context: RenderContext) -> tuple[MessageRow, ...]:
    """What is in view, in order; a reply that is not whole says so. Of more than is told at once, the newest turns."""
    return tuple([row for _, row in _rows(seen, context)])


def detailed_rows(seen: View, context: RenderContext, runs: Mapping[str, str]) -> tuple[MessageRow, ...]:
    """The rows of `message_rows` with what AG-UI has no place for: when and by which run, cards, files by their ids.

    `runs` are ids of runs by the messages they wrote.
    """
    return tuple([_detailed(row, message, context, runs.get(message.id)) for message, row in _rows(seen, context)])


def _detailed(row: MessageRow, message: Message, context: RenderContext, run: str | None) -> MessageRow:
    told = {**row, "timestamp": time_text(message.time) if message.time else None, "run": run}
    match message:
        case UserMessage():
            files = _files(message, context.url_of)
            return {**told, "files": files} if files else told
        case AssistantMessage() | ToolMessage():
            shown = history_row(message, context.url_of, context.locale)
            card = {"uiSchema": shown["uiSchema"]} if shown["uiSchema"] is not None else {}
            # A result is told as its event told it; an answer that says how it is shown has words of its own.
            has_words = isinstance(message, AssistantMessage) and "content" in row
            return {**told, **({"content": shown["content"]} if has_words else {}), **card}
        case _:
            return told


def _files(message: UserMessage, url_of: FileUrlSigner) -> Sequence[Json]:
    """Those of its files that are there, by the ids that the model knows them by (F4)."""
    prefix = message.response_id
    found = [(file, place, url_of(file)) for place, file in enumerate(clean_files(message))]
    return [file_row(file, f"{prefix}-{place}" if prefix else None, url) for file, place, url in found if url]


def _rows(seen: View, context: RenderContext) -> Sequence[tuple[Message, MessageRow]]:
    statuses = statuses_of(seen.markers)
    given_up = _given_up(seen)
    shown = [_without(message, given_up) for message in seen.messages] if given_up else seen.messages
    found = [(message, encoded) for message in shown if (encoded := _encoded(message, context))]
    newest = _newest(found, context.most_bytes)
    return [(message, _marked(load_object(encoded) or {}, statuses)) for message, encoded in newest]


def _given_up(seen: View) -> frozenset[str]:
    """The calls that nobody will answer any more: of replies that were broken off, and of turns that others followed.

    Clients take a call without a result for one that waits for them, and ask about it again.
    """
    broken_off = {marker.message for marker in seen.markers if isinstance(marker, Interrupted)}
    answered = {message.tool_call_id for message in seen.messages if isinstance(message, ToolMessage)}
    last = max((place for place, message in enumerate(seen.messages) if isinstance(message, UserMessage)), default=-1)
    return frozenset(
        call.id
        for place, message in enumerate(seen.messages)
        if isinstance(message, AssistantMessage) and (place < last or message.id in broken_off)
        for call in message.tool_calls
        if call.id not in answered
    )


def _without(message: Message, calls: frozenset[str]) -> Message:
    if not isinstance(message, AssistantMessage) or calls.isdisjoint(call.id for call in message.tool_calls):
        return message
    kept = tuple(part for part in message.parts if not (isinstance(part, ToolCall) and part.id in calls))
    return replace(message, parts=kept)


def _newest(found: Sequence[_Encoded], most: int | None) -> Sequence[_Encoded]:
    """What fits, from a user message on: what stands before it are results whose calls may not be here.

    The last message is told whatever its size.
    """
    sizes = list(accumulate(len(encoded) for _, encoded in reversed(found)))
    if most is None or not sizes or sizes[-1] <= most:
        return found
    kept = found[len(found) - max(1, sum(size <= most for size in sizes)) :]
    first = next((place for place, (message, _) in enumerate(kept) if isinstance(message, UserMessage)), 0)
    return kept[first:]


def _marked(row: MessageRow, statuses: Mapping[str, str]) -> MessageRow:
    status = statuses.get(str(row["id"]))
    return {**row, "status": status} if status else row


def _encoded(message: Message, context: RenderContext) -> bytes | None:
    """A message in AG-UI form. What clients have no place for is left out: provider state, files that are lost."""
    match message:
        case UserMessage() | ToolMessage():
            shown = [_shown(part, context.url_of) for part in message.parts if isinstance(part, (Text, File))]
            parts = tuple([part for part in shown if part is not None])
            told = _as_one(parts) if isinstance(message, ToolMessage) else parts
            return agui.encode(replace(message, parts=told, encrypted_value=None))
        case AssistantMessage():
            words = words_of(message)
            calls = [
                replace(call, state=None, encrypted_value=None, arguments=context.arguments_of(call))
                for call in message.tool_calls
            ]
            said = (*([Text(text=words)] if words else []), *calls)
            return agui.encode(replace(message, parts=said, encrypted_value=None)) if said else None
        case ReasoningMessage():
            return agui.encode(replace(message, encrypted_value=None)) if message.text else None
        case ActivityMessage():
            return agui.encode(message) if load_object(message.content) is not None else None
        case _:
            return None


def _shown(part: Text | File, url_of: FileUrlSigner) -> Text | File | None:
    if isinstance(part, Text):
        return part
    url = url_of(part)
    return replace(part, source=Url(url=url)) if url is not None else None


def _as_one(parts: tuple[Text | File, ...]) -> tuple[Text | File, ...]:
    """The parts of a result as its event told them: words alone are one text."""
    texts = [part.text for part in parts if isinstance(part, Text)]
    return (Text(text="\n".join(texts)),) if texts and len(texts) == len(parts) else parts
