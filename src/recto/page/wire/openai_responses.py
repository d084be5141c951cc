"""OpenAI Responses, both ways. Unsupported content raises CannotCarry.

A conversation is a list of items: messages, calls, results and reasoning. One Recto message may be several items, and
neighbouring items of an assistant are decoded as one message. Reasoning before a call is that call's state, so that
neither is sent without the other.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from itertools import groupby

from recto.conversation.json import Json, Object, dump, objects, optional_text, text_field, verbatim
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
    data_url,
    source_from_url,
)
from recto.errors import CannotCarry, WireError
from recto.page.wire.base import Slot, Wire, carried, decode_content, encode_content, instructions

# File handles are the same for chat and Responses.
from recto.page.wire.openai import WIRE as HOLDER

WIRE = "openai-responses"
REASONING = "reasoning"
# The phase of a text (commentary or final answer), which the model wants back.
PHASE = "phase"
# Text blocks and the field with the text.
WORDS = {"input_text": "text", "output_text": "text", "refusal": "refusal"}


def decode(body: Json, *, model: str | None = None) -> tuple[Message, ...]:
    """Decode messages from a request body or from its `input`. Opaque state is attributed to `model`."""
    if isinstance(body, dict):
        instructions = optional_text(body, "instructions", "body")
        before = (SystemMessage(text=instructions),) if instructions else ()
        return (*before, *decode(body.get("input", []), model=model))
    if isinstance(body, str):
        return (UserMessage(parts=tuple(_decode_content(body, "input", model))),)
    messages: list[Message] = []
    for is_reply, items in groupby(objects(body, "input"), _is_from_model):
        if is_reply:
            messages.append(AssistantMessage(parts=tuple(_decode_reply(items, model))))
        else:
            messages += [_decode_input(item, where, model) for where, item in items]
    return tuple(messages)


def _is_from_model(pair: tuple[str, Object]) -> bool:
    """Return True for an assistant's item: a call, reasoning, or other model output."""
    kind = pair[1].get("type", "message")
    return pair[1].get("role") == "assistant" if kind == "message" else kind != "function_call_output"


def _decode_reply(items: Iterable[tuple[str, Object]], model: str | None) -> Iterator[AssistantPart]:
    reasoning: Opaque | None = None
    for where, item in items:
        kind = text_field({"type": "message", **item}, "type", where)
        if kind == "function_call":
            yield ToolCall(
                id=text_field(item, "call_id", where),
                name=text_field(item, "name", where),
                arguments=text_field(item, "arguments", where),
                state=reasoning,
            )
            reasoning = None
            continue
        if reasoning:
            yield reasoning
        state = Opaque(provider=WIRE, model=model, place="block", name=kind, data=dump(item).decode())
        reasoning = state if kind == REASONING else None
        if kind == "message":
            phase = optional_text(item, PHASE, where)
            if phase is not None:
                yield Opaque(provider=WIRE, model=model, place="field", name=PHASE, data=dump(phase).decode())
            parts = tuple(_decode_content(item.get("content"), where, model))
            for part in parts or (Text(text=""),):
                if not isinstance(part, Text):
                    raise WireError(
                        where=f"{where}.content", problem="an assistant says words; other blocks have no place"
                    )
                yield part
        elif not reasoning:
            yield state
    if reasoning:
        yield reasoning


def _decode_input(item: Object, where: str, model: str | None) -> Message:
    if item.get("type") == "function_call_output":
        parts = tuple(_decode_content(item.get("output"), where, model))
        return ToolMessage(tool_call_id=text_field(item, "call_id", where), parts=parts)
    role = text_field(item, "role", where)
    parts = tuple(_decode_content(item.get("content"), where, model))
    match role:
        case "user":
            return UserMessage(parts=parts)
        case "system":
            return SystemMessage(text=instructions(parts, where))
        case "developer":
            return DeveloperMessage(text=instructions(parts, where))
        case _:
            raise WireError(where=f"{where}.role", problem=f"{role!r} is no role of OpenAI Responses")


def _decode_content(content: Json, where: str, model: str | None) -> Iterator[UserPart]:
    return decode_content(content, where, partial(_decode_block, model=model))


def _decode_block(block: Object, where: str, model: str | None) -> UserPart:
    kind = text_field(block, "type", where)
    if kind in WORDS:
        return Text(text=text_field(block, WORDS[kind], where))
    match {name: value for name, value in block.items() if value is not None and (name, value) != ("detail", "auto")}:
        case {"type": "input_image", "image_url": str(url), **rest} if not rest:
            source, mime = source_from_url(url)
            return File(kind="image", source=source, mime_type=mime)
        case {"type": "input_image", "file_id": str(handle), **rest} if not rest:
            return File(kind="image", source=ProviderFile(provider=HOLDER, handle=handle))
        case {"type": "input_file", "file_data": str(url), "filename": str(name), **rest} if not rest:
            source, mime = source_from_url(url)
            return File(kind="document", source=source, mime_type=mime, name=name)
        case {"type": "input_file", "file_url": str(url), **rest} if not rest:
            return File(kind="document", source=Url(url=url))
        case {"type": "input_file", "file_id": str(handle), **rest} if not rest:
            return File(kind="document", source=ProviderFile(provider=HOLDER, handle=handle))
        case _:
            return Opaque(provider=WIRE, model=model, place="block", name=kind, data=dump(block).decode())


def encode(message: Message) -> bytes:
    """Return the joined items of one message. Raise CannotCarry for unsupported content."""
    match message:
        case UserMessage():
            return dump(_message(message.role, _encode_content(message.parts)))
        case SystemMessage() | DeveloperMessage():
            return dump(_message(message.role, message.text))
        case ToolMessage():
            output = _encode_content(message.parts)
            return dump({"type": "function_call_output", "call_id": message.tool_call_id, "output": output})
        case AssistantMessage(parts=(_, *_)):
            return b",".join(map(dump, _encode_reply(message.parts)))
        case AssistantMessage():
            raise CannotCarry(wire=WIRE, what="a message with nothing in it")
        case _:
            raise CannotCarry(wire=WIRE, what=f"a message of role {message.role}")


def _message(role: str, content: object) -> dict[str, object]:
    return {"type": "message", "role": role, "content": content}


def _encode_content(parts: Sequence[UserPart]) -> object:
    return encode_content(parts, _encode_block)


def _encode_block(part: UserPart) -> object:
    match part:
        case Text():
            return {"type": "input_text", "text": part.text}
        case Opaque():
            return _encode_state(part)
        case File():
            return carried(_file_block(part), part, WIRE)


def _encode_reply(parts: Sequence[AssistantPart]) -> Iterator[object]:
    phase: dict[str, object] = {}
    for part in parts:
        match part:
            case Text():
                yield _message("assistant", part.text) | phase
            case ToolCall():
                if part.state is not None:
                    yield _encode_state(part.state)
                yield {"type": "function_call", "call_id": part.id, "name": part.name, "arguments": part.arguments}
            case Opaque(name="phase", place="field"):
                phase = {PHASE: _encode_state(part)}
                continue
            case Opaque():
                yield _encode_state(part)
            case File():
                raise CannotCarry(wire=WIRE, what=f"a file of kind {part.kind} in a message of role assistant")
        phase = {}


def _encode_state(state: Opaque) -> object:
    if state.provider != WIRE:
        raise CannotCarry(wire=WIRE, what=f"state of {state.provider} ({state.name})")
    return verbatim(state.data)


def carries_file(part: File, role: str) -> bool:
    """Return True if a message of this role can carry the file."""
    return role != "assistant" and _file_block(part) is not None


def carries_state(part: Opaque, role: str) -> bool:
    """Return True if a message of this role can carry the provider state."""
    return part.place == "block" or (role == "assistant" and part.name == PHASE)


def _file_block(part: File) -> object | None:
    match part.kind, part.source:
        case "image", Url(url=url):
            return {"type": "input_image", "detail": "auto", "image_url": url}
        case "image", Data() as source:
            return {"type": "input_image", "detail": "auto", "image_url": data_url(source, part.mime_type)}
        case "image", ProviderFile(provider=provider, handle=handle) if provider == HOLDER:
            return {"type": "input_image", "detail": "auto", "file_id": handle}
        case "document", Url(url=url):
            return {"type": "input_file", "file_url": url}
        case "document", Data() as source if part.name is not None:
            return {"type": "input_file", "filename": part.name, "file_data": data_url(source, part.mime_type)}
        case "document", ProviderFile(provider=provider, handle=handle) if provider == HOLDER:
            return {"type": "input_file", "file_id": handle}
        case _:
            return None


def encode_tool(name: str, description: str, parameters: str) -> bytes:
    """Encode a tool offer; its JSON Schema is copied verbatim."""
    function = {"name": name, "description": description, "parameters": verbatim(parameters)}
    # Without this field, the provider enforces strict schemas and rejects most schemas.
    return dump({"type": "function"} | function | {"strict": False})


OPENAI_RESPONSES = Wire(
    name=WIRE,
    own_fields=frozenset({"model", "tools", "input"}),
    model_in_body=True,
    tools=Slot(b'"tools":[', b"]"),
    slots=dict.fromkeys(
        (SystemMessage, DeveloperMessage, UserMessage, AssistantMessage, ToolMessage), Slot(b'"input":[', b"]")
    ),
    breakpoint=b"",
    decode=decode,
    encode=encode,
    encode_tool=encode_tool,
    carries_file=carries_file,
    carries_state=carries_state,
    call_id=re.compile(r"[a-zA-Z0-9_-]*"),
    longest_call_id=64,
    # The provider finds the call of a result by its id anywhere in the list.
    call_ids_are_unique=True,
    calls_come_last=False,
    calls_carry_state=True,
    takes_any_arguments=True,
    takes_names=False,
    takes_empty_text=True,
    takes_blank_end=True,
    errors_are_words=False,
    begins_with_user=False,
    thoughts_lead=True,
)
