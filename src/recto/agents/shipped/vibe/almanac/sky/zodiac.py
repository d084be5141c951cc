"""Western birth chart, and the current sky with Mercury's retrograde periods."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta, tzinfo
from typing import Literal, get_args

from recto.agents.shipped.vibe.almanac.bilingual import Bilingual
from recto.agents.shipped.vibe.almanac.birth.birth import Birth
from recto.agents.shipped.vibe.almanac.birth.places import capital_note
from recto.agents.shipped.vibe.almanac.sky.aspects import LIGHTS, ORBS, Aspect, AspectKind, OrbSettings, aspects
from recto.agents.shipped.vibe.almanac.sky.houses import HOUSE_SYSTEMS, Houses, HouseSystem, houses
from recto.agents.shipped.vibe.almanac.sky.sky import (
    NODE,
    PLANETS,
    SHORT_WHILE,
    Body,
    Planet,
    Position,
    longitude,
    longitudes,
    moving,
    obliquity,
    positions,
    sidereal_angle,
    turn,
)
from recto.conversation.json import Json
from recto.errors import ToolError
from recto.page.prompt.reminder import Locale

SignElement = Literal["fire", "earth", "air", "water"]
Modality = Literal["cardinal", "fixed", "mutable"]
Reason = Literal["no_time", "no_place", "polar"]


@dataclass(frozen=True, kw_only=True)
class Sign:
    """A sign of the zodiac. `short` is its Chinese name without 座."""

    short: str
    en: str
    element: SignElement
    modality: Modality

    @property
    def name(self) -> Bilingual:
        return Bilingual(zh=f"{self.short}座", en=self.en)


# The signs from 0 degrees on, thirty degrees each.
SIGNS: tuple[Sign, ...] = (
    Sign(short="白羊", en="Aries", element="fire", modality="cardinal"),
    Sign(short="金牛", en="Taurus", element="earth", modality="fixed"),
    Sign(short="双子", en="Gemini", element="air", modality="mutable"),
    Sign(short="巨蟹", en="Cancer", element="water", modality="cardinal"),
    Sign(short="狮子", en="Leo", element="fire", modality="fixed"),
    Sign(short="处女", en="Virgo", element="earth", modality="mutable"),
    Sign(short="天秤", en="Libra", element="air", modality="cardinal"),
    Sign(short="天蝎", en="Scorpio", element="water", modality="fixed"),
    Sign(short="射手", en="Sagittarius", element="fire", modality="mutable"),
    Sign(short="摩羯", en="Capricorn", element="earth", modality="cardinal"),
    Sign(short="水瓶", en="Aquarius", element="air", modality="fixed"),
    Sign(short="双鱼", en="Pisces", element="water", modality="mutable"),
)

BODIES: Mapping[Body, Bilingual] = {
    "sun": Bilingual(zh="太阳", en="Sun"),
    "moon": Bilingual(zh="月亮", en="Moon"),
    "mercury": Bilingual(zh="水星", en="Mercury"),
    "venus": Bilingual(zh="金星", en="Venus"),
    "mars": Bilingual(zh="火星", en="Mars"),
    "jupiter": Bilingual(zh="木星", en="Jupiter"),
    "saturn": Bilingual(zh="土星", en="Saturn"),
    "uranus": Bilingual(zh="天王星", en="Uranus"),
    "neptune": Bilingual(zh="海王星", en="Neptune"),
    "pluto": Bilingual(zh="冥王星", en="Pluto"),
    "north_node": Bilingual(zh="北交点", en="North Node"),
}
ELEMENTS: Mapping[SignElement, Bilingual] = {
    "fire": Bilingual(zh="火象", en="fire"),
    "earth": Bilingual(zh="土象", en="earth"),
    "air": Bilingual(zh="风象", en="air"),
    "water": Bilingual(zh="水象", en="water"),
}
MODALITIES: Mapping[Modality, Bilingual] = {
    "cardinal": Bilingual(zh="开创宫", en="cardinal"),
    "fixed": Bilingual(zh="固定宫", en="fixed"),
    "mutable": Bilingual(zh="变动宫", en="mutable"),
}
ASPECTS: Mapping[AspectKind, Bilingual] = {
    "conjunction": Bilingual(zh="合相", en="conjunction"),
    "sextile": Bilingual(zh="六分相", en="sextile"),
    "square": Bilingual(zh="四分相", en="square"),
    "trine": Bilingual(zh="三分相", en="trine"),
    "opposition": Bilingual(zh="对分相", en="opposition"),
}
APPLYING = Bilingual(zh="入相", en="applying")
SEPARATING = Bilingual(zh="出相", en="separating")
UP_TO = Bilingual(zh="至", en="to")
REASONS: Mapping[Reason, Bilingual] = {
    "no_time": Bilingual(
        zh="出生时间未知：上升、中天、宫位和月亮的相位无法确定；"
        "月亮给出当天（时区 {zone}）的范围，其余为当天正午的位置。",
        en="The time of birth is not known: no ascendant, midheaven, houses or aspects of the Moon. The Moon is told "
        "by its range on that day (zone {zone}), everything else as it was at noon.",
    ),
    "no_place": Bilingual(
        zh="出生地的经纬度未知：上升、中天和宫位无法确定；时刻按时区 {zone} 计算。",
        en="Where the birth was is not known: no ascendant, midheaven or houses. The clock is taken as that of {zone}.",
    ),
    "polar": Bilingual(
        zh="出生地在极圈以内，普拉西德宫制在那里不存在，改用整宫制。",
        en="The place is within a polar circle, where Placidus has no houses: they are whole signs instead.",
    ),
}


def sign_at(longitude: float) -> Sign:
    """Return the sign of a longitude."""
    return SIGNS[int(longitude // 30) % 12]


def render_longitude(longitude: float, locale: Locale) -> str:
    """Return sign and degrees, such as `金牛座 24°12′`, rounded to a minute within the sign."""
    return f"{sign_at(longitude).name.in_locale(locale)} {render_degrees(longitude % 30, most=30 * 60 - 1)}"


def render_degrees(degrees: float, *, most: int = 360 * 60) -> str:
    """Return an angle such as `24°12′`, of at most `most` minutes in all."""
    whole, minutes = divmod(min(round(degrees * 60), most), 60)
    return f"{whole}°{minutes:02}′"


# The seven inner bodies. Bodies further out stay in a sign for many years.
OWN: tuple[Body, ...] = ("sun", "moon", "mercury", "venus", "mars", "jupiter", "saturn")


@dataclass(frozen=True, kw_only=True)
class Placement:
    """Position of a body.

    For births without a time, `earliest` and `latest` are the positions at the ends of the day.
    """

    body: Body
    longitude: float
    earliest: float
    latest: float
    retrograde: bool
    house: int | None = None

    @property
    def sign(self) -> Sign | None:
        """The sign; None if it changed that day and the time of birth is unknown."""
        first, last = sign_at(self.earliest), sign_at(self.latest)
        return first if first is last else None

    @property
    def is_range(self) -> bool:
        """True if a single longitude would be too exact, because the sign changed that day or the body is the Moon."""
        return self.sign is None or (self.body == "moon" and self.earliest != self.latest)

    def render(self, locale: Locale) -> str:
        """Return `金牛座 24°12′`, or a range."""
        if not self.is_range:
            return render_longitude(self.longitude, locale)
        ends = (render_longitude(end, locale) for end in (self.earliest, self.latest))
        return f" {UP_TO.in_locale(locale)} ".join(ends)


@dataclass(frozen=True, kw_only=True)
class ZodiacChart:
    """A chart. `gaps` are reasons for missing or different parts, `notes` are assumptions."""

    placements: tuple[Placement, ...]
    houses: Houses | None
    aspects: tuple[Aspect, ...]
    gaps: tuple[Reason, ...]
    zone: str
    notes: tuple[Bilingual, ...] = ()

    def placement(self, body: Body) -> Placement:
        """Return the placement of a body."""
        return next(one for one in self.placements if one.body == body)

    @property
    def features(self) -> tuple[str, ...]:
        """Tags that select cases, in Chinese, then in English. Only certain facts become tags."""
        return (*_tags(self, "zh"), *_tags(self, "en"))

    def row(self, locale: Locale = "zh") -> dict[str, Json]:
        """Return the row of the chart in a language.

        No text is the bare name of a sign, because it would count as a feature of the user: the houses name all twelve
        signs.
        """
        houses = self.houses
        # Do not count the node, and bodies without a certain sign.
        signs = [one.sign for one in self.placements if one.body != NODE and one.sign]
        elements, modalities = [sign.element for sign in signs], [sign.modality for sign in signs]
        element_kinds: tuple[SignElement, ...] = get_args(SignElement)
        kinds: tuple[Modality, ...] = get_args(Modality)
        cusps = houses.cusps if houses else ()
        return {
            "house_system": houses.system if houses else None,
            "sun": self.placement("sun").render(locale),
            "moon": self.placement("moon").render(locale),
            "rising": render_longitude(houses.ascendant, locale) if houses else None,
            "midheaven": render_longitude(houses.midheaven, locale) if houses else None,
            "planets": [
                {
                    "planet": BODIES[one.body].in_locale(locale),
                    "position": one.render(locale),
                    "house": one.house,
                    "retrograde": one.retrograde,
                }
                for one in self.placements
            ],
            "houses": {str(house): render_longitude(cusp, locale) for house, cusp in enumerate(cusps, 1)},
            # Texts are short, such as `太阳 三分相 月亮 0°19′ 入相`, because a chart has twenty of them.
            "aspects": [
                f"{BODIES[one.first].in_locale(locale)} {ASPECTS[one.kind].in_locale(locale)} "
                f"{BODIES[one.second].in_locale(locale)} {render_degrees(one.orb)} "
                f"{(APPLYING if one.applying else SEPARATING).in_locale(locale)}"
                for one in self.aspects
            ],
            "elements": {ELEMENTS[kind].in_locale(locale): elements.count(kind) for kind in element_kinds},
            "modalities": {MODALITIES[kind].in_locale(locale): modalities.count(kind) for kind in kinds},
            "untold": [REASONS[reason].in_locale(locale).format(zone=self.zone) for reason in self.gaps],
            "notes": [note.in_locale(locale) for note in self.notes],
            "features": list(self.features),
        }


def zodiac(birth: Birth, *, house_system: str = "placidus", orbs: OrbSettings = ORBS) -> ZodiacChart:
    """Return the chart of a birth in the tropical zodiac. Without a time or coordinates it has no houses."""
    system: HouseSystem | None = next((one for one in HOUSE_SYSTEMS if one == house_system), None)
    if system is None:
        raise ToolError(f"There is no house system {house_system!r} here. Use one of: {', '.join(HOUSE_SYSTEMS)}.")
    where, earliest, latest = _observe(birth)
    at = None if birth.latitude is None or birth.longitude is None else (birth.latitude, birth.longitude)
    chart_houses = (
        houses(
            sidereal=sidereal_angle(birth.moment, at[1]),
            latitude=at[0],
            obliquity=obliquity(birth.moment),
            system=system,
        )
        if birth.has_time and at
        else None
    )
    gaps: dict[Reason, bool] = {
        "no_time": not birth.has_time,
        "no_place": at is None,
        "polar": chart_houses is not None and chart_houses.system != system,
    }
    return ZodiacChart(
        placements=tuple(
            Placement(
                body=body,
                longitude=position.longitude,
                earliest=earliest[body],
                latest=latest[body],
                retrograde=position.speed < 0,
                house=chart_houses.house_of(position.longitude) if chart_houses else None,
            )
            for body, position in where.items()
        ),
        houses=chart_houses,
        # If the time is unknown, omit the aspects of the Moon, because it has several in a day.
        aspects=aspects({body: where[body] for body in PLANETS if birth.has_time or body != "moon"}, orbs),
        gaps=tuple(reason for reason, applies in gaps.items() if applies),
        zone=birth.zone_name,
        notes=(capital_note(birth.place, birth.capital),) if birth.capital else (),
    )


def _observe(birth: Birth) -> tuple[Mapping[Body, Position], Mapping[Body, float], Mapping[Body, float]]:
    """Return positions, and longitudes at both ends of the day.

    If the time is unknown, use the position at noon and the speed of the day.
    """
    if birth.has_time:
        where = positions(birth.moment)
        at: dict[Body, float] = {body: position.longitude for body, position in where.items()}
        return where, at, at
    midnight = birth.local.replace(hour=0, minute=0, second=0, microsecond=0)
    start, end = (day.replace(tzinfo=birth.zone).astimezone(UTC) for day in (midnight, midnight + timedelta(days=1)))
    earliest, latest = longitudes(start), longitudes(end)
    day = moving(earliest, latest, end - start)
    noon = longitudes(birth.moment)
    return {body: replace(position, longitude=noon[body]) for body, position in day.items()}, earliest, latest


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


MERCURY: Planet = "mercury"
# Mercury is retrograde for at least 19 days and direct for 90, so no station is skipped.
STEP, EXACT = timedelta(days=5), timedelta(minutes=1)
PERIODS = 3


@dataclass(frozen=True, kw_only=True)
class Period:
    """A retrograde period."""

    start: datetime
    end: datetime


def current_sky(moment: datetime, zone: tzinfo, locale: Locale) -> dict[str, Json]:
    """Return the row of the sky at a moment, in a language and a time zone."""
    where = positions(moment)
    periods = mercury_retrogrades(moment, PERIODS)
    return {
        "at": f"{moment.astimezone(zone):%Y-%m-%d %H:%M}",
        "zone": str(zone),
        "planets": [
            {
                "planet": BODIES[planet].in_locale(locale),
                "position": render_longitude(where[planet].longitude, locale),
                "retrograde": where[planet].speed < 0,
            }
            for planet in PLANETS
        ],
        "mercury_retrograde": {
            "now": periods[0].start <= moment,
            # Show only dates: the planet's position is exact to an arc minute, and it moves slowly around a station.
            "periods": [
                {"from": f"{one.start.astimezone(zone):%Y-%m-%d}", "to": f"{one.end.astimezone(zone):%Y-%m-%d}"}
                for one in periods
            ],
        },
    }


def mercury_retrogrades(moment: datetime, count: int) -> tuple[Period, ...]:
    """Return the next retrograde periods of Mercury. If one is in progress, it comes first."""
    at, periods = moment, list[Period]()
    while _goes_back(at):
        at -= STEP
    for _ in range(count):
        start = _station(at, back=True)
        end = _station(start + STEP, back=False)
        periods.append(Period(start=start, end=end))
        at = end + STEP
    return tuple(periods)


def _station(after: datetime, *, back: bool) -> datetime:
    """Return the time of the next station."""
    while _goes_back(after + STEP) != back:
        after += STEP
    before = after + STEP
    while before - after > EXACT:
        middle = after + (before - after) / 2
        after, before = (after, middle) if _goes_back(middle) == back else (middle, before)
    return before


def _goes_back(moment: datetime) -> bool:
    # Measure the speed around the moment, so that stations are not found too early.
    ends = (longitude(MERCURY, moment + shift) for shift in (-SHORT_WHILE, SHORT_WHILE))
    return turn(*ends) < 0
