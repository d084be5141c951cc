"""The providers' own packages as judges of a body: their types, read strictly.

Types of two of them are TypedDicts; pydantic reads those and lets unknown keys pass, so they are checked here, key by
key. Those of Gemini are pydantic's own, and refuse unknown keys themselves.
"""

import json
import types
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache
from typing import Annotated, Any, Literal, Union, cast, get_args, get_origin

import typing_extensions
from pydantic import BaseModel, ConfigDict, ValidationError, create_model

from recto.page.wire.base import WireName

UNIONS = (Union, types.UnionType)
MARKS = (typing_extensions.Required, typing_extensions.NotRequired, Annotated)


def breaches(body: Mapping[str, object], wire: WireName) -> list[str]:
    """What the provider's package finds wrong with a body; nothing when it accepts it."""
    if wire == "gemini":
        return _refused_by_gemini(body)
    return list(_check(body, _request_type(wire, streamed=body.get("stream") is True), "body"))


@cache
def _request_type(wire: WireName, *, streamed: bool) -> object:
    # Imported here: the packages take seconds to load.
    from anthropic.types import message_create_params
    from openai.types.chat import completion_create_params
    from openai.types.responses import response_create_params

    match wire:
        case "openai":
            chat = completion_create_params
            return chat.CompletionCreateParamsStreaming if streamed else chat.CompletionCreateParamsNonStreaming
        case "openai-responses":
            responses = response_create_params
            return responses.ResponseCreateParamsStreaming if streamed else responses.ResponseCreateParamsNonStreaming
        case _:
            messages = message_create_params
            return messages.MessageCreateParamsStreaming if streamed else messages.MessageCreateParamsNonStreaming


def _refused_by_gemini(body: Mapping[str, object]) -> list[str]:
    try:
        _gemini_body().model_validate_json(json.dumps(body))
    except ValidationError as refused:
        return [f"{'.'.join(map(str, error['loc']))}: {error['msg']}" for error in refused.errors()]
    return []


@cache
def _gemini_body() -> type[BaseModel]:
    """What is posted: the package has types for each of its fields, and none for the whole."""
    from google.genai import types as gemini  # here: it takes long, and few tests need it

    return create_model(
        "GeminiBody",
        __config__=ConfigDict(extra="forbid", strict=True),
        contents=(list[gemini.Content], ...),
        systemInstruction=(gemini.Content | None, None),
        tools=(list[gemini.Tool] | None, None),
        toolConfig=(gemini.ToolConfig | None, None),
        generationConfig=(gemini.GenerationConfig | None, None),
        safetySettings=(list[gemini.SafetySetting] | None, None),
    )


def _check(value: object, hint: object, where: str) -> Iterator[str]:
    origin, args = get_origin(hint), get_args(hint)
    if origin in MARKS:
        yield from _check(value, args[0], where)
    elif typing_extensions.is_typeddict(cast("type", hint)):
        yield from _check_fields(value, cast("type", hint), where)
    elif origin in UNIONS:
        yield from _check_any(value, args, where)
    elif origin is Literal:
        yield from () if value in args else (f"{where} is {value!r}, not one of {args}",)
    elif isinstance(origin, type) and issubclass(origin, Mapping):
        yield from _check_values(value, args[1], where)
    elif isinstance(origin, type) and issubclass(origin, Iterable):
        yield from _check_items(value, args[0], where)
    elif not _is_a(value, hint):
        yield f"{where} is {value!r}, no {hint}"


def _check_any(value: object, hints: Sequence[object], where: str) -> Sequence[str]:
    if any(next(_check(value, hint, where), None) is None for hint in hints):
        return ()
    return min([list(_check(value, hint, where)) for hint in hints], key=_distance)


def _distance(results: Sequence[str]) -> tuple[int, int]:
    """How far a value is from one type of a union: the type it agrees with deepest is the nearest."""
    deepest = max(line.partition(" ")[0].count(".") + line.partition(" ")[0].count("[") for line in results)
    return -deepest, len(results)


def _check_fields(value: object, hint: type, where: str) -> Iterator[str]:
    if not isinstance(value, Mapping):
        yield f"{where} is {value!r}, no {hint.__name__}"
        return
    hints, fields = _hints(hint), cast("Mapping[str, object]", value)
    yield from (f"{where}.{name} is no field of {hint.__name__}" for name in fields.keys() - hints.keys())
    yield from (f"{where}.{name} is missing" for name in hints if _is_required(hints[name]) and name not in fields)
    for name in fields.keys() & hints.keys():
        yield from _check(fields[name], hints[name], f"{where}.{name}")


def _check_values(value: object, hint: object, where: str) -> Iterator[str]:
    if not isinstance(value, Mapping):
        yield f"{where} is {value!r}, no object"
        return
    for name, inner in cast("Mapping[str, object]", value).items():
        yield from _check(inner, hint, f"{where}.{name}")


def _check_items(value: object, hint: object, where: str) -> Iterator[str]:
    if not isinstance(value, list):
        yield f"{where} is {value!r}, no array"
        return
    for index, item in enumerate(cast("list[object]", value)):
        yield from _check(item, hint, f"{where}[{index}]")


@cache
def _hints(hint: type) -> Mapping[str, object]:
    return cast("Mapping[str, object]", typing_extensions.get_type_hints(hint, include_extras=True))


def _is_required(hint: object) -> bool:
    return get_origin(hint) is typing_extensions.Required


def _is_a(value: object, hint: object) -> bool:
    if hint is object or hint is Any:
        return True
    if hint is None:
        return value is None
    if isinstance(value, bool):
        return hint is bool
    allowed = (int, float) if hint is float else hint
    return isinstance(allowed, (type, tuple)) and isinstance(value, cast("type", allowed))
