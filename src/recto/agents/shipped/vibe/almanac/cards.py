"""Cards (P14) for charts, draws and births."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from recto.agents.shipped.vibe.almanac.bilingual import Bilingual
from recto.agents.shipped.vibe.almanac.chart_rows import EXPECTED, PLACES, ChartRow, at, items, text_at
from recto.conversation.json import Json
from recto.page.prompt.reminder import Locale

LABELS: Mapping[str, Bilingual] = {
    "bazi": Bilingual(zh="四柱八字", en="Four Pillars"),
    "place_of": Bilingual(zh="柱", en="Pillar"),
    "year": Bilingual(zh="年柱", en="Year"),
    "month": Bilingual(zh="月柱", en="Month"),
    "day": Bilingual(zh="日柱", en="Day"),
    "hour": Bilingual(zh="时柱", en="Hour"),
    "pillar": Bilingual(zh="干支", en="Stem and branch"),
    "ten_god": Bilingual(zh="十神", en="Ten god"),
    "hidden": Bilingual(zh="藏干", en="Hidden stems"),
    "na_yin": Bilingual(zh="纳音", en="Na yin"),
    "day_master": Bilingual(zh="日主", en="Day master"),
    "strength": Bilingual(zh="强弱", en="Strength"),
    "structure": Bilingual(zh="格局", en="Structure"),
    "favourable": Bilingual(zh="喜用", en="Favourable"),
    "this_year": Bilingual(zh="流年", en="This year"),
    "zodiac": Bilingual(zh="本命星盘", en="Birth chart"),
    "planet": Bilingual(zh="行星", en="Planet"),
    "position": Bilingual(zh="位置", en="Position"),
    "house": Bilingual(zh="宫位", en="House"),
    "motion": Bilingual(zh="运行", en="Motion"),
    "retrograde": Bilingual(zh="逆行", en="retrograde"),
    "direct": Bilingual(zh="顺行", en="direct"),
    "sun": Bilingual(zh="太阳", en="Sun"),
    "moon": Bilingual(zh="月亮", en="Moon"),
    "rising": Bilingual(zh="上升", en="Rising"),
    "midheaven": Bilingual(zh="天顶", en="Midheaven"),
    "sky": Bilingual(zh="今日天象", en="The sky today"),
    "at": Bilingual(zh="时间", en="At"),
    "mercury": Bilingual(zh="水星逆行", en="Mercury retrograde"),
    "tarot": Bilingual(zh="塔罗牌", en="Tarot"),
    "card": Bilingual(zh="牌", en="Card"),
    "orientation": Bilingual(zh="正逆", en="Lies"),
    "keywords": Bilingual(zh="关键词", en="Keywords"),
    "question": Bilingual(zh="问题", en="Question"),
    "seed": Bilingual(zh="种子", en="Seed"),
    "date": Bilingual(zh="出生日期", en="Date of birth"),
    "time": Bilingual(zh="出生时间", en="Time of birth"),
    "place": Bilingual(zh="出生地点", en="Place of birth"),
    "gender": Bilingual(zh="性别", en="Gender"),
    "calendar": Bilingual(zh="历法", en="Calendar"),
    "leap_month": Bilingual(zh="闰月", en="Leap month"),
    "latitude": Bilingual(zh="纬度", en="Latitude"),
    "longitude": Bilingual(zh="经度", en="Longitude"),
    "timezone": Bilingual(zh="时区", en="Time zone"),
    "true_solar_time": Bilingual(zh="真太阳时", en="True solar time"),
    "male": Bilingual(zh="男", en="male"),
    "female": Bilingual(zh="女", en="female"),
    "solar": Bilingual(zh="公历", en="Gregorian"),
    "lunar": Bilingual(zh="农历", en="Chinese lunar"),
}
# Fields of the birth form: name, kind, choices.
FORM: Sequence[tuple[str, str, Sequence[str]]] = (
    ("date", "date", ()),
    ("time", "time", ()),
    ("place", "text", ()),
    ("gender", "select", ("male", "female")),
    ("calendar", "select", ("solar", "lunar")),
    ("leap_month", "checkbox", ()),
)
# Fields on the card of a saved birth.
BIRTH_FIELDS = (*(name for name, _, _ in FORM), "latitude", "longitude", "timezone", "true_solar_time")
REQUIRED = ("date",)
HOW: Mapping[str, Bilingual] = {
    "date": Bilingual(zh="必填，如 1990-05-15", en="Required, such as 1990-05-15"),
    "time": Bilingual(zh="如 14:30；不知道可不填", en="Such as 14:30; leave it out if unknown"),
    "place": Bilingual(zh="城市，如 北京", en="City, such as Beijing"),
    "gender": Bilingual(zh="男或女，排大运用", en="male or female, for the luck cycles"),
}
BIRTH_QUESTION = Bilingual(zh="请告诉我你的出生信息", en="Please tell me about your birth")
WHY = Bilingual(
    zh="只用于排盘；以后想修改或删除，说一声就行。",
    en="It is used for your charts only. To change or delete it later, just say so.",
)
KNOWN_BIRTH = Bilingual(zh="出生信息已保存", en="Birth information saved")
DELETED = Bilingual(zh="已删除", en="Deleted")
FORGOTTEN_BIRTH = Bilingual(zh="出生信息，以及由它排出的命盘和星盘", en="Birth information, and the charts made of it")
YES = Bilingual(zh="是", en="yes")
SAVED_TITLE = Bilingual(zh="已保存", en="Saved")
FOR_REFLECTION = Bilingual(zh="仅供参考与自我反思。", en="For reflection only.")
NOW = Bilingual(zh="正在逆行：{start} 至 {end}", en="now: {start} to {end}")
NEXT = Bilingual(zh="下一次：{start} 至 {end}", en="next: {start} to {end}")
SCORE = Bilingual(zh="{grade}（{score}分）", en="{grade} ({score} of 100)")
# Suggested next questions: the label of a button, and the message it sends.
AFTER_BAZI = (
    (
        Bilingual(zh="事业财运", en="Career and money"),
        Bilingual(zh="看看我的事业与财运", en="Read my career and money"),
    ),
    (Bilingual(zh="感情", en="Love"), Bilingual(zh="看看我的感情", en="Read my relationships")),
    (Bilingual(zh="今年", en="This year"), Bilingual(zh="看看我今年的流年", en="Read this year for me")),
)
AFTER_ZODIAC = (
    (Bilingual(zh="情绪", en="Moods"), Bilingual(zh="讲讲我的月亮和情绪", en="Tell me about my moon and my moods")),
    (Bilingual(zh="感情", en="Love"), Bilingual(zh="讲讲我的爱情模式", en="Tell me about my pattern in love")),
    (Bilingual(zh="方向", en="Direction"), Bilingual(zh="讲讲我适合的方向", en="Tell me about my direction")),
)


def bazi_card(chart: Mapping[str, Json], locale: Locale) -> ChartRow:
    """Return the card of a Bazi chart: the four pillars as a table, and a summary."""
    master = " ".join(text_at(chart, "day_master", part) for part in ("polarity", "stem", "element"))
    grade, score = text_at(chart, "strength", "verdict"), text_at(chart, "strength", "score")
    facts = {
        "day_master": master,
        "strength": SCORE.in_locale(locale).format(grade=grade, score=score),
        **{name: text_at(chart, name) for name in ("structure", "favourable", "this_year")},
    }
    return {
        "status": "success",
        "title": f"{label('bazi', locale)} · {text_at(chart, 'bazi')}",
        "body": _body(chart, locale),
        "fields": labelled(facts, locale),
        "table": {
            "columns": [label(name, locale) for name in ("place_of", *PLACES)],
            "rows": [
                [label(name, locale), *(text_at(chart, "pillars", place, name) for place in PLACES)]
                for name in ("pillar", "ten_god", "hidden", "na_yin")
            ],
        },
        "actions": _buttons(AFTER_BAZI, locale),
    }


def zodiac_card(chart: Mapping[str, Json], locale: Locale) -> ChartRow:
    """Return the card of a birth chart: sun, moon and rising sign, and a table of planets."""
    return {
        "status": "success",
        "title": label("zodiac", locale),
        "body": _body(chart, locale),
        "fields": labelled({name: text_at(chart, name) for name in ("sun", "moon", "rising", "midheaven")}, locale),
        "table": {
            "columns": [label(name, locale) for name in ("planet", "position", "house", "motion")],
            "rows": [
                [*(text_at(planet, name) for name in ("planet", "position", "house")), _motion(planet, locale)]
                for planet in items(chart, "planets")
            ],
        },
        "actions": _buttons(AFTER_ZODIAC, locale),
    }


def sky_card(sky: Mapping[str, Json], locale: Locale) -> ChartRow:
    """Return the card of the current sky: planets and Mercury's retrograde periods."""
    template = NOW if at(sky, "mercury_retrograde", "now") else NEXT
    first, *_ = items(sky, "mercury_retrograde", "periods")
    facts: dict[str, Json] = {
        "at": f"{text_at(sky, 'at')} {text_at(sky, 'zone')}",
        "mercury": template.in_locale(locale).format(start=text_at(first, "from"), end=text_at(first, "to")),
    }
    columns = ("planet", "position")
    return {
        "status": "success",
        "title": label("sky", locale),
        "body": FOR_REFLECTION.in_locale(locale),
        "fields": labelled(facts, locale),
        "table": {
            "columns": [label(name, locale) for name in (*columns, "motion")],
            "rows": [
                [*(text_at(planet, name) for name in columns), _motion(planet, locale)]
                for planet in items(sky, "planets")
            ],
        },
    }


def tarot_card(draw: Mapping[str, Json], locale: Locale) -> ChartRow:
    """Return the card of a tarot draw, with its question and seed."""
    columns = ("position", "card", "orientation", "keywords")
    facts = {name: draw[name] for name in ("question", "seed") if draw.get(name) is not None}
    return {
        "status": "success",
        "title": f"{label('tarot', locale)} · {text_at(draw, 'spread_name')}",
        "body": FOR_REFLECTION.in_locale(locale),
        "fields": labelled(facts, locale),
        "table": {
            "columns": [label(name, locale) for name in columns],
            "rows": [[text_at(card, name) for name in columns] for card in items(draw, "cards")],
        },
    }


def birth_fields(birth: Mapping[str, Json], locale: Locale) -> list[Json]:
    """Return the fields of the birth form, with the known values."""
    return [
        {
            "name": name,
            "label": label(name, locale),
            "type": kind,
            "required": name in REQUIRED,
            **({"options": [{"value": one, "label": label(one, locale)} for one in choices]} if choices else {}),
            **({"hint": HOW[name].in_locale(locale)} if name in HOW else {}),
            **({"value": birth[name]} if birth.get(name) is not None else {}),
        }
        for name, kind, choices in FORM
    ]


def birth_form_card(birth: Mapping[str, Json], locale: Locale) -> ChartRow:
    """Return the card that asks for a birth, for clients without forms."""
    facts = {name: birth.get(name) or HOW[name].in_locale(locale) for name in EXPECTED}
    return {
        "status": "pending",
        "title": BIRTH_QUESTION.in_locale(locale),
        "body": WHY.in_locale(locale),
        "fields": labelled(facts, locale),
    }


def birth_card(info: Mapping[str, Json], locale: Locale) -> ChartRow:
    """Return the card of a saved birth."""
    values: ChartRow = {}
    for name in [name for name in BIRTH_FIELDS if info.get(name) not in (None, False)]:
        value = info[name]
        values[name] = (
            YES.in_locale(locale) if value is True else label(value, locale) if isinstance(value, str) else value
        )
    return {"status": "success", "title": KNOWN_BIRTH.in_locale(locale), "fields": labelled(values, locale)}


def saved_card(lines: Sequence[str], locale: Locale) -> ChartRow:
    """Return the card of saved lines."""
    return {"status": "success", "title": SAVED_TITLE.in_locale(locale), "items": list(lines)}


def forgotten_card(lines: Sequence[str], locale: Locale) -> ChartRow:
    """Return the card of deleted lines. By default, the deleted lines are those of a birth."""
    items = list(lines) or [FORGOTTEN_BIRTH.in_locale(locale)]
    return {"status": "success", "title": DELETED.in_locale(locale), "items": [*items]}


def label(name: str, locale: Locale) -> str:
    """Return the label of a field, or its name if it has no label."""
    return LABELS[name].in_locale(locale) if name in LABELS else name


def labelled(facts: Mapping[str, Json], locale: Locale) -> list[Json]:
    """Return facts as fields of a card."""
    return [{"label": label(name, locale), "value": text_at(value)} for name, value in facts.items()]


def _motion(planet: Json, locale: Locale) -> str:
    return label("retrograde" if at(planet, "retrograde") else "direct", locale)


def _body(chart: Mapping[str, Json], locale: Locale) -> str:
    """Return the notes of a chart and the reasons for its gaps."""
    notes = (*items(chart, "notes"), *items(chart, "untold"))
    return "\n".join((*map(text_at, notes), FOR_REFLECTION.in_locale(locale)))


def _buttons(buttons: Sequence[tuple[Bilingual, Bilingual]], locale: Locale) -> list[Json]:
    return [{"label": name.in_locale(locale), "message": message.in_locale(locale)} for name, message in buttons]
