"""Headers that keep browsers from doing harm with an answer: on every one, streams too. A handler's own ones stay."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TypeAlias

from starlette.types import Message, Send

Field: TypeAlias = tuple[bytes, bytes]

ALWAYS: tuple[Field, ...] = (
    (b"x-content-type-options", b"nosniff"),
    (b"referrer-policy", b"no-referrer"),
    (b"x-frame-options", b"DENY"),
    (b"cache-control", b"no-store"),
)
SAME_ORIGIN: Field = (b"cross-origin-resource-policy", b"same-origin")
# A year, as is usual; a browser takes it only from an answer over https.
ONLY_HTTPS: Field = (b"strict-transport-security", b"max-age=31536000")
# Data is no page: if a browser shows it all the same, it loads nothing and stands in no frame.
NO_PAGE: Field = (b"content-security-policy", b"default-src 'none'; frame-ancestors 'none'")
HTML = b"text/html"


class Stamp:
    """The headers of one server, made once."""

    def __init__(self, *, is_https: bool, is_shared: bool) -> None:
        common = (*ALWAYS, *([ONLY_HTTPS] if is_https else []), *([] if is_shared else [SAME_ORIGIN]))
        self._page = common
        self._data = (*common, NO_PAGE)

    def around(self, send: Send, more: Sequence[Field] = ()) -> Stamped:
        """A `send` that adds them to the answer, and `more` beside what is there."""
        return Stamped(self, send, more)

    def fields(self, given: Iterable[Field], more: Sequence[Field]) -> list[Field]:
        """All headers of an answer that has these of its own."""
        fields = list(given)
        own = dict(fields)
        ours = self._page if own.get(b"content-type", b"").lower().startswith(HTML) else self._data
        return [*fields, *[field for field in ours if field[0] not in own], *more]


class Stamped:
    """Sends one answer, with its headers stamped. Knows whether it has begun."""

    __slots__ = ("_more", "_send", "_stamp", "has_begun")

    def __init__(self, stamp: Stamp, send: Send, more: Sequence[Field]) -> None:
        self._stamp = stamp
        self._send = send
        self._more = more
        self.has_begun = False

    async def __call__(self, message: Message) -> None:
        """Send a piece of it."""
        if message["type"] == "http.response.start":
            self.has_begun = True
            message = {**message, "headers": self._stamp.fields(message.get("headers", ()), self._more)}
        await self._send(message)
