"""Places by the names people give them."""

import csv
from datetime import datetime
from functools import cache
from importlib.resources import files
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recto.agents.shipped.vibe.almanac.birth.places import find_place, home_zone, is_abroad


@cache
def table() -> list[dict[str, str]]:
    text = files("recto.agents.shipped.vibe.almanac").joinpath("cities.csv").read_text(encoding="utf-8")
    return list(csv.DictReader(text.splitlines()))


@pytest.mark.parametrize(
    ("name", "place_text"),
    [
        # As people write them: a district without its rank, from the smallest to the largest, with commas or blanks.
        (
            "北京",
            "中国北京|中国 北京市 海淀区|北京市朝阳区|北京海淀|朝阳，北京|中国,北京|北京市（朝阳区）|Ｂｅｉｊｉｎｇ",
        ),
        ("北京", "Haidian District, Beijing|China, Beijing|Haidian, Beijing, China|Beijing (Haidian)"),
        ("上海", "上海浦东新区|SHANGHAI, China|上海 浦东|上海·静安|Pudong, Shanghai|Nanjing Road, Shanghai"),
        ("深圳", "广东省深圳市南山区|深圳南山|广东深圳南山|南山，深圳，广东，中国|Shenzhen Nanshan"),
        ("长春", "吉林省|长春朝阳|吉林长春南关"),
        ("长沙", "湖南省|Hunan Province, China"),
        ("乌鲁木齐", "新疆维吾尔自治区"),
        ("香港", "香港特别行政区|香港九龙"),
        ("西安", "Xi'an|xian, shaanxi"),
        ("苏州", "Suzhou"),
        ("宿州", "Suzhou, Anhui"),
        ("纽约", "New York, NY, USA|new york city|纽约，美国"),
        ("巴黎", "Paris France|法国巴黎"),
        ("法拉盛", "纽约法拉盛"),
        ("奥克兰", "奥克兰"),
        ("屋仑", "美国加州奥克兰"),
        ("剑桥", "Cambridge"),
        ("坎布里奇", "Cambridge, MA"),
        ("安大略省伦敦", "London, Ontario, Canada"),
    ],
)
def test_S10_a_place_is_found_by_the_name_it_is_given(name: str, place_text: str) -> None:
    places = [find_place(one) for one in place_text.split("|")]
    assert {place.name if place else None for place in places} == {name}


@pytest.mark.parametrize(
    "place_text",
    [
        *("", "  ", ",", "朝阳区", "Paris, Texas", "Cambridge, Ohio", "纽约客", "Chinatown", "德国巴黎", "Richmond"),
        # A town of a province whose name is also that of another city; a country that begins like a city.
        *("吉林敦化", "Dunhua, Jilin", "罗马尼亚", "伦敦德里", "巴黎，德克萨斯州", "Springfield, Washington", "阿里山"),
    ],
)
def test_S10_a_place_that_is_not_in_the_table_is_not_guessed(place_text: str) -> None:
    assert find_place(place_text) is None


@pytest.mark.parametrize(
    ("place_text", "capital", "province"),
    [
        ("广东", "广州", "广东"),
        ("广东，中国", "广州", "广东"),
        ("Guangdong", "广州", "广东"),
        ("北京", "北京", ""),
        ("广东深圳", "深圳", ""),
    ],
)
def test_S10_a_bare_province_is_its_capital_and_says_so(place_text: str, capital: str, province: str) -> None:
    place = find_place(place_text)
    assert place
    assert (place.name, place.capital_of) == (capital, province)


@pytest.mark.parametrize(
    ("place_text", "abroad"),
    [
        ("Springfield", True),
        ("Somewhere, Hunan", False),
        ("Small Town, China", False),
        ("内蒙古某旗", False),
        ("法国某村", True),
        ("河内村", False),
        ("巴林左旗", False),
        ("Chinatown", True),
    ],
)
def test_S10_a_place_beyond_the_table_is_abroad_by_its_country_or_language(place_text: str, abroad: bool) -> None:
    assert is_abroad(place_text) is abroad


@pytest.mark.parametrize(
    ("place_text", "zone"),
    [
        ("湖南省某某县", "Asia/Shanghai"),
        ("中国台湾某乡", "Asia/Taipei"),
        ("Somewhere, Hunan", "Asia/Shanghai"),
        ("Somewhere, Taiwan", "Asia/Taipei"),
        ("Small Town, PRC", "Asia/Shanghai"),
        ("某某村", None),
        ("", None),
    ],
)
def test_S10_the_province_or_the_country_tells_the_zone_of_a_small_place(place_text: str, zone: str | None) -> None:
    assert home_zone(place_text) == zone


def test_S10_every_city_is_found_by_its_chinese_name_and_with_its_region_by_its_english_one() -> None:
    assert sum(row["regions_chinese"].startswith("中国") for row in table()) >= 184
    assert len(table()) >= 564
    for row in table():
        at = (float(row["latitude"]), float(row["longitude"]))
        region = row["regions_english"].split("|")[-1]
        names = [*row["chinese"].split("|"), *(f"{name}, {region}" for name in row["english"].split("|"))]
        for name in names:
            place = find_place(name)
            assert place is not None, name
            assert (place.latitude, place.longitude, place.zone) == (*at, row["zone"]), name


def test_S10_no_city_lies_far_from_the_meridian_of_its_zone_nor_one_of_china_outside_of_it() -> None:
    # Kashgar, on Beijing time, is the farthest of all: 44 degrees.
    for row in table():
        offset = datetime(2024, 1, 15, tzinfo=ZoneInfo(row["zone"])).utcoffset()
        assert offset is not None
        meridian = offset.total_seconds() / 240
        apart = abs((float(row["longitude"]) - meridian + 180) % 360 - 180)
        assert apart < (45 if row["zone"] == "Asia/Shanghai" else 31), row
        assert not row["regions_chinese"].startswith("中国") or 18 <= float(row["latitude"]) <= 54, row


@given(st.text(max_size=30))
def test_S10_any_text_is_a_place_or_is_not(text: str) -> None:
    place = find_place(text)
    assert place is None or any(row["chinese"].startswith(place.name) for row in table())
    assert is_abroad(text) in (True, False)
