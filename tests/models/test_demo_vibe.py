"""The vibe agent over HTTP, offline: the demo model goes from choice to chart to answer, as a real model would."""

from collections.abc import Generator, Mapping
from dataclasses import dataclass, field

import pytest

from recto.conversation.json import Json, load_object
from recto.ids import new_id
from recto.testing.client import parse_events, request
from recto.testing.process import ServerProcess

pytestmark = pytest.mark.full


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
