"""How long to wait before a failed model call is made again. Pure: chance comes in as a number."""

from __future__ import annotations

from recto.config.run_settings import BackoffSettings

# More doublings than any cap needs, few enough to stay a number.
DOUBLINGS = 60


DEFAULT = BackoffSettings()


def delay(
    failures: int, retry_after: float | None = None, chance: float = 0.0, settings: BackoffSettings = DEFAULT
) -> float:
    """Seconds to wait after this many failures (1 is the first), spread by `chance` in [0, 1).

    Our own wait doubles, half of it left to chance. What the provider asks for is waited in full, up to its cap, and a
    little longer by chance, so that not all who were told the same come back at once.
    """
    if retry_after is not None:
        return min(max(retry_after, 0.0), settings.retry_after_cap) + chance * settings.base
    longest = min(settings.base * 2 ** min(max(failures - 1, 0), DOUBLINGS), settings.cap)
    return longest / 2 + chance * longest / 2
