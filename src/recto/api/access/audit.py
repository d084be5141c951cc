"""Log lines of rejected requests: user, path, address and reason, but no secrets. One line per rejection."""

from __future__ import annotations

import asyncio
import logging
import re
from urllib.parse import quote

from starlette.requests import HTTPConnection

from recto.api.access.rate import MINUTE
from recto.api.backend import User

LOGGER = logging.getLogger("recto.audit")
NOBODY = "nobody"
# Start of a query within a path: a question mark, possibly percent-encoded several times.
QUERY = re.compile(r"\?|%(?:25)*3f", re.IGNORECASE)
PATH_CHARACTERS, METHOD_CHARACTERS, PEER_CHARACTERS = 256, 16, 64
# Maximum number of kinds of lines to track at a time. Further kinds count as OTHERS.
MOST_KINDS = 100
OTHERS = "(other things)"


def audit(request: HTTPConnection, what: str, *, status: int) -> None:
    """Log a rejected request. `what` is a code, such as `foreign_thread`; the query is omitted."""
    scope = request.scope
    user: User | None = scope.get("state", {}).get("user")
    LOGGER.warning(
        "refused %s %s: status %d, reason %s, user %s, from %s",
        _plain(str(scope.get("method", "-")))[:METHOD_CHARACTERS],
        _plain(QUERY.split(str(scope["path"]), maxsplit=1)[0])[:PATH_CHARACTERS],
        status,
        what,
        _plain(user.name) if user else NOBODY,
        _plain(peer_of(request)),
    )


def peer_of(request: HTTPConnection) -> str:
    """Return the client's address, truncated, because a trusted proxy may set any text."""
    return request.client.host[:PEER_CHARACTERS] if request.client else "-"


def _plain(text: str) -> str:
    """Percent-encode everything that could end a line or fake a field."""
    return quote(text, safe="/-._~:@+=", errors="replace")


class RareLines:
    """Rate-limited log lines: each kind once a minute, followed by the number of suppressed lines."""

    def __init__(self, logger: logging.Logger) -> None:
        self._logger = logger
        self._more = dict[str, int]()

    def log(self, what: str, details: str = "") -> None:
        """Log the line, or count it if its kind was logged within the minute."""
        kind = what if what in self._more or len(self._more) < MOST_KINDS else OTHERS
        if kind in self._more:
            self._more[kind] += 1
            return
        self._logger.warning("%s%s", what, details)
        self._more[kind] = 0

        def log_more() -> None:
            if more := self._more.pop(kind):
                self._logger.warning("%s: %d more times within a minute", kind, more)

        asyncio.get_running_loop().call_later(MINUTE, log_more)
