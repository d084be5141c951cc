"""Routes: method, path, handler, the types of their bodies, and the parameters that a handler's signature declares."""

from __future__ import annotations

import inspect
import re
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass
from datetime import date, tzinfo
from functools import cached_property, partial
from types import UnionType
from typing import Annotated, Literal, NotRequired, TypeAlias, cast, get_args, get_origin

from pydantic import BaseModel, Field, TypeAdapter, ValidationError
from starlette.requests import Request
from starlette.responses import Response
from typing_extensions import TypedDict

from recto.config.zones import find_zone
from recto.conversation.input.input_rules import UUID
from recto.conversation.json import Json
from recto.errors import NotFound, WireError, WrongParameters

JSON_MEDIA, MERGE_MEDIA = "application/json", "application/merge-patch+json"
FORM_MEDIA, STREAM_MEDIA = "multipart/form-data", "text/event-stream"
PROBLEM_MEDIA = "application/problem+json"
# The endpoint for plain chat clients.
CHAT = "/api/v1/chat"
# Values in examples.
TASK = "01990b1e-6f3a-7c5e-8a57-1f0c2b9d4e11"
THREAD = "550e8400-e29b-41d4-a716-446655440000"
# A handler's result is sent as JSON, unless it is a response.
Handler: TypeAlias = Callable[..., Awaitable[Response | Mapping[str, object]]]
ParameterPlace: TypeAlias = Literal["path", "query", "header"]
# Places of parameters, in the order of validation and description.
PLACES: tuple[ParameterPlace, ...] = get_args(ParameterPlace)
DATE = re.compile(r"\d{4}-\d\d-\d\d", re.ASCII)


@dataclass(frozen=True)
class Route:
    """One method of one path. `errors` lists error statuses besides those of every route.

    `body` is the request body, sent as `media` or one of `more_media`. `status` is the status of a JSON response.
    `streams` is true if the route can respond with events. `text` is the media type of a response that is neither JSON
    nor events. `is_open` is true if the route needs no credentials.
    """

    method: Literal["GET", "POST", "PUT", "PATCH", "DELETE"]
    path: str
    handler: Handler
    tag: str = ""
    _: KW_ONLY
    status: int = 200
    body: type[BaseModel] | None = None
    needs_body: bool = True
    media: str = JSON_MEDIA
    more_media: tuple[str, ...] = ()
    errors: tuple[int, ...] = ()
    streams: bool = False
    is_open: bool = False
    text: str | None = None
    # Type of JSON that the handler encodes itself.
    json: type[object] | None = None

    @cached_property
    def parameters(self) -> tuple[HandlerParameter, ...]:
        """The parameters that the handler's signature declares."""
        parameters = list[HandlerParameter]()
        for one in inspect.signature(self.handler, eval_str=True).parameters.values():
            if get_origin(one.annotation) is Annotated:
                kind, declaration = get_args(one.annotation)
                name = declaration.alias or (one.name.replace("_", "-") if declaration.place == "header" else one.name)
                parameter = HandlerParameter(
                    argument=one.name, name=name, type=kind, default=one.default, declaration=declaration
                )
                parameters.append(parameter)
        return tuple(sorted(parameters, key=lambda one: PLACES.index(one.declaration.place)))

    @cached_property
    def answer(self) -> type[object] | None:
        """The type of the JSON response: the handler's return annotation, which pyright checks."""
        if self.json is not None:
            return self.json
        returns: object = inspect.signature(self.handler, eval_str=True).return_annotation
        kinds = get_args(returns) if isinstance(returns, UnionType) else (returns,)
        shapes = [cast("type[object]", kind) for kind in kinds if isinstance(kind, type)]
        return next((shape for shape in shapes if not issubclass(shape, Response)), None)


class Problem(TypedDict):
    """An error as `application/problem+json`. `message` repeats `detail`, because most clients read it there."""

    type: str
    title: str
    status: int
    detail: str
    message: str
    code: str
    errors: NotRequired[Sequence[Mapping[str, str]]]


@dataclass(frozen=True)
class Parameter:
    """Declaration of a parameter: its place, description and limits. `alias` is its external name."""

    place: ParameterPlace
    description: str
    _: KW_ONLY
    alias: str | None = None
    ge: int | None = None
    le: int | None = None
    max_length: int | None = None


# Declarations of a handler's arguments. A header has the name of its argument.
in_path, in_query, in_header = (partial(Parameter, "path"), partial(Parameter, "query"), partial(Parameter, "header"))
Cursor = Annotated[str | None, in_query("`next` of the previous page.")]
PageLimit = Annotated[int, in_query("Maximum number of items.", ge=1, le=100)]


@dataclass(frozen=True, kw_only=True)
class HandlerParameter:
    """A parameter of a handler. `name` is its external name."""

    argument: str
    name: str
    type: object
    default: object
    declaration: Parameter

    @property
    def is_required(self) -> bool:
        """True if the parameter has no default."""
        return self.default is inspect.Parameter.empty

    def text(self, request: Request) -> str | None:
        """Return the parameter's text in the request."""
        match self.declaration.place:
            case "path":
                return request.path_params[self.name]
            case "query":
                return request.query_params.get(self.name)
            case "header":
                return request.headers.get(self.name)

    def value(self, text: str) -> object:
        """Return the value of a text. Raises pydantic's ValidationError."""
        is_any_text = self.declaration.max_length is None and self.type in (str, str | None)
        return text if is_any_text else self._adapter.validate_python(text)

    def schema(self) -> Json:
        """Return the parameter's JSON Schema."""
        return self._adapter.json_schema()

    @cached_property
    def _adapter(self) -> TypeAdapter[object]:
        # Build the adapter on first use, because most servers need few of them.
        limits = self.declaration
        field = Field(
            default=... if self.is_required else self.default,
            ge=limits.ge,
            le=limits.le,
            max_length=limits.max_length,
            title=self.name.title(),
            description=limits.description,
        )
        kind = Annotated[self.type, field]
        return TypeAdapter(cast("type[object]", kind))


def read_parameters(request: Request, parameters: Sequence[HandlerParameter]) -> Mapping[str, object]:
    """Return the values of a request's parameters by argument name. Raises one error for all invalid ones."""
    values, wrong = dict[str, object](), list[tuple[str, str]]()
    for one in parameters:
        text = one.text(request)
        if text is None:
            wrong += [(one.name, "is missing")] if one.is_required else []
            continue
        try:
            values[one.argument] = one.value(text)
        except ValidationError as error:
            wrong += [(one.name, fault["msg"]) for fault in error.errors(include_url=False)]
    if wrong:
        raise WrongParameters(wrong=wrong)
    return values


def stored_id(id: str, kind: str) -> str:
    """Return an id in lower case, as stored. Raises NotFound if it is not a UUID."""
    if not UUID.fullmatch(id):
        raise NotFound(what=kind, id=id)
    return id.lower()


def day_of(text: str, where: str) -> date:
    """Parse a day."""
    try:
        # Reject other forms that Python parses, such as 20260514.
        return date.fromisoformat(text if DATE.fullmatch(text) else "")
    except ValueError as error:
        problem = f"must be a day as YYYY-MM-DD, such as 2026-05-14; is {text[:64]!r}"
        raise WireError(where=where, problem=problem) from error


def zone_of(name: str, where: str) -> tzinfo:
    """Parse the name of a time zone."""
    try:
        return find_zone(name)
    except ValueError as error:
        raise WireError(where=where, problem=str(error)) from error
