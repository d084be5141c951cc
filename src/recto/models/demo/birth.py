"""What the demo model finds of a birth in what people write: date, time, place, gender. It checks none of it."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Mapping

from recto.conversation.json import Json

MONTH_NAMES = (
    *("january", "february", "march", "april", "may", "june", "july", "august", "september", "october"),
    *("november", "december"),
)
MONTHS = tuple(name[:3] for name in MONTH_NAMES)
_MONTH = rf"(?P<month>{'|'.join(MONTHS)})[a-z]*\.?"
_DAY, _YEAR = r"(?P<day>\d{1,2})(?:st|nd|rd|th)?", r"(?P<year>\d{4})"
# As Chinese calendars have it: 1990年四月廿一, 一九九〇年腊月初八, 2023年闰二月初五.
_NUMERALS = "一二三四五六七八九十"
CHINESE_DATE = re.compile(
    "(?P<year>\\d{4}|[〇零一二三四五六七八九]{4})年\\s*(?:农历|阴历|旧历)?"
    f"(?P<rest>闰?(?:[正冬腊]|[{_NUMERALS}]{{1,2}}|\\d{{1,2}})月(?:[初廿卅{_NUMERALS}]{{1,3}}|\\d{{1,2}}(?!\\d)))[日号]?"
)
DATES = (
    re.compile(r"(?<!\d)(?P<year>\d{4})\s*[-/.年]\s*(?P<month>\d{1,2})\s*[-/.月]\s*(?P<day>\d{1,2})(?!\d)\s*[日号]?"),
    re.compile(rf"\b{_MONTH}\s+{_DAY},?\s+{_YEAR}\b", re.IGNORECASE),
    re.compile(rf"\b{_DAY}\s+(?:of\s+)?{_MONTH},?\s+{_YEAR}\b", re.IGNORECASE),
    CHINESE_DATE,
)
_PART = "凌晨|清晨|早上|早晨|上午|中午|正午|下午|午后|傍晚|晚上|夜里|半夜|深夜"
TIMES = (
    re.compile(rf"(?:{_PART})?\s*(?<!\d)\d{{1,2}}[:：]\d{{2}}(?!\d)(?:\s*[ap]\.?m\b\.?)?", re.IGNORECASE),
    re.compile(rf"(?:{_PART})?\s*(?<!\d)\d{{1,2}}\s*[点时](?:\s*(?:半|[123一二三]刻|\d{{1,2}}\s*分?))?"),
    # A numeral needs the part of the day: 一点 alone is a little.
    re.compile(f"(?:{_PART})[{_NUMERALS}两]{{1,3}}点(?:半|[一二三]刻|[{_NUMERALS}]{{1,3}}分)?"),
    re.compile(r"\b\d{1,2}\s*[ap]\.?m\b\.?", re.IGNORECASE),
    re.compile("[早晚夜]?[子丑寅卯辰巳午未申酉戌亥]时"),
)
# A friend or a child of theirs is somebody else.
GENDERS = {
    "female": re.compile(r"女(?![朋友儿])|\b(?:female|woman|girl)\b", re.IGNORECASE),
    "male": re.compile(r"男(?![朋友孩])|\b(?:male|man|boy)\b", re.IGNORECASE),
}
CALENDARS = {
    "lunar": re.compile(r"农历|阴历|旧历|\blunar\b", re.IGNORECASE),
    "solar": re.compile(r"公历|阳历|新历|\b(?:solar|gregorian)\b", re.IGNORECASE),
}
PLACES = (
    re.compile("(?:出生地(?:点)?(?:是|在)?|生于|生在|出生[于在])[:： ]*(?P<place>[\u4e00-\u9fff]{2,8})"),
    re.compile("在(?P<place>[\u4e00-\u9fff]{2,8}?)(?:出生|生的|生人)"),
    re.compile(r"\b(?:in|at|from)\s+(?P<place>[A-Z][\w'-]+(?:,?\s+[A-Z][\w'-]+){0,3})"),
)
# What stands alone between commas, behind the date: a place, unless it has a character of some other thing to say.
ALONE = re.compile("[\u4e00-\u9fff]{2,6}|[A-Z][A-Za-z'-]+(?: [A-Z][A-Za-z'-]+){0,2}")
NO_PLACE = re.compile(
    r"[我你他她的是了吗呢吧请帮看算想要也就男女性生时点分谢]|(?<!呼)和(?!田)|[说记弄搞]错|盘|八字|星座|塔罗|[公阳农阴]历|未知|继续|[哪怎]|什么|比较"
    r"|\b(?:Fem|M)ale\b|\b(?:Wom|M)an\b|\b(?:Please|Thanks?|What|My|The|And|So|Now|Can|Could|Tell|Read|Show)\b"
)
BETWEEN = re.compile(r"[，,;；、。.!！?？\n]+")
SPEAKS_OF_BIRTH = re.compile(r"出生|生日|生辰|时辰|\bbirth\w*|\bborn\b", re.IGNORECASE)
# Words that put right what was said of a birth before, and what they speak of.
CORRECTS = re.compile(
    r"[说记弄搞写填]错|更正|改成|改为|应该是|不对|\b(?:wrong|mistake|actually|correct(?:ion)?|should be)\b",
    re.IGNORECASE,
)
SPEAKS_OF_PLACE = re.compile(r"出生|地点|城市|生[于在]|\bborn\b|\bbirth ?place\b|\b(?:place|city)\b", re.IGNORECASE)
SPEAKS_OF_GENDER = re.compile(r"性别|是[男女]|\bgender\b|\b(?:am|I'm) (?:an? )?(?:fe)?male\b", re.IGNORECASE)
SOMEBODY_ELSE = re.compile(
    r"[他她]|朋友|同事|老公|老婆|丈夫|妻子|爱人|对象|儿子|女儿|孩子|宝宝|爸|妈|父|母|[哥弟姐妹]"
    r"|\b(?:his|her|their|he|she|friend|husband|wife|son|daughter|mother|father|child|kid|partner)\b",
    re.IGNORECASE,
)
# What goes around the place in such words: 其实是乌鲁木齐才对, it is Urumqi.
BEFORE_PLACE = re.compile(
    r"^.*?(?:应该是|改成|改为|换成|是在|是|在|\b(?:it is|it's|it was|should be|is|to)\s+)(?=[\u4e00-\u9fffA-Z])"
)
BEHIND_PLACE = re.compile("(?:才对|出生的?|人|的)$")
FORGETS = re.compile(
    r"(?:忘|删|清)[掉除了空]*.{0,6}(?:出生|生日|生辰)|(?:出生|生日|生辰).{0,8}(?:忘[掉了]|删[掉除了]|清[除空])"
    r"|\b(?:forget|delete|remove|erase)\b.{0,20}\bbirth",
    re.IGNORECASE,
)


def birth_in(said: Iterable[str], refused: Collection[Json] = ()) -> dict[str, Json]:
    """The birth that the first of these texts with a date tells of; empty where none does, or that one was refused."""
    births = (_birth(words) for words in said)
    first = next((birth for birth in births if birth), dict[str, Json]())
    return {} if first.get("date") in refused else first


def correction_in(words: str) -> dict[str, Json]:
    """What words say anew of a birth that is known: all of it with a date, else time, place or gender alone."""
    if SOMEBODY_ELSE.search(words):
        return {}
    is_said, corrects = bool(SPEAKS_OF_BIRTH.search(words)), bool(CORRECTS.search(words))
    whole = _birth(words)
    # A date alone may be any day; with a gender it is somebody's.
    if whole and (is_said or corrects or "gender" in whole):
        return whole
    found: dict[str, Json] = {}
    if (is_said or corrects) and (time := _time(words)):
        found["time"] = time
    if (is_said or corrects) and SPEAKS_OF_PLACE.search(words) and (place := next(_corrected_places(words), None)):
        found["place"] = place
    if SPEAKS_OF_GENDER.search(words) and (gender := _gender(words)):
        found["gender"] = gender
    return found


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
    if date is None:
        return {}
    before, behind = words[: date.start()], words[date.end() :]
    rest = f"{before}，{behind}"
    found: dict[str, Json] = {"date": _date(date)}
    if time := _time(rest):
        found["time"] = time
    if place := next(_places(before, behind), None):
        found["place"] = place
    if gender := _gender(rest):
        found["gender"] = gender
    if calendar := next((name for name, pattern in CALENDARS.items() if pattern.search(words)), None):
        found["calendar"] = calendar
    return found


def _date(found: re.Match[str]) -> str:
    """In figures where it is one of a calendar's; else as it was said, for the tool to understand or refuse."""
    parts: Mapping[str, str] = found.groupdict()
    if "rest" in parts:
        return f"{parts['year']}年{parts['rest']}"
    named = parts["month"].lower()
    month = MONTHS.index(named) + 1 if named in MONTHS else int(named)
    day = int(parts["day"])
    is_one = 1 <= month <= len(MONTHS) and 1 <= day <= 31  # noqa: PLR2004 - the longest month
    return f"{parts['year']}-{month:02}-{day:02}" if is_one else found[0].strip()


def _time(words: str) -> str | None:
    return next((one[0].strip() for pattern in TIMES if (one := pattern.search(words))), None)


def _gender(words: str) -> str | None:
    return next((name for name, pattern in GENDERS.items() if pattern.search(words)), None)


def _places(before: str, behind: str) -> Iterator[str]:
    plain = _without_times(behind)
    for text in (plain, before):
        yield from _told_places(text)
    pieces = [piece.strip() for comma in BETWEEN.split(plain) for piece in (comma, *comma.split())]
    yield from (piece.removesuffix("人") for piece in pieces if _is_place(piece))


def _corrected_places(words: str) -> Iterator[str]:
    plain = _without_times(words)
    # The last: 不是北京，是上海.
    pieces = [BEHIND_PLACE.sub("", piece.strip()) for piece in reversed(BETWEEN.split(plain))]
    places = (BEFORE_PLACE.sub("", piece) for piece in pieces if BEFORE_PLACE.search(piece))
    yield from (place for place in places if _is_place(place))
    yield from (place for place in _told_places(plain) if _is_place(place))


def _told_places(text: str) -> Iterator[str]:
    found = [one["place"] for pattern in PLACES if (one := pattern.search(text))]
    yield from (place for place in found if place.lower() not in (*MONTHS, *MONTH_NAMES))


def _is_place(piece: str) -> bool:
    return bool(ALONE.fullmatch(piece)) and not NO_PLACE.search(piece)


def _without_times(words: str) -> str:
    plain = words
    for time in TIMES:
        plain = time.sub("，", plain)
    return plain
