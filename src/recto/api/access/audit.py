"""Log lines of refused access: who, what, from where, and why. Never a secret, never a second line for one refusal."""

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
# Where one begins, also one that was taken for a part of the path because its mark came in code, once or more.
QUERY = re.compile(r"\?|%(?:25)*3f", re.IGNORECASE)
PATH_CHARACTERS, METHOD_CHARACTERS, PEER_CHARACTERS = 256, 16, 64
# Kinds of lines kept at a time; what there is beside them is one more.
MOST_KINDS = 100
OTHERS = "(other things)"


def audit(request: HTTPConnection, what: str, *, status: int) -> None:
    """Log a refusal. `what` is a code of ours, such as `foreign_thread`; the query is left out."""
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
    """The address a request came from. A proxy that is believed may have written anything there."""
    return request.client.host[:PEER_CHARACTERS] if request.client else "-"


def _plain(text: str) -> str:
    """Text that ends no line and is no field of another: everything unusual is written as in a url."""
    return quote(text, safe="/-._~:@+=", errors="replace")


class RareLines:
    """Lines of one logger, each kind once a minute; how many more there were is said at its end."""

    def __init__(self, logger: logging.Logger) -> None:
        self._logger = logger
        self._more = dict[str, int]()

    def log(self, what: str, details: str = "") -> None:
        """Log it now, with details; or count it, if it was logged within the minute."""
        kind = what if what in self._more or len(self._more) < MOST_KINDS else OTHERS
        if kind in self._more:
            self._more[kind] += 1
            return
        self._logger.warning("%s%s", what, details)
        self._more[kind] = 0
        asyncio.get_running_loop().call_later(MINUTE, self._log_more, kind)

    def _log_more(self, kind: str) -> None:
        more = self._more.pop(kind)
        if more:
            self._logger.warning("%s: %d more times within a minute", kind, more)
