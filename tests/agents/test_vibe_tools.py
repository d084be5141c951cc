"""The tools of vibe (S10) on a profile kept in memory: what they ask, compute, draw and keep, and what they refuse."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import cast
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recto.conversation.json import Json
from recto.conversation.next_step import INVALID_ARGUMENTS
from tests.agents.vibe import BIRTH, NOW, KeptInMemory, at_work, born, call, title_of, tools

# Asking for a birth


def test_S10_without_a_date_a_form_is_asked_for_with_what_was_said_and_nothing_is_stored():
    user = KeptInMemory()
    answer = call("collect_birth_info", user)
    assert (answer.at("status"), answer.at("missing")) == ("need_input", ["date", "time", "place", "gender"])
    first: Json = {"name": "date", "label": "出生日期", "type": "date", "required": True, "hint": "必填，如 1990-05-15"}
    assert answer.at("fields", 0) == first
    assert title_of(answer) == "请告诉我你的出生信息"
    answer = call("collect_birth_info", user, {"time": "14:30"})
    assert (answer.at("missing"), answer.at("fields", 1, "value")) == (["date", "place", "gender"], "14:30")
    assert user.writes == []


def test_S10_a_form_is_in_the_runs_language_and_filled_with_what_is_known():
    answer = call("collect_birth_info", born(), {}, at_work(born(), "en"))
    assert (answer.at("fields", 3, "label"), answer.at("fields", 3, "value")) == ("Gender", "male")
    assert answer.at("fields", 3, "options", 1) == {"value": "female", "label": "female"}
    assert (answer.at("missing"), title_of(answer)) == ([], "Please tell me about your birth")


def test_S10_a_birth_is_saved_in_one_spelling():
    user = KeptInMemory()
    form = {"date": "1990年5月15日", "time": "下午2点半", "place": " 北京 ", "gender": "男"}
    answer = call("collect_birth_info", user, form)
    assert answer.at("status") == "saved"
    assert answer.at("birth_info") == user.profile["birth_info"] == BIRTH
    assert title_of(answer) == "出生信息已保存"


def test_S10_a_birth_is_corrected_by_what_is_said_and_what_belonged_to_the_old_goes():
    user = born(latitude=39.9, longitude=116.4)
    call("collect_birth_info", user, {"time": "", "place": "上海", "date": "1990年四月廿一", "gender": ""})
    assert user.profile["birth_info"] == {"date": "1990-04-21", "calendar": "lunar", "place": "上海"}


def test_S10_a_birth_that_cannot_be_or_the_profile_refuses_is_told_and_not_stored():
    user = KeptInMemory(rejection="birth_info.place is too long.")
    for birth, problem in (({"date": "1990-13-01"}, "month 13"), ({"date": "1990-05-15"}, user.rejection)):
        answer = call("collect_birth_info", user, birth)
        assert answer.error == "error"
        assert problem in answer.words
    assert user.writes == []


@given(
    st.dictionaries(st.sampled_from(["date", "time", "place", "gender", "calendar", "timezone"]), st.text(max_size=30))
)
def test_S10_whatever_is_said_of_a_birth_the_tool_answers(expected: dict[str, str]):
    answer = call("collect_birth_info", born(), expected)
    assert answer.error in (None, "error")


def test_S10_a_client_with_a_form_may_answer_in_the_place_of_the_tool():
    assert [tool.name for tool in tools().values() if tool.mark.by_client] == ["collect_birth_info"]
    assert all(tool.mark.safe_to_repeat and tool.mark.in_order for tool in tools().values())


def test_S10_a_gender_that_decides_nothing_is_left_out_with_a_word_and_the_rest_is_saved():
    user = born()
    answer = call("collect_birth_info", user, {"date": "1991-01-02", "gender": "nonbinary"})
    assert answer.at("status") == "saved"
    assert user.profile["birth_info"] == {"date": "1991-01-02", "time": "14:30", "place": "北京"}
    assert str(answer.at("left_out", "gender")).startswith("'nonbinary' is neither male nor female")
    tool_answer = call("collect_birth_info", KeptInMemory(), {"gender": "nonbinary"})
    assert (tool_answer.at("status"), "gender" in cast("dict[str, Json]", tool_answer.at("left_out"))) == (
        "need_input",
        True,
    )


def test_S10_who_would_rather_not_say_is_not_asked_again():
    user = KeptInMemory()
    answer = call("collect_birth_info", user, {"cancelled": True})
    assert (answer.at("status"), user.writes, "fields" in answer.content) == ("declined", [], False)
    assert "Do not ask again" in str(answer.at("note"))
    birth = born()
    assert call("collect_birth_info", birth, {"cancelled": True}).at("status") == "declined"
    assert birth.profile["birth_info"] == BIRTH


def test_S10_a_birth_is_forgotten_with_the_charts_made_of_it():
    user = born()
    for name in ("compute_bazi", "compute_zodiac", "draw_tarot"):
        call(name, user)
    answer = call("collect_birth_info", user, {"date": ""})
    assert (answer.at("status"), title_of(answer)) == ("forgotten", "已删除")
    assert (user.profile["birth_info"], user.data["bazi"], user.data["zodiac"]) == (None, None, None)
    assert user.data["tarot"] is not None
    assert "collect_birth_info" in call("compute_bazi", user).words


@pytest.mark.parametrize(
    ("is_known", "form", "status"),
    [
        (True, {"date": " ", "time": "", "place": "", "gender": "", "leap_month": False}, "forgotten"),
        (True, {"date": "", "time": "9:00"}, "need_input"),
        (False, {"date": ""}, "need_input"),
    ],
)
def test_S10_only_an_empty_date_and_nothing_else_forgets_a_birth(is_known: bool, form: Json, status: str):
    user = born() if is_known else KeptInMemory()
    assert call("collect_birth_info", user, form).at("status") == status
    assert user.writes == (["birth_info"] if status == "forgotten" else [])


# Charts


@pytest.mark.parametrize("name", ["compute_bazi", "compute_zodiac"])
@pytest.mark.parametrize("info", [None, {}, "1990-05-15", {"time": "14:30"}])
def test_S10_no_chart_without_a_birth_and_the_way_to_one_is_told(name: str, info: Json):
    user = KeptInMemory(profile={"birth_info": info})
    answer = call(name, user)
    assert (answer.error, user.writes) == ("error", [])
    assert "collect_birth_info" in answer.words


def test_S10_the_four_pillars_are_computed_and_kept_with_the_birth_they_are_of():
    user = born()
    answer = call("compute_bazi", user)
    # 14:30 was summer time in China in 1990, so the pillars are of 13:30.
    assert (answer.at("status"), answer.at("bazi")) == ("computed", "庚午 辛巳 庚辰 癸未")
    assert answer.at("strength", "verdict") == "中和"
    assert title_of(answer) == "四柱八字 · 庚午 辛巳 庚辰 癸未"
    stored_data = cast("dict[str, Json]", user.data["bazi"])
    of = {"birth_info": BIRTH, "month": "2026-05", "locale": "zh", "options": {"true_solar_time": False}}
    assert (stored_data.pop("of"), "中和庚金" in cast("list[Json]", stored_data.pop("features"))) == (of, True)
    assert {"status": "computed", **stored_data, "ui_hints": answer.at("ui_hints")} == answer.content


def test_S10_the_sky_is_computed_and_kept_with_the_birth_it_is_of():
    user = born()
    answer = call("compute_zodiac", user)
    assert answer.at("status") == "computed"
    assert str(answer.at("sun")).startswith("金牛座")
    assert title_of(answer) == "本命星盘"
    of = {"birth_info": BIRTH, "locale": "zh", "options": {"house_system": "placidus"}}
    assert cast("dict[str, Json]", user.data["zodiac"])["of"] == of


@pytest.mark.parametrize(("name", "skill"), [("compute_bazi", "bazi"), ("compute_zodiac", "zodiac")])
def test_S10_a_chart_is_computed_once_for_a_birth(name: str, skill: str):
    user = born()
    first, second = call(name, user), call(name, user)
    assert (second.at("status"), user.writes) == ("reused", [skill])
    assert {**first.content, "status": "reused"} == second.content
    user.profile["birth_info"] = {**BIRTH, "date": "1991-05-15"}
    assert call(name, user).at("status") == "computed"
    assert user.writes == [skill, skill]


@pytest.mark.parametrize(
    ("name", "option"),
    [("compute_bazi", {"true_solar_time": True}), ("compute_zodiac", {"house_system": "whole_sign"})],
)
def test_S10_a_wish_for_a_chart_computes_it_anew_and_stays(name: str, option: dict[str, Json]):
    user = born()
    call(name, user)
    wished = call(name, user, option)
    assert wished.at("status") == "computed"
    assert {**wished.content, "status": "reused"} == call(name, user).content
    assert call(name, user, {next(iter(option)): None}).at("status") == "reused"


def test_S10_a_chart_follows_the_language_and_the_month():
    user = born()
    call("compute_bazi", user)
    english = call("compute_bazi", user, {}, at_work(user, "en"))
    assert (english.at("status"), english.at("strength", "verdict")) == ("computed", "Balanced")
    stored_data = cast("dict[str, list[Json]]", user.data["bazi"])
    assert all(str(feature).isascii() for feature in stored_data["features"])
    later = at_work(user, "en", now=NOW.replace(year=2027))
    assert str(call("compute_bazi", user, {}, later).at("this_year")).startswith("2027: Ding Wei")


@pytest.mark.parametrize(
    ("name", "info", "wish"),
    [
        ("compute_bazi", {"date": "abcdef"}, {}),
        ("compute_bazi", {"date": "1990-05-15", "time": "14:30"}, {"true_solar_time": True}),
        ("compute_zodiac", {"date": "1990-05-15", "timezone": "Moon/Base"}, {}),
    ],
)
def test_S10_a_birth_no_chart_can_be_of_is_told_with_the_way_to_correct_it(
    name: str, info: dict[str, Json], wish: dict[str, Json]
):
    user = KeptInMemory(profile={"birth_info": info})
    answer = call(name, user, wish)
    assert (answer.error, user.writes) == ("error", [])
    assert " with collect_birth_info, then call this tool again." in answer.words


def test_S10_a_house_system_there_is_not_any_more_is_not_used():
    user = born()
    user.data["zodiac"] = {"of": {"birth_info": BIRTH, "options": {"house_system": "koch"}}}
    assert call("compute_zodiac", user).at("house_system") == "placidus"


def test_S10_a_birth_in_the_future_is_refused_when_it_is_told_and_when_it_was_kept():
    user = KeptInMemory()
    rejection = call("collect_birth_info", user, {"date": "2026-05-15"})
    assert rejection.words.startswith("The birth, 2026-05-15, lies in the future: it is 2026-05-14 12:00.")
    assert user.writes == []
    for tool in ("compute_bazi", "compute_zodiac"):
        assert "lies in the future" in call(tool, born(date="2027-01-01")).words


# The sky


def test_S10_the_sky_of_today_needs_no_birth_and_is_by_the_user_s_calendar():
    user = KeptInMemory()
    now = datetime(2025, 7, 17, 23, 30, tzinfo=UTC)
    answer = call("sky_today", user, {}, replace(at_work(user, now=now), zone=ZoneInfo("Asia/Shanghai")))
    assert (answer.at("at"), answer.at("mercury_retrograde", "now")) == ("2025-07-18 07:30", False)
    assert answer.at("mercury_retrograde", "periods", 0) == {"from": "2025-07-18", "to": "2025-08-11"}
    assert (title_of(answer), user.writes) == ("今日天象", [])
    english = call("sky_today", user, {}, at_work(user, "en", now=now + timedelta(days=1)))
    assert (title_of(english), "now: 2025-07-18 to 2025-08-11" in str(english.at("ui_hints", "fields"))) == (
        "The sky today",
        True,
    )


# Cards


def test_S10_a_draw_is_kept_with_its_seed_and_a_repeated_call_draws_the_same():
    user = KeptInMemory()
    first = call("draw_tarot", user, {"spread": "three", "question": "我可以看见什么？"})
    again = call("draw_tarot", user, {"spread": "three", "question": "我可以看见什么？"})
    assert (first.content, user.writes) == (again.content, ["tarot"])
    stored_data = cast("dict[str, dict[str, Json]]", user.data["tarot"])
    assert stored_data["last"]["seed"] == first.at("seed")
    assert len(stored_data["history"]) == 1
    assert [first.at("cards", place, "position") for place in range(3)] == ["过去", "现在", "未来"]
    assert title_of(first) == "塔罗牌 · 时间之流"


def test_S10_another_call_draws_other_cards_and_ten_draws_are_remembered():
    user = KeptInMemory()
    draws = [call("draw_tarot", user, {"spread": "single"}, at_work(user, call=f"c{n}")) for n in range(12)]
    assert len({str(answer.at("seed")) for answer in draws}) == 12
    history = cast("dict[str, list[dict[str, Json]]]", user.data["tarot"])["history"]
    assert [entry["seed"] for entry in history] == [answer.at("seed") for answer in draws[2:]]
    assert history[-1]["day"] == "2026-05-14"


def test_S10_models_that_number_their_calls_anew_draw_other_cards_each_time_unless_they_give_a_seed():
    contexts = [replace(at_work(KeptInMemory(), call="call_0"), message=f"m{n}") for n in range(12)]
    draws = [call("draw_tarot", KeptInMemory(), {"spread": "single"}, context) for context in (*contexts, contexts[0])]
    assert len({str(answer.at("seed")) for answer in draws}) == 12
    assert draws[0].at("cards") == draws[-1].at("cards")
    english = at_work(KeptInMemory(), "en", call="other")
    assert call("draw_tarot", KeptInMemory(), {"seed": 2}, english).at("cards", 0, "card") == "The Fool"
    assert call("draw_tarot", KeptInMemory(), {"seed": 2}).at("cards", 0, "card") == "愚者"


def test_S10_the_card_of_the_day_stays_for_the_day_of_the_user_and_then_is_another():
    user = KeptInMemory()
    shanghai = ZoneInfo("Asia/Shanghai")
    # The last hour of a day in Shanghai, whatever day it is in UTC.
    night = datetime(2026, 5, 14, 15, 30, tzinfo=UTC)
    one = replace(at_work(user, call="c1", now=night), zone=shanghai)
    first = call("draw_tarot", user, {"daily": True}, one)
    assert (first.at("status"), first.at("spread"), first.at("day")) == ("drawn", "single", "2026-05-14")
    again = call("draw_tarot", user, {"daily": True}, replace(one, call="c2", thread="t2"))
    assert (again.at("status"), again.at("cards")) == ("reused", first.at("cards"))
    assert [row["day"] for row in cast("dict[str, list[dict[str, Json]]]", user.data["tarot"])["history"]] == [
        "2026-05-14"
    ]
    # Another reading leaves it as it is.
    call("draw_tarot", user, {"spread": "three"}, replace(one, call="c3"))
    assert call("draw_tarot", user, {"daily": True}, replace(one, call="c4")).at("cards") == first.at("cards")
    morning = replace(one, call="c5", now=night + timedelta(hours=1))
    later = call("draw_tarot", user, {"daily": True}, morning)
    assert (later.at("status"), later.at("day")) == ("drawn", "2026-05-15")
    assert later.at("seed") != first.at("seed")
    # Where it is still the day before, by another device's clock, the card of that day is asked for again.
    for context, card in ((replace(morning, zone=UTC), first), (morning, later)):
        back = call("draw_tarot", user, {"daily": True}, replace(context, call="c6"))
        assert (back.at("status"), back.at("day"), back.at("cards")) == ("reused", card.at("day"), card.at("cards"))


@pytest.mark.parametrize(
    ("name", "arguments"),
    [
        *[
            ("draw_tarot", one)
            for one in ({"spread": "tree"}, {"seed": -1}, {"seed": 2**53}, {"question": "x" * 1_001})
        ],
        ("save_facts", {"facts": [""]}),
        ("save_life_context", {"concerns": "转行"}),
        ("save_career_notes", {"plan": "x" * 1_001}),
        ("compute_bazi", {"birth": "1990-05-15"}),
        ("compute_zodiac", {"house_system": "koch"}),
        ("collect_birth_info", {"birthday": "1990-05-15"}),
    ],
)
def test_S10_arguments_no_tool_takes_are_refused(name: str, arguments: Json):
    user = born()
    assert (call(name, user, arguments).error, user.writes) == (INVALID_ARGUMENTS, [])


# What users tell


def test_S10_the_life_of_a_user_is_kept_under_what_was_known():
    user = KeptInMemory(profile={"life_context": {"city": "杭州", "stage": "在职", "notes": "x"}})
    answer = call("save_life_context", user, {"goal": "换方向", "concerns": ["转行", "迷茫"], "notes": ""})
    assert user.profile["life_context"] == {
        "city": "杭州",
        "stage": "在职",
        "goal": "换方向",
        "concerns": ["转行", "迷茫"],
    }
    assert title_of(answer) == "已保存"


def test_S10_a_career_plan_is_kept_with_its_day():
    user = KeptInMemory()
    call("save_career_notes", user, {"strengths": ["解释"], "plan": "试两周"})
    call("save_career_notes", user, {"next_steps": ["周五约谈"], "plan": "试四周"}, at_work(user, "en"))
    assert user.data["career"] == {
        "strengths": ["解释"],
        "plan": "试四周",
        "next_steps": ["周五约谈"],
        "updated": "2026-05-14",
    }
    call("save_career_notes", user, {"strengths": [], "plan": "", "next_steps": []})
    assert user.data["career"] is None


def test_S10_facts_are_remembered_once_and_the_oldest_go():
    user = KeptInMemory(profile={"extracted": [f"fact {n}" for n in range(99)]})
    call("save_facts", user, {"facts": ["养了一只猫", "fact 98", "养了一只猫", "住在杭州"]})
    stored_data = cast("list[Json]", user.profile["extracted"])
    assert (len(stored_data), stored_data[0], stored_data[-2:]) == (100, "fact 1", ["养了一只猫", "住在杭州"])


def test_S10_facts_are_forgotten_by_their_words():
    user = KeptInMemory(profile={"extracted": ["养了一只猫", {"fact": "住在杭州", "since": 2019}, "喜欢安静"]})
    answer = call("save_facts", user, {"forget": ["住在杭州", " 养了一只猫 "]})
    assert (answer.at("status"), user.profile["extracted"]) == ("forgotten", ["喜欢安静"])
    assert title_of(answer) == "已删除"
    assert call("save_facts", user, {"forget": ["没说过的"]}).at("status") == "unchanged"
    changed = call("save_facts", user, {"facts": ["喜欢热闹"], "forget": ["喜欢安静"]})
    assert (changed.at("status"), changed.at("facts")) == ("saved", ["喜欢热闹"])
    call("save_facts", user, {"forget": ["喜欢热闹"]})
    assert user.profile["extracted"] is None


@pytest.mark.parametrize("name", ["save_life_context", "save_career_notes", "save_facts"])
def test_S10_saving_nothing_is_refused(name: str):
    user = KeptInMemory()
    answer = call(name, user)
    assert (answer.error, user.writes) == ("error", [])
    assert "at least one of its arguments" in answer.words


@pytest.mark.parametrize("name", ["collect_birth_info", "compute_bazi", "compute_zodiac", "draw_tarot"])
def test_S10_where_nothing_is_kept_of_users_a_tool_says_so(name: str):
    answer = call(name, KeptInMemory(), {}, at_work(None))
    assert "Nothing is kept of users here" in answer.words
