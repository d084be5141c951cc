"""What the demo model reads out of charts, as tools answer them and as a system prompt tells them."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recto.conversation.json import Json
from recto.models.demo.chart import LINE_SHOWN, read_lines, tell_data, tell_facts
from recto.skills.known import render_value

SKY: Json = {"sun": "Taurus 13°", "moon": {"sign": "Virgo", "house": 4}, "rising": None, "planets": [{"sun": "no"}]}
values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=12),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from(("pillars", "cards", "sun", "name", "features", "x")), inner, max_size=4)
    ),
    max_leaves=12,
)


@pytest.mark.parametrize(
    ("chart", "facts"),
    [
        ({"pillars": {"year": "庚午", "day": "己巳"}, "strength": "身强"}, ["Pillars: 庚午, 己巳", "Strength: 身强"]),
        ({"pillars": ["庚午", "己巳"], "day_master": {"name": "己土"}}, ["Pillars: 庚午, 己巳", "Day master: 己土"]),
        ({"chart": {"row": SKY}}, ["Sun: Taurus 13°", "Moon: Virgo"]),
        ({"ascendant": "Leo"}, ["Rising: Leo"]),
        (
            {"cards": [{"name": "The Fool", "orientation": "reversed"}, "The Sun"]},
            ["Cards: The Fool (reversed), The Sun"],
        ),
        ({"cards": [{"card": "Death", "position": "past", "orientation": "upright"}]}, ["Cards: past: Death"]),
        ({"spread": "three", "spread_name": "Past, present, future"}, ["Spread: Past, present, future"]),
        ({"last": {"spread": {"name": "Three cards"}}, "history": {"cards": ["old"]}}, ["Spread: Three cards"]),
        ({"notes": ["没有时柱。", "按正午推算。"]}, ["Notes: 没有时柱。按正午推算。"]),
        ({"stage": "employed", "concerns": "lost, anxious"}, ["Stage: employed", "Concerns: lost, anxious"]),
        ({"features": ["Earth"], "of": {"sun": "no", "notes": ["no"]}, "strength": ""}, []),
        (["sun"], []),
        (None, []),
    ],
)
def test_S10_the_facts_it_knows_by_name_are_told_in_their_order(chart: Json, facts: list[str]):
    assert list(tell_facts(chart, "en")) == facts


@pytest.mark.parametrize(
    "chart",
    [
        {
            "pillars": {"year": {"pillar": "庚午", "hidden": [{"stem": "丁", "ten_god": "偏印"}]}},
            "strength": {"score": 6},
        },
        {"cards": [{"name": "愚者", "position": "过去", "reversed": True}, {"name": "太阳", "position": "现在"}]},
        {"sun": "金牛座 13°16′", "features": ["土象", "水星逆行", "earth sign"] * 30},
        {
            "last": {"spread": "three", "cards": [{"name": "The Sun", "position": "past"}]},
            "history": [{"spread": "one"}],
        },
    ],
)
def test_S10_a_chart_that_a_system_prompt_tells_is_read_as_the_chart_itself(chart: Json):
    for language in ("zh", "en"):
        assert list(tell_data(render_value(chart), language)) == list(tell_facts(chart, language))


def test_lines_are_read_as_the_tables_they_stand_for():
    chart: Json = {"a": "1", "b": {"c": "x", "d": ["one", "two" * 99]}, "rows": [{"n": "1", "m": "2"}]}
    assert read_lines(render_value(chart)) == chart


def test_data_without_a_known_fact_is_read_out_as_it_begins():
    lines = tell_data("- mood: good\n- day:\n  - step: rest\n" + "- long: " + "x" * 500, "en")
    assert lines[:3] == ["mood: good", "day:", "step: rest"]
    assert len(lines[3]) == LINE_SHOWN + 3


@given(values)
def test_any_answer_of_a_tool_is_told_in_short_lines(chart: Json):
    for language in ("zh", "en"):
        assert all(0 < len(line) <= LINE_SHOWN + 3 for line in tell_facts(chart, language))
        tell_data(json.dumps(chart), language)
        tell_data(render_value(chart), language)
