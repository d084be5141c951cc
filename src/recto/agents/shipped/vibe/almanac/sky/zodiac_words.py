"""Names of signs, bodies and aspects in Chinese and English."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from recto.agents.shipped.vibe.almanac.bilingual import Bilingual
from recto.agents.shipped.vibe.almanac.sky.aspects import AspectKind
from recto.agents.shipped.vibe.almanac.sky.sky import Body
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


# From 0 degrees, thirty degrees each.
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
    """Return `24°12′`, at most `most` minutes in all."""
    whole, minutes = divmod(min(round(degrees * 60), most), 60)
    return f"{whole}°{minutes:02}′"
