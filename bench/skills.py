"""How long a page takes with many skills and cases: loading them, staging one, setting the page. A missed goal is told.

`python bench/skills.py` writes 200 skills with 500 cases into a folder, loads them as an agent, and builds pages.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict
from pathlib import Path

from goal import Goal

from recto.agents.agent import Agent
from recto.agents.folders import load_folder
from recto.config.settings import Limits
from recto.conversation.log import SkillChanged
from recto.conversation.messages import AssistantMessage, Text, UserMessage
from recto.page.assemble import assemble
from recto.page.facts import Facts, Turn
from recto.page.prompt.system_prompt import render
from recto.page.text.tokens import OFFLINE
from recto.skills.known_data import KnownData
from recto.tools.load_tools import load_folder_tools, make_agent_tools
from recto.tools.registry import Registry
from recto.worker.context.prompt_context import PromptContext, build_prompt_context

SKILLS, CASES, TIMES = 200, 500, 40
PAGE_MS, SELECT_TOKENS, EXECUTE_TOKENS = 5.0, 2_000, 8_000
WORDS = "木火土金水甲乙丙丁戊己庚辛壬癸子丑寅卯辰巳午未申酉戌亥"
AGENT = (
    "---\nlocale: zh\ntools: []\nvoices: {warm: 温和而耐心。}\n---\n你是向导。" + "听人说话，再看需要哪一种技能。" * 20
)
SKILL = """\
---
name: skill-{number}
description: 第{number}种技能：排盘、解读，并说明怎样看，适合想了解自己的人。
profile_fields: [birth_info, skill_data.skill-{number}]
requires_birth_info: true
triggers: [技能{number}, 第{number}种]
scenarios: {{basic: {{rule_ids: [r1]}}, love: {{rule_ids: [r2]}}}}
---
# 技能 {number} - 解读师

{body}
"""
SOP = """\
steps:
  - {id: collect, title: 收集, when: {missing: birth_info}, text: 先问出生信息。}
  - {id: ready, title: 解读, text: 逐项解读，先说事实，再说含义，最后说可以怎么做。}
rules: [不说绝对的话。, 不替人做决定。]
"""
CASE = "---\nname: 案例{number}\ntags: [{tags}]\nrule_ids: [r{rule}]\n---\n{body}\n"


class Options(argparse.Namespace):
    """What the command line says."""

    quick: bool
    json: Path | None


def main(arguments: Sequence[str]) -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="fewer times")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the figures to FILE as JSON")
    options = parser.parse_args(arguments, namespace=Options())
    times = 3 if options.quick else TIMES
    with tempfile.TemporaryDirectory() as folder:
        _write(Path(folder) / "many")
        started = time.perf_counter()
        agent = load_folder(Path(folder), Limits())["many"]
        load_time = (time.perf_counter() - started) * 1_000
        tools = Registry((*make_agent_tools(agent, {}), *load_folder_tools(Path(folder) / "many")))
        goals = [_goal("load the agent, once", load_time), *_measured(agent, tools, times)]
    print(f"{SKILLS} skills, {CASES} cases in the one that is used; median of {times}, in milliseconds")
    print("\n".join(map(str, goals)))
    if options.json:
        rows = [asdict(goal) | {"verdict": goal.verdict} for goal in goals]
        options.json.write_text(json.dumps({"goals": rows}, indent=2) + "\n", encoding="utf-8")


def _write(folder: Path) -> None:
    (folder / "skills").mkdir(parents=True)
    (folder / "AGENT.md").write_text(AGENT, encoding="utf-8")
    for number in range(SKILLS):
        skill = folder / "skills" / f"skill-{number}"
        (skill / "cases").mkdir(parents=True)
        body = "按部就班，先问后说。" * 60
        (skill / "SKILL.md").write_text(SKILL.format(number=number, body=body), encoding="utf-8")
        (skill / "sop.yaml").write_text(SOP, encoding="utf-8")
    for number in range(CASES):
        tags = ", ".join(WORDS[(number * step) % len(WORDS)] for step in (1, 3, 7))
        text = CASE.format(number=number, tags=tags, rule=number % 3, body="这样的盘，宜静不宜动。" * 12)
        (folder / "skills" / "skill-7" / "cases" / f"{number:03}.md").write_text(text, encoding="utf-8")


def _measured(agent: Agent, tools: Registry, times: int) -> list[Goal]:
    skill = agent.skills["skill-7"]
    chart = {"pillars": list(WORDS[:8]), "elements": dict(zip("木火土金水", (3, 1, 2, 1, 1), strict=True))}
    user_data = KnownData(
        profile={"birth_info": {"date": "1990-05-15", "place": "北京"}}, skill_data={skill.name: chart}, scenario="love"
    )

    def select() -> PromptContext:
        return build_prompt_context(agent, tools)

    def execute() -> PromptContext:
        return build_prompt_context(agent, tools, skill=skill, data=user_data)

    log = tuple(_log())
    changed = (*log[:-1], SkillChanged(id="s", skill=skill.name, scenario="love"), log[-1])
    lean, expert = select(), execute()
    offer = agent.use_skill["select"]
    lean_tokens, offer_tokens, expert_tokens = OFFLINE.count(
        (render(lean.prompt, "zh"), offer.description + offer.parameters, render(expert.prompt, "zh"))
    )
    return [
        _goal("a page to choose on, staged and set", _median(lambda: _page(select(), log), times), PAGE_MS),
        _goal("an expert's page, staged and set", _median(lambda: _page(execute(), changed), times), PAGE_MS),
        _goal("of that, the stage: data, SOP, cases", _median(execute, times)),
        Goal(name="system prompt and use_skill", value=lean_tokens + offer_tokens, unit="tok", most=SELECT_TOKENS),
        Goal(name="the expert's system prompt", value=expert_tokens, unit="tok", most=EXECUTE_TOKENS),
    ]


def _log() -> list[UserMessage | AssistantMessage]:
    messages = [
        (
            UserMessage(id=f"u{number}", parts=(Text(text=f"第{number}句话，" * 20),), response_id=f"a{number}"),
            AssistantMessage(id=f"a{number}", parts=(Text(text=f"第{number}个回答，" * 60),)),
        )
        for number in range(20)
    ]
    return [*[message for pair in messages for message in pair], UserMessage(id="now", parts=(Text(text="请继续。"),))]


def _page(stage: PromptContext, log: Sequence[UserMessage | AssistantMessage | SkillChanged]) -> None:
    facts = Facts(
        log=log,
        prompt=stage.prompt,
        budget=stage.budget,
        history=stage.history,
        tools=stage.tools,
        turn=Turn(response_id="now"),
    )
    assemble(facts)


def _median(work: Callable[[], object], times: int) -> float:
    work()
    spans = list[float]()
    for _ in range(times):
        started = time.perf_counter()
        work()
        spans.append((time.perf_counter() - started) * 1_000)
    return statistics.median(spans)


def _goal(name: str, value: float, most: float | None = None) -> Goal:
    return Goal(name=name, value=value, unit="ms", most=most)


if __name__ == "__main__":
    main(sys.argv[1:])
