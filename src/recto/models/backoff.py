"""How long to wait before a failed model call is made again. Pure: chance comes in as a number."""

from __future__ import annotations

from dataclasses import dataclass

from recto.errors import SettingsError

# More doublings than any cap needs, few enough to stay a number.
DOUBLINGS = 60


@dataclass(frozen=True, kw_only=True)
class BackoffSettings:
    """Seconds: the first wait, the longest of our own, and the longest a provider may ask for."""

    base: float = 0.5
    cap: float = 20.0
    retry_after_cap: float = 60.0

    def __post_init__(self) -> None:
        numbers = {"base": self.base, "cap": self.cap, "retry_after_cap": self.retry_after_cap}
        for name, value in numbers.items():
            if not 0 <= value < float("inf"):
                raise SettingsError(name=f"backoff.{name}", value=value, allowed="it is a number of seconds, 0 or more")


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
