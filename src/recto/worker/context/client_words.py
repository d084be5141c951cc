"""A client's system and developer messages: context, with a user's authority, unless the agent says otherwise (P3)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from recto.agents.agent import Agent
from recto.conversation.input.run_input import ContextItem
from recto.conversation.messages import DeveloperMessage, Message, SystemMessage
from recto.page.prompt.system_prompt import Prompt

# How a client's system message is announced to the model, among the context.
CLIENT_SAYS = "instructions of the client"


def _client_system(messages: Sequence[Message]) -> list[str]:
    return [message.text for message in messages if isinstance(message, (SystemMessage, DeveloperMessage))]


def as_context(messages: Sequence[Message]) -> tuple[ContextItem, ...]:
    """A client's system and developer messages, with no more weight than what a user says (P3)."""
    return tuple(ContextItem(description=CLIENT_SAYS, value=text) for text in _client_system(messages))


def with_client_system(agent: Agent, prompt: Prompt, messages: Sequence[Message]) -> Prompt:
    """The prompt with what a client's system and developer messages say, where its agent lets them."""
    said = _client_system(messages) if agent.client_system else []
    return replace(prompt, identity="\n\n".join([prompt.identity, *said])) if said else prompt
