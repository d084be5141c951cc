"""What the demo model finds of a birth in what people write."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recto.models.demo.birth import birth_in, correction_in, without_dates

KEYS = ("date", "time", "place", "gender", "calendar")


@pytest.mark.parametrize(
    ("words", "found"),
    [
        ("1990-05-04 08:30，北京，女", "1990-05-04|08:30|北京|female|"),
        ("我是1990年5月4日早上8点半在北京出生的女生", "1990-05-04|早上8点半|北京|female|"),
        ("生于1988/12/1，晚上11点，上海人，男", "1988-12-01|晚上11点|上海|male|"),
        ("出生日期：1990-05-04，出生时间：08:30，出生地：杭州，性别：女", "1990-05-04|08:30|杭州|female|"),
        ("农历1990年4月10日 辰时 女 成都", "1990-04-10|辰时|成都|female|lunar"),
        ("1990.5.4 北京 男", "1990-05-04||北京|male|"),
        ("I was born on May 4, 1990 at 8:30 am in New York, female", "1990-05-04|8:30 am|New York|female|"),
        ("4th of July 1985, 3pm, London", "1985-07-04|3pm|London||"),
        ("1990-05-04 08:30, Beijing, female", "1990-05-04|08:30|Beijing|female|"),
        ("我的男朋友1990-05-04", "1990-05-04||||"),
        ("1990-05-04，谢谢", "1990-05-04||||"),
        ("1990-05-04, Thanks", "1990-05-04||||"),
        ("in May, May 4, 1990 in Augsburg", "1990-05-04||Augsburg||"),
        ("1990-13-45，北京", "1990-13-45||北京||"),
        ("1990年四月廿一农历，晚上11点半，成都，女", "1990年四月廿一|晚上11点半|成都|female|lunar"),
        ("1990年农历4月21日 男", "1990年4月21|||male|lunar"),
        ("2023年闰二月初五 子时 上海 女", "2023年闰二月初五|子时|上海|female|"),
        ("一九九〇年腊月初八，早上十点，呼和浩特", "一九九〇年腊月初八|早上十点|呼和浩特||"),
        ("1990-05-041", "||||"),
        ("8:30 in Beijing, female", "||||"),
        ("hello", "||||"),
    ],
)
def test_S10_a_birth_is_found_in_words(words: str, found: str):
    told = birth_in([words])
    assert "|".join(str(told.get(key, "")) for key in KEYS) == found


def test_S10_of_several_texts_the_first_with_a_date_tells_it_all():
    assert birth_in(["hello", "1990-05-04", "1991-06-05 08:30"]) == {"date": "1990-05-04"}
    assert birth_in([]) == {}
    assert birth_in(["hello", "1990-05-04", "1991-06-05"], refused=["1990-05-04"]) == {}


@pytest.mark.parametrize(
    ("words", "found"),
    [
        ("我不是在北京出生，是在上海出生的", {"place": "上海"}),
        ("我其实是晚上8点出生的", {"time": "晚上8点"}),
        ("Actually I was born in New York", {"place": "New York"}),
        ("1991-05-04 08:30 布拉格 男", {"date": "1991-05-04", "time": "08:30", "place": "布拉格", "gender": "male"}),
        ("生日说错了，是公历1991-05-04", {"date": "1991-05-04", "calendar": "solar"}),
        ("I'm male, sorry", {"gender": "male"}),
        ("说错了，我出生于1991-05-04", {"date": "1991-05-04"}),
        ("我出生在哪里比较好", {}),
        ("我的时辰适合搬家吗", {}),
        ("2026-11-06适合搬家吗", {}),
        ("有一点累，晚上8点睡", {}),
    ],
)
def test_S7_what_is_put_right_of_a_birth_is_found(words: str, found: dict[str, str]):
    assert correction_in(words) == found


def test_dates_are_no_arithmetic_and_all_else_stays():
    assert without_dates("2026-11-06 + 3*4") == ", + 3*4"
    assert without_dates("at 8:30, 12*7") == "at 8:30, 12*7"


@given(st.text(max_size=60) | st.from_regex(r"[0-9年月日:：点 -]{0,30}"))
def test_whatever_people_write_a_birth_has_a_date_or_is_none(words: str):
    found = birth_in([words])
    assert not found or "date" in found
    assert without_dates(without_dates(words)) == without_dates(words)
