"""What the demo model finds of a birth in what people write: date, time, place, gender. It checks none of it."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping

from recto.page.canonical import Json

MONTH_NAMES = (
    *("january", "february", "march", "april", "may", "june", "july", "august", "september", "october"),
    *("november", "december"),
)
MONTHS = tuple(name[:3] for name in MONTH_NAMES)
_MONTH = rf"(?P<month>{'|'.join(MONTHS)})[a-z]*\.?"
_DAY, _YEAR = r"(?P<day>\d{1,2})(?:st|nd|rd|th)?", r"(?P<year>\d{4})"
DATES = (
    re.compile(r"(?<!\d)(?P<year>\d{4})\s*[-/.年]\s*(?P<month>\d{1,2})\s*[-/.月]\s*(?P<day>\d{1,2})(?!\d)\s*[日号]?"),
    re.compile(rf"\b{_MONTH}\s+{_DAY},?\s+{_YEAR}\b", re.IGNORECASE),
    re.compile(rf"\b{_DAY}\s+(?:of\s+)?{_MONTH},?\s+{_YEAR}\b", re.IGNORECASE),
)
_PART = "凌晨|清晨|早上|早晨|上午|中午|正午|下午|午后|傍晚|晚上|夜里|半夜|深夜"
TIMES = (
    re.compile(rf"(?:{_PART})?\s*(?<!\d)\d{{1,2}}[:：]\d{{2}}(?!\d)(?:\s*[ap]\.?m\b\.?)?", re.IGNORECASE),
    re.compile(rf"(?:{_PART})?\s*(?<!\d)\d{{1,2}}\s*[点时](?:\s*(?:半|[123一二三]刻|\d{{1,2}}\s*分?))?"),
    re.compile(r"\b\d{1,2}\s*[ap]\.?m\b\.?", re.IGNORECASE),
    re.compile("[早晚夜]?[子丑寅卯辰巳午未申酉戌亥]时"),
)
# A friend or a child of theirs is somebody else.
GENDERS = {
    "female": re.compile(r"女(?![朋友儿])|\b(?:female|woman|girl)\b", re.IGNORECASE),
    "male": re.compile(r"男(?![朋友孩])|\b(?:male|man|boy)\b", re.IGNORECASE),
}
LUNAR = re.compile(r"农历|阴历|旧历|\blunar\b", re.IGNORECASE)
PLACES = (
    re.compile("(?:出生地(?:点)?(?:是|在)?|生于|生在|出生[于在])[:： ]*(?P<place>[\u4e00-\u9fff]{2,8})"),
    re.compile("在(?P<place>[\u4e00-\u9fff]{2,8}?)(?:出生|生的|生人)"),
    re.compile(r"\b(?:in|at|from)\s+(?P<place>[A-Z][\w'-]+(?:,?\s+[A-Z][\w'-]+){0,3})"),
)
# What stands alone between commas, behind the date: a place, unless it has a character of some other thing to say.
ALONE = re.compile("[\u4e00-\u9fff]{2,6}|[A-Z][A-Za-z'-]+(?: [A-Z][A-Za-z'-]+){0,2}")
NO_PLACE = re.compile(
    r"[我你他她的是了吗呢吧请帮看算想要和也就男女性生时点分谢]|盘|八字|星座|塔罗|[公阳农阴]历|未知|继续"
    r"|\b(?:Fem|M)ale\b|\b(?:Wom|M)an\b|\b(?:Please|Thanks?|What|My|The|And|So|Now|Can|Could|Tell|Read|Show)\b"
)
BETWEEN = re.compile(r"[，,;；、。.!！?？\n]+")
SPEAKS_OF_BIRTH = re.compile(r"出生|生日|生辰|时辰|\bbirth\w*|\bborn\b", re.IGNORECASE)


def birth_in(said: Iterable[str]) -> dict[str, Json]:
    """The birth that the first of these texts with a date tells of; empty where none does."""
    births = [_birth(words) for words in said]
    return next((birth for birth in births if birth), dict[str, Json]())


def without_dates(words: str) -> str:
    """The words without dates, and without times where there was a date: there is nothing in them to calculate."""
    plain = words
    for date in DATES:
        plain = date.sub(", ", plain)
    if plain != words:
        for time in TIMES:
            plain = time.sub(", ", plain)
    return plain


def _birth(words: str) -> dict[str, Json]:
    date = next((one for pattern in DATES if (one := pattern.search(words))), None)
    told = _date(date) if date else None
    if date is None or told is None:
        return {}
    before, behind = words[: date.start()], words[date.end() :]
    rest = f"{before}，{behind}"
    found: dict[str, Json] = {"date": told}
    if time := next((one for pattern in TIMES if (one := pattern.search(rest))), None):
        found["time"] = time[0].strip()
    if place := next(_places(before, behind), None):
        found["place"] = place
    if gender := next((name for name, pattern in GENDERS.items() if pattern.search(rest)), None):
        found["gender"] = gender
    if LUNAR.search(words):
        found["calendar"] = "lunar"
    return found


def _date(found: re.Match[str]) -> str | None:
    parts: Mapping[str, str] = found.groupdict()
    named = parts["month"].lower()
    month = MONTHS.index(named) + 1 if named in MONTHS else int(named)
    day = int(parts["day"])
    is_one = 1 <= month <= len(MONTHS) and 1 <= day <= 31  # noqa: PLR2004 - the longest month
    return f"{parts['year']}-{month:02}-{day:02}" if is_one else None


def _places(before: str, behind: str) -> Iterator[str]:
    plain = behind
    for time in TIMES:
        plain = time.sub("，", plain)
    for text in (plain, before):
        found = [one["place"] for pattern in PLACES if (one := pattern.search(text))]
        yield from (place for place in found if place.lower() not in (*MONTHS, *MONTH_NAMES))
    pieces = [piece.strip() for comma in BETWEEN.split(plain) for piece in (comma, *comma.split())]
    yield from (piece.removesuffix("人") for piece in pieces if ALONE.fullmatch(piece) and not NO_PLACE.search(piece))
