"""Ids: UUIDv7, near each other if made near each other. Nothing is told from their order: two machines have two clocks.

Refuses to be pure: it reads the clock and the dice.
"""

from __future__ import annotations

import os
import threading
import time
import uuid
from collections.abc import Iterator

# Asked of the system many at a time: each question lets other threads run first.
_DICE_BYTES = 4_096
_lock = threading.Lock()


def new_id() -> str:
    """A UUIDv7. Two made one after another in this process sort in that order, within one millisecond too."""
    with _lock:
        return next(_ids)


def _make_ids() -> Iterator[str]:
    millisecond = counter = 0
    dice = _roll()
    while True:
        now = time.time_ns() // 1_000_000
        if now > millisecond:
            # Half of the range stays free, so that counting on within a millisecond never overflows.
            millisecond, counter = now, int.from_bytes(next(dice) + next(dice)) >> 23
        else:
            counter += 1
        high, low = counter >> 30, counter & (2**30 - 1)
        tail = low << 32 | int.from_bytes(next(dice))
        yield str(uuid.UUID(int=millisecond << 80 | 7 << 76 | high << 64 | 2 << 62 | tail))


def _roll() -> Iterator[bytes]:
    """Four random bytes at a time, for ever."""
    while True:
        rolled = os.urandom(_DICE_BYTES)
        yield from (rolled[at : at + 4] for at in range(0, _DICE_BYTES, 4))


_ids = _make_ids()
