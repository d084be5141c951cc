"""The demo model with skills: it takes up the one asked for, has its tools called, and reads out what they say."""

import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recto.conversation.json import Json
from recto.models.demo.demo_model import ASK, ENTERED, READS_OUT, reply_to
from recto.models.demo.demo_page import DemoCall
from recto.page.prompt.system_prompt import render
from recto.page.text.tokens import OFFLINE
from recto.skills.directory import use_skill_offer
from recto.skills.expert import ExpertInput, expert
from recto.skills.known import KnownData
from recto.skills.skill import Skill
from tests.models.test_demo import called, result, user

BAZI = Skill(
    name="bazi",
    description="八字（四柱）排盘与解读",
    heading="八字命理 - 命理师",
    identity="你是命理师。",
    folder=Path(),
    fields=("birth_info",),
    has_data=True,
    requires_birth_info=True,
    requires_compute=True,
    compute_type="bazi",
    compute_tool="compute_bazi",
    collect_tool="collect_birth_info",
    triggers=("八字", "排盘"),
)
ZODIAC = replace(BAZI, name="zodiac", description="Birth charts", compute_tool="compute_zodiac", triggers=("星盘",))
TAROT = Skill(name="tarot", description="塔罗", heading="塔罗", identity="x", folder=Path(), triggers=("塔罗",))
DENTIST = replace(TAROT, name="dentist", description="Bright healthy polished molars", triggers=("tooth ache",))
CAREER = replace(DENTIST, name="career", triggers=("跳槽",), fields=("life_context",))
SKILLS = {skill.name: skill for skill in (BAZI, ZODIAC, TAROT, CAREER, DENTIST)}
TOOLS = {
    "bazi": ("collect_birth_info", "compute_bazi"),
    "zodiac": ("collect_birth_info", "compute_zodiac"),
    "tarot": ("draw_tarot",),
    "career": ("save_life_context",),
}
BIRTH: dict[str, Json] = {"date": "1990-05-04", "time": "08:30", "place": "北京", "gender": "女"}
CHART: dict[str, Json] = {
    "pillars": {"year": {"pillar": "庚午", "hidden": "丁"}, "day": {"pillar": "己巳"}, "hour": None},
    "day_master": {"stem": "己", "element": "土"},
    "strength": {"verdict": "身强", "score": 60},
    "notes": ["出生地未提供"],
}
CARDS: list[Json] = [
    {"position": "过去", "card": "愚者", "orientation": "正位", "keywords": "开始"},
    {"position": "现在", "card": "女祭司", "orientation": "逆位"},
]
SKY: dict[str, Json] = {"now": False, "periods": [{"from": "2026-06-29", "to": "2026-07-23"}]}
CHART_READ = f"{READS_OUT['zh']}\n- 四柱：庚午、己巳\n- 日主：己、土\n- 强弱：身强\n- 备注：出生地未提供"


@dataclass(frozen=True, kw_only=True)
class Scene:
    """Where a thread is: the skill at work, what is known of the user, the tools beside those of the skill."""

    skill: str = ""
    known: KnownData = KnownData()
    locale: str = "zh"
    tools: tuple[str, ...] = ()

    def page(self, *messages: Json) -> bytes:
        skills = list(SKILLS.values())
        offer = use_skill_offer(skills, locale=self.locale, tokens=5_000, counter=OFFLINE, with_core=bool(self.skill))
        use_skill = {"name": "use_skill", "description": offer.description, "parameters": json.loads(offer.parameters)}
        names = (*TOOLS.get(self.skill, ()), *self.tools)
        offers = [use_skill, *({"name": name, "parameters": True} for name in names)]
        tools = [{"type": "function", "function": one} for one in offers]
        system = {"role": "system", "content": self._system()}
        return json.dumps({"model": "demo", "messages": [system, *messages], "tools": tools}).encode()

    def _system(self) -> str:
        if not self.skill:
            return "# Vibe\n\n你是 Vibe。"
        return render(expert(SKILLS[self.skill], self.known, ExpertInput(locale=self.locale)).prompt, self.locale)


SELECT = Scene()
IN_BAZI = Scene(skill="bazi")
KNOWN = KnownData(profile={"birth_info": BIRTH}, skill_data={"bazi": CHART})
READY = Scene(skill="bazi", known=KNOWN)


def calls(scene: Scene, *messages: Json) -> list[DemoCall]:
    return list(reply_to(scene.page(*messages)).calls)


def text(scene: Scene, *messages: Json) -> str:
    reply = reply_to(scene.page(*messages))
    assert reply.calls == ()
    return reply.text


def done(name: str, answer: Json, arguments: Json = None, id: str = "c1") -> Sequence[Json]:
    """A call of this turn and its answer."""
    return called(name, json.dumps(arguments or {}), id), result(json.dumps(answer), id)


ACTIVATED = done("use_skill", {"status": "activated", "skill": "bazi", "scenario": None}, {"skill": "bazi"}, "a")
NEED_INFO = done(
    "use_skill",
    {"status": "need_info", "skill": "bazi", "missing": ["birth_info"], "collect_tool": "collect_birth_info"},
    {"skill": "bazi"},
    "a",
)
SAVED = done("collect_birth_info", {"status": "saved", "birth_info": BIRTH}, BIRTH, "b")
COMPUTED = done("compute_bazi", {"status": "computed", **CHART}, {}, "c")


# Which skill


@pytest.mark.parametrize(
    ("words", "skill"),
    [
        ("帮我看看八字", "bazi"),
        ("What does BaZi say of me?", "bazi"),
        ("塔罗", "tarot"),
        ("我想跳槽", "career"),
        ("I have a tooth ache", "dentist"),
    ],
)
def test_S3_words_that_ask_for_a_skill_take_it_up(words: str, skill: str):
    assert calls(SELECT, user(words)) == [("use_skill", {"skill": skill})]


@pytest.mark.parametrize("words", ["你好", "hello", "dentists", "算了", ""])
def test_S3_words_that_ask_for_none_take_up_nothing_and_it_says_what_it_is(words: str):
    assert "use_skill" in text(SELECT, user(words))


@given(st.text(max_size=40), st.sampled_from([SELECT, IN_BAZI, READY]))
def test_S3_whatever_is_said_only_what_is_offered_is_called(words: str, scene: Scene):
    page = json.loads(scene.page(user(words)))
    offered = {tool["function"]["name"]: tool["function"]["parameters"] for tool in page["tools"]}
    for name, arguments in calls(scene, user(words)):
        assert name in offered
        if name == "use_skill":
            assert arguments["skill"] in offered[name]["properties"]["skill"]["enum"]


@pytest.mark.parametrize("words", ["算了吧，谢谢", "换个话题", "leave", "Never mind!"])
def test_S4_who_wants_to_leave_a_skill_leaves_it(words: str):
    assert calls(READY, user(words)) == [("use_skill", {"skill": "core"})]
    left = done("use_skill", {"status": "activated", "skill": "core"}, {"skill": "core"})
    assert text(SELECT, user(words), *left) == text(SELECT, user(words))


def test_S4_another_skill_is_switched_to_and_the_one_at_work_is_not_taken_up_again():
    assert calls(READY, user("换个话题，聊聊塔罗")) == [("use_skill", {"skill": "tarot"})]
    assert calls(READY, user("再看看八字")) == [("compute_bazi", {})]
    assert calls(Scene(skill="tarot"), user("再抽一次：要不要跳槽")) == [("draw_tarot", {})]


# What a skill does


def test_S10_a_birth_in_the_words_goes_from_choice_to_chart_to_answer_in_one_turn():
    asked = user("我是1990-05-04 08:30在北京出生的女生，帮我看看八字")
    assert calls(SELECT, asked) == [("use_skill", {"skill": "bazi"})]
    assert calls(IN_BAZI, asked, *NEED_INFO) == [("collect_birth_info", BIRTH)]
    assert calls(IN_BAZI, asked, *NEED_INFO, *SAVED) == [("compute_bazi", {})]
    assert text(READY, asked, *NEED_INFO, *SAVED, *COMPUTED) == CHART_READ


@pytest.mark.parametrize(
    ("words", "birth"),
    [
        ("1990-05-04 08:30，北京，女", "1990-05-04|08:30|北京|女"),
        ("帮我算个八字：1990年5月15日14:30，北京，男", "1990年5月15日|14:30|北京|男"),
        ("我1990年5月15日上午10点出生，帮我看看", "1990年5月15日|上午10点||"),
        ("I was born on 1990-05-15 at 2:30 pm in New York, male.", "1990-05-15|2:30 pm|New York|male"),
        ("1990-05-04, Beijing, female", "1990-05-04||Beijing|female"),
        ("1990年四月廿一，晚上11点半，成都，女", "1990年四月廿一|晚上11点半|成都|女"),
        ("农历2023年闰二月初五，上海", "农历2023年闰二月初五||上海|"),
    ],
)
def test_S3_what_is_said_of_a_birth_is_passed_on_as_it_was_said(words: str, birth: str):
    said = dict(zip(("date", "time", "place", "gender"), birth.split("|"), strict=True))
    assert calls(IN_BAZI, user(words)) == [("collect_birth_info", {name: one for name, one in said.items() if one})]


def test_S3_without_a_birth_a_form_is_asked_for_once_and_then_it_is_asked_for_in_words():
    asked = user("帮我看看八字")
    assert calls(IN_BAZI, asked, *NEED_INFO) == [("collect_birth_info", {})]
    lacking = done("collect_birth_info", {"status": "need_input", "missing": ["date"]})
    assert text(IN_BAZI, asked, *NEED_INFO, *lacking) == ASK["zh"]
    assert text(IN_BAZI, asked, user("what do you need?")) == ASK["en"]


def test_S6_S7_a_known_birth_is_computed_and_a_corrected_one_anew():
    assert calls(READY, user("八字"), *ACTIVATED) == [("compute_bazi", {})]
    assert calls(READY, user("2026-11-06适合搬家吗")) == [("compute_bazi", {})]
    corrected = user("说错了，我出生于1991-05-04")
    assert calls(READY, corrected) == [("collect_birth_info", {"date": "1991-05-04"})]
    assert calls(READY, corrected, *SAVED) == [("compute_bazi", {})]


def test_S10_cards_are_drawn_once_the_skill_is_chosen_and_again_only_when_asked():
    scene = Scene(skill="tarot")
    activated = done("use_skill", {"status": "activated", "skill": "tarot"}, {"skill": "tarot"}, "a")
    drawn = done("draw_tarot", {"status": "drawn", "spread_name": "时间之流", "cards": CARDS})
    assert calls(scene, user("塔罗"), *activated) == [("draw_tarot", {})]
    read = f"{READS_OUT['zh']}\n- 牌阵：时间之流\n- 牌：过去 愚者 正位、现在 女祭司 逆位"
    assert text(scene, user("塔罗"), *activated, *drawn) == read
    assert calls(scene, user("再抽一次")) == [("draw_tarot", {})]
    assert text(scene, user("不抽了")) == ENTERED["zh"].format(skill="tarot")


def test_S10_the_sky_of_now_needs_no_birth():
    scene = Scene(skill="zodiac", tools=("sky_today",))
    asked = user("现在水逆吗？")
    assert calls(scene, asked) == [("sky_today", {})]
    answered = done("sky_today", {"status": "computed", "mercury_retrograde": SKY})
    assert text(scene, asked, *answered) == f"{READS_OUT['zh']}\n- 水逆：2026-06-29 2026-07-23"


def test_S10_what_is_said_of_a_life_is_saved_once_and_read_out():
    asked, notes = user("我在互联网做产品经理，想转行"), {"notes": "我在互联网做产品经理，想转行"}
    scene = Scene(skill="career")
    assert calls(scene, asked) == [("save_life_context", notes)]
    saved = done("save_life_context", {"status": "saved", "life_context": notes}, notes)
    assert text(scene, asked, *saved) == f"{READS_OUT['zh']}\n- 备注：{notes['notes']}"
    known = replace(scene, known=KnownData(profile={"life_context": notes}))
    assert text(known, user("老板总是半夜给我发消息")) == ENTERED["zh"].format(skill="career")


def test_S10_a_skill_without_tools_says_that_a_real_model_would_answer():
    activated = done("use_skill", {"status": "activated", "skill": "dentist"}, {"skill": "dentist"})
    assert text(Scene(skill="dentist"), user("tooth ache"), *activated) == ENTERED["en"].format(skill="dentist")


@pytest.mark.parametrize(
    ("name", "made"),
    [("use_skill", ()), ("collect_birth_info", NEED_INFO), ("compute_bazi", (*NEED_INFO, *SAVED))],
)
def test_S3_what_a_tool_says_that_failed_is_repeated_and_nothing_more_is_called(name: str, made: Sequence[Json]):
    failure = (called(name, '{"x":1}', "f"), result("There is no such day.", "f"))
    assert text(IN_BAZI, user("八字 1990-05-04"), *made, *failure) == f"{name} 的回答：There is no such day."


def test_it_never_calls_a_tool_twice_in_a_turn():
    asked, answers = user("八字，生于1990-05-04"), list[Json]()
    seen: list[str] = []
    # Tools that answer, and yet change nothing.
    while wanted := calls(IN_BAZI, asked, *answers):
        for name, arguments in wanted:
            answers += done(name, {"status": "saved"}, {**arguments}, f"{len(seen)}")
            seen.append(name)
    assert seen == ["collect_birth_info", "compute_bazi"]


def test_a_birth_is_neither_arithmetic_nor_a_question_for_the_time():
    scene = replace(SELECT, tools=("calculator", "current_time"))
    assert calls(scene, user("my birth date is 1990-05-04 08:30")) == []
    assert calls(replace(READY, tools=("calculator",)), user("12*7")) == [("calculator", {"expression": "12*7"})]
