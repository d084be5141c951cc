"""The demo model with skills: it takes up the one asked for, has its tools called, and reads out what they say."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recto.conversation.json import Json
from recto.models.demo.told import ASK, ENTERED, FORGOTTEN, LEFT, READS_OUT, REFUSED
from recto.models.demo.words import reply_to
from recto.page.prompt.system_prompt import render
from recto.page.text.tokens import OFFLINE
from recto.skills.directory import use_skill_offer
from recto.skills.expert import ExpertInput, expert
from recto.skills.known import KnownData
from recto.skills.skill import Skill
from recto.skills.sop import Missing, Sop, SopStep
from tests.models.test_demo import called, result, user

BAZI = Skill(
    name="bazi",
    description="八字（四柱）排盘与解读",
    title="八字命理 - 命理师",
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
TAROT = Skill(name="tarot", description="塔罗", title="塔罗", identity="x", folder=Path(), has_data=True)
DENTIST = replace(
    TAROT, name="dentist", description="Bright healthy polished molars", has_data=False, triggers=("tooth ache",)
)
CAREER = replace(
    DENTIST,
    name="career",
    description="Planning and interviews at work",
    triggers=(),
    fields=("life_context",),
    sop=Sop(
        steps=(
            SopStep(id="a", title="了解", text="用 save_life_context 保存", when=Missing(path="life_context")),
            SopStep(id="b", title="跟进", text="按所问推进"),
        ),
        rules="- 1. 不用 save_life_context 保存猜测",
    ),
)
SKILLS = {skill.name: skill for skill in (BAZI, ZODIAC, TAROT, CAREER, DENTIST)}
TOOLS = {
    "bazi": ("collect_birth_info", "compute_bazi"),
    "zodiac": ("collect_birth_info", "compute_zodiac"),
    "tarot": ("draw_tarot",),
    "career": ("save_life_context",),
}
BIRTH: dict[str, Json] = {"date": "1990-05-04", "time": "08:30", "place": "北京", "gender": "female"}
CHART: dict[str, Json] = {
    "pillars": {"year": {"pillar": "庚午", "stem": "庚"}, "day": {"pillar": "己巳", "stem": "己"}, "hour": None},
    "day_master": {"stem": "己", "element": "土"},
    "strength": {"verdict": "身强", "score": 60},
    "notes": ["出生地未提供"],
    "features": ["日主己土", "Ji Earth day master"],
    "of": {"birth_info": BIRTH, "notes": "不念这个"},
}
DRAW: dict[str, Json] = {
    "spread": "three",
    "cards": [
        {"name": "愚者", "position": "过去", "reversed": False},
        {"name": "女祭司", "position": "现在", "reversed": True},
    ],
}
SCHEMAS: Mapping[str, Json] = {
    "collect_birth_info": {"properties": {name: {"type": "string"} for name in ("date", "time", "place", "gender")}},
    "save_life_context": {
        "properties": {
            "stage": {
                "anyOf": [{"type": "string"}],
                "description": "Where they stand, such as 间隔年 or between jobs.",
            },
            "industry": {"type": "string"},
            "goal": {"type": "string"},
            "concerns": {"anyOf": [{"type": "array", "items": {"enum": ["社恐", "shyness"]}}, {"type": "null"}]},
            "notes": {"type": "string"},
        }
    },
    "draw_tarot": {"properties": {"spread": {"enum": ["one", "three", "cross"]}}},
}
CHART_READ = f"{READS_OUT['zh']}\n- 四柱：庚午、己巳\n- 日主：己、土\n- 强弱：身强\n- 备注：出生地未提供"
CARDS_READ = f"{READS_OUT['zh']}\n- 牌阵：three\n- 牌：过去：愚者、现在：女祭司（逆位）"


@dataclass(frozen=True, kw_only=True)
class Scene:
    """Where a thread is: the skill at work, what is known of the user, the tools beside those of the skill."""

    skill: str = ""
    known: KnownData = KnownData()
    locale: str = "zh"
    tools: tuple[str, ...] = ()
    schemas: Mapping[str, Json] = field(default_factory=lambda: SCHEMAS)
    skills: tuple[Skill, ...] = ()

    def page(self, *messages: Json) -> bytes:
        skills = list(SKILLS.values())
        offer = use_skill_offer(skills, locale=self.locale, tokens=5_000, counter=OFFLINE, with_core=bool(self.skill))
        use_skill = {"name": "use_skill", "description": offer.description, "parameters": json.loads(offer.parameters)}
        names = (*TOOLS.get(self.skill, ()), *self.tools)
        offers = [use_skill, *({"name": name, "parameters": self.schemas.get(name, {})} for name in names)]
        tools = [{"type": "function", "function": one} for one in offers]
        system = {"role": "system", "content": self._system()}
        return json.dumps({"model": "demo", "messages": [system, *messages], "tools": tools}).encode()

    def _system(self) -> str:
        if not self.skill:
            return "# Vibe\n\n你是 Vibe。"
        skill = next((one for one in self.skills if one.name == self.skill), SKILLS[self.skill])
        return render(expert(skill, self.known, ExpertInput(locale=self.locale)).prompt, self.locale)


SELECT = Scene()
IN_BAZI = Scene(skill="bazi")
KNOWN = KnownData(profile={"birth_info": BIRTH}, skill_data={"bazi": CHART})
READY = Scene(skill="bazi", known=KNOWN)


def calls(scene: Scene, *messages: Json) -> list[tuple[str, Json]]:
    return [(call.name, json.loads(call.arguments)) for call in reply_to(scene.page(*messages)).calls]


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
        ("我的命盘怎么样", "bazi"),
        ("What does BaZi say of me?", "bazi"),
        ("想排盘", "bazi"),
        ("我是什么星座", "zodiac"),
        ("read my horoscope", "zodiac"),
        ("塔罗", "tarot"),
        ("a tarot reading, please", "tarot"),
        ("我想跳槽", "career"),
        ("my career is stuck", "career"),
        ("I have a tooth ache", "dentist"),
        ("healthy molars, polished and bright", "dentist"),
    ],
)
def test_S3_words_that_ask_for_a_skill_take_it_up(words: str, skill: str):
    assert calls(SELECT, user(words)) == [("use_skill", {"skill": skill})]


@pytest.mark.parametrize("words", ["你好", "hello", "人生好难", "jobless", "healthy food", "tell me about tea", ""])
def test_S3_words_that_ask_for_none_or_for_one_that_is_not_there_take_up_nothing(words: str):
    assert calls(SELECT, user(words)) == []


def test_S3_it_says_which_skills_it_would_take_up():
    assert "bazi、zodiac、tarot、career、dentist。" in text(SELECT, user("你好"))
    assert "bazi, zodiac, tarot, career, dentist. You said" in text(SELECT, user("hello"))
    assert "core" not in text(READY, user("hello"))


@given(st.text(max_size=40), st.sampled_from([SELECT, IN_BAZI, READY]))
def test_S3_whatever_is_said_only_what_is_offered_is_called(words: str, scene: Scene):
    page = json.loads(scene.page(user(words)))
    offered = {tool["function"]["name"]: tool["function"]["parameters"] for tool in page["tools"]}
    for name, arguments in calls(scene, user(words)):
        assert name in offered
        if name == "use_skill":
            assert isinstance(arguments, dict)
            assert arguments["skill"] in offered[name]["properties"]["skill"]["enum"]


@pytest.mark.parametrize(
    "words", ["算了", "算了吧，谢谢", "换个话题", "退出", "leave", "Never mind!", "change the topic"]
)
def test_S4_who_wants_to_leave_a_skill_leaves_it(words: str):
    assert calls(READY, user(words)) == [("use_skill", {"skill": "core"})]
    assert calls(SELECT, user(words)) == []


@pytest.mark.parametrize("words", ["你算了吗", "should I leave my job now?", "继续"])
def test_S4_words_that_only_look_so_do_not(words: str):
    assert ("use_skill", {"skill": "core"}) not in calls(READY, user(words))


def test_S4_once_it_is_left_it_says_so_and_calls_nothing():
    left = done("use_skill", {"status": "activated", "skill": "core", "scenario": None}, {"skill": "core"})
    assert text(SELECT, user("算了"), *left) == LEFT["zh"]


def test_S4_another_skill_is_switched_to_and_the_one_at_work_is_not_taken_up_again():
    assert calls(READY, user("换个话题，聊聊塔罗")) == [("use_skill", {"skill": "tarot"})]
    assert calls(READY, user("再看看八字")) == []


# What a skill does


def test_S10_a_birth_in_the_words_goes_from_choice_to_chart_to_answer_in_one_turn():
    asked = user("我是1990-05-04 08:30在北京出生的女生，帮我看看八字")
    assert calls(SELECT, asked) == [("use_skill", {"skill": "bazi"})]
    assert calls(IN_BAZI, asked, *NEED_INFO) == [("collect_birth_info", BIRTH)]
    assert calls(IN_BAZI, asked, *NEED_INFO, *SAVED) == [("compute_bazi", {})]
    assert text(READY, asked, *NEED_INFO, *SAVED, *COMPUTED) == CHART_READ


def test_S3_without_a_birth_it_asks_for_one_and_takes_it_from_the_next_words():
    asked = user("帮我看看八字")
    assert text(IN_BAZI, asked, *NEED_INFO) == ASK["zh"]
    before = (asked, {"role": "assistant", "content": ASK["zh"]})
    assert calls(IN_BAZI, *before, user("1990-05-04 08:30，北京，女")) == [("collect_birth_info", BIRTH)]
    assert text(IN_BAZI, user("my bazi, please"), *NEED_INFO) == ASK["en"]


def test_S3_a_birth_that_was_told_before_is_not_asked_for_again():
    before = (user("我1990-05-04出生"), {"role": "assistant", "content": "好的"})
    asked = user("帮我看看八字")
    assert calls(IN_BAZI, *before, asked, *NEED_INFO) == [("collect_birth_info", {"date": "1990-05-04"})]


def test_S3_a_form_of_the_clients_is_left_to_ask():
    form = replace(IN_BAZI, schemas={"collect_birth_info": {"properties": {}}})
    assert calls(form, user("八字"), *NEED_INFO) == [("collect_birth_info", {})]
    assert calls(replace(READY, schemas=form.schemas), user("继续")) == []
    assert calls(replace(READY, schemas=form.schemas), user("删除我的出生信息")) == []


def test_S3_what_a_form_still_lacks_is_asked_for():
    lacking = done("collect_birth_info", {"status": "need_input", "missing": ["date"]})
    assert text(IN_BAZI, user("八字"), *NEED_INFO, *lacking) == ASK["zh"]


def test_S6_a_known_birth_is_computed_and_a_known_chart_is_not_computed_again():
    born = replace(IN_BAZI, known=KnownData(profile={"birth_info": BIRTH}))
    assert calls(born, user("八字"), *ACTIVATED) == [("compute_bazi", {})]
    assert text(READY, user("八字"), *ACTIVATED) == CHART_READ


@pytest.mark.parametrize("words", ["继续", "那今年呢？", "2026-11-06适合搬家吗"])
def test_S4_the_next_turn_goes_on_with_what_the_system_prompt_has(words: str):
    assert text(READY, user(words)) == CHART_READ


def test_S7_a_chart_of_another_birth_is_computed_anew():
    moved = KnownData(profile={"birth_info": {**BIRTH, "time": "20:00"}}, skill_data={"bazi": CHART})
    assert calls(replace(READY, known=moved), user("继续")) == [("compute_bazi", {})]
    corrected = user("说错了，我出生于1991-05-04")
    assert calls(READY, corrected) == [("collect_birth_info", {"date": "1991-05-04"})]
    assert calls(READY, corrected, *SAVED) == [("compute_bazi", {})]


@pytest.mark.parametrize(
    ("words", "told"),
    [
        ("我的出生地说错了，是乌鲁木齐", {"place": "乌鲁木齐"}),
        ("出生时间记错了，应该是晚上十一点半", {"time": "晚上十一点半"}),
        ("更正一下，我是男的", {"gender": "male"}),
        ("My birthplace is wrong, it is Urumqi", {"place": "Urumqi"}),
    ],
)
def test_S7_a_correction_without_a_date_is_passed_on_alone_and_computed_anew(words: str, told: Json):
    assert calls(READY, user(words)) == [("collect_birth_info", told)]
    saved = done("collect_birth_info", {"status": "saved", "birth_info": BIRTH}, told, "b")
    assert calls(READY, user(words), *saved) == [("compute_bazi", {})]
    assert calls(IN_BAZI, user(words)) == []


@pytest.mark.parametrize("words", ["我女朋友出生在上海，怎么样", "My wife was born in Paris", "她是1991-05-04出生的"])
def test_S7_the_birth_of_somebody_else_corrects_nothing(words: str):
    assert calls(READY, user(words)) == []


def test_S7_whether_a_chart_is_due_is_told_by_the_marked_step_alone():
    steps = (
        SopStep(id="compute", title="排盘", text="调用 compute_bazi", when=Missing(path="birth_info.lucky")),
        SopStep(id="ready", title="解读", text="不要再调用 compute_bazi"),
    )
    skill = replace(BAZI, sop=Sop(steps=steps))
    assert calls(replace(READY, skills=(skill,)), user("继续")) == [("compute_bazi", {})]
    known = replace(KNOWN, profile={"birth_info": {**BIRTH, "lucky": "8"}})
    assert text(replace(READY, skills=(skill,), known=known), user("继续")) == CHART_READ


@pytest.mark.parametrize(("words", "language"), [("我不想说", "zh"), ("不告诉你", "zh"), ("I'd rather not", "en")])
def test_S3_who_refuses_is_not_asked_again_until_they_ask_for_the_skill(words: str, language: Literal["zh", "en"]):
    before = (user("八字"), {"role": "assistant", "content": ASK["zh"]}, user(words))
    refused = text(IN_BAZI, *before)
    assert refused.startswith(REFUSED[language].partition("{")[0])
    assert "tarot" in refused
    assert "career" in refused
    assert "zodiac" not in refused
    assert text(IN_BAZI, *before, user("然后呢")) == text(IN_BAZI, user("八字"), user("我不想说"))
    assert text(IN_BAZI, *before, user("那还是看看八字吧")) == ASK["zh"]
    assert calls(IN_BAZI, *before, user("好吧，1990-05-04")) == [("collect_birth_info", {"date": "1990-05-04"})]


def test_S3_a_form_that_was_declined_is_not_shown_again():
    form = replace(IN_BAZI, schemas={"collect_birth_info": {"properties": {}}})
    declined = (user("八字"), *done("collect_birth_info", {"status": "declined"}, {}, "d"))
    refused = text(form, *declined)
    assert refused.startswith(REFUSED["zh"].partition("{")[0])
    assert text(form, *declined, {"role": "assistant", "content": refused}, user("继续")) == refused


def test_S3_a_date_that_was_refused_is_not_sent_again():
    sent = {"date": "1500-01-01"}
    failed = (user("八字 1500-01-01"), called("collect_birth_info", json.dumps(sent), "f"), result("Too early.", "f"))
    assert calls(IN_BAZI, *failed, user("八字 1990-13-45")) == [("collect_birth_info", {"date": "1990-13-45"})]
    assert text(IN_BAZI, user("我1990-05-04出生"), *failed, user("然后呢")) == ASK["zh"]


def test_S6_a_birth_is_forgotten_when_asked_and_not_taken_from_earlier_words_again():
    asked = user("请删除我的出生信息")
    assert calls(READY, asked) == [("collect_birth_info", {"date": ""})]
    forgotten = (asked, *done("collect_birth_info", {"status": "forgotten"}, {"date": ""}, "x"))
    assert text(READY, *forgotten) == text(IN_BAZI, *forgotten) == FORGOTTEN["zh"]
    assert text(IN_BAZI, user("我1990-05-04出生"), *forgotten, user("八字")) == ASK["zh"]


def test_S10_tarot_draws_three_cards_and_reads_them_out_and_draws_again_only_when_asked():
    scene = Scene(skill="tarot")
    activated = done("use_skill", {"status": "activated", "skill": "tarot"}, {"skill": "tarot"}, "a")
    assert calls(scene, user("塔罗"), *activated) == [("draw_tarot", {"spread": "three"})]
    drawn = done("draw_tarot", {"status": "drawn", **DRAW}, {"spread": "three"})
    kept = replace(scene, known=KnownData(skill_data={"tarot": {"last": DRAW, "history": [DRAW]}}))
    assert text(kept, user("塔罗"), *activated, *drawn) == CARDS_READ
    assert text(kept, user("继续")) == CARDS_READ
    assert calls(kept, user("再抽一次")) == [("draw_tarot", {"spread": "three"})]
    assert text(kept, user("不抽了")) == CARDS_READ


def test_S4_a_wish_for_the_skill_at_work_wins_over_what_the_question_is_about():
    kept = Scene(skill="tarot", known=KnownData(skill_data={"tarot": {"last": DRAW}}))
    assert calls(kept, user("再抽一次：我该不该换工作")) == [("draw_tarot", {"spread": "three"})]
    assert calls(kept, user("draw again: should I change my job?")) == [("draw_tarot", {"spread": "three"})]
    assert calls(kept, user("不抽了，我该不该换工作")) == [("use_skill", {"skill": "career"})]


def test_S10_a_skill_with_nothing_to_compute_says_that_a_real_model_would_answer():
    activated = done("use_skill", {"status": "activated", "skill": "dentist"}, {"skill": "dentist"})
    told = text(Scene(skill="dentist"), user("tooth ache"), *activated)
    assert told == ENTERED["en"].format(skill="dentist")


@pytest.mark.parametrize(
    ("name", "made"),
    [("use_skill", ()), ("collect_birth_info", NEED_INFO), ("compute_bazi", (*NEED_INFO, *SAVED))],
)
def test_S3_a_tool_that_fails_is_told_and_nothing_more_is_called(name: str, made: Sequence[Json]):
    failure = (called(name, '{"x":1}', "f"), result("There is no such day.", "f"))
    told = text(IN_BAZI, user("八字 1990-05-04"), *made, *failure)
    assert told == f"{name} 没有成功。它说：There is no such day."


def test_it_never_makes_the_same_call_twice_in_a_turn():
    asked, made = user("八字，生于1990-05-04"), list[Json]()
    seen: list[tuple[str, Json]] = []
    # Tools that answer, and yet change nothing.
    for step in range(9):
        wanted = calls(IN_BAZI, asked, *made)
        if not wanted:
            break
        for place, (name, arguments) in enumerate(wanted):
            made += done(name, {"status": "saved"}, arguments, f"{step}-{place}")
        seen += wanted
    assert [name for name, _ in seen] == ["use_skill", "collect_birth_info", "compute_bazi"][-len(seen) :]


# Old tricks


def test_the_old_tricks_are_played_within_a_skill_where_they_are_offered():
    scene = replace(READY, tools=("calculator", "current_time"))
    assert calls(scene, user("12*7")) == [("calculator", {"expression": "12*7"})]
    assert text(scene, user("12*7"), called("calculator", '{"expression":"12*7"}'), result("84")) == "12*7 = 84."
    assert calls(READY, user("12*7")) == []


def test_a_trick_and_a_skill_in_one_message_are_both_done():
    scene = replace(SELECT, tools=("calculator",))
    asked = user("3+4等于几？再看看八字")
    assert calls(scene, asked) == [("calculator", {"expression": "3+4"}), ("use_skill", {"skill": "bazi"})]
    added = (called("calculator", '{"expression":"3+4"}', "s"), result("7", "s"))
    assert text(READY, asked, *added, *ACTIVATED) == f"3+4 = 7。{CHART_READ}"


def test_a_birth_is_neither_arithmetic_nor_a_question_for_the_time():
    scene = replace(SELECT, tools=("calculator", "current_time"))
    assert calls(scene, user("my birth date is 1990-05-04 08:30")) == []
    assert calls(scene, user("出生时间是1990/5/4 8:30")) == []
