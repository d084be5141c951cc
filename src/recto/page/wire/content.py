"""Message content common to the formats: nothing, one text, or a list of blocks."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TypeVar

from recto.conversation.json import Json, Object, copied, objects, text_field
from recto.conversation.messages import AssistantPart, File, Text, UserPart
from recto.errors import CannotCarry, WireError

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
    first = parts[0]
    return copied(first.text) if len(parts) == 1 and isinstance(first, Text) else [encode_block(part) for part in parts]


def carried(block: object | None, file: File, wire: str) -> object:
    """Return the block of a file. Raise CannotCarry if the format has none."""
    if block is None:
        raise CannotCarry(wire=wire, what=f"a file of kind {file.kind} by {type(file.source).__name__}")
    return block
