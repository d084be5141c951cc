"""Wire formats by name, and decoding and encoding of conversations."""

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
# Providers and the wire format of each, providers with a format of their own first.
SPEAKERS: Mapping[str, WireName] = {name: name for name in WIRES} | {
    other: wire.name for wire in WIRES.values() for other in wire.also_spoken_by
}
AGUI = "ag-ui"
DEFAULT = Target().wire


def wire_named(name: WireName) -> Wire:
    """Return the wire format of this name."""
    wire = WIRES.get(name)
    if wire is None:
        raise WireError(where="wire", problem=f"{name!r} is unknown; known: {', '.join(WIRES)}")
    return wire


def decode(conversation: object, wire: WireName = DEFAULT, *, model: str | None = None) -> tuple[Message, ...]:
    """Decode messages from parsed JSON: an array of messages, or a whole body if the format has separate instructions.

    Provider state in it is attributed to `model`; None allows any model of that provider.
    """
    value = cast("Json", conversation)
    if wire in WIRES:
        return WIRES[wire].decode(value, model=model)
    if wire == AGUI:
        return agui.decode(value)
    raise WireError(where="wire", problem=f"{wire!r} is unknown; known: {', '.join((*WIRES, AGUI))}")


def encode(messages: Sequence[Message], wire: WireName = DEFAULT) -> list[Json]:
    """Encode messages as parsed JSON of the format. Raise CannotCarry for unsupported content.

    Formats that group by role have no single messages; use `assemble` for a page.
    """
    if wire == AGUI:
        return [load(agui.encode(message)) for message in messages]
    definition = WIRES.get(wire)
    if definition is None or any(slot.opens_turn for slot in definition.slots.values()):
        raise CannotCarry(wire=wire, what="messages one by one; set a page with assemble")
    return list(as_list(load(b"[" + b",".join(map(definition.encode, messages)) + b"]"), "messages"))
