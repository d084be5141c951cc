"""The western chart of a birth: bodies in signs and houses, and their aspects. Refuses to guess a time or a place."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import get_args

from recto.agents.shipped.vibe.almanac.bilingual import Bilingual
from recto.agents.shipped.vibe.almanac.birth.birth import Birth
from recto.agents.shipped.vibe.almanac.birth.places import capital_note
from recto.agents.shipped.vibe.almanac.sky.aspects import LIGHTS, ORBS, Aspect, OrbSettings, aspects
from recto.agents.shipped.vibe.almanac.sky.houses import HOUSE_SYSTEMS, Houses, HouseSystem, houses
from recto.agents.shipped.vibe.almanac.sky.sky import (
    NODE,
    PLANETS,
    Body,
    Position,
    longitudes,
    moving,
    obliquity,
    positions,
    sidereal_angle,
)
from recto.agents.shipped.vibe.almanac.sky.zodiac_words import (
    APPLYING,
    ASPECTS,
    BODIES,
    ELEMENTS,
    MODALITIES,
    REASONS,
    SEPARATING,
    UP_TO,
    Modality,
    Reason,
    Sign,
    SignElement,
    render_degrees,
    render_longitude,
    sign_at,
)
from recto.conversation.json import Json
from recto.errors import ToolError
from recto.page.prompt.reminder import Locale

# Those further out stay in a sign for years: they say more of a generation than of a person.
OWN: tuple[Body, ...] = ("sun", "moon", "mercury", "venus", "mars", "jupiter", "saturn")


@dataclass(frozen=True, kw_only=True)
class Placement:
    """Where a body is. `earliest` and `latest` are for the beginning and end of the day; with a time all are one."""

    body: Body
    longitude: float
    earliest: float
    latest: float
    retrograde: bool
    house: int | None = None

    @property
    def sign(self) -> Sign | None:
        """Its sign; None when it changed that day and nobody knows at what time the birth was."""
        first, last = sign_at(self.earliest), sign_at(self.latest)
        return first if first is last else None

    @property
    def is_range(self) -> bool:
        """Whether one longitude would say too much: its sign changed that day, or it is the Moon, which goes far."""
        return self.sign is None or (self.body == "moon" and self.earliest != self.latest)

    def render(self, locale: Locale) -> str:
        """`金牛座 24°12′`, or from where to where."""
        if not self.is_range:
            return render_longitude(self.longitude, locale)
        ends = (render_longitude(end, locale) for end in (self.earliest, self.latest))
        return f" {UP_TO.in_locale(locale)} ".join(ends)


@dataclass(frozen=True, kw_only=True)
class ZodiacChart:
    """A chart. `gaps` says why something is missing in it or is not as it was asked for, `notes` what was assumed."""

    placements: tuple[Placement, ...]
    houses: Houses | None
    aspects: tuple[Aspect, ...]
    gaps: tuple[Reason, ...]
    zone: str
    notes: tuple[Bilingual, ...] = ()

    def placement(self, body: Body) -> Placement:
        """Where a body is."""
        return next(one for one in self.placements if one.body == body)

    @property
    def features(self) -> tuple[str, ...]:
        """What cases may be tagged with, in Chinese, then in English; only what is certain."""
        return (*_tags(self, "zh"), *_tags(self, "en"))

    def row(self, locale: Locale = "zh") -> dict[str, Json]:
        """The chart for JSON, in a language.

        No text here is the bare name of a sign: each would pass for a feature of the user, and houses name all twelve.
        """
        houses = self.houses
        signs = [sign.modality for sign in _signs(self)]
        kinds: tuple[Modality, ...] = get_args(Modality)
        cusps = houses.cusps if houses else ()
        return {
            "house_system": houses.system if houses else None,
            "sun": self.placement("sun").render(locale),
            "moon": self.placement("moon").render(locale),
            "rising": render_longitude(houses.ascendant, locale) if houses else None,
            "midheaven": render_longitude(houses.midheaven, locale) if houses else None,
            "planets": [_placement_row(one, locale) for one in self.placements],
            "houses": {str(house): render_longitude(cusp, locale) for house, cusp in enumerate(cusps, 1)},
            "aspects": [_aspect_text(one, locale) for one in self.aspects],
            "elements": _elements(self, locale),
            "modalities": {MODALITIES[kind].in_locale(locale): signs.count(kind) for kind in kinds},
            "untold": [REASONS[reason].in_locale(locale).format(zone=self.zone) for reason in self.gaps],
            "notes": [note.in_locale(locale) for note in self.notes],
            "features": list(self.features),
        }


def zodiac(birth: Birth, *, house_system: str = "placidus", orbs: OrbSettings = ORBS) -> ZodiacChart:
    """The chart of a birth in the tropical zodiac. Without a time or coordinates it has no houses, and says why."""
    system = _system(house_system)
    where, earliest, latest = _observe(birth)
    houses = _houses(birth, system)
    return ZodiacChart(
        placements=tuple(
            Placement(
                body=body,
                longitude=position.longitude,
                earliest=earliest[body],
                latest=latest[body],
                retrograde=position.speed < 0,
                house=houses.house_of(position.longitude) if houses else None,
            )
            for body, position in where.items()
        ),
        houses=houses,
        aspects=aspects(_compared(where, birth), orbs),
        gaps=tuple(_reasons(birth, system, houses)),
        zone=birth.zone_name,
        notes=(capital_note(birth.place, birth.capital),) if birth.capital else (),
    )


def _system(name: str) -> HouseSystem:
    for system in HOUSE_SYSTEMS:
        if system == name:
            return system
    raise ToolError(f"There is no house system {name!r} here. Use one of: {', '.join(HOUSE_SYSTEMS)}.")


def _observe(birth: Birth) -> tuple[Mapping[Body, Position], Mapping[Body, float], Mapping[Body, float]]:
    """Where everything is, and was as the day began and ended. Without a time: noon's place, the day's speed."""
    if birth.has_time:
        where = positions(birth.moment)
        at: dict[Body, float] = {body: position.longitude for body, position in where.items()}
        return where, at, at
    start, end = _day(birth)
    earliest, latest = longitudes(start), longitudes(end)
    day = moving(earliest, latest, end - start)
    noon = longitudes(birth.moment)
    return {body: replace(position, longitude=noon[body]) for body, position in day.items()}, earliest, latest


def _day(birth: Birth) -> tuple[datetime, datetime]:
    midnight = birth.local.replace(hour=0, minute=0, second=0, microsecond=0)
    start, end = (day.replace(tzinfo=birth.zone).astimezone(UTC) for day in (midnight, midnight + timedelta(days=1)))
    return start, end


def _houses(birth: Birth, system: HouseSystem) -> Houses | None:
    if not birth.has_time or birth.latitude is None or birth.longitude is None:
        return None
    return houses(
        sidereal=sidereal_angle(birth.moment, birth.longitude),
        latitude=birth.latitude,
        obliquity=obliquity(birth.moment),
        system=system,
    )


def _compared(where: Mapping[Body, Position], birth: Birth) -> dict[Body, Position]:
    """The bodies whose aspects count: not the node, and without a time not the Moon, which passes several in a day."""
    return {body: where[body] for body in PLANETS if birth.has_time or body != "moon"}


def _reasons(birth: Birth, system: HouseSystem, houses: Houses | None) -> Iterator[Reason]:
    if not birth.has_time:
        yield "no_time"
    if birth.latitude is None or birth.longitude is None:
        yield "no_place"
    if houses and houses.system != system:
        yield "polar"


def _placement_row(one: Placement, locale: Locale) -> dict[str, Json]:
    return {
        "planet": BODIES[one.body].in_locale(locale),
        "position": one.render(locale),
        "house": one.house,
        "retrograde": one.retrograde,
    }


def _aspect_text(one: Aspect, locale: Locale) -> str:
    """`太阳 三分相 月亮 0°19′ 入相`: one text, because a chart has twenty of them and a prompt is short."""
    words = BODIES[one.first], ASPECTS[one.kind], BODIES[one.second]
    phase = APPLYING if one.applying else SEPARATING
    return " ".join((*(word.in_locale(locale) for word in words), render_degrees(one.orb), phase.in_locale(locale)))


def _elements(chart: ZodiacChart, locale: Locale) -> dict[str, Json]:
    """How many of the ten are in signs of each element; whose sign is not certain is not counted."""
    signs = [sign.element for sign in _signs(chart)]
    kinds: tuple[SignElement, ...] = get_args(SignElement)
    return {ELEMENTS[kind].in_locale(locale): signs.count(kind) for kind in kinds}


def _signs(chart: ZodiacChart) -> list[Sign]:
    return [one.sign for one in chart.placements if one.body != NODE and one.sign]


def _tags(chart: ZodiacChart, locale: Locale) -> Iterator[str]:
    if sun := chart.placement("sun").sign:
        yield sun.name.in_locale(locale)
        for kind in (ELEMENTS[sun.element], MODALITIES[sun.modality]):
            yield kind.zh if locale == "zh" else f"{kind.en} sign"
    if chart.houses:
        rising = sign_at(chart.houses.ascendant)
        yield f"上升{rising.short}" if locale == "zh" else f"{rising.en} rising"
    for one in map(chart.placement, OWN):
        name = BODIES[one.body].in_locale(locale)
        if one.sign:
            yield f"{name}{one.sign.short}" if locale == "zh" else f"{name} in {one.sign.en}"
        if one.retrograde:
            yield f"{name}逆行" if locale == "zh" else f"{name} retrograde"
        if one.house and one.body in LIGHTS:
            yield f"{name}{one.house}宫" if locale == "zh" else f"{name} in house {one.house}"
