"""Log lines of what anybody can cause as often as they like: the first of a kind, then a count each minute."""

from __future__ import annotations

import asyncio
import logging

from recto.api.rate import MINUTE

# Kinds told at a time; what there is beside them is one more.
MOST_KINDS = 100
OTHERS = "(other things)"


class RareLines:
    """Lines of one logger."""

    def __init__(self, logger: logging.Logger) -> None:
        self._logger = logger
        self._more = dict[str, int]()

    def tell(self, what: str, details: str = "") -> None:
        """Tell it now, with details; or count it, if it was told within the minute."""
        kind = what if what in self._more or len(self._more) < MOST_KINDS else OTHERS
        if kind in self._more:
            self._more[kind] += 1
            return
        self._logger.warning("%s%s", what, details)
        self._more[kind] = 0
        asyncio.get_running_loop().call_later(MINUTE, self._tell_more, kind)

    def _tell_more(self, kind: str) -> None:
        more = self._more.pop(kind)
        if more:
            self._logger.warning("%s: %d more times within a minute", kind, more)
