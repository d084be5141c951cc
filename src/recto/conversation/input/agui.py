"""AG-UI messages, both ways. The format has all roles, but no place for provider state.

Decoding accepts camelCase, snake_case and the older `binary` part, and ignores unknown fields. Encoding writes AG-UI
1.0 in camelCase.
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
    """Decode messages from an array in AG-UI form."""
    return tuple(_decode_message(item, where) for where, item in objects(messages, "messages"))


def _decode_message(item: Object, where: str) -> Message:
    role, name = text_field(item, "role", where), optional_text(item, "name", where)
    id, sealed = text_field(item, "id", where), optional_text(item, field_name(item, "encryptedValue"), where)
    match role:
        case "user":
            return UserMessage(id=id, name=name, encrypted_value=sealed, parts=_decode_content(item, where))
        case "assistant":
            parts = (*_decode_text(item, where), *_decode_calls(item, where))
            return AssistantMessage(id=id, name=name, encrypted_value=sealed, parts=parts)
        case "tool":
            call = text_field(item, field_name(item, "toolCallId"), where)
            error, parts = optional_text(item, "error", where), _decode_content(item, where)
            return ToolMessage(id=id, tool_call_id=call, encrypted_value=sealed, error=error, parts=parts)
        case "system" | "developer":
            text, kind = text_field(item, "content", where), SystemMessage if role == "system" else DeveloperMessage
            return kind(id=id, name=name, encrypted_value=sealed, text=text)
        case "reasoning":
            return ReasoningMessage(id=id, encrypted_value=sealed, text=text_field(item, "content", where))
        case "activity":
            content = dump(as_object(item.get("content"), f"{where}.content")).decode()
            activity = text_field(item, field_name(item, "activityType"), where)
            return ActivityMessage(id=id, activity_type=activity, content=content)
        case _:
            raise WireError(where=f"{where}.role", problem=f"{role!r} is no role of AG-UI")


def field_name(item: Object, camel: str) -> str:
    """Return the name of a field in an object: snake_case if the object has only that, else camelCase."""
    return camel if camel in item or _snake(camel) not in item else _snake(camel)


@cache
def _snake(camel: str) -> str:
    return "".join(f"_{letter.lower()}" if letter.isupper() else letter for letter in camel)


def _decode_text(item: Object, where: str) -> tuple[Text, ...]:
    text = optional_text(item, "content", where)
    return (Text(text=text),) if text else ()


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
            encrypted_value=optional_text(call, field_name(call, "encryptedValue"), place),
        )


def _decode_content(item: Object, where: str) -> tuple[UserPart, ...]:
    content = item.get("content")
    if isinstance(content, str):
        return _decode_text(item, where)
    return tuple(_decode_part(part, place) for place, part in objects(content, f"{where}.content"))


def _decode_part(part: Object, where: str) -> UserPart:
    kind = text_field(part, "type", where)
    if kind == "text":
        return Text(text=text_field(part, "text", where))
    if kind == "binary":
        return _decode_binary(part, where)
    if kind not in KINDS:
        raise WireError(where=f"{where}.type", problem=f"{kind!r} is no part of AG-UI; known: text, {', '.join(KINDS)}")
    value = as_object(part.get("source"), f"{where}.source")
    source_kind, text = text_field(value, "type", f"{where}.source"), text_field(value, "value", f"{where}.source")
    mime = optional_text(value, field_name(value, "mimeType"), f"{where}.source")
    match source_kind:
        case "url":
            source = Url(url=text)
        case "data":
            source = Data(base64=text)
        case "file":
            source = ProviderFile(provider=optional_text(value, "provider", f"{where}.source") or "", handle=text)
        case _:
            problem = f"{source_kind!r} is no source of AG-UI; known: url, data, file"
            raise WireError(where=f"{where}.source.type", problem=problem)
    metadata = part.get("metadata")
    name = optional_text(metadata, "filename", f"{where}.metadata") if isinstance(metadata, dict) else None
    return File(kind=kind, source=source, mime_type=mime, name=name, id=optional_text(part, "id", where))


def _decode_binary(part: Object, where: str) -> File:
    mime = text_field(part, field_name(part, "mimeType"), where)
    family = mime.partition("/")[0]
    kind: FileKind = family if family in ("image", "audio", "video") else "document"
    url, data = optional_text(part, "url", where), optional_text(part, "data", where)
    if url is None and data is None:
        raise WireError(where=where, problem="a binary part needs a url or data")
    source: Source = Url(url=url) if url is not None else Data(base64=data or "")
    name, id = optional_text(part, "filename", where), optional_text(part, "id", where)
    return File(kind=kind, source=source, mime_type=mime, name=name, id=id)


def encode(message: Message) -> bytes:
    """Encode one message in AG-UI form. Raise CannotCarry for unsupported content."""
    body: dict[str, object] = {"id": message.id, "role": message.role}
    match message:
        case UserMessage() | ToolMessage():
            match message.parts:
                case ():
                    body["content"] = ""
                case (Text(text=text),):
                    body["content"] = text
                case parts:
                    body["content"] = list(map(_encode_part, parts))
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
    calls = list[object]()
    for call in message.tool_calls:
        if call.state is not None:
            raise CannotCarry(wire=WIRE, what=f"state of {call.state.provider} on a tool call")
        row = {"id": call.id, "type": "function", "function": {"name": call.name, "arguments": call.arguments}}
        calls.append(row | _present(encryptedValue=call.encrypted_value))
    return body | ({"toolCalls": calls} if calls else {})


def _encode_part(part: UserPart) -> object:
    match part:
        case Text():
            return {"type": "text", "text": part.text}
        case Opaque():
            raise CannotCarry(wire=WIRE, what=f"state of {part.provider} ({part.name})")
        case File():
            pass
    mime = part.mime_type
    match part.source:
        case Url(url=url):
            source = {"type": "url", "value": url} | _present(mimeType=mime)
        case Data(base64=data):
            source = {"type": "data", "value": data, "mimeType": mime or "application/octet-stream"}
        case ProviderFile(provider=provider, handle=handle):
            source = {"type": "file", "value": handle} | _present(provider=provider or None, mimeType=mime)
        case Key():
            raise CannotCarry(wire=WIRE, what="a file by its storage key; sign a url for it first")
    metadata = {"metadata": {"filename": part.name}} if part.name is not None else {}
    return {"type": part.kind} | _present(id=part.id) | {"source": source} | metadata
