"""The wire formats by their names, and conversations in and out of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import cast

from recto.conversation.input import agui
from recto.conversation.json import Json, as_list, load
from recto.conversation.messages import Message
from recto.errors import CannotCarry, WireError
from recto.page.wire.anthropic import ANTHROPIC
from recto.page.wire.base import Target, Wire, WireName
from recto.page.wire.gemini import GEMINI
from recto.page.wire.openai import OPENAI
from recto.page.wire.openai_responses import OPENAI_RESPONSES

WIRES: Mapping[WireName, Wire] = {wire.name: wire for wire in (OPENAI, OPENAI_RESPONSES, ANTHROPIC, GEMINI)}
# Providers and the wire each of them speaks: those that have one of their own name first.
SPEAKERS: Mapping[str, WireName] = {name: name for name in WIRES} | {
    other: wire.name for wire in WIRES.values() for other in wire.also_spoken_by
}
AGUI = "ag-ui"
DEFAULT = Target().wire


def wire_named(name: WireName) -> Wire:
    """The wire of this name."""
    wire = WIRES.get(name)
    if wire is None:
        raise WireError(where="wire", problem=f"{name!r} is unknown; known: {', '.join(WIRES)}")
    return wire


def decode(conversation: object, wire: WireName = DEFAULT, *, model: str | None = None) -> tuple[Message, ...]:
    """Messages from parsed JSON: an array of messages, or, where the format has instructions beside, a whole body.

    Provider state in it is taken to be made by `model`; None lets it go back to any model of that provider.
    """
    value = cast("Json", conversation)
    if wire in WIRES:
        return WIRES[wire].decode(value, model=model)
    if wire == AGUI:
        return agui.decode(value)
    raise WireError(where="wire", problem=f"{wire!r} is unknown; known: {', '.join((*WIRES, AGUI))}")


def encode(messages: Sequence[Message], wire: WireName = DEFAULT) -> list[Json]:
    """Messages as parsed JSON, in objects of the format. What it has no place for raises CannotCarry.

    A format that groups by role has no message of its own for each of ours; a page in it is made by `assemble`.
    """
    if wire == AGUI:
        return [load(agui.encode(message)) for message in messages]
    known = WIRES.get(wire)
    if known is None or any(slot.opens_turn for slot in known.slots.values()):
        raise CannotCarry(wire=wire, what="messages one by one; set a page with assemble")
    return list(as_list(load(b"[" + b",".join(map(known.encode, messages)) + b"]"), "messages"))
