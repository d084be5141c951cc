"""A route: what it takes, what it answers, with an example of each. Refuses to handle anything.

An answer is described by the type its handler writes it as, so that a row of another shape does not pass pyright.
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
# Where whoever only wants to talk asks.
CHAT = "/api/v1/chat"
# What examples of bodies name.
TASK = "01990b1e-6f3a-7c5e-8a57-1f0c2b9d4e11"
THREAD = "550e8400-e29b-41d4-a716-446655440000"
TIME = "2026-05-14T12:00:00.000Z"


@dataclass(frozen=True, kw_only=True)
class Route:
    """One method of one path. `refusals` are the statuses it may refuse with, beside those any route may.

    `body` is what it takes, as `media` or one of `more_media`, and whether it needs one; `answer` what it gives with
    `status`; `streams` says that it can answer with events, `text` is the media type of an answer that is neither. One
    that `is_open` needs no credentials.
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
    """A refusal, as `application/problem+json`. `message` is `detail` again, where most clients look for it."""

    type: str
    title: str
    status: int
    detail: str
    message: str
    code: str
    errors: NotRequired[Sequence[Mapping[str, str]]]
