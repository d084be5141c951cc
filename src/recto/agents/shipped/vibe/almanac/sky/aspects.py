"""Aspects: notable angles between two bodies, and their orbs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import combinations
from typing import Literal

from recto.agents.shipped.vibe.almanac.sky.sky import Body, Position, turn
from recto.errors import SettingsError

AspectKind = Literal["conjunction", "sextile", "square", "trine", "opposition"]
ANGLES: Mapping[AspectKind, int] = {"conjunction": 0, "sextile": 60, "square": 90, "trine": 120, "opposition": 180}
LIGHTS: tuple[Body, ...] = ("sun", "moon")
# Maximum orb: half of the smallest distance between two kinds of aspects. Wider orbs would overlap.
WIDEST = 15


@dataclass(frozen=True, kw_only=True)
class OrbSettings:
    """Largest deviation of each aspect in degrees. `light` is added for the Sun and the Moon."""

    conjunction: float = 8
    sextile: float = 6
    square: float = 7
    trine: float = 8
    opposition: float = 8
    light: float = 2

    def __post_init__(self) -> None:
        allowed = f"an orb is from 0 to {WIDEST}, with what is added for Sun and Moon"
        if not 0 <= self.light <= WIDEST:
            raise SettingsError(name="light", value=self.light, allowed=allowed)
        for kind in ANGLES:
            if not 0 <= self.of(kind) <= WIDEST - self.light:
                raise SettingsError(name=kind, value=self.of(kind), allowed=allowed)

    def of(self, kind: AspectKind) -> float:
        """Return the orb of a kind of aspect between other bodies than the Sun and the Moon."""
        orb: float = getattr(self, kind)
        return orb

    def between(self, kind: AspectKind, first: Body, second: Body) -> float:
        """Return the orb of a kind of aspect between two bodies."""
        return self.of(kind) + (self.light if first in LIGHTS or second in LIGHTS else 0)


ORBS = OrbSettings()


@dataclass(frozen=True, kw_only=True)
class Aspect:
    """An aspect between two bodies. `orb` is its deviation in degrees.

    The deviation shrinks if the aspect is `applying`.
    """

    first: Body
    second: Body
    kind: AspectKind
    orb: float
    applying: bool


def aspects(where: Mapping[Body, Position], orbs: OrbSettings = ORBS) -> tuple[Aspect, ...]:
    """Return the aspects between bodies, the closest first."""
    candidates = (
        aspect((first, where[first]), (second, where[second]), orbs) for first, second in combinations(where, 2)
    )
    return tuple(sorted((one for one in candidates if one is not None), key=lambda one: one.orb))


def aspect(one: tuple[Body, Position], other: tuple[Body, Position], orbs: OrbSettings = ORBS) -> Aspect | None:
    """Return the aspect between two bodies, or None."""
    (first, here), (second, there) = one, other
    way = turn(here.longitude, there.longitude)
    growth = (there.speed - here.speed) * (1 if way >= 0 else -1)
    for kind, angle in ANGLES.items():
        off = abs(way) - angle
        if abs(off) <= orbs.between(kind, first, second):
            return Aspect(first=first, second=second, kind=kind, orb=abs(off), applying=off * growth < 0)
    return None
