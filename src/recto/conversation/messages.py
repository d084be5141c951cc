"""A conversation as values: messages and what they are made of.

Frozen, free of any provider's format, free of storage. `id`, `seq`, `time` and `path` are the log's own
knowledge of a message; no provider is ever sent them.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property
from typing import Literal, TypeAlias

from recto.conversation.memo import MemoHolder

# What providers call the blocks and fields that hold a model's thinking, or say what its words are for.
THOUGHTS = frozenset({"thinking", "redacted_thinking", "reasoning", "reasoning_content", "reasoning_details", "phase"})
# What a failure is called where the words of its result are our own; what others call it is never one of these.
STATUSES = frozenset(
    {
        *("error", "failed", "timeout", "unknown_tool", "invalid_arguments", "interrupted", "cut_off", "expired"),
        *("needs_consent", "denied", "too_many_calls"),
    }
)
# How a failure begins where its words do not say it.
FAILED = "Error: "
DATA_URL = re.compile(r"data:(?P<mime>[^;,]*)(?:;[^;,]*)*;base64,", re.IGNORECASE)
FileKind: TypeAlias = Literal["document", "image", "audio", "video"]
# The server runs its agents' tools and the client its own; a form is the client's answer to a tool of the agent's.
Runner: TypeAlias = Literal["server", "client", "form"]


@dataclass(frozen=True, kw_only=True)
class Text:
    """Words. `path` is set on a part of a batch read: the file this part answers for."""

    text: str
    path: str | None = None


@dataclass(frozen=True, kw_only=True)
class Url:
    """A file somebody can fetch."""

    url: str


@dataclass(frozen=True, kw_only=True)
class Data:
    """A file's bytes, in base64."""

    base64: str


@dataclass(frozen=True, kw_only=True)
class Key:
    """A file in our own storage. It becomes a url before a page is set."""

    key: str


@dataclass(frozen=True, kw_only=True)
class ProviderFile:
    """A file that a provider holds under a handle of its own; nobody else can read it."""

    provider: str
    handle: str


Source: TypeAlias = Url | Data | Key | ProviderFile


def source_from_url(url: str) -> tuple[Source, str | None]:
    """Where a file is: a data url is its bytes, with their type; anything else is an address."""
    found = DATA_URL.match(url)
    if found:
        return Data(base64=url[found.end() :]), found["mime"] or None
    return Url(url=url), None


def data_url(source: Data, mime_type: str | None) -> str:
    """The bytes of a file as a data url."""
    return f"data:{mime_type or 'application/octet-stream'};base64,{source.base64}"


@dataclass(frozen=True, kw_only=True)
class File:
    """A file in a message, by where its bytes are; never its parsed text."""

    kind: FileKind
    source: Source
    mime_type: str | None = None
    name: str | None = None
    id: str | None = None


@dataclass(frozen=True, kw_only=True)
class Opaque:
    """Provider state we carry and never read: signed thinking, encrypted reasoning, unknown blocks.

    It goes back verbatim (`data` is its JSON text) to the provider and model that made it; `model` None means
    any model of that provider. `place` says whether it was a content block or a field beside the content.
    """

    provider: str
    model: str | None
    place: Literal["block", "field"]
    name: str
    data: str

    @property
    def is_thought(self) -> bool:
        """State of thinking, which says nothing by itself: a message of it alone is empty."""
        return self.name in THOUGHTS


@dataclass(frozen=True, kw_only=True)
class ToolCall(MemoHolder):
    """A call the model asked for. `arguments` is the text the model wrote, verbatim, valid JSON or not.

    `id` is unique in a thread; where what the provider called it is not, that is `provider_id`, and goes back to it.
    `runner` was settled when the call was made, whatever agent and tools a later run has. None: nobody wrote it down.
    """

    id: str
    name: str
    arguments: str
    encrypted_value: str | None = None
    state: Opaque | None = None
    runner: Runner | None = None
    provider_id: str = ""

    def is_for_client(self, *, otherwise: bool) -> bool:
        """Whether the client is to answer it; `otherwise` is what counts where nobody wrote it down."""
        return otherwise if self.runner is None else self.runner != "server"


# How tools are offered: natively; in words, to models that cannot call any; natively, with calls in words understood.
ToolCalling: TypeAlias = Literal["native", "prompt", "auto"]
# How a call is written where it is words: JSON in a fence, or in tags of ours.
CallForm: TypeAlias = Literal["fenced", "tags"]


@dataclass(frozen=True, kw_only=True)
class ToolOffer(MemoHolder):
    """A tool the model may call. `parameters` is its JSON Schema as text, sent as it is written.

    `note` says to people what its description leaves out; `tokens_before` is what it would have cost with that.
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
    """What the log knows of every message. `time` is aware; `seq` is its number in the thread."""

    id: str = ""
    seq: int | None = None
    time: datetime | None = None

    def __post_init__(self) -> None:
        if self.time is not None and self.time.tzinfo is None:
            raise ValueError(f"Message {self.id!r} has a time without a zone: {self.time}. Give it one.")


@dataclass(frozen=True, kw_only=True)
class UserMessage(Logged):
    """What a person said, with files.

    `response_id` is allocated when its turn is admitted and stored with it: its files go by it for good (F4).
    Imported history has none. `client_id` is the id it came under, where that is not the one it has.
    """

    response_id: str = ""
    client_id: str | None = None
    parts: tuple[UserPart, ...] = ()
    name: str | None = None
    encrypted_value: str | None = None
    role: Literal["user"] = "user"


@dataclass(frozen=True, kw_only=True)
class AssistantMessage(Logged):
    """What the model said: text, calls and opaque state in the order it said them."""

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
    """What a tool answered. `error` is None when it went well; else the failure, or just "error".

    `tool_name` is put in where a page goes to a provider that wants it said; the log has the call.
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
    """Reasoning shown to people. Models get their own opaque state back instead."""

    text: str
    encrypted_value: str | None = None
    role: Literal["reasoning"] = "reasoning"


@dataclass(frozen=True, kw_only=True)
class ActivityMessage(Logged):
    """Progress shown to people. `content` is a JSON object as text."""

    activity_type: str
    content: str
    role: Literal["activity"] = "activity"


@dataclass(frozen=True, kw_only=True)
class UnreadMessages(Logged):
    """Messages in view that follow each other and were left in the store: no page shows them, it only says how many.

    It goes by the id of the last of them; `first` is that of the first. `time` is the newest of theirs, `tokens` what
    they count together. It is never stored and never sent.
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
    """What a message says in words; not its calls, files and state."""
    return between.join([part.text for part in message.parts if isinstance(part, Text)])


def texts_of(message: Message) -> tuple[str, ...]:
    """Every text in a message that a model would read, calls included, in order."""
    match message:
        case UserMessage() | ToolMessage() | AssistantMessage():
            parts = message.parts
            if len(parts) == 1 and isinstance(parts[0], Text):
                return (parts[0].text,)
            return tuple([text for part in parts for text in _texts_of_part(part)])
        case ActivityMessage():
            return (message.content,)
        case UnreadMessages():
            return ()
        case _:
            return (message.text,)


def _texts_of_part(part: AssistantPart) -> tuple[str, ...]:
    match part:
        case Text():
            return (part.text,)
        case ToolCall():
            return (part.name, part.arguments)
        case Opaque():
            return (part.data,)
        case File():
            return ()


def error_text(message: ToolMessage) -> str | None:
    """What is to be said of a failure beside the words of the result; None where they say it, or it went well.

    A status of our own comes with words for the model; that of an empty result says at least that it failed.
    """
    error = message.error
    if error is None:
        return None
    words = words_of(message, between="\n")
    if words.strip() and (error in STATUSES or error in words):
        return None
    return error if error.startswith(FAILED) else f"{FAILED}{error or 'error'}"
