"""The demo model with skills: it activates one, calls its tools and reads out their results."""

import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recto.conversation.json import Json
from recto.models.demo.demo_model import DemoCall, reply_to
from recto.page.prompt.system_prompt import render
from recto.page.text.tokens import OFFLINE
from recto.skills.directory import use_skill_offer
from recto.skills.expert import ExpertInput, expert
from recto.skills.known_data import KnownData
from recto.skills.skill import Skill
from tests.models.test_demo import call_row, result, user

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
TAROT = Skill(name="tarot", description="塔罗", heading="塔罗", identity="x", folder=Path(), triggers=("塔罗",))
DENTIST = replace(TAROT, name="dentist", description="Bright healthy polished molars", triggers=("tooth ache",))
CAREER = replace(DENTIST, name="career", triggers=("跳槽",), fields=("life_context",))
SKILLS = {skill.name: skill for skill in (BAZI, TAROT, CAREER, DENTIST)}
TOOLS = {"bazi": ("collect_birth_info", "compute_bazi"), "tarot": ("draw_tarot",), "career": ("save_life_context",)}
BIRTH: dict[str, Json] = {"date": "1990-05-04", "time": "08:30", "place": "北京", "gender": "女"}
CHART: dict[str, Json] = {
    "pillars": {"year": {"pillar": "庚午", "hidden": "丁"}, "day": {"pillar": "己巳"}, "hour": None},
    "day_master": {"stem": "己", "element": "土"},
    "strength": {"verdict": "身强", "score": 60},
    "notes": ["出生地未提供"],
}


@dataclass(frozen=True, kw_only=True)
class Scene:
    """State of a thread: the active skill, and the stored data of the user."""

    skill: str = ""
    user_data: KnownData = KnownData()

    def page(self, *messages: Json) -> bytes:
        skills = list(SKILLS.values())
        offer = use_skill_offer(skills, locale="zh", tokens=5_000, counter=OFFLINE, with_core=bool(self.skill))
        use_skill = {"name": "use_skill", "description": offer.description, "parameters": json.loads(offer.parameters)}
        names = TOOLS.get(self.skill, ())
        offers = [use_skill, *({"name": name, "parameters": True} for name in names)]
        tools = [{"type": "function", "function": one} for one in offers]
        system = {"role": "system", "content": self._system()}
        return json.dumps({"model": "demo", "messages": [system, *messages], "tools": tools}).encode()

    def _system(self) -> str:
        if not self.skill:
            return "# Vibe\n\n你是 Vibe。"
        return render(expert(SKILLS[self.skill], self.user_data, ExpertInput(locale="zh")).prompt, "zh")


SELECT = Scene()
IN_BAZI = Scene(skill="bazi")
USER_DATA = KnownData(profile={"birth_info": BIRTH}, skill_data={"bazi": CHART})
READY = Scene(skill="bazi", user_data=USER_DATA)


def calls(scene: Scene, *messages: Json) -> list[DemoCall]:
    return list(reply_to(scene.page(*messages)).calls)


def text(scene: Scene, *messages: Json) -> str:
    reply = reply_to(scene.page(*messages))
    assert reply.calls == ()
    return reply.text


def done(name: str, answer: Json, arguments: Json = None, id: str = "c1") -> Sequence[Json]:
    """Return a call of this turn and its answer."""
    return call_row(name, json.dumps(arguments or {}), id), result(json.dumps(answer), id)


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


@given(st.text(max_size=40), st.sampled_from([SELECT, IN_BAZI, READY]))
def test_S3_whatever_is_said_only_what_is_offered_is_called(words: str, scene: Scene):
    page = json.loads(scene.page(user(words)))
    parameters_by_tool = {tool["function"]["name"]: tool["function"]["parameters"] for tool in page["tools"]}
    for name, arguments in calls(scene, user(words)):
        assert name in parameters_by_tool
        if name == "use_skill":
            assert arguments["skill"] in parameters_by_tool[name]["properties"]["skill"]["enum"]


@pytest.mark.parametrize("words", ["算了吧，谢谢", "换个话题", "leave", "Never mind!"])
def test_S4_who_wants_to_leave_a_skill_leaves_it(words: str):
    assert calls(READY, user(words)) == [("use_skill", {"skill": "core"})]
    left_skill = done("use_skill", {"status": "activated", "skill": "core"}, {"skill": "core"})
    assert text(SELECT, user(words), *left_skill) == text(SELECT, user(words))


@pytest.mark.parametrize(
    ("words", "birth"),
    [
        ("1990-05-04 08:30，北京，女", "1990-05-04|08:30|北京|女"),
        ("帮我算个八字：1990年5月15日14:30，北京，男", "1990年5月15日|14:30|北京|男"),
        ("I was born on 1990-05-15 at 2:30 pm in New York, male.", "1990-05-15|2:30 pm|New York|male"),
        ("1990年四月廿一，晚上11点半，成都，女", "1990年四月廿一|晚上11点半|成都|女"),
    ],
)
def test_S3_what_is_said_of_a_birth_is_passed_on_as_it_was_said(words: str, birth: str):
    birth_fields = dict(zip(("date", "time", "place", "gender"), birth.split("|"), strict=True))
    assert calls(IN_BAZI, user(words)) == [
        ("collect_birth_info", {name: one for name, one in birth_fields.items() if one})
    ]


def test_it_never_calls_a_tool_twice_in_a_turn():
    question, answers = user("八字，生于1990-05-04"), list[Json]()
    called_names: list[str] = []
    # Tools that answer without changing anything.
    while next_calls := calls(IN_BAZI, question, *answers):
        for name, arguments in next_calls:
            answers += done(name, {"status": "saved"}, {**arguments}, f"{len(called_names)}")
            called_names.append(name)
    assert called_names == ["collect_birth_info", "compute_bazi"]
