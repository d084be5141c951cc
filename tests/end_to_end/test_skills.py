"""S1-S9: a lean page, then the expert's in the same turn, with what the skill declares and nothing else."""

from collections.abc import Iterator
from typing import cast

import pytest

from recto.conversation.json import Json, dump
from recto.ids import new_id
from recto.page.preamble import OF_REMINDERS
from recto.testing.model_server import Answer
from tests.end_to_end.files import ANN, BOB, FileWorld, Talk, Turn, a_run, calling, rows
from tests.end_to_end.skilled import PROFILE, keep, result_of, system_of, tools_of, use, write_guide

pytestmark = pytest.mark.full

LEAN = f"你是向导。\n\n{OF_REMINDERS['zh']}\n\n## 语气\n温和。\n\n## 工具调用规则\n先想后做。"
EXPERT = f"""\
# 命盘 - 解盘师

你只看盘说话。

{OF_REMINDERS["zh"]}

## 语气
温和。

## SOP 执行规则
当前场景：basic（基本解读）

按顺序执行以下流程。标有 → 的是当前步骤，由已知的用户数据得出：先完成它，不要跳到后面的步骤。\
本轮的工具结果已经完成它时，接着做下一步。
- 1. 收集
→ 2. 排盘
- 3. 解读

当前步骤：排盘
调用 compute_chart。

始终遵守：
不说吉凶。

## 用户数据
### 出生信息
- date: 1990-05-15

## 工具调用规则
盘由工具来排。

先想后做。

- 当前技能是 chart，不要再次激活它；只有当用户要的是它的另一个场景时，才用那个 scenario 再调用一次 use_skill。
- 用户的问题属于另一个技能：调用 use_skill 切换到那个技能。
- 用户想结束，或话题与本技能无关：调用 use_skill，skill 填 core，离开本技能。"""
BORN = {"birth_info": {"date": "1990-05-15"}}
WELL = Answer(text="Well.")


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[FileWorld]:
    folder = tmp_path_factory.mktemp("skills")
    write_guide(folder / "agents")
    with FileWorld(folder, operators="ann") as world:
        yield world


@pytest.fixture(autouse=True)
def nothing_is_known(world: FileWorld) -> None:
    for token in (ANN, BOB):
        forget: Json = {"birth_info": None, "life_context": None, "skill_data": {"chart": None}}
        assert world.ask("PATCH", PROFILE, forget, token=token).status == 200


def a_talk(token: str = ANN) -> Talk:
    return Talk(agent="guide", token=token)


def skill_of(world: FileWorld, talk: Talk) -> tuple[str | None, str | None]:
    row = world.ask("GET", f"/api/v1/agent/threads/{talk.thread}", token=talk.token).json
    return (str(row["skill"]) if row["skill"] else None, str(row["scenario"]) if row.get("scenario") else None)


def test_S1_S3_the_model_takes_up_a_skill_and_goes_on_as_its_expert_in_the_same_turn(world: FileWorld):
    keep(world, BORN)
    talk = a_talk()
    turn = world.say(talk, "帮我排盘", use("chart", "basic"), WELL)
    lean, expert = turn.pages
    assert system_of(lean) == LEAN
    assert tools_of(turn, 0) == ["use_skill", "hello"]
    assert result_of(turn.events) == {"status": "activated", "skill": "chart", "scenario": "basic"}
    assert system_of(expert) == EXPERT
    assert set(tools_of(turn, 1)) == {"use_skill", "hello", "look", "compute_chart", "collect_birth_info"}
    # The turn itself is whole: the words, the call and its result.
    assert [message["role"] for message in expert] == ["system", "user", "assistant", "tool"]
    assert skill_of(world, talk)[0] == "chart"


def test_S7_data_that_a_tool_keeps_is_in_the_next_page_and_the_next_step_is_another(world: FileWorld):
    talk = a_talk()
    turn = world.say(
        talk, "帮我排盘", use("chart"), calling("collect_birth_info", date="1990-05-15"), calling("compute_chart"), WELL
    )
    steps = ["调用 collect_birth_info。", "调用 compute_chart。", "解读命盘。"]
    assert [[step in system_of(page) for step in steps] for page in turn.pages[1:]] == [
        [True, False, False],
        [False, True, False],
        [False, False, True],
    ]
    assert "木" in system_of(turn.pages[3])
    # The next turn has it from the start, and need not compute again.
    again = world.say(talk, "继续", WELL)
    assert system_of(again.pages[0]) == system_of(turn.pages[3])
    # Other data: what was computed is not of it.
    keep(world, {"birth_info": {"date": "1991-01-01"}})
    assert "调用 compute_chart。" in system_of(world.say(talk, "再看", WELL).pages[0])


def test_S4_the_next_request_goes_on_in_the_skill_a_request_may_name_another_and_core_is_none(world: FileWorld):
    talk = a_talk()
    world.say(talk, "帮我排盘", use("chart"), WELL)
    assert system_of(world.say(talk, "继续", WELL).pages[0]).startswith("# 命盘")
    turn = world.say(talk, "My bike", WELL, forwardedProps={"skill": "mend"})
    assert system_of(turn.pages[0]).startswith("# Mending")
    assert skill_of(world, talk)[0] == "mend"
    assert system_of(world.say(talk, "And?", WELL).pages[0]).startswith("# Mending")
    assert system_of(world.say(talk, "Enough", WELL, forwardedProps={"skill": "core"}).pages[0]) == LEAN
    assert skill_of(world, talk) == (None, None)
    assert system_of(world.say(talk, "Well?", WELL).pages[0]) == LEAN


def test_S6_two_users_never_see_each_others_data(world: FileWorld):
    keep(world, {"birth_info": {"date": "1990-05-15"}, "life_context": "a secret of Ann's"})
    keep(world, {"birth_info": {"date": "1977-07-07"}}, token=BOB)
    for token, own, other in ((ANN, "1990-05-15", "1977-07-07"), (BOB, "1977-07-07", "1990-05-15")):
        talk = a_talk(token)
        answers = [use("chart", id="c1"), calling("compute_chart", id="c2"), use("notes", id="c3"), WELL]
        pages = dump([model_request.page for model_request in world.say(talk, "帮我排盘", *answers).requests]).decode()
        assert own in pages
        assert other not in pages
        assert ("a secret of Ann's" in pages) == (token == ANN)


def test_S6_a_tier_is_known_to_tools_and_has_limits_of_its_own(world: FileWorld):
    keep(world, BORN, token=BOB)
    assert world.ask("PUT", "/api/v1/users/bob/tier", {"tier": "pro"}, token=ANN).status == 200
    talk = a_talk(BOB)
    answers = [use("chart", id="c1"), calling("compute_chart", id="c2"), WELL]
    turn = world.say(talk, "帮我排盘", *answers)
    assert (turn.last["type"], turn.last["code"]) == ("RUN_ERROR", "too_many_steps")
    profile = cast("dict[str, dict[str, dict[str, Json]]]", world.ask("GET", PROFILE, token=BOB).json)
    assert (profile["tier"], profile["skillData"]["chart"]["tier"]) == ("pro", "pro")
    assert world.ask("PUT", "/api/v1/users/bob/tier", {"tier": "free"}, token=ANN).status == 200


FORM: Json = {
    "name": "collect_birth_info",
    "description": "Shows a form.",
    "parameters": {"type": "object", "properties": {}},
}


def test_S3_a_client_with_a_form_answers_in_the_place_of_the_tool_and_what_it_says_is_kept(world: FileWorld):
    talk = a_talk()
    first_turn = world.say(talk, "帮我排盘", use("chart"), calling("collect_birth_info", id="form-1"), tools=[FORM])
    assert first_turn.last["outcome"] == {"type": "success", "pendingToolCallIds": ["form-1"]}
    turn = world.play(talk, answer_call(talk, first_turn, "form-1", '{"date": "1990-05-15"}'), WELL)
    assert '"status":"saved"' in str(turn.pages[0][-1]["content"])
    # The client has the message it sent; what is new to it is how the result may be shown.
    cards = [received.event["value"] for received in turn.events if received.event["type"] == "CUSTOM"]
    assert (len(cards), turn.results) == (1, [])
    assert "1990-05-15" in system_of(turn.pages[0])
    assert "调用 compute_chart。" in system_of(turn.pages[0])
    assert world.ask("GET", PROFILE).json["profile"] == BORN


def test_S3_what_a_form_may_not_say_is_told_to_the_model(world: FileWorld):
    talk = a_talk()
    first_turn = world.say(talk, "帮我排盘", use("chart"), calling("collect_birth_info", id="form-2"), tools=[FORM])
    turn = world.play(talk, answer_call(talk, first_turn, "form-2", '{"date": 7}'), WELL)
    assert "date" in str(turn.pages[0][-1]["content"])
    assert world.ask("GET", PROFILE).json["profile"] == {}


def answer_call(talk: Talk, turn: Turn, call: str, content: str) -> dict[str, Json]:
    """Return the run with a client's answer."""
    answer: Json = {"id": new_id(), "role": "tool", "toolCallId": call, "content": content}
    return {**a_run(talk, "", tools=[FORM]), "messages": [*rows(turn.body["messages"]), answer]}
