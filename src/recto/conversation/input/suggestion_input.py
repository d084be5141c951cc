"""CopilotKit's requests for suggested user messages: a tool that must be called, and a history.

Only the text of the history is read, so a malformed message in it does no harm.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TypeAlias

from recto.conversation.input import agui
from recto.conversation.input.run_input import ContextItem, decode_input
from recto.conversation.json import Json, as_list, as_object
from recto.conversation.messages import AssistantMessage, Text, ToolOffer, UserMessage, words_of
from recto.errors import WireError

# The tool by which CopilotKit clients get suggestions.
SUGGEST = "copilotkitSuggest"
# Only this many messages at the end of the history are read.
NEWEST = 200
NOT_FORCED = f"must force a tool of `tools`, as {{'type': 'function', 'function': {{'name': {SUGGEST!r}}}}}"
NO_INSTRUCTION = "must end with a user message, which says what to suggest"
TextMessage: TypeAlias = UserMessage | AssistantMessage


@dataclass(frozen=True, kw_only=True)
class SuggestionInput:
    """A request for suggestions. `messages` contain only text; the last one is the instruction."""

    thread: str
    run: str
    tool: ToolOffer
    messages: tuple[TextMessage, ...]
    context: tuple[ContextItem, ...] = ()
    protocol: str | None = None


def forced_tool(body: Json) -> str | None:
    """Return the name of the tool that a request requires, or None."""
    match body:
        case {"forwardedProps": {"toolChoice": {"function": {"name": str(name)}}}}:
            return name
        case _:
            return None


def read_suggestion(body: Json) -> SuggestionInput:
    """Decode a request for suggestions. Raise a WireError that names the first invalid field."""
    item = as_object(body, "RunAgentInput")
    run_input = decode_input({**item, "messages": []})
    tool = next((tool for tool in run_input.tools if tool.name == forced_tool(item)), None)
    if tool is None:
        raise WireError(where="forwardedProps.toolChoice", problem=NOT_FORCED)
    messages = list[TextMessage]()
    for row in as_list(item.get("messages"), "messages")[-NEWEST:]:
        try:
            decoded = agui.decode([row])
        except WireError:
            continue
        for message in decoded:
            if isinstance(message, UserMessage | AssistantMessage) and (words := words_of(message, between="\n")):
                messages.append(replace(message, parts=(Text(text=words),), name=None, encrypted_value=None))
    if not messages or not isinstance(messages[-1], UserMessage):
        raise WireError(where="messages", problem=NO_INSTRUCTION)
    return SuggestionInput(
        thread=run_input.thread,
        run=run_input.run,
        tool=tool,
        messages=tuple(messages),
        context=run_input.context,
        protocol=run_input.protocol,
    )
