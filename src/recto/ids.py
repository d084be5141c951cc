"""Ids: UUIDv7, so that they sort by when they were made. Refuses to be pure: it reads the clock and the dice."""

from __future__ import annotations

import os
import threading
import time
import uuid

_COUNTER_BITS = 42
_lock = threading.Lock()
_last = (0, 0)


def new_id() -> str:
    """A UUIDv7. Two made one after another in this process sort in that order, within one millisecond too."""
    global _last  # noqa: PLW0603 - the one counter of the process is what keeps ids in order
    with _lock:
        millisecond, counter = _last
        now = time.time_ns() // 1_000_000
        if now > millisecond:
            # Half of the range stays free, so that counting on within a millisecond never overflows.
            millisecond, counter = now, int.from_bytes(os.urandom(6)) >> 7
        else:
            counter += 1
        _last = (millisecond, counter)
    high, low = counter >> 30, counter & (2**30 - 1)
    tail = low << 32 | int.from_bytes(os.urandom(4))
    return str(uuid.UUID(int=millisecond << 80 | 7 << 76 | high << 64 | 2 << 62 | tail))
