"""An agent with skills to talk to: one that needs to know and to compute, one with files, one public and plain."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import cast

from recto.conversation.json import Json, load_object
from recto.testing.model_server import Answer
from tests.end_to_end.files import ANN, FileWorld, Turn, calling
from tests.support.client import ReceivedEvent

PROFILE = "/api/v1/profile"
AGENT = """\
---
description: Reads charts and mends bicycles.
locale: zh
tools: []
voices: {warm: 温和。, direct: 直接。}
rules: 先想后做。
tiers: {pro: {steps: 2}}
---
你是向导。
"""
PROFILE_SCHEMA = """\
type: object
properties:
  birth_info: {title: 出生信息, type: object, properties: {date: {type: string}}, required: [date]}
  life_context: {title: 生活背景}
"""
CHART = """\
---
name: chart
description: 排盘并解读。
allowed-tools: look
profile_fields: [birth_info, skill_data.chart]
requires_birth_info: true
requires_compute: true
compute_type: chart
compute_tool: compute_chart
collect_tool: collect_birth_info
triggers: [排盘]
scenarios:
  basic: {description: 基本解读}
  love: {description: 感情, rule_ids: [r-love]}
---
# 命盘 - 解盘师

你只看盘说话。
"""
SOP = """\
steps:
  - {id: collect, title: 收集, when: {missing: birth_info}, text: 调用 collect_birth_info。}
  - id: compute
    title: 排盘
    when: {any: [{missing: skill_data.chart}, {differs: [birth_info, skill_data.chart.of.birth_info]}]}
    text: 调用 compute_chart。
  - {id: ready, title: 解读, text: 解读命盘。}
rules: 不说吉凶。
tool_rules: 盘由工具来排。
"""
CASES = {
    "a.md": "---\nname: 甲例\ntags: [木, 旺]\n---\n木旺宜静。",
    "b.md": "---\nname: 乙例\ntags: [木]\nrule_ids: [r-love]\n---\n感情里的木。",
    "c.md": "---\nname: 丙例\ntags: [火]\nrule_ids: [r-love]\n---\n火。",
}
MEND = """\
---
name: mend
description: Mends bicycles.
allowed-tools: Bash Read
---

# Mending

Read parts.md first.
"""
ENGLISH = """\
---
description: The same.
voices: {warm: Be warm.}
rules: Think first.
---
You are a guide.
"""
NOTES = "---\nname: notes\ndescription: 记录生活。\nprofile_fields: [life_context]\n---\n你记录生活。\n"
TOOLS = '''
"""Tools of the agent."""

from recto import ToolContext, ToolError, tool


@tool(safe_to_repeat=True, by_client=True, in_order=True)
async def collect_birth_info(context: ToolContext, date: str = "") -> dict[str, object]:
    """Ask for the date of birth, or keep it."""
    if not date:
        return {"status": "need_input"}
    await context.profile.fields("birth_info")
    await context.profile.change("birth_info", {"date": date})
    return {"status": "saved", "date": date, "ui_hints": {"title": "Saved", "body": date}}


@tool(safe_to_repeat=True, in_order=True)
async def compute_chart(context: ToolContext) -> dict[str, object]:
    """Compute the chart."""
    info = (await context.profile.fields("birth_info")).get("birth_info")
    if not info:
        raise ToolError("Nothing is known of the birth. Call collect_birth_info.")
    await context.profile.keep("chart", {"element": "木", "of": {"birth_info": info}, "tier": context.tier})
    return {"element": "木", "locale": context.locale}


@tool
async def look() -> str:
    """Look at the chart."""
    return "looked"


@tool
async def hello() -> str:
    """Say hello, whatever the skill."""
    return "hello"
'''


def write_guide(agents: Path, name: str = "guide", *, more: str = "") -> None:
    files = {
        "AGENT.md": AGENT.replace("tools: []", f"tools: []\n{more}".rstrip()),
        "AGENT.en.md": ENGLISH,
        "profile.yaml": PROFILE_SCHEMA,
        "tools.py": TOOLS,
        "skills/chart/SKILL.md": CHART,
        "skills/chart/sop.yaml": SOP,
        **{f"skills/chart/cases/{case}": text for case, text in CASES.items()},
        "skills/mend/SKILL.md": MEND,
        "skills/mend/parts.md": "A chain has 116 links.\n",
        "skills/mend/scripts/count.py": "print(116)\n",
        "skills/notes/SKILL.md": NOTES,
    }
    for path, text in files.items():
        file = agents / name / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, encoding="utf-8")


def use(skill: str, scenario: str | None = None, id: str = "call-use") -> Answer:
    """Return an answer that activates a skill."""
    return calling("use_skill", id, skill=skill, **({"scenario": scenario} if scenario else {}))


def system_of(page: Sequence[Mapping[str, Json]]) -> str:
    return str(page[0]["content"]) if page[0]["role"] == "system" else ""


def tools_of(turn: Turn, number: int) -> list[str]:
    tools = cast("Sequence[Mapping[str, Mapping[str, Json]]]", turn.requests[number].page.get("tools", ()))
    return [str(tool["function"]["name"]) for tool in tools]


def result_of(events: Sequence[ReceivedEvent], number: int = 0) -> Mapping[str, Json]:
    """Return the result of a tool, by its position."""
    results = [received.event for received in events if received.event["type"] == "TOOL_CALL_RESULT"]
    return load_object(str(results[number]["content"])) or {}


def keep(world: FileWorld, patch: Json, token: str = ANN) -> None:
    """Change the profile."""
    reply = world.ask("PATCH", f"{PROFILE}?agent=guide", patch, token=token)
    assert reply.status == 200, reply.body
