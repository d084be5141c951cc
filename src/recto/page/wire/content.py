"""Content of a message, as formats have it in common: nothing, one text, or a list of blocks."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TypeVar

from recto.conversation.json import Json, Object, copied, objects, text_field
from recto.conversation.messages import AssistantPart, File, Text, UserPart
from recto.errors import CannotCarry, WireError

PartT = TypeVar("PartT", bound=AssistantPart)


def decode_content(content: Json, where: str, decode_block: Callable[[Object, str], UserPart]) -> Iterator[UserPart]:
    """The parts in the content of a message: a text, or blocks as the format reads them."""
    if content is None or content == "":
        return
    if isinstance(content, str):
        yield Text(text=text_field({"content": content}, "content", where))
        return
    for place, block in objects(content, f"{where}.content"):
        yield decode_block(block, place)


def instructions(parts: Iterable[UserPart], where: str) -> str:
    """The text of instructions. Anything else in them raises WireError."""
    texts: list[str] = []
    for part in parts:
        if not isinstance(part, Text):
            raise WireError(
                where=f"{where}.content", problem="instructions are text; other blocks have no place in them"
            )
        texts.append(part.text)
    return "\n".join(texts)


def encode_content(parts: Sequence[PartT], encode_block: Callable[[PartT], object]) -> object:
    """The parts of a message as its content: one text stands by itself, anything else as blocks."""
    if not parts:
        return ""
    first = parts[0]
    return copied(first.text) if len(parts) == 1 and isinstance(first, Text) else [encode_block(part) for part in parts]


def carried(block: object | None, file: File, wire: str) -> object:
    """The block of a file. Where the format has none for it, CannotCarry is raised."""
    if block is None:
        raise CannotCarry(wire=wire, what=f"a file of kind {file.kind} by {type(file.source).__name__}")
    return block
