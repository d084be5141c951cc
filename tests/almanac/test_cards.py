"""Cards of charts, draws and births (P14): whole, in both languages, from what a skill keeps."""

from typing import cast

import pytest

from recto.agents.shipped.vibe.almanac.bazi.bazi import bazi
from recto.agents.shipped.vibe.almanac.birth.birth import read_birth
from recto.agents.shipped.vibe.almanac.cards import (
    bazi_card,
    birth_card,
    birth_form_card,
    forgotten_card,
    saved_card,
    tarot_card,
    zodiac_card,
)
from recto.agents.shipped.vibe.almanac.chart_rows import at, items, short_bazi, text_at
from recto.agents.shipped.vibe.almanac.sky.zodiac import zodiac
from recto.agents.shipped.vibe.almanac.tarot.tarot import draw
from recto.conversation.json import Json

BIRTH = read_birth({"date": "1990-05-15", "time": "14:30", "place": "北京", "gender": "male"})


def test_P14_the_card_of_four_pillars_is_a_table_of_them_with_what_was_noted():
    assert bazi_card(short_bazi(bazi(BIRTH).row("zh"), "zh"), "zh") == {
        "status": "success",
        "title": "四柱八字 · 庚午 辛巳 庚辰 癸未",
        "body": "出生时当地实行夏令时，钟表快60分钟，排盘已减去。\n仅供参考与自我反思。",
        "fields": [
            {"label": "日主", "value": "阳 庚 金"},
            {"label": "强弱", "value": "中和（49分）"},
            {"label": "格局", "value": "七杀格"},
            {"label": "喜用", "value": "木、水"},
            {"label": "流年", "value": "—"},
        ],
        "table": {
            "columns": ["柱", "年柱", "月柱", "日柱", "时柱"],
            "rows": [
                ["干支", "庚午", "辛巳", "庚辰", "癸未"],
                ["十神", "比肩", "劫财", "日主", "伤官"],
                [
                    "藏干",
                    "丁 正官、己 正印",
                    "丙 七杀、庚 比肩、戊 偏印",
                    "戊 偏印、乙 正财、癸 伤官",
                    "己 正印、丁 正官、乙 正财",
                ],
                ["纳音", "路旁土", "白蜡金", "白蜡金", "杨柳木"],
            ],
        },
        "actions": [
            {"label": "事业财运", "message": "看看我的事业与财运"},
            {"label": "感情", "message": "看看我的感情"},
            {"label": "今年", "message": "看看我今年的流年"},
        ],
    }


def test_P14_the_card_of_a_sky_has_its_planets_and_says_which_go_back():
    card = zodiac_card(zodiac(BIRTH).row("en"), "en")
    assert (card["title"], card["body"]) == ("Birth chart", "For reflection only.")
    assert [text_at(one, "label") for one in items(card, "fields")] == ["Sun", "Moon", "Rising", "Midheaven"]
    assert at(card, "table", "columns") == ["Planet", "Position", "House", "Motion"]
    rows = cast("list[list[Json]]", at(card, "table", "rows"))
    assert [rows[0][0], rows[0][2:], rows[2][0], rows[2][2:]] == [
        "Sun",
        ["9", "direct"],
        "Mercury",
        ["8", "retrograde"],
    ]
    assert text_at(items(card, "actions")[0], "message") == "Tell me about my moon and my moods"


def test_P14_the_card_of_a_draw_has_each_card_in_its_place():
    cards = draw("single", 2)
    columns = ("position", "card", "orientation", "keywords")
    assert tarot_card({**cards.row("en"), "question": "What now?"}, "en") == {
        "status": "success",
        "title": "Tarot · Single card",
        "body": "For reflection only.",
        "fields": [{"label": "Question", "value": "What now?"}, {"label": "Seed", "value": "2"}],
        "table": {
            "columns": ["Position", "Card", "Lies", "Keywords"],
            "rows": [[text_at(card.row("en"), name) for name in columns] for card in cards.cards],
        },
    }


def test_P14_a_birth_is_shown_as_it_was_saved_and_asked_for_with_examples():
    abroad: dict[str, Json] = {"latitude": 48.1, "longitude": 17.1, "timezone": "Europe/Bratislava"}
    whole = {"date": "2020-04-10", "gender": "female", "calendar": "lunar", "leap_month": True, **abroad}
    shown_fields = [
        " ".join(map(str, cast("dict[str, str]", row).values())) for row in items(birth_card(whole, "zh"), "fields")
    ]
    assert shown_fields == [
        "出生日期 2020-04-10",
        "性别 女",
        "历法 农历",
        "闰月 是",
        "纬度 48.1",
        "经度 17.1",
        "时区 Europe/Bratislava",
    ]
    assert birth_form_card({"date": "1990-05-15"}, "en")["fields"] == [
        {"label": "Date of birth", "value": "1990-05-15"},
        {"label": "Time of birth", "value": "Such as 14:30; leave it out if unknown"},
        {"label": "Place of birth", "value": "City, such as Beijing"},
        {"label": "Gender", "value": "male or female, for the luck cycles"},
    ]


def test_P14_what_was_saved_and_what_was_forgotten_is_listed():
    assert saved_card(["迷茫"], "en") == {"status": "success", "title": "Saved", "items": ["迷茫"]}
    for lines, expected in ((["养了一只猫"], "养了一只猫"), (list[str](), "出生信息，以及由它排出的命盘和星盘")):
        assert forgotten_card(lines, "zh") == {"status": "success", "title": "已删除", "items": [expected]}


def test_P14_what_is_noted_and_what_is_lacking_stand_on_the_card():
    chart: dict[str, Json] = {"notes": ["a"], "untold": ["b"]}
    assert [bazi_card(chart, "en")["body"], zodiac_card(chart, "en")["body"]] == ["a\nb\nFor reflection only."] * 2


@pytest.mark.parametrize(
    "stored_chart", [{}, {"pillars": None, "planets": "x", "cards": {}, "notes": 1, "strength": []}]
)
def test_P14_a_card_of_what_is_no_chart_has_dashes(stored_chart: dict[str, Json]):
    assert at(bazi_card(stored_chart, "en"), "fields") is not None
    assert text_at(items(zodiac_card(stored_chart, "en"), "fields")[0], "value") == "—"
    assert at(tarot_card(stored_chart, "en"), "table", "rows") == []
