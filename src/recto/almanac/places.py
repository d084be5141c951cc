"""Where the larger cities lie, by Chinese or English name, read once from cities.csv. A name it lacks is None."""

from __future__ import annotations

import csv
import re
import unicodedata
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from importlib.resources import files

HOME, HOME_ZONE = "中国", "Asia/Shanghai"
HOME_NAMES, ENGLISH_HOME_NAMES = ("中华人民共和国", "中国"), ("china", "prc")
# What may follow the name of a province, or of a state.
_REGION_END = re.compile("(?:维吾尔|壮族|回族)?自治区|特别行政区|省|市|州")
# What may follow the name of a city: its rank, or a part of it. A bare 区 is a part of some other city: 朝阳区.
_CITY_END = re.compile(r"(?:市|地区|州|盟|\w*自治州|特别行政区)(?:\w*)|县|\w+(?:区|县|镇|乡|村|街道|旗|市)|")
_ENGLISH_RANKS = re.compile(r"\b(?:city|shi|province|municipality|sheng|state)\b")
_DISTRICT = re.compile(r"^[^,]*\b(?:district|county|qu)\b\s*,")
_CHINESE = re.compile(r"[㐀-鿿]")
_SEPARATORS = re.compile(r"[\s,·・、/-]+")


@dataclass(frozen=True, kw_only=True)
class Place:
    """A city: its Chinese name, degrees north and east, and the IANA name of its time zone."""

    name: str
    latitude: float
    longitude: float
    zone: str


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
    """北京, 北京市, 中国北京, 广东省深圳市南山区, Beijing, "Paris, France". A province stands for its capital.

    Where two cities share an English name and no province is named, it is the one that stands first in the table.
    """
    if _CHINESE.search(name):
        text = _SEPARATORS.sub("", _plain(name))
        found = next((row for row in _rows() if _says_chinese(row, text)), None) or _province(text)
    else:
        text = _DISTRICT.sub("", _plain(name)).strip()
        found = next((row for row in _rows() if _says_english(row, _words(text))), None) or _english_province(text)
    return found.place if found else None


def is_abroad(name: str) -> bool:
    """Whether a place that is not in the table is plainly outside China: by its country, or its language."""
    if home_zone(name):
        return False
    plain = _plain(name)
    if _CHINESE.search(plain):
        return any(plain.startswith(row.regions) for row in _rows() if not row.at_home)
    return True


def home_zone(name: str) -> str | None:
    """The zone of a place in China that is not in the table, by the province or the country it names; else None."""
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
    """One width, lower case, no accents."""
    parts = unicodedata.normalize("NFKD", name).lower().replace("臺", "台").replace("’", "'")
    return "".join(part for part in parts if not unicodedata.combining(part)).replace("ø", "o").strip()


def _words(text: str) -> str:
    """English words with one blank between, without apostrophes, full stops and ranks: `xian`, `new york`."""
    bare = _SEPARATORS.sub(" ", text.replace("'", "").replace(".", ""))
    return " ".join(_ENGLISH_RANKS.sub(" ", bare).split())


def _says_chinese(row: _Row, text: str) -> bool:
    names = [name for name in row.chinese if name in text]
    forms = _without_regions(row, text) if names else ()
    return any(form.startswith(name) and _CITY_END.fullmatch(form, len(name)) for form in forms for name in names)


def _without_regions(row: _Row, text: str) -> Iterator[str]:
    """A text, then the same without its country, then without its province too."""
    yield text
    for region in row.regions:
        if text.startswith(region):
            end = _REGION_END.match(text, len(region))
            text = text[end.end() if end else len(region) :]
            yield text


def _province(text: str) -> _Row | None:
    bare = text.removeprefix(HOME)
    return next(
        (row for row in _rows() if row.at_home and any(_is_region(bare, name) for name in row.regions[1:])), None
    )


def _is_region(text: str, region: str) -> bool:
    return text == region or (text.startswith(region) and bool(_REGION_END.fullmatch(text, len(region))))


def _says_english(row: _Row, words: str) -> bool:
    return any(
        words == name or (words.startswith(name + " ") and _all_regions(row, words.removeprefix(name + " ")))
        for name in row.english
        if words.startswith(name)
    )


def _all_regions(row: _Row, words: str) -> bool:
    """Whether words are nothing but names of where the city lies: `texas usa`."""
    if not words:
        return True
    known = (*row.english_regions, *row.english)
    return any(
        words == region or (words.startswith(f"{region} ") and _all_regions(row, words[len(region) + 1 :]))
        for region in known
    )


def _english_province(text: str) -> _Row | None:
    bare = _words(text).removesuffix("china").strip()
    return next((row for row in _rows() if row.at_home and bare in row.english_regions[1:]), None)


@cache
def _rows() -> tuple[_Row, ...]:
    text = files("recto.almanac").joinpath("cities.csv").read_text(encoding="utf-8")
    return tuple(_row(fields) for fields in csv.DictReader(text.splitlines()))


def _row(fields: dict[str, str]) -> _Row:
    chinese = tuple(fields["chinese"].split("|"))
    return _Row(
        place=Place(
            name=chinese[0],
            latitude=float(fields["latitude"]),
            longitude=float(fields["longitude"]),
            zone=fields["zone"],
        ),
        chinese=chinese,
        english=tuple(_words(_plain(name)) for name in fields["english"].split("|")),
        regions=tuple(fields["regions_chinese"].split("|")),
        english_regions=tuple(_words(_plain(name)) for name in fields["regions_english"].split("|")),
    )
