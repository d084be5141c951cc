"""OpenAI chat completions, both ways. Unsupported content raises CannotCarry.

Decoding also reads `timestamp` (milliseconds), `messageStatus` and `id` of a message, and `path` of a text part of a
tool result: facts of the log that encoding never sends to a provider.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from functools import partial

from recto.conversation.json import (
    Json,
    Object,
    as_object,
    copy_text,
    dump,
    load,
    objects,
    optional_text,
    optional_time,
    text_field,
    verbatim,
)
from recto.conversation.messages import (
    ActivityMessage,
    AssistantMessage,
    AssistantPart,
    Data,
    DeveloperMessage,
    File,
    Logged,
    Message,
    Opaque,
    ProviderFile,
    ReasoningMessage,
    SystemMessage,
    Text,
    ToolCall,
    ToolMessage,
    UnreadMessages,
    Url,
    UserMessage,
    UserPart,
    data_url,
    source_from_url,
)
from recto.errors import CannotCarry, WireError
from recto.page.wire.base import Slot, Wire, carried, decode_content, encode_content, instructions

WIRE = "openai"
# Assistant fields besides content that a provider wants back unchanged.
STATE_FIELDS = ("refusal", "audio", "reasoning", "reasoning_content", "reasoning_details")
AUDIO_TYPES = {"wav": "audio/wav", "mp3": "audio/mpeg"}
AUDIO_FORMATS = {mime: name for name, mime in AUDIO_TYPES.items()}


def decode(messages: Json, *, model: str | None = None) -> tuple[Message, ...]:
    """Decode messages from an array in OpenAI form. Opaque state is attributed to `model`."""
    return tuple(_decode_message(item, where, model) for where, item in objects(messages, "messages"))


def _decode_message(item: Object, where: str, model: str | None) -> Message:
    role = text_field(item, "role", where)
    logged = Logged(id=optional_text(item, "id", where) or "", time=optional_time(item, "timestamp", where))
    name = optional_text(item, "name", where)
    match role:
        case "user":
            parts = tuple(_decode_parts(item.get("content"), where, model))
            return UserMessage(id=logged.id, time=logged.time, name=name, parts=parts)
        case "assistant":
            parts = tuple(_decode_assistant(item, where, model))
            return AssistantMessage(id=logged.id, time=logged.time, name=name, parts=parts)
        case "tool":
            return ToolMessage(
                id=logged.id,
                time=logged.time,
                tool_call_id=text_field(item, "tool_call_id", where),
                parts=tuple(_decode_parts(item.get("content"), where, model)),
                error="error" if item.get("messageStatus") == "error" else None,
            )
        case "system":
            return SystemMessage(id=logged.id, time=logged.time, name=name, text=_decode_text(item, where))
        case "developer":
            return DeveloperMessage(id=logged.id, time=logged.time, name=name, text=_decode_text(item, where))
        case _:
            raise WireError(where=f"{where}.role", problem=f"{role!r} is no role of OpenAI chat")


def _decode_text(item: Object, where: str) -> str:
    return instructions(_decode_parts(item.get("content"), where, None), where)


def _decode_parts(content: Json, where: str, model: str | None) -> Iterator[UserPart]:
    return decode_content(content, where, partial(_decode_block, model=model))


def _decode_block(block: Object, where: str, model: str | None) -> UserPart:
    kind = text_field(block, "type", where)
    match kind, block.get(kind):
        case "text", str():
            return Text(text=text_field(block, "text", where), path=optional_text(block, "path", where))
        case "image_url", {"url": str(url), **rest} if not rest:
            source, mime = source_from_url(url)
            return File(kind="image", source=source, mime_type=mime)
        case "input_audio", {"data": str(data), "format": str(form)} if form in AUDIO_TYPES:
            return File(kind="audio", source=Data(base64=data), mime_type=AUDIO_TYPES[form])
        case "file", {"file_data": str(url), "filename": str(name)}:
            source, mime = source_from_url(url)
            return File(kind="document", source=source, mime_type=mime, name=name)
        case "file", {"file_id": str(handle), **rest} if not rest:
            return File(kind="document", source=ProviderFile(provider=WIRE, handle=handle))
        case _:
            return Opaque(provider=WIRE, model=model, place="block", name=kind, data=dump(block).decode())


def _decode_assistant(item: Object, where: str, model: str | None) -> Iterator[AssistantPart]:
    if item.get("function_call") is not None:
        raise WireError(where=f"{where}.function_call", problem="is not supported; write it as tool_calls")
    for name in STATE_FIELDS:
        state = item.get(name)
        if state is not None:
            yield Opaque(provider=WIRE, model=model, place="field", name=name, data=dump(state).decode())
    yield from _decode_parts(item.get("content"), where, model)
    calls = item.get("tool_calls")
    for place, call in objects(calls, f"{where}.tool_calls") if calls is not None else ():
        kind = call.get("type", "function")
        if kind != "function":
            raise WireError(where=f"{place}.type", problem=f"{kind!r} is not supported; only function calls are")
        function = as_object(call.get("function"), f"{place}.function")
        extra = {key: value for key, value in call.items() if key not in ("id", "type", "function", "index")}
        data = dump(extra).decode()
        yield ToolCall(
            id=text_field(call, "id", place),
            name=text_field(function, "name", f"{place}.function"),
            arguments=text_field(function, "arguments", f"{place}.function"),
            state=Opaque(provider=WIRE, model=model, place="field", name="call", data=data) if extra else None,
        )


def encode(message: Message) -> bytes:
    """Encode one message as canonical bytes. Raise CannotCarry for unsupported content."""
    match message:
        case UserMessage():
            return dump(_build_message(message.role, _encode_content(message.parts, message.role), message.name))
        case AssistantMessage():
            return dump(_encode_assistant(message))
        case ToolMessage():
            content = _encode_content(message.parts, message.role)
            return dump({"role": "tool", "tool_call_id": message.tool_call_id, "content": content})
        case SystemMessage() | DeveloperMessage():
            return dump(_build_message(message.role, message.text, message.name))
        case ReasoningMessage() | ActivityMessage() | UnreadMessages():
            raise CannotCarry(wire=WIRE, what=f"a message of role {message.role}")


def _build_message(role: str, content: object, name: str | None) -> dict[str, object]:
    body = {"role": role, "content": content}
    return body | {"name": name} if name else body


def _encode_content(parts: Sequence[AssistantPart], role: str) -> object:
    # Fast path: most messages are one text.
    if len(parts) == 1 and isinstance(part := parts[0], Text):
        return copy_text(part.text)
    return encode_content(parts, partial(_encode_block, role=role))


def _encode_block(part: AssistantPart, role: str) -> object:
    match part:
        case Text():
            return {"type": "text", "text": copy_text(part.text)}
        case Opaque(provider="openai", place="block"):
            return verbatim(part.data)
        case File() if role == "user":
            return carried(_file_block(part), part, WIRE)
        case File():
            raise CannotCarry(wire=WIRE, what=f"a file of kind {part.kind} in a message of role {role}")
        case Opaque():
            raise CannotCarry(wire=WIRE, what=f"state of {part.provider} ({part.name}) in a message of role {role}")
        case ToolCall():
            raise CannotCarry(wire=WIRE, what="text that follows a tool call in one message")


def carries_file(part: File, role: str) -> bool:
    """Return True if a message of this role can carry the file."""
    return role == "user" and _file_block(part) is not None


def carries_state(part: Opaque, role: str) -> bool:
    """Return True if a message of this role can carry the provider state."""
    return part.place == "block" or role == "assistant"


def _file_block(part: File) -> object | None:
    match part:
        case File(kind="image", source=Url(url=url)):
            return {"type": "image_url", "image_url": {"url": url}}
        case File(kind="image", source=Data() as source):
            return {"type": "image_url", "image_url": {"url": data_url(source, part.mime_type)}}
        case File(kind="audio", source=Data(base64=data), mime_type=str(mime)) if mime in AUDIO_FORMATS:
            return {"type": "input_audio", "input_audio": {"data": data, "format": AUDIO_FORMATS[mime]}}
        case File(kind="document", source=Data() as source, name=str(name)):
            return {"type": "file", "file": {"file_data": data_url(source, part.mime_type), "filename": name}}
        case File(kind="document", source=ProviderFile(provider="openai", handle=handle)):
            return {"type": "file", "file": {"file_id": handle}}
        case _:
            return None


def _encode_assistant(message: AssistantMessage) -> dict[str, object]:
    calls = message.tool_calls
    rest = message.parts[: len(message.parts) - len(calls)]
    fields = [part for part in rest if isinstance(part, Opaque) and part.place == "field"]
    content = tuple([part for part in rest if part not in fields]) if fields else rest
    body = _build_message("assistant", _encode_content(content, "assistant") if content else None, message.name)
    for part in fields:
        if part.provider != WIRE:
            raise CannotCarry(wire=WIRE, what=f"state of {part.provider} ({part.name})")
        body[part.name] = verbatim(part.data)
    if calls:
        body["tool_calls"] = [_encode_call(call) for call in calls]
    return body


def _encode_call(call: ToolCall) -> object:
    function = {"name": call.name, "arguments": call.arguments}
    body: dict[str, object] = {"id": call.id, "type": "function", "function": function}
    if call.state is None:
        return body
    if call.state.provider != WIRE:
        raise CannotCarry(wire=WIRE, what=f"state of {call.state.provider} on a tool call")
    if not as_object(load(call.state.data), "state"):
        return body
    return verbatim(f"{dump(body).decode()[:-1]},{call.state.data.strip()[1:]}")


def encode_tool(name: str, description: str, parameters: str) -> bytes:
    """Encode a tool offer; its JSON Schema is copied verbatim."""
    function = {"name": name, "description": description, "parameters": verbatim(parameters)}
    return dump({"type": "function", "function": function})


OPENAI = Wire(
    name=WIRE,
    also_spoken_by=("compatible",),
    # Chat has no field `system`; reserve the name to reject it as an option.
    own_fields=frozenset({"model", "tools", "system", "messages"}),
    model_in_body=True,
    tools=Slot(b'"tools":[', b"]"),
    slots=dict.fromkeys(
        (SystemMessage, DeveloperMessage, UserMessage, AssistantMessage, ToolMessage), Slot(b'"messages":[', b"]")
    ),
    breakpoint=b"",
    decode=decode,
    encode=encode,
    encode_tool=encode_tool,
    carries_file=carries_file,
    carries_state=carries_state,
    call_id=re.compile(r".*", re.DOTALL),
    longest_call_id=40,
    # The provider accepts ids that an earlier turn used.
    call_ids_are_unique=False,
    calls_come_last=True,
    calls_carry_state=True,
    takes_any_arguments=True,
    takes_names=True,
    takes_empty_text=True,
    takes_blank_end=True,
    errors_are_words=False,
    begins_with_user=False,
)
