"""Gemini's generateContent, both ways. Unsupported content raises CannotCarry.

A page groups neighbours of one role into one turn, so encoding returns the parts of a message. Each signature is sent
back where the model put it: on a call, on a text (a field), or in its own part (a block).
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import chain
from urllib.parse import urlsplit

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
    FileKind,
    Message,
    Opaque,
    ProviderFile,
    ReasoningMessage,
    SystemMessage,
    Text,
    ToolCall,
    ToolMessage,
    Url,
    UserMessage,
    UserPart,
)
from recto.errors import CannotCarry, WireError
from recto.page.wire.base import Slot, Wire, carried

WIRE = "gemini"
SIGNATURE = "thoughtSignature"
# The display name of a signature.
THINKING = "thinking"
# Supported files by extension, for urls without a type.
TYPES: Mapping[str, tuple[FileKind, str]] = {
    "png": ("image", "image/png"),
    "jpg": ("image", "image/jpeg"),
    "jpeg": ("image", "image/jpeg"),
    "webp": ("image", "image/webp"),
    "heic": ("image", "image/heic"),
    "heif": ("image", "image/heif"),
    "pdf": ("document", "application/pdf"),
    "mp3": ("audio", "audio/mpeg"),
    "wav": ("audio", "audio/wav"),
    "aac": ("audio", "audio/aac"),
    "aiff": ("audio", "audio/aiff"),
    "ogg": ("audio", "audio/ogg"),
    "flac": ("audio", "audio/flac"),
    "mp4": ("video", "video/mp4"),
    "mpeg": ("video", "video/mpeg"),
    "mov": ("video", "video/quicktime"),
    "webm": ("video", "video/webm"),
    "3gp": ("video", "video/3gpp"),
}
KINDS: Mapping[str, FileKind] = {mime: kind for kind, mime in TYPES.values()}
TOOLS = Slot(b'"tools":[{"functionDeclarations":[', b"]}]")
SYSTEM = Slot(b'"systemInstruction":{"parts":[', b"]}")
USER_TURN = Slot(b'"contents":[', b"]", b'{"role":"user","parts":[', b"]}")
MODEL_TURN = USER_TURN._replace(opens_turn=b'{"role":"model","parts":[')
VERSION = re.compile(r"\Agemini-(?:[a-z-]+-)?(\d{1,2})(?:\.(\d{1,2}))?(?!\d)")
# A Gemini name without a version is a current model; models with other names neither sign nor think.
NEWEST, OTHER = (99, 0), (0, 0)
# Since this version the first call of a reply must be signed. NOT_ITS_OWN signs a call that the model did not make.
SIGNED_SINCE = (3, 0)
NOT_ITS_OWN = '"skip_thought_signature_validator"'


def decode(body: Json, *, model: str | None = None) -> tuple[Message, ...]:
    """Decode messages from a request body or from its `contents`. Signed state is attributed to `model`."""
    if isinstance(body, dict):
        system = body.get("systemInstruction")
        parts = _parts(as_object(system, "systemInstruction"), "systemInstruction") if system is not None else ()
        instructions = [SystemMessage(text=text_field(part, "text", where)) for where, part in parts]
        return (*instructions, *decode(body.get("contents", []), model=model))
    messages: list[Message] = []
    waiting: list[ToolCall] = []
    for where, turn in objects(body, "contents"):
        match optional_text(turn, "role", where) or "user":
            case "model":
                parts = list(_parts(turn, where))
                thoughts = [text_field(part, "text", place) for place, part in parts if part.get("thought") is True]
                messages += [ReasoningMessage(text="".join(thoughts))] if thoughts else []
                others = [decode_part(part, place, model) for place, part in parts if part.get("thought") is not True]
                reply = AssistantMessage(parts=tuple(chain.from_iterable(others)))
                messages.append(reply)
                waiting = list(reply.tool_calls)
            case "user" | "function":
                messages += _decode_user(turn, where, model, waiting)
            case role:
                raise WireError(where=f"{where}.role", problem=f"{role!r} is no role of Gemini contents")
    return tuple(messages)


def _parts(content: Object, where: str) -> Iterator[tuple[str, Object]]:
    yield from objects(content.get("parts", []), f"{where}.parts")


def decode_part(part: Object, where: str, model: str | None) -> Iterator[AssistantPart]:
    """Decode a part of a model's turn. The signature of a text follows the text. A call without an id gets its path as
    id.
    """
    call, signature = part.get("functionCall"), optional_text(part, SIGNATURE, where)
    if call is None:
        yield from _decode_shown(part, where, model)
        return
    body = as_object(call, f"{where}.functionCall")
    arguments = _object_in(body, "args", f"{where}.functionCall")
    yield ToolCall(
        id=optional_text(body, "id", where) or where,
        name=text_field(body, "name", f"{where}.functionCall"),
        arguments=dump(arguments).decode(),
        state=signature_state(signature, model) if signature else None,
    )


def _object_in(body: Object, name: str, where: str) -> Object:
    value = body.get(name)
    return as_object({} if value is None else value, f"{where}.{name}")


def signature_state(signature: str, model: str | None) -> Opaque:
    """Return the state of a signature, which is a field of its part."""
    return Opaque(provider=WIRE, model=model, place="field", name=THINKING, data=dump(signature).decode())


def part_state(part: Object, model: str | None) -> Opaque:
    """Return the state of a part that is copied verbatim."""
    name = next((name for name in part if name not in ("text", SIGNATURE)), THINKING)
    return Opaque(provider=WIRE, model=model, place="block", name=name, data=dump(part).decode())


def _decode_user(turn: Object, where: str, model: str | None, waiting: list[ToolCall]) -> Iterator[Message]:
    placed_parts = list(_parts(turn, where))
    results = [
        (place, part["functionResponse"]) for place, part in placed_parts if part.get("functionResponse") is not None
    ]
    for place, result in results:
        yield _decode_result(as_object(result, f"{place}.functionResponse"), f"{place}.functionResponse", waiting)
    rest = [(place, part) for place, part in placed_parts if part.get("functionResponse") is None]
    if rest or not results:
        yield UserMessage(parts=tuple(one for place, part in rest for one in _decode_shown(part, place, model)))


def _decode_result(body: Object, where: str, waiting: list[ToolCall]) -> ToolMessage:
    name, call_id = text_field(body, "name", where), optional_text(body, "id", where)
    match = next((call for call in waiting if call.id == call_id or (not call_id and call.name == name)), None)
    if match is not None:
        waiting.remove(match)
    response = _object_in(body, "response", where)
    failed = response.get("error")
    value = response.get("output", response) if failed is None else failed
    text = value if isinstance(value, str) else dump(value).decode()
    return ToolMessage(
        tool_call_id=call_id or (match.id if match else where),
        parts=(Text(text=text),) if text else (),
        error=None if failed is None else "error",
    )


def _decode_shown(part: Object, where: str, model: str | None) -> Iterator[UserPart]:
    field_names = {name for name, value in part.items() if value is not None}
    signature = optional_text(part, SIGNATURE, where)
    text = optional_text(part, "text", where)
    if text is not None and field_names <= {"text", SIGNATURE} and (text or not signature):
        yield Text(text=text)
        if signature:
            yield signature_state(signature, model)
        return
    file = _decode_file(part) if len(field_names) == 1 else None
    yield file or part_state(part, model)


def _decode_file(part: Object) -> File | None:
    match part:
        case {"inlineData": {"mimeType": str(mime), "data": str(data), **rest}} if not rest and mime in KINDS:
            return File(kind=KINDS[mime], source=Data(base64=data), mime_type=mime)
        case {"fileData": {"mimeType": str(mime), "fileUri": str(uri), **rest}} if not rest and mime in KINDS:
            return File(kind=KINDS[mime], source=Url(url=uri), mime_type=mime)
        case _:
            return None


def encode(message: Message) -> bytes:
    """Return the joined parts of a message. Raise CannotCarry for unsupported content."""
    match message:
        case SystemMessage() | DeveloperMessage():
            return dump({"text": message.text})
        case UserMessage() | AssistantMessage():
            return _encode_parts(message.parts)
        case ToolMessage():
            return b",".join(map(dump, _encode_result(message)))
        case _:
            raise CannotCarry(wire=WIRE, what=f"a message of role {message.role}")


def _encode_parts(parts: Sequence[AssistantPart]) -> bytes:
    if not parts:
        raise CannotCarry(wire=WIRE, what="a message with nothing in it")
    encoded_parts: list[object] = []
    words: dict[str, object] | None = None
    for part in parts:
        if not (isinstance(part, Opaque) and part.place == "field"):
            words = {"text": part.text} if isinstance(part, Text) else None
            encoded_parts.append(_encode_part(part) if words is None else words)
            continue
        if words is None:
            # The signed text was blank and is not in the message. Send the signature with an empty text.
            words = {"text": ""}
            encoded_parts.append(words)
        words[SIGNATURE] = _signature(part)
        words = None
    if {"text": ""} in encoded_parts:
        raise CannotCarry(wire=WIRE, what="an empty text")
    return b",".join(map(dump, encoded_parts))


def _encode_part(part: AssistantPart) -> object:
    match part:
        case Text():
            return {"text": part.text}
        case ToolCall():
            if load_object(part.arguments) is None:
                raise CannotCarry(wire=WIRE, what=f"arguments of call {part.id} that are no JSON object")
            body = {"functionCall": {"id": part.id, "name": part.name, "args": verbatim(part.arguments)}}
            return body | ({SIGNATURE: _signature(part.state)} if part.state else {})
        case File():
            return carried(_file_part(part), part, WIRE)
        case Opaque(provider="gemini"):
            return verbatim(part.data)
        case Opaque():
            raise CannotCarry(wire=WIRE, what=f"state of {part.provider} ({part.name})")


def _signature(state: Opaque) -> object:
    if state.provider != WIRE:
        raise CannotCarry(wire=WIRE, what=f"state of {state.provider} ({state.name})")
    return verbatim(state.data)


def carries_file(part: File, role: str) -> bool:
    """Return True if a message of this role can carry the file. A tool's file follows its result."""
    return role != "assistant" and _file_part(part) is not None


def carries_state(part: Opaque, role: str) -> bool:
    """Return True if a message of this role can carry the provider state."""
    return role == "assistant" or (role == "user" and part.place == "block")


def _file_part(part: File) -> object | None:
    mime = part.mime_type
    match part.source:
        case Data(base64=data) if mime and KINDS.get(mime) == part.kind:
            return {"inlineData": {"mimeType": mime, "data": data}}
        case Url(url=url) | ProviderFile(provider="gemini", handle=url):
            _, file_type = TYPES.get(_ending(url), ("", "")) if mime is None else ("", mime)
            return {"fileData": {"mimeType": file_type, "fileUri": url}} if KINDS.get(file_type) == part.kind else None
        case _:
            return None


def _ending(url: str) -> str:
    try:
        return urlsplit(url).path.rpartition(".")[2].lower()
    except ValueError:
        return ""


def _encode_result(message: ToolMessage) -> Iterator[object]:
    if not message.tool_name:
        raise CannotCarry(wire=WIRE, what=f"a result of {message.tool_call_id} without the name of its tool")
    texts = [part.text for part in message.parts if isinstance(part, Text)]
    response = {"output" if message.error is None else "error": "\n".join(texts)}
    yield {"functionResponse": {"id": message.tool_call_id, "name": message.tool_name, "response": response}}
    yield from (_encode_part(part) for part in message.parts if not isinstance(part, Text))


def encode_tool(name: str, description: str, parameters: str) -> bytes:
    """Encode a tool offer; its JSON Schema is copied verbatim."""
    return dump({"name": name, "description": description, "parametersJsonSchema": verbatim(parameters)})


def version_of(model: str) -> tuple[int, int]:
    """Return the version in a model's name."""
    match = VERSION.search(model)
    if match:
        return int(match[1]), int(match[2] or 0)
    return NEWEST if model.startswith("gemini") or not model else OTHER


def sign_calls(parts: Sequence[AssistantPart], model: str) -> tuple[AssistantPart, ...]:
    """Sign the first call of a reply if the model requires it."""
    first = next((place for place, part in enumerate(parts) if isinstance(part, ToolCall)), None)
    if first is None or version_of(model) < SIGNED_SINCE:
        return tuple(parts)
    call = parts[first]
    if not isinstance(call, ToolCall) or call.state is not None:
        return tuple(parts)
    state = Opaque(provider=WIRE, model=None, place="field", name=THINKING, data=NOT_ITS_OWN)
    return (*parts[:first], replace(call, state=state), *parts[first + 1 :])


GEMINI = Wire(
    name=WIRE,
    own_fields=frozenset({"contents", "model", "systemInstruction", "tools"}),
    model_in_body=False,
    tools=TOOLS,
    slots={
        SystemMessage: SYSTEM,
        DeveloperMessage: SYSTEM,
        UserMessage: USER_TURN,
        ToolMessage: USER_TURN,
        AssistantMessage: MODEL_TURN,
    },
    # The provider caches without marks.
    breakpoint=b"",
    decode=decode,
    encode=encode,
    encode_tool=encode_tool,
    carries_file=carries_file,
    carries_state=carries_state,
    call_id=re.compile(r".*", re.DOTALL),
    longest_call_id=128,
    # The provider accepts ids that an earlier turn used.
    call_ids_are_unique=False,
    calls_come_last=False,
    calls_carry_state=True,
    takes_any_arguments=False,
    takes_names=False,
    takes_empty_text=False,
    takes_blank_end=True,
    errors_are_words=False,
    begins_with_user=True,
    results_name_tools=True,
    sign_calls=sign_calls,
)
