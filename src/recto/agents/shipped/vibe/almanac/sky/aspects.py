"""Aspects: angles between two bodies that count, and how near they are. Refuses orbs under which two kinds overlap."""

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
# Half of the least distance between two kinds.
WIDEST = 15


@dataclass(frozen=True, kw_only=True)
class OrbSettings:
    """How many degrees an aspect may be off. `light` is added where Sun or Moon takes part."""

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
        """The orb of a kind, without Sun and Moon."""
        match kind:
            case "conjunction":
                return self.conjunction
            case "sextile":
                return self.sextile
            case "square":
                return self.square
            case "trine":
                return self.trine
            case "opposition":
                return self.opposition

    def between(self, kind: AspectKind, first: Body, second: Body) -> float:
        """The orb of a kind between two bodies."""
        return self.of(kind) + (self.light if first in LIGHTS or second in LIGHTS else 0)


ORBS = OrbSettings()


@dataclass(frozen=True, kw_only=True)
class Aspect:
    """Two bodies at an angle. `orb` is how many degrees it is off; `applying` that it becomes closer."""

    first: Body
    second: Body
    kind: AspectKind
    orb: float
    applying: bool


def aspects(where: Mapping[Body, Position], orbs: OrbSettings = ORBS) -> tuple[Aspect, ...]:
    """Every aspect between the bodies given, the closest first."""
    candidates = (
        aspect((first, where[first]), (second, where[second]), orbs) for first, second in combinations(where, 2)
    )
    return tuple(sorted((one for one in candidates if one is not None), key=lambda one: one.orb))


def aspect(one: tuple[Body, Position], other: tuple[Body, Position], orbs: OrbSettings = ORBS) -> Aspect | None:
    """The aspect between two bodies, or None. Who comes first changes nothing but that."""
    (first, here), (second, there) = one, other
    way = turn(here.longitude, there.longitude)
    growth = (there.speed - here.speed) * (1 if way >= 0 else -1)
    for kind, angle in ANGLES.items():
        off = abs(way) - angle
        if abs(off) <= orbs.between(kind, first, second):
            return Aspect(first=first, second=second, kind=kind, orb=abs(off), applying=off * growth < 0)
    return None
