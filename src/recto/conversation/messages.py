"""Messages and their parts: frozen values without any provider's format.

`id`, `seq`, `time` and `path` belong to the log and are never sent to providers.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property
from typing import Literal, TypeAlias

from recto.conversation.memo import MemoHolder

# Provider names of blocks and fields with a model's thinking, or with the purpose of its text.
THOUGHTS = frozenset({"thinking", "redacted_thinking", "reasoning", "reasoning_content", "reasoning_details", "phase"})
# Recto's own error statuses. Their results contain an explanation. Statuses from clients never have these names.
STATUSES = frozenset(
    {
        *("error", "failed", "timeout", "unknown_tool", "invalid_arguments", "interrupted", "cut_off", "expired"),
        *("needs_consent", "denied", "too_many_calls"),
    }
)
# The prefix of an error text.
FAILED = "Error: "
DATA_URL = re.compile(r"data:(?P<mime>[^;,]*)(?:;[^;,]*)*;base64,", re.IGNORECASE)
FileKind: TypeAlias = Literal["document", "image", "audio", "video"]
# Who runs a tool: the server, the client, or a person who fills in a form of the agent in the client.
Runner: TypeAlias = Literal["server", "client", "form"]


@dataclass(frozen=True, kw_only=True)
class Text:
    """A text. In the result of a batch read, `path` is the file that this part shows."""

    text: str
    path: str | None = None


@dataclass(frozen=True, kw_only=True)
class Url:
    """The address of a file."""

    url: str


@dataclass(frozen=True, kw_only=True)
class Data:
    """The bytes of a file, in base64."""

    base64: str


@dataclass(frozen=True, kw_only=True)
class Key:
    """The key of a file in Recto's storage. A page contains its URL instead."""

    key: str


@dataclass(frozen=True, kw_only=True)
class ProviderFile:
    """A file stored by a provider. The handle means nothing to others."""

    provider: str
    handle: str


Source: TypeAlias = Url | Data | Key | ProviderFile


def source_from_url(url: str) -> tuple[Source, str | None]:
    """Return the source of a file by URL, and the media type if it is a data URL."""
    match = DATA_URL.match(url)
    if match:
        return Data(base64=url[match.end() :]), match["mime"] or None
    return Url(url=url), None


def data_url(source: Data, mime_type: str | None) -> str:
    """Return the bytes of a file as a data URL."""
    return f"data:{mime_type or 'application/octet-stream'};base64,{source.base64}"


@dataclass(frozen=True, kw_only=True)
class File:
    """A file in a message, by the source of its bytes. It never contains parsed text."""

    kind: FileKind
    source: Source
    mime_type: str | None = None
    name: str | None = None
    id: str | None = None


@dataclass(frozen=True, kw_only=True)
class Opaque:
    """Provider state that Recto returns without reading it: signed thinking, encrypted reasoning, unknown blocks.

    `data`, its JSON text, goes back verbatim to the provider and model that created it. If `model` is None, any model
    of that provider may receive it. `place` distinguishes content blocks from fields beside the content.
    """

    provider: str
    model: str | None
    place: Literal["block", "field"]
    name: str
    data: str

    @property
    def is_thought(self) -> bool:
        """True for the state of thinking. A message without any other content is empty."""
        return self.name in THOUGHTS


@dataclass(frozen=True, kw_only=True)
class ToolCall(MemoHolder):
    """A tool call by the model. `arguments` is the model's text, verbatim, even if it is not valid JSON.

    `id` is unique in a thread. If the provider's id is not unique, `provider_id` stores it for requests to that
    provider. `runner` is fixed when the call is made, even if a later run has other tools. It is None in older logs.
    """

    id: str
    name: str
    arguments: str
    encrypted_value: str | None = None
    state: Opaque | None = None
    runner: Runner | None = None
    provider_id: str = ""

    def is_for_client(self, *, otherwise: bool) -> bool:
        """Return True if the client must answer the call; `otherwise` is the answer for calls without a runner."""
        return otherwise if self.runner is None else self.runner != "server"


# Ways to offer tools: natively, as text for models without tool calls, or natively while also reading calls in text.
ToolCalling: TypeAlias = Literal["native", "prompt", "auto"]
# Forms of a call in text: JSON in a code fence, or in Recto's tags.
CallForm: TypeAlias = Literal["fenced", "tags"]


@dataclass(frozen=True, kw_only=True)
class ToolOffer(MemoHolder):
    """A tool the model may call. `parameters` is its JSON Schema as text, sent verbatim.

    If the description was shortened, `note` tells people what is missing and `tokens_before` is the full cost.
    """

    name: str
    description: str
    parameters: str
    note: str = ""
    tokens_before: int = 0


UserPart: TypeAlias = Text | File | Opaque
AssistantPart: TypeAlias = Text | File | ToolCall | Opaque
ToolPart: TypeAlias = Text | File | Opaque


@dataclass(frozen=True, kw_only=True)
class Logged(MemoHolder):
    """Fields of every log entry. `time` has a zone; `seq` is the number of the entry in its thread."""

    id: str = ""
    seq: int | None = None
    time: datetime | None = None

    def __post_init__(self) -> None:
        if self.time is not None and self.time.tzinfo is None:
            raise ValueError(f"Message {self.id!r} has a time without a zone: {self.time}. Give it one.")


@dataclass(frozen=True, kw_only=True)
class UserMessage(Logged):
    """A message of the user, with files.

    `response_id` is allocated when its turn is admitted and is the permanent prefix of its file ids (F4). Imported
    history has none. `client_id` is the client's id of the message, if Recto had to replace it.
    """

    response_id: str = ""
    client_id: str | None = None
    parts: tuple[UserPart, ...] = ()
    name: str | None = None
    encrypted_value: str | None = None
    role: Literal["user"] = "user"


@dataclass(frozen=True, kw_only=True)
class AssistantMessage(Logged):
    """A reply of the model: text, calls and opaque state in their order."""

    parts: tuple[AssistantPart, ...] = ()
    name: str | None = None
    encrypted_value: str | None = None
    role: Literal["assistant"] = "assistant"

    @cached_property
    def tool_calls(self) -> tuple[ToolCall, ...]:
        """The calls among the parts, in order."""
        return tuple([part for part in self.parts if isinstance(part, ToolCall)])


@dataclass(frozen=True, kw_only=True)
class ToolMessage(Logged):
    """The result of a tool. `error` is None on success, else the error or just "error".

    `tool_name` is set only in pages for providers that require it.
    """

    tool_call_id: str
    tool_name: str = ""
    parts: tuple[ToolPart, ...] = ()
    error: str | None = None
    encrypted_value: str | None = None
    role: Literal["tool"] = "tool"


@dataclass(frozen=True, kw_only=True)
class SystemMessage(Logged):
    """Instructions with the system's authority."""

    text: str
    name: str | None = None
    encrypted_value: str | None = None
    role: Literal["system"] = "system"


@dataclass(frozen=True, kw_only=True)
class DeveloperMessage(Logged):
    """Instructions with the developer's authority."""

    text: str
    name: str | None = None
    encrypted_value: str | None = None
    role: Literal["developer"] = "developer"


@dataclass(frozen=True, kw_only=True)
class ReasoningMessage(Logged):
    """Reasoning for people to read. Models get their opaque state back instead."""

    text: str
    encrypted_value: str | None = None
    role: Literal["reasoning"] = "reasoning"


@dataclass(frozen=True, kw_only=True)
class ActivityMessage(Logged):
    """Progress for people to see. `content` is a JSON object as text."""

    activity_type: str
    content: str
    role: Literal["activity"] = "activity"


@dataclass(frozen=True, kw_only=True)
class UnreadMessages(Logged):
    """A placeholder for consecutive visible messages that were not loaded because no page would show them.

    `id` is the id of the last message and `first` that of the first message. `time` is the newest of their times and
    `tokens` the sum of their tokens. The placeholder is never stored and never sent.
    """

    first: str
    count: int
    tokens: int
    role: Literal["unread"] = "unread"


Message: TypeAlias = (
    UserMessage
    | AssistantMessage
    | ToolMessage
    | SystemMessage
    | DeveloperMessage
    | ReasoningMessage
    | ActivityMessage
    | UnreadMessages
)


def words_of(message: UserMessage | AssistantMessage | ToolMessage, *, between: str = "") -> str:
    """Return the text of a message, without calls, files and state."""
    return between.join([part.text for part in message.parts if isinstance(part, Text)])


def texts_of(message: Message) -> tuple[str, ...]:
    """Return all texts of a message that a model would read, calls included, in order."""
    match message:
        case UserMessage() | ToolMessage() | AssistantMessage():
            parts = message.parts
            if len(parts) == 1 and isinstance(parts[0], Text):
                return (parts[0].text,)
            texts = list[str]()
            for part in parts:
                match part:
                    case Text():
                        texts.append(part.text)
                    case ToolCall():
                        texts += (part.name, part.arguments)
                    case Opaque():
                        texts.append(part.data)
                    case File():
                        pass
            return tuple(texts)
        case ActivityMessage():
            return (message.content,)
        case UnreadMessages():
            return ()
        case _:
            return (message.text,)


def error_text(message: ToolMessage) -> str | None:
    """Return the error text to add to a failed result, or None if the result reports the failure itself.

    Results with one of Recto's own statuses contain an explanation. An empty result gets at least its status.
    """
    error = message.error
    if error is None:
        return None
    words = words_of(message, between="\n")
    if words.strip() and (error in STATUSES or error in words):
        return None
    return error if error.startswith(FAILED) else f"{FAILED}{error or 'error'}"
