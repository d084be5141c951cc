"""Routes: method, path, handler, and the types that describe their bodies."""

from __future__ import annotations

import inspect
from collections.abc import Mapping, Sequence
from dataclasses import KW_ONLY, dataclass
from functools import cached_property
from types import UnionType
from typing import Literal, NotRequired, cast, get_args

from pydantic import BaseModel
from starlette.responses import Response
from typing_extensions import TypedDict

from recto.api.parameters import Handler

JSON_MEDIA, MERGE_MEDIA = "application/json", "application/merge-patch+json"
FORM_MEDIA, STREAM_MEDIA = "multipart/form-data", "text/event-stream"
PROBLEM_MEDIA = "application/problem+json"
# The endpoint for plain chat clients.
CHAT = "/api/v1/chat"
# Values in examples.
TASK = "01990b1e-6f3a-7c5e-8a57-1f0c2b9d4e11"
THREAD = "550e8400-e29b-41d4-a716-446655440000"


@dataclass(frozen=True)
class Route:
    """One method of one path. `errors` are its error statuses beyond those of every route.

    `body` is the request body, sent as `media` or one of `more_media`. `status` is the status of a JSON response. A
    route that `streams` can respond with events; `text` is the media type of a response that is neither. A route that
    `is_open` needs no credentials.
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
    # Describes JSON that the handler encodes itself.
    json: type[object] | None = None

    @cached_property
    def answer(self) -> type[object] | None:
        """The type of the JSON response: the handler returns it, so pyright rejects a row of another shape."""
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
