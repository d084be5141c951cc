"""A figure of a bench and the limit it should keep. A missed one is told, not raised."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class Goal:
    """A figure and the limit it should keep: the least it should be, or the most. Without one it is told only."""

    name: str
    value: float
    unit: str
    least: float | None = None
    most: float | None = None

    @property
    def verdict(self) -> str:
        """Whether the limit was kept."""
        if self.least is None and self.most is None:
            return ""
        low = self.least is not None and self.value < self.least
        high = self.most is not None and self.value > self.most
        return "MISSED" if low or high else "met"

    def __str__(self) -> str:
        least = "" if self.least is None else f"goal >= {self.least:.4g}"
        limit = least if self.most is None else f"goal <= {self.most:.4g}"
        return f"{self.name:<44}{self.value:>9.2f} {self.unit:<3} {limit:<14}{self.verdict}".rstrip()
