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
    assert calls == ["use_skill", "collect_birth_info"]
    assert [answer["status"] for answer in answers] == ["need_info", "need_input"]
    assert "出生日期" in said
    calls, answers, read_out = talk.say("1990-05-04 08:30，北京，女")
    assert calls == ["collect_birth_info", "compute_bazi"]
    assert [answer["status"] for answer in answers] == ["saved", "computed"]
    for fact in ("演示模型", "四柱：庚午、庚辰、己巳、戊辰", "日主", "身强"):
        assert fact in read_out
    calls, answers, said = talk.say("继续")
    assert (calls, answers[0]["status"], said) == (["compute_bazi"], "reused", read_out)
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
    calls, _, said = talk.say("Born on 1991-05-04 at 8:30 am in Shanghai, female. What does my bazi say?")
    assert calls == ["use_skill", "collect_birth_info", "compute_bazi"]
    assert "Day master" in said
    calls, answers, said = talk.say("A tarot reading, please")
    assert (calls, len(str(answers[-1]["cards"])) > 0) == (["use_skill", "draw_tarot"], True)
    assert "demo model" in said


def test_S3_S10_lunar_dates_go_to_the_tool_and_the_sky_of_today_needs_no_birth(url: str):
    assert request(url, "PATCH", "/api/v1/profile", {"birth_info": None}).status == 200
    for words, label in (("现在水逆吗？", "水逆："), ("Zodiac: is Mercury retrograde now?", "Mercury retrograde: ")):
        calls, answers, said = Talk(url=url).say(words)
        assert calls == ["use_skill", "sky_today"]
        assert label in said
        assert DAY.findall(said) == DAY.findall(str(answers[-1]["mercury_retrograde"]))
    calls, answers, _ = Talk(url=url).say("八字：1990年四月廿一，晚上11点半，成都，女")
    assert (calls, answers[1]["status"]) == (["use_skill", "collect_birth_info", "compute_bazi"], "saved")


def test_S10_lives_are_saved_and_read_out_and_cards_stay_cards(url: str):
    talk = Talk(url=url)
    talk.say("给我抽张塔罗牌")
    assert talk.say("再抽一次：我该不该换工作")[0] == ["draw_tarot"]
    calls, answers, said = talk.say("我在互联网做产品经理，在职，想转行")
    assert (calls, answers[-1]["status"]) == (["use_skill", "save_life_context"], "saved")
    assert "备注：我在互联网做产品经理，在职，想转行" in said
    calls, _, said = talk.say("继续")
    assert (calls, "真正的模型" in said) == ([], True)
