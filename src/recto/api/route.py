"""Routes: method, path, handler, and the types and examples that describe them.

The type of an answer is the type its handler returns, so pyright rejects a row of another shape.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal, NotRequired

from pydantic import BaseModel
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
TIME = "2026-05-14T12:00:00.000Z"


@dataclass(frozen=True, kw_only=True)
class Route:
    """One method of one path. `refusals` are its error statuses beyond those of every route.

    `body` is the request body, sent as `media` or one of `more_media`; `answer` the response body with `status`. A
    route that `streams` can respond with events; `text` is the media type of a response that is neither. A route that
    `is_open` needs no credentials.
    """

    method: Literal["GET", "POST", "PUT", "PATCH", "DELETE"]
    path: str
    handler: Handler
    tag: str
    answer: type[object] | None = None
    status: int = 200
    body: type[BaseModel] | None = None
    needs_body: bool = True
    media: str = JSON_MEDIA
    more_media: tuple[str, ...] = ()
    refusals: tuple[int, ...] = ()
    streams: bool = False
    is_open: bool = False
    text: str | None = None
    examples: Mapping[str, object] = field(default_factory=dict[str, object])


class Problem(TypedDict):
    """An error as `application/problem+json`. `message` repeats `detail`, because most clients read it there."""

    type: str
    title: str
    status: int
    detail: str
    message: str
    code: str
    errors: NotRequired[Sequence[Mapping[str, str]]]
