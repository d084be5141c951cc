"""The wire formats by their names, and conversations in and out of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Literal, TypeAlias, cast

from recto.conversation.input import agui
from recto.conversation.json import Json, load
from recto.conversation.messages import Message
from recto.errors import CannotCarry, WireError
from recto.page.wire import anthropic, openai
from recto.page.wire.anthropic import ANTHROPIC
from recto.page.wire.base import Wire, WireName
from recto.page.wire.openai import OPENAI

FormatName: TypeAlias = Literal["openai", "anthropic", "ag-ui"]
WIRES: Mapping[WireName, Wire] = {OPENAI.name: OPENAI, ANTHROPIC.name: ANTHROPIC}


def decode(conversation: object, wire: FormatName = "openai", *, model: str | None = None) -> tuple[Message, ...]:
    """Messages from parsed JSON: an array of messages, or for `anthropic` a whole request body.

    Provider state in it is taken to be made by `model`; None lets it go back to any model of that provider.
    """
    value = cast("Json", conversation)
    match wire:
        case "openai":
            return openai.decode(value, model=model)
        case "anthropic":
            return anthropic.decode(value, model=model)
        case "ag-ui":
            return agui.decode(value)
        case _:
            raise WireError(where="wire", problem=f"{wire!r} is unknown; known: openai, anthropic, ag-ui")


def encode(messages: Sequence[Message], wire: Literal["openai", "ag-ui"] = "openai") -> list[Json]:
    """Messages as parsed JSON, one object each. What the format has no place for raises CannotCarry.

    Anthropic's format has no message of its own for each of ours; a page in it is made by `assemble`.
    """
    match wire:
        case "openai":
            return [load(openai.encode(message)) for message in messages]
        case "ag-ui":
            return [load(agui.encode(message)) for message in messages]
        case _:
            raise CannotCarry(wire=wire, what="messages one by one; set a page with assemble")
