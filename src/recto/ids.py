"""UUIDv7 ids. Ids made at about the same time sort near each other.

The order of ids from several machines means nothing, because their clocks differ.
"""

from __future__ import annotations

import os
import threading
import time
import uuid
from collections.abc import Iterator

# Random bytes per system call. Each call lets other threads run first, so fetch many at once.
_DICE_BYTES = 4_096
_lock = threading.Lock()


def new_id() -> str:
    """Return a UUIDv7. Ids of one process sort in the order of creation, even within one millisecond."""
    with _lock:
        return next(_ids)


def _make_ids() -> Iterator[str]:
    millisecond = counter = 0
    dice = _roll()
    while True:
        now = time.time_ns() // 1_000_000
        if now > millisecond:
            # Start in the lower half of the range, so that the counter never overflows within a millisecond.
            millisecond, counter = now, int.from_bytes(next(dice) + next(dice)) >> 23
        else:
            counter += 1
        high, low = counter >> 30, counter & (2**30 - 1)
        tail = low << 32 | int.from_bytes(next(dice))
        yield str(uuid.UUID(int=millisecond << 80 | 7 << 76 | high << 64 | 2 << 62 | tail))


def _roll() -> Iterator[bytes]:
    """Yield four random bytes at a time, forever."""
    while True:
        rolled = os.urandom(_DICE_BYTES)
        yield from (rolled[at : at + 4] for at in range(0, _DICE_BYTES, 4))


_ids = _make_ids()
