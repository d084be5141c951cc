"""Larger cities by Chinese or English name, from `cities.csv`."""

from __future__ import annotations

import csv
import re
import unicodedata
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cache
from importlib.resources import files
from typing import TypeVar

from recto.agents.shipped.vibe.almanac.bilingual import Bilingual

HOME, HOME_ZONE = "中国", "Asia/Shanghai"
HOME_NAMES, ENGLISH_HOME_NAMES = ("中华人民共和国", "中国"), ("china", "prc")
# Endings of the names of provinces and states.
_REGION_END = re.compile("(?:维吾尔|壮族|回族)?自治区|特别行政区|省|市|州")
# Text that may follow the name of a city: the rank of the city, or a part of the city. A bare 区 does not match: it
# belongs to another name, such as 朝阳区.
_CITY_END = re.compile(r"(?:市|地区|州|盟|\w*自治州|特别行政区)(?:\w*)|县|\w+(?:区|县|镇|乡|村|街道|旗|市)|")
_VILLAGE = re.compile("[村镇乡县旗]$")
_ENGLISH_RANKS = re.compile(r"\b(?:city|shi|province|municipality|sheng|state)\b")
_DISTRICT = re.compile(r".*\b(?:district|county|qu)\b\s*")
_CHINESE = re.compile(r"[㐀-鿿]")
_SEPARATORS = re.compile(r"[\s,·・、/()-]+")
_ENGLISH_PARTS = re.compile(r"[,·・、/()]+")
# A part of a city without its rank, such as 海淀. A single additional character may name another place: 阿里山.
_PART = re.compile(r"[㐀-鿿]{2,}")

CAPITAL = Bilingual(
    zh="出生地只到省（{place}），按省会{city}计算；知道城市时请补充。",
    en="Of the place of birth only the province is known ({place}), so it is taken to be its capital, {city}. Ask for "
    "the city.",
)
QueryT = TypeVar("QueryT")


@dataclass(frozen=True, kw_only=True)
class Place:
    """A city: names, degrees north and east, IANA time zone.

    `capital_of` is the province that the city replaces, if any.
    """

    name: str
    english: str
    latitude: float
    longitude: float
    zone: str
    capital_of: str = ""


@dataclass(frozen=True, kw_only=True)
class _Row:
    place: Place
    chinese: tuple[str, ...]
    english: tuple[str, ...]
    regions: tuple[str, ...]
    english_regions: tuple[str, ...]

    @property
    def at_home(self) -> bool:
        return self.regions[0] == HOME


def find_place(name: str) -> Place | None:
    """Return the city of a name such as 北京, 北京海淀, 中国北京, 海淀区，北京, 广东省深圳市南山区, "Paris, France".

    A province is replaced by its capital. If two cities have the same English name, the first one in the table is used.
    """
    is_chinese = bool(_CHINESE.search(name))
    parts = [part for part in (_SEPARATORS if is_chinese else _ENGLISH_PARTS).split(_plain(name)) if part.strip()]
    # The parts of a name may run from the largest to the smallest, or the other way round.
    orders = (parts, parts[::-1])
    if is_chinese:
        texts = ["".join(parts) for parts in orders]
        row, province = _first(_find_named, texts), _first(_province, texts)
    else:
        orders = [[words for part in parts if (words := _words(_DISTRICT.sub("", part)))] for parts in orders]
        texts = [" ".join(parts) for parts in orders]
        row, province = _first(_english_named, texts), _first(_english_province, texts)
    if row is None and province:
        name = province.regions[1]
        return province.place if name in province.chinese else replace(province.place, capital_of=name)
    if row is None:
        row = _first(_with_part, texts) or _first(_without_last, orders) if is_chinese else _english_part(orders[1])
    return row.place if row else None


def _first(look: Callable[[QueryT], _Row | None], queries: Sequence[QueryT]) -> _Row | None:
    return next((row for one in queries if (row := look(one))), None)


def capital_note(province: str, capital: Place) -> Bilingual:
    """Return the note that a capital replaces a province."""
    return Bilingual(
        zh=CAPITAL.zh.format(place=province, city=capital.name),
        en=CAPITAL.en.format(place=province, city=capital.english),
    )


def is_abroad(name: str) -> bool:
    """Return True if an unknown place is outside China, by its country, its city or its language."""
    if home_zone(name):
        return False
    plain = _plain(name)
    if _CHINESE.search(plain):
        # A village may have a name that begins like a foreign city: 河内村.
        foreign = [row for row in _rows() if not row.at_home]
        cities = () if _VILLAGE.search(plain) else (name for row in foreign for name in row.chinese)
        return plain.startswith((*(region for row in foreign for region in row.regions), *cities))
    return True


def home_zone(name: str) -> str | None:
    """Return the zone of an unknown place in China, by its province or country. Return None for other places."""
    plain = _plain(name)
    if _CHINESE.search(plain):
        text = _SEPARATORS.sub("", plain)
        country = next((home for home in HOME_NAMES if text.startswith(home)), "")
        lies_in = [row for row in _rows() if row.at_home and text.removeprefix(country).startswith(row.regions[1:])]
    else:
        words = f" {_words(plain)} "
        country = next((home for home in ENGLISH_HOME_NAMES if f" {home} " in words), "")
        lies_in = [
            row for row in _rows() if row.at_home and any(f" {name} " in words for name in row.english_regions[1:])
        ]
    return lies_in[0].place.zone if lies_in else HOME_ZONE if country else None


def _plain(name: str) -> str:
    """Normalise width and case, and remove accents."""
    parts = unicodedata.normalize("NFKD", name).lower().replace("臺", "台").replace("’", "'")
    return "".join(part for part in parts if not unicodedata.combining(part)).replace("ø", "o").strip()


def _words(text: str) -> str:
    """Return English words without apostrophes, full stops and ranks: `xian`, `new york`."""
    bare = _SEPARATORS.sub(" ", text.replace("'", "").replace(".", ""))
    return " ".join(_ENGLISH_RANKS.sub(" ", bare).split())


def _find_named(text: str) -> _Row | None:
    for row in _rows():
        names = [name for name in row.chinese if name in text]
        forms = _without_regions(row, text) if names else ()
        if any(form.startswith(name) and _CITY_END.fullmatch(form, len(name)) for form in forms for name in names):
            return row
    return None


def _with_part(text: str) -> _Row | None:
    """Return the city in China whose name, followed by a part of the city, is the text.

    If several match, return the nearest.
    """
    ends = (
        (len(form) - len(name), place, row)
        for place, row in enumerate(_cities_with_parts())
        for form in _without_regions(row, text)
        for name in row.chinese
        if form.startswith(name) and _PART.fullmatch(form, len(name)) and not form[len(name) :].startswith(_provinces())
    )
    return min(ends, default=(0, 0, None))[2]


def _without_last(parts: Sequence[str]) -> _Row | None:
    """Return the city in front of an unknown part (东京 新宿), but not in front of a foreign country or state."""
    *before, last = parts or ("",)
    if not before or any(last in row.regions for row in _rows()):
        return None
    return _find_named("".join(before)) or _without_last(before)


@cache
def _cities_with_parts() -> tuple[_Row, ...]:
    """Return the cities in China. Skip cities that have the name of a province with another capital."""
    homes = [row for row in _rows() if row.at_home]
    capitals = {row.regions: row for row in reversed(homes)}
    return tuple(row for row in homes if capitals[row.regions] is row or row.regions[1] not in row.chinese)


@cache
def _provinces() -> tuple[str, ...]:
    return tuple({region for row in _rows() if row.at_home for region in row.regions[1:]})


def _without_regions(row: _Row, text: str) -> Iterator[str]:
    """Yield a text, the text without its country, and the text without its province."""
    yield text
    for region in row.regions:
        if text.startswith(region):
            end = _REGION_END.match(text, len(region))
            text = text[end.end() if end else len(region) :]
            yield text


def _province(text: str) -> _Row | None:
    bare = text.removeprefix(HOME).removesuffix(HOME)
    for row in _rows():
        for name in row.regions[1:] if row.at_home else ():
            if bare == name or (bare.startswith(name) and _REGION_END.fullmatch(bare, len(name))):
                return row
    return None


def _english_named(words: str) -> _Row | None:
    for row in _rows():
        for name in row.english:
            if words == name or (words.startswith(name + " ") and _all_regions(row, words.removeprefix(name + " "))):
                return row
    return None


def _english_part(parts: Sequence[str]) -> _Row | None:
    """Return the city in China with a named part: Pudong, Shanghai; Shenzhen Nanshan."""
    cities = _cities_with_parts()
    full_matches = (row for part in parts for row in cities if part in row.english)
    prefix_matches = (
        row for part in parts for row in cities if part.startswith(tuple(f"{name} " for name in row.english))
    )
    return next(full_matches, None) or next(prefix_matches, None)


def _all_regions(row: _Row, words: str) -> bool:
    """Return True if words are only names of the city's regions: `texas usa`."""
    if not words:
        return True
    regions = (*row.english_regions, *row.english)
    return any(
        words == region or (words.startswith(f"{region} ") and _all_regions(row, words[len(region) + 1 :]))
        for region in regions
    )


def _english_province(words: str) -> _Row | None:
    bare = words.removesuffix("china").strip()
    return next((row for row in _rows() if row.at_home and bare in row.english_regions[1:]), None)


@cache
def _rows() -> tuple[_Row, ...]:
    text = files("recto.agents.shipped.vibe.almanac").joinpath("cities.csv").read_text(encoding="utf-8")
    return tuple(
        _Row(
            place=Place(
                name=fields["chinese"].split("|")[0],
                english=fields["english"].split("|")[0],
                latitude=float(fields["latitude"]),
                longitude=float(fields["longitude"]),
                zone=fields["zone"],
            ),
            chinese=tuple(fields["chinese"].split("|")),
            english=tuple(_words(_plain(name)) for name in fields["english"].split("|")),
            regions=tuple(fields["regions_chinese"].split("|")),
            english_regions=tuple(_words(_plain(name)) for name in fields["regions_english"].split("|")),
        )
        for fields in csv.DictReader(text.splitlines())
    )
