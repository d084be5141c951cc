"""The vibe agent over HTTP, offline: the demo model goes from choice to chart to answer, as a real model would."""

import re
from collections.abc import Generator, Mapping
from dataclasses import dataclass, field

import pytest

from recto.conversation.json import Json, load_object
from recto.ids import new_id
from recto.testing.client import parse_events, request
from recto.testing.process import ServerProcess

pytestmark = pytest.mark.full

DAY = re.compile(r"\d{4}-\d\d-\d\d")


@pytest.fixture(scope="module")
def url(tmp_path_factory: pytest.TempPathFactory) -> Generator[str]:
    settings = {"RECTO_MODEL": "demo", "RECTO_AGENT": "vibe"}
    with ServerProcess.serve(tmp_path_factory.mktemp("vibe"), settings) as server:
        yield server.url


@dataclass(frozen=True, kw_only=True)
class Talk:
    """A conversation with vibe."""

    url: str
    thread: str = field(default_factory=new_id)

    def say(self, words: str) -> tuple[list[str], list[Mapping[str, Json]], str]:
        """One turn: the tools that were called, what they answered, and what was said in the end."""
        body = {"message": words, "conversation_id": self.thread}
        reply = request(self.url, "POST", "/api/v1/chat", body)
        assert reply.status == 200, reply.body
        events = [sent.event for sent in parse_events(line + b"\n" for line in reply.body.split(b"\n"))]
        calls = [str(event["toolCallName"]) for event in events if event["type"] == "TOOL_CALL_START"]
        answers = [load_object(str(event["content"])) or {} for event in events if event["type"] == "TOOL_CALL_RESULT"]
        said = "".join(str(event["delta"]) for event in events if event["type"] == "TEXT_MESSAGE_CONTENT")
        return calls, answers, said


def test_S3_S4_S10_a_chart_is_collected_computed_read_out_and_used_again(url: str):
    talk = Talk(url=url)
    calls, answers, said = talk.say("帮我看看八字")
    assert (calls, answers[0]["status"]) == (["use_skill"], "need_info")
    assert "出生日期" in said
    calls, answers, read_out = talk.say("1990-05-04 08:30，北京，女")
    assert calls == ["collect_birth_info", "compute_bazi"]
    assert [answer["status"] for answer in answers] == ["saved", "computed"]
    for fact in ("演示模型", "四柱：庚午、庚辰、己巳、戊辰", "日主", "身强"):
        assert fact in read_out
    assert talk.say("继续") == ([], [], read_out)
    # Whatever was told to one skill is known to the next, and nobody is asked twice.
    calls, answers, said = talk.say("那我的星盘呢？")
    assert (calls, [answer["status"] for answer in answers]) == (
        ["use_skill", "compute_zodiac"],
        ["activated", "computed"],
    )
    assert "太阳：金牛座" in said
    calls, answers, _ = talk.say("算了，换个话题")
    assert (calls, answers[0]["skill"]) == (["use_skill"], "core")


def test_S10_all_in_one_message_and_cards_in_english(url: str):
    talk = Talk(url=url)
    calls, _, said = talk.say("Born on May 4, 1991 at 8:30 am in Shanghai, female. What does my bazi say?")
    assert calls[0] == "use_skill"
    assert calls[-1] == "compute_bazi"
    assert "Day master" in said
    calls, answers, said = talk.say("A tarot reading, please")
    assert (calls, len(str(answers[-1]["cards"])) > 0) == (["use_skill", "draw_tarot"], True)
    assert "demo model" in said


def test_S10_the_sky_of_today_needs_no_birth_and_the_card_of_the_day_is_one(url: str):
    assert request(url, "PATCH", "/api/v1/profile", {"birth_info": None}).status == 200
    for words, told in (("现在水逆吗？", "水逆"), ("Zodiac: is Mercury retrograde now?", "Mercury is ")):
        calls, answers, said = Talk(url=url).say(words)
        assert calls == ["use_skill", "sky_today"]
        assert told in said
        assert DAY.findall(said) == DAY.findall(str(answers[-1]["mercury_retrograde"]))[:2]
    first, second = (Talk(url=url).say(words) for words in ("抽一张今日塔罗牌", "My daily tarot card, please"))
    assert first[0] == second[0] == ["use_skill", "draw_tarot"]
    assert (first[1][-1]["status"], second[1][-1]["status"]) == ("drawn", "reused")
    assert first[1][-1]["seed"] == second[1][-1]["seed"]


def test_S3_S7_who_refuses_is_left_alone_and_lunar_words_and_corrections_are_taken(url: str):
    talk = Talk(url=url)
    assert request(url, "PATCH", "/api/v1/profile", {"birth_info": None}).status == 200
    talk.say("帮我看看八字")
    calls, _, said = talk.say("我不想说")
    assert (calls, "我不再问" in said) == ([], True)
    calls, answers, _ = talk.say("1990年四月廿一农历，晚上11点半，成都，女")
    assert (calls, answers[0]["status"]) == (["collect_birth_info", "compute_bazi"], "saved")
    calls, answers, _ = talk.say("我的出生地说错了，是乌鲁木齐")
    assert (calls, answers[0]["status"]) == (["collect_birth_info", "compute_bazi"], "saved")
    assert "乌鲁木齐" in str(answers[0]["birth_info"])


def test_S10_lives_are_saved_and_read_out_and_cards_stay_cards(url: str):
    talk = Talk(url=url)
    talk.say("给我抽张塔罗牌")
    assert talk.say("再抽一次：我该不该换工作")[0] == ["draw_tarot"]
    calls, answers, said = talk.say("我在互联网做产品经理，在职，想转行")
    assert (calls, answers[-1]["status"]) == (["use_skill", "save_life_context"], "saved")
    for fact in ("处境：在职", "行业与职位：互联网 产品经理", "目标：转行", "真正的模型"):
        assert fact in said
    calls, answers, said = talk.say("最近很焦虑睡不着")
    assert (calls, answers[-1]["status"]) == (["use_skill", "save_life_context"], "saved")
    assert "困扰：转行、焦虑、睡不着" in said
    assert talk.say("继续") == ([], [], said)
