"""What CopilotKit sends to have it suggested what a user could say next: a tool that must be called, and a history.

It judges form and nothing else. Of the history words alone are read: a broken message in it harms nothing.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TypeAlias

from recto.conversation.input import agui
from recto.conversation.input.run_input import ContextItem, decode_input
from recto.conversation.json import Json, as_list, as_object
from recto.conversation.messages import AssistantMessage, Message, Text, ToolOffer, UserMessage, words_of
from recto.errors import WireError

# The one tool that its clients have suggestions made by.
SUGGEST = "copilotkitSuggest"
# Of a history, the newest messages are looked at.
NEWEST = 200
NOT_FORCED = f"must force a tool of `tools`, as {{'type': 'function', 'function': {{'name': {SUGGEST!r}}}}}"
NO_INSTRUCTION = "must end with a user message, which says what to suggest"
TextMessage: TypeAlias = UserMessage | AssistantMessage


@dataclass(frozen=True, kw_only=True)
class SuggestionInput:
    """A wish for suggestions. `said` are words, oldest first; the last of them are the instruction, as a user's."""

    thread: str
    run: str
    tool: ToolOffer
    messages: tuple[TextMessage, ...]
    context: tuple[ContextItem, ...] = ()
    protocol: str | None = None


def forced_tool(body: Json) -> str | None:
    """The name of the tool that a request says must be called."""
    match body:
        case {"forwardedProps": {"toolChoice": {"function": {"name": str(name)}}}}:
            return name
        case _:
            return None


def read_suggestion(body: Json) -> SuggestionInput:
    """The wish as values. What is none raises a WireError that names the field."""
    item = as_object(body, "RunAgentInput")
    found = decode_input({**item, "messages": []})
    tool = next((tool for tool in found.tools if tool.name == forced_tool(item)), None)
    if tool is None:
        raise WireError(where="forwardedProps.toolChoice", problem=NOT_FORCED)
    said = tuple(_spoken(as_list(item.get("messages"), "messages")[-NEWEST:]))
    if not said or not isinstance(said[-1], UserMessage):
        raise WireError(where="messages", problem=NO_INSTRUCTION)
    return SuggestionInput(
        thread=found.thread,
        run=found.run,
        tool=tool,
        messages=said,
        context=found.context,
        protocol=found.protocol,
    )


def _spoken(messages: Sequence[Json]) -> Iterator[TextMessage]:
    for item in messages:
        for message in _decoded(item):
            if isinstance(message, UserMessage | AssistantMessage) and (words := words_of(message, between="\n")):
                yield replace(message, parts=(Text(text=words),), name=None, encrypted_value=None)


def _decoded(item: Json) -> Sequence[Message]:
    try:
        return agui.decode([item])
    except WireError:
        return ()
