"""AG-UI messages, both ways: the format clients speak. It carries every role, so nothing is left out.

Accepts camelCase and snake_case and the older `binary` part; writes camelCase and the parts of 1.0. Unknown fields
are ignored. Provider state has no place in it and is refused by name.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from typing import get_args

from recto.conversation.json import Json, Object, as_object, dump, load, objects, optional_text, text_field
from recto.conversation.messages import (
    ActivityMessage,
    AssistantMessage,
    Data,
    DeveloperMessage,
    File,
    FileKind,
    Key,
    Message,
    Opaque,
    ProviderFile,
    ReasoningMessage,
    Source,
    SystemMessage,
    Text,
    ToolCall,
    ToolMessage,
    UnreadMessages,
    Url,
    UserMessage,
    UserPart,
)
from recto.errors import CannotCarry, WireError

WIRE = "ag-ui"
KINDS: tuple[FileKind, ...] = get_args(FileKind)


def decode(messages: Json) -> tuple[Message, ...]:
    """Messages from an array in AG-UI form."""
    return tuple(_decode_message(item, where) for where, item in objects(messages, "messages"))


def _decode_message(item: Object, where: str) -> Message:
    role, name = text_field(item, "role", where), optional_text(item, "name", where)
    id, sealed = text_field(item, "id", where), _optional(item, "encryptedValue", where)
    match role:
        case "user":
            return UserMessage(id=id, name=name, encrypted_value=sealed, parts=_decode_content(item, where))
        case "assistant":
            parts = (*_decode_words(item, where), *_decode_calls(item, where))
            return AssistantMessage(id=id, name=name, encrypted_value=sealed, parts=parts)
        case "tool":
            call, error = _needed(item, "toolCallId", where), optional_text(item, "error", where)
            parts = _decode_content(item, where)
            return ToolMessage(id=id, tool_call_id=call, encrypted_value=sealed, error=error, parts=parts)
        case "system":
            text = text_field(item, "content", where)
            return SystemMessage(id=id, name=name, encrypted_value=sealed, text=text)
        case "developer":
            text = text_field(item, "content", where)
            return DeveloperMessage(id=id, name=name, encrypted_value=sealed, text=text)
        case "reasoning":
            return ReasoningMessage(id=id, encrypted_value=sealed, text=text_field(item, "content", where))
        case "activity":
            content = dump(as_object(item.get("content"), f"{where}.content")).decode()
            return ActivityMessage(id=id, activity_type=_needed(item, "activityType", where), content=content)
        case _:
            raise WireError(where=f"{where}.role", problem=f"{role!r} is no role of AG-UI")


def field_name(item: Object, camel: str) -> str:
    """How an object spells a field: in snake_case where it has that alone, else as AG-UI does."""
    return camel if camel in item or _snake(camel) not in item else _snake(camel)


@cache
def _snake(camel: str) -> str:
    return "".join(f"_{letter.lower()}" if letter.isupper() else letter for letter in camel)


def _optional(item: Object, camel: str, where: str) -> str | None:
    return optional_text(item, field_name(item, camel), where)


def _needed(item: Object, camel: str, where: str) -> str:
    return text_field(item, field_name(item, camel), where)


def _decode_words(item: Object, where: str) -> Iterator[Text]:
    words = optional_text(item, "content", where)
    if words:
        yield Text(text=words)


def _decode_calls(item: Object, where: str) -> Iterator[ToolCall]:
    name = field_name(item, "toolCalls")
    calls = item.get(name)
    if calls is None:
        return
    for place, call in objects(calls, f"{where}.{name}"):
        function = as_object(call.get("function"), f"{place}.function")
        yield ToolCall(
            id=text_field(call, "id", place),
            name=text_field(function, "name", f"{place}.function"),
            arguments=text_field(function, "arguments", f"{place}.function"),
            encrypted_value=_optional(call, "encryptedValue", place),
        )


def _decode_content(item: Object, where: str) -> tuple[UserPart, ...]:
    content = item.get("content")
    if isinstance(content, str):
        return tuple(_decode_words(item, where))
    return tuple(_decode_part(part, place) for place, part in objects(content, f"{where}.content"))


def _decode_part(part: Object, where: str) -> UserPart:
    kind = text_field(part, "type", where)
    if kind == "text":
        return Text(text=text_field(part, "text", where))
    if kind == "binary":
        return _decode_binary(part, where)
    if kind not in KINDS:
        raise WireError(where=f"{where}.type", problem=f"{kind!r} is no part of AG-UI; known: text, {', '.join(KINDS)}")
    source, mime = _decode_source(as_object(part.get("source"), f"{where}.source"), f"{where}.source")
    metadata = part.get("metadata")
    name = optional_text(metadata, "filename", f"{where}.metadata") if isinstance(metadata, dict) else None
    return File(kind=kind, source=source, mime_type=mime, name=name, id=optional_text(part, "id", where))


def _decode_binary(part: Object, where: str) -> File:
    mime = _needed(part, "mimeType", where)
    family = mime.partition("/")[0]
    kind: FileKind = family if family in ("image", "audio", "video") else "document"
    url, data = optional_text(part, "url", where), optional_text(part, "data", where)
    if url is None and data is None:
        raise WireError(where=where, problem="a binary part needs a url or data")
    source: Source = Url(url=url) if url is not None else Data(base64=data or "")
    name, id = optional_text(part, "filename", where), optional_text(part, "id", where)
    return File(kind=kind, source=source, mime_type=mime, name=name, id=id)


def _decode_source(source: Object, where: str) -> tuple[Source, str | None]:
    kind, value = text_field(source, "type", where), text_field(source, "value", where)
    mime = _optional(source, "mimeType", where)
    match kind:
        case "url":
            return Url(url=value), mime
        case "data":
            return Data(base64=value), mime
        case "file":
            return ProviderFile(provider=optional_text(source, "provider", where) or "", handle=value), mime
        case _:
            raise WireError(where=f"{where}.type", problem=f"{kind!r} is no source of AG-UI; known: url, data, file")


def encode(message: Message) -> bytes:
    """One message in AG-UI form."""
    body: dict[str, object] = {"id": message.id, "role": message.role}
    match message:
        case UserMessage() | ToolMessage():
            body["content"] = _encode_content(message.parts)
        case AssistantMessage():
            body |= _encode_assistant(message)
        case UnreadMessages():
            raise CannotCarry(wire=WIRE, what=f"a message of role {message.role}")
        case ActivityMessage():
            return dump(body | {"activityType": message.activity_type, "content": load(message.content)})
        case _:
            body["content"] = message.text
    if isinstance(message, ToolMessage):
        body |= _present(toolCallId=message.tool_call_id, error=message.error)
    elif not isinstance(message, ReasoningMessage):
        body |= _present(name=message.name)
    return dump(body | _present(encryptedValue=message.encrypted_value))


def _present(**fields: str | None) -> dict[str, object]:
    return {name: value for name, value in fields.items() if value is not None}


def _encode_assistant(message: AssistantMessage) -> dict[str, object]:
    words = [part for part in message.parts if not isinstance(part, ToolCall)]
    if message.parts[: len(words)] != tuple(words):
        raise CannotCarry(wire=WIRE, what="text that follows a tool call in one message")
    match words:
        case []:
            body: dict[str, object] = {}
        case [Text(text=text)]:
            body = {"content": text}
        case _:
            raise CannotCarry(wire=WIRE, what="an assistant's message of anything but one text and calls")
    calls = [_encode_call(call) for call in message.tool_calls]
    return body | ({"toolCalls": calls} if calls else {})


def _encode_call(call: ToolCall) -> object:
    if call.state is not None:
        raise CannotCarry(wire=WIRE, what=f"state of {call.state.provider} on a tool call")
    function = {"name": call.name, "arguments": call.arguments}
    return {"id": call.id, "type": "function", "function": function} | _present(encryptedValue=call.encrypted_value)


def _encode_content(parts: tuple[UserPart, ...]) -> object:
    match parts:
        case ():
            return ""
        case (Text(text=text),):
            return text
        case _:
            return [_encode_part(part) for part in parts]


def _encode_part(part: UserPart) -> object:
    match part:
        case Text():
            return {"type": "text", "text": part.text}
        case Opaque():
            raise CannotCarry(wire=WIRE, what=f"state of {part.provider} ({part.name})")
        case File():
            metadata = {"metadata": {"filename": part.name}} if part.name is not None else {}
            return {"type": part.kind} | _present(id=part.id) | {"source": _encode_source(part)} | metadata


def _encode_source(part: File) -> object:
    match part.source:
        case Url(url=url):
            return {"type": "url", "value": url} | _present(mimeType=part.mime_type)
        case Data(base64=data):
            return {"type": "data", "value": data, "mimeType": part.mime_type or "application/octet-stream"}
        case ProviderFile(provider=provider, handle=handle):
            return {"type": "file", "value": handle} | _present(provider=provider or None, mimeType=part.mime_type)
        case Key():
            raise CannotCarry(wire=WIRE, what="a file by its storage key; sign a url for it first")
