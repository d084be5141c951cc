"""The interface of wire formats: encoding, supported content and provider constraints.

A format is one value of `Wire`. Steps and body use its fields and do not know formats by name.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple, Protocol, TypeAlias, TypeVar

from recto.conversation.json import Json, Object, copy_text, objects, text_field
from recto.conversation.messages import AssistantPart, File, Message, Opaque, Text, UserPart
from recto.errors import CannotCarry, WireError

# A key of `WIRES`.
WireName: TypeAlias = str


@dataclass(frozen=True, kw_only=True)
class Target:
    """The wire format and model of a page, and whether the model accepts images."""

    wire: WireName = "openai"
    model: str = ""
    sees_images: bool = True


class Slot(NamedTuple):
    """The punctuation around an element of a body.

    The element is in a list in a field: `opens` and `closes` surround the list. If the format groups by role,
    neighbours of one role form a turn in that list, which `opens_turn` and `closes_turn` surround. `end` is the last
    part of the element. The punctuation after the element writes it.
    """

    opens: bytes
    closes: bytes
    opens_turn: bytes = b""
    closes_turn: bytes = b""
    end: bytes = b""


class Decode(Protocol):
    """Decoder from parsed JSON. Provider state is attributed to `model`; None allows any model of that provider."""

    def __call__(self, body: Json, /, *, model: str | None = None) -> tuple[Message, ...]: ...


@dataclass(frozen=True, kw_only=True, eq=False)
class Wire:
    """A format and its provider's constraints.

    `name` is also the name of its provider; `also_spoken_by` lists other providers. A body begins with the model, if
    `model_in_body`, and options, which may not use `own_fields`. Tools and messages follow in order; `slots` has the
    punctuation for each kind of message. `breakpoint` marks a place to cache up to and precedes the `end` of an
    element; it is empty if the format has no such mark.

    `carries_file` and `carries_state` check content by role. If `errors_are_words`, the role of a failed tool is
    `error`. With `begins_with_user`, instructions must come first, followed by a user message. With `thoughts_lead`,
    thinking must not end a message. With `results_name_tools`, a result contains its tool's name. `sign_calls` adds the
    signature that the model requires to calls it did not make.
    """

    name: WireName
    also_spoken_by: tuple[str, ...] = ()
    own_fields: frozenset[str]
    model_in_body: bool
    tools: Slot
    slots: Mapping[type[Message], Slot]
    breakpoint: bytes
    decode: Decode
    encode: Callable[[Message], bytes]
    encode_tool: Callable[[str, str, str], bytes]
    carries_file: Callable[[File, str], bool]
    carries_state: Callable[[Opaque, str], bool]
    call_id: re.Pattern[str]
    longest_call_id: int
    call_ids_are_unique: bool
    calls_come_last: bool
    calls_carry_state: bool
    takes_any_arguments: bool
    takes_names: bool
    takes_empty_text: bool
    takes_blank_end: bool
    errors_are_words: bool
    begins_with_user: bool
    results_name_tools: bool = False
    sign_calls: Callable[[Sequence[AssistantPart], str], tuple[AssistantPart, ...]] | None = None
    thoughts_lead: bool = False


PartT = TypeVar("PartT", bound=AssistantPart)


def decode_content(content: Json, where: str, decode_block: Callable[[Object, str], UserPart]) -> Iterator[UserPart]:
    """Yield the parts of a message's content: a text, or blocks."""
    if content is None or content == "":
        return
    if isinstance(content, str):
        yield Text(text=text_field({"content": content}, "content", where))
        return
    for place, block in objects(content, f"{where}.content"):
        yield decode_block(block, place)


def instructions(parts: Iterable[UserPart], where: str) -> str:
    """Return the text of instructions. Raise WireError for anything else."""
    texts: list[str] = []
    for part in parts:
        if not isinstance(part, Text):
            raise WireError(
                where=f"{where}.content", problem="instructions are text; other blocks have no place in them"
            )
        texts.append(part.text)
    return "\n".join(texts)


def encode_content(parts: Sequence[PartT], encode_block: Callable[[PartT], object]) -> object:
    """Return the content of a message: one text as a string, anything else as blocks."""
    if not parts:
        return ""
    if len(parts) == 1 and isinstance(parts[0], Text):
        return copy_text(parts[0].text)
    return [encode_block(part) for part in parts]


def carried(block: object | None, file: File, wire: str) -> object:
    """Return the block of a file. Raise CannotCarry if the format has none."""
    if block is None:
        raise CannotCarry(wire=wire, what=f"a file of kind {file.kind} by {type(file.source).__name__}")
    return block
