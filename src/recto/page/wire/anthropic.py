"""Anthropic messages, both ways. Unsupported content raises CannotCarry.

A page groups neighbours of one role into one turn, so encoding returns a message's blocks and role. System and
developer messages are blocks of the `system` field.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Literal, TypeAlias

from recto.conversation.json import (
    Json,
    Object,
    as_object,
    dump,
    load_object,
    objects,
    optional_text,
    text_field,
    verbatim,
)
from recto.conversation.messages import (
    AssistantMessage,
    AssistantPart,
    Data,
    DeveloperMessage,
    File,
    Message,
    Opaque,
    ProviderFile,
    SystemMessage,
    Text,
    ToolCall,
    ToolMessage,
    Url,
    UserMessage,
    UserPart,
)
from recto.errors import CannotCarry, WireError
from recto.page.wire.base import Slot, Wire, carried, encode_content

WIRE = "anthropic"
Role: TypeAlias = Literal["system", "user", "assistant"]
# Media types of base64 files by kind.
BASE64_TYPES = {
    "image": frozenset({"image/jpeg", "image/png", "image/gif", "image/webp"}),
    "document": frozenset({"application/pdf"}),
}
# A cache mark may precede the last brace of a block, so the brace is the `end` of the slot.
TOOLS = Slot(b'"tools":[', b"]", end=b"}")
SYSTEM = Slot(b'"system":[', b"]", end=b"}")
USER_TURN = Slot(b'"messages":[', b"]", b'{"role":"user","content":[', b"]}", b"}")
ASSISTANT_TURN = USER_TURN._replace(opens_turn=b'{"role":"assistant","content":[')


def decode(body: Json, *, model: str | None = None) -> tuple[Message, ...]:
    """Decode messages from a request body or from its `messages`. Signed state is attributed to `model`."""
    if isinstance(body, dict):
        system = body.get("system")
        blocks: Json = [{"type": "text", "text": system}] if isinstance(system, str) else system
        places = objects([] if blocks is None else blocks, "system")
        instructions = [SystemMessage(text=text_field(block, "text", where)) for where, block in places]
        return (*instructions, *decode(body.get("messages", []), model=model))
    turns = objects(body, "messages")
    return tuple(message for where, turn in turns for message in _decode_turn(turn, where, model))


def _decode_turn(turn: Object, where: str, model: str | None) -> Iterator[Message]:
    role, content = text_field(turn, "role", where), turn.get("content")
    blocks: Json = [{"type": "text", "text": content}] if isinstance(content, str) else content
    placed_blocks = list(objects(blocks, f"{where}.content"))
    match role:
        case "assistant":
            yield AssistantMessage(parts=tuple(decode_block(block, place, model) for place, block in placed_blocks))
        case "user":
            results = [(place, block) for place, block in placed_blocks if block.get("type") == "tool_result"]
            yield from (decode_result(block, place, model) for place, block in results)
            rest = [(place, block) for place, block in placed_blocks if block.get("type") != "tool_result"]
            if rest or not results:
                parts = tuple(_decode_shown(block, place, model) for place, block in rest)
                yield UserMessage(parts=parts)
        case "system":
            yield from (SystemMessage(text=text_field(block, "text", place)) for place, block in placed_blocks)
        case _:
            raise WireError(where=f"{where}.role", problem=f"{role!r} is no role of Anthropic messages")


def decode_result(block: Object, where: str, model: str | None) -> ToolMessage:
    """Decode a tool_result block."""
    content = block.get("content")
    blocks: Json = content if content is not None else []
    if isinstance(blocks, str):
        blocks = [{"type": "text", "text": blocks}] if blocks else []
    parts = (_decode_shown(inner, place, model) for place, inner in objects(blocks, f"{where}.content"))
    return ToolMessage(
        tool_call_id=text_field(block, "tool_use_id", where),
        parts=tuple(part for part in parts if part != Text(text="")),
        error="error" if block.get("is_error") is True else None,
    )


def decode_block(block: Object, where: str, model: str | None) -> AssistantPart:
    """Decode a content block of an assistant."""
    if block.get("type") != "tool_use":
        return _decode_shown(block, where, model)
    arguments = as_object(block.get("input", {}), f"{where}.input")
    name = text_field(block, "name", where)
    return ToolCall(id=text_field(block, "id", where), name=name, arguments=dump(arguments).decode())


def _decode_shown(block: Object, where: str, model: str | None) -> UserPart:
    kind, source = text_field(block, "type", where), block.get("source")
    field_names = {name for name, value in block.items() if value is not None} - {"type", "cache_control"}
    if kind == "text" and field_names <= {"text"}:
        return Text(text=text_field(block, "text", where))
    if kind in ("image", "document") and isinstance(source, dict) and field_names <= {"source", "title"}:
        file = _decode_file(kind, source, optional_text(block, "title", where))
        if file is not None:
            return file
    # Drop the cache mark, because assembly sets its own.
    carried = {name: value for name, value in block.items() if name != "cache_control"}
    return Opaque(provider=WIRE, model=model, place="block", name=kind, data=dump(carried).decode())


def _decode_file(kind: Literal["image", "document"], source: Object, name: str | None) -> File | None:
    match source:
        case {"type": "url", "url": str(url)}:
            return File(kind=kind, source=Url(url=url), name=name)
        case {"type": "base64", "data": str(data), "media_type": str(mime)}:
            return File(kind=kind, source=Data(base64=data), mime_type=mime, name=name)
        case {"type": "file", "file_id": str(handle)}:
            return File(kind=kind, source=ProviderFile(provider=WIRE, handle=handle), name=name)
        case _:
            return None


def encode(message: Message) -> tuple[Role, bytes]:
    """Return the role of a message and its joined blocks. Raise CannotCarry for unsupported content."""
    match message:
        case SystemMessage() | DeveloperMessage():
            return "system", dump({"type": "text", "text": message.text})
        case UserMessage():
            return "user", _encode_blocks(message.parts)
        case AssistantMessage():
            return "assistant", _encode_blocks(message.parts)
        case ToolMessage():
            content = encode_content(message.parts, _encode_block)
            flag = {"is_error": True} if message.error is not None else {}
            return "user", dump({"type": "tool_result", "tool_use_id": message.tool_call_id, "content": content} | flag)
        case _:
            raise CannotCarry(wire=WIRE, what=f"a message of role {message.role}")


def _encode_blocks(parts: Sequence[AssistantPart]) -> bytes:
    if not parts:
        raise CannotCarry(wire=WIRE, what="a message with nothing in it")
    return b",".join(dump(_encode_block(part)) for part in parts)


def _encode_block(part: AssistantPart) -> object:
    match part:
        case Text(text=""):
            raise CannotCarry(wire=WIRE, what="an empty text")
        case Text():
            return {"type": "text", "text": part.text}
        case ToolCall():
            if part.state is not None:
                raise CannotCarry(wire=WIRE, what=f"state of {part.state.provider} on a tool call")
            if load_object(part.arguments) is None:
                raise CannotCarry(wire=WIRE, what=f"arguments of call {part.id} that are no JSON object")
            return {"type": "tool_use", "id": part.id, "name": part.name, "input": verbatim(part.arguments)}
        case File():
            return carried(_file_block(part), part, WIRE)
        case Opaque(provider="anthropic", place="block"):
            return verbatim(part.data)
        case Opaque():
            raise CannotCarry(wire=WIRE, what=f"state of {part.provider} ({part.name})")


def carries_file(part: File, role: str) -> bool:
    """Return True if a message of this role can carry the file. The role `error` means a failed tool."""
    return role not in ("assistant", "error") and _file_block(part) is not None


def carries_state(part: Opaque, role: str) -> bool:
    """Return True if a message of this role can carry the provider state. The role `error` means a failed tool."""
    return part.place == "block" and role != "error"


def _file_block(part: File) -> object | None:
    if part.kind not in BASE64_TYPES:
        return None
    match part.source:
        case Url(url=url):
            source = {"type": "url", "url": url}
        case Data(base64=data) if part.mime_type in BASE64_TYPES[part.kind]:
            source = {"type": "base64", "media_type": part.mime_type, "data": data}
        case ProviderFile(provider="anthropic", handle=handle):
            source = {"type": "file", "file_id": handle}
        case _:
            return None
    title = {"title": part.name} if part.kind == "document" and part.name else {}
    return {"type": part.kind, "source": source} | title


def encode_tool(name: str, description: str, parameters: str) -> bytes:
    """Encode a tool offer; its JSON Schema is copied verbatim."""
    return dump({"name": name, "description": description, "input_schema": verbatim(parameters)})


ANTHROPIC = Wire(
    name=WIRE,
    own_fields=frozenset({"model", "tools", "system", "messages"}),
    model_in_body=True,
    tools=TOOLS,
    slots={
        SystemMessage: SYSTEM,
        DeveloperMessage: SYSTEM,
        UserMessage: USER_TURN,
        ToolMessage: USER_TURN,
        AssistantMessage: ASSISTANT_TURN,
    },
    breakpoint=b',"cache_control":{"type":"ephemeral"}',
    decode=decode,
    # Omit the last brace, which is the `end` of the slots.
    encode=lambda message: encode(message)[1][:-1],
    encode_tool=lambda name, description, parameters: encode_tool(name, description, parameters)[:-1],
    carries_file=carries_file,
    carries_state=carries_state,
    call_id=re.compile(r"[a-zA-Z0-9_-]*"),
    longest_call_id=64,
    call_ids_are_unique=True,
    calls_come_last=False,
    calls_carry_state=False,
    takes_any_arguments=False,
    takes_names=False,
    takes_empty_text=False,
    takes_blank_end=False,
    errors_are_words=True,
    begins_with_user=True,
)
