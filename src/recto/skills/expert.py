"""Input of pages from an active skill (S7-S9): prompt, next step and best cases."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace

from recto.conversation.locale import language
from recto.conversation.message_files import one_line
from recto.conversation.ui.compile_ui import HINTS
from recto.page.prompt.system_prompt import Datum, Prompt
from recto.skills.cases import BEST, ScoredCase, best_cases
from recto.skills.known_data import (
    FEATURES,
    MADE_OF,
    SKILL_DATA,
    KnownData,
    clean_value,
    render_value,
    without,
    words_in,
)
from recto.skills.skill import BIRTH_INFO, Skill
from recto.skills.sop import AnyOf, Differs, Missing, Sop, SopStep, next_sop_step, sop_text

TITLES: Mapping[str, Mapping[str, str]] = {
    "zh": {BIRTH_INFO: "出生信息", "life_context": "生活背景", "extracted": "已了解的事实", SKILL_DATA: "技能数据"},
    "en": {
        BIRTH_INFO: "Birth information",
        "life_context": "Life context",
        "extracted": "Known facts",
        SKILL_DATA: "Skill data",
    },
}
# Headings of a skill's own data, by the type of computation.
COMPUTED: Mapping[str, Mapping[str, str]] = {
    "zh": {"bazi": "命盘数据", "zodiac": "星盘数据"},
    "en": {"bazi": "Bazi chart", "zodiac": "Birth chart"},
}
SCENARIO = {"zh": "当前场景：{name}{described}", "en": "Scenario: {name}{described}"}
DESCRIBED = {"zh": "（{description}）", "en": " ({description})"}
COLLECT = {
    "zh": SopStep(
        id="collect",
        title="收集出生信息",
        text="""\
还不知道用户的出生信息。{how}用户在对话中已经说过的直接采用，不要重复询问。\
在得到出生信息之前，不要计算、不要解读，也不要猜测。""",
    ),
    "en": SopStep(
        id="collect",
        title="Collect birth information",
        text="""\
The user's birth information is not known yet. {how} Take what the user has already said; do not ask for it again. \
Until it is there, compute nothing, interpret nothing and guess nothing.""",
    ),
}
COLLECT_BY_TOOL = {"zh": "调用 {tool} 收集。", "en": "Collect it with {tool}."}
COLLECT_BY_ASKING = {
    "zh": "请用户告诉你出生日期、时间、地点和性别。",
    "en": "Ask the user for date, time and place of birth, and for their gender.",
}
COMPUTE = {
    "zh": SopStep(
        id="compute",
        title="计算",
        text="还没有计算结果，或者出生信息已经变了。{how}以工具的结果为准，不要自己推算或编造。",
    ),
    "en": SopStep(
        id="compute",
        title="Compute",
        text="""\
Nothing has been computed yet, or the birth information has changed since. {how} \
Go by the tool's result alone; never work it out or make it up yourself.""",
    ),
}
COMPUTE_BY_TOOL = {"zh": "调用 {tool} 计算。", "en": "Compute it with {tool}."}
COMPUTE_SOMEHOW = {
    "zh": "用本技能提供的计算工具计算；没有这样的工具时，如实告诉用户。",
    "en": "Use the tool of this skill that computes it; where there is none, tell the user so.",
}
READY = {
    "zh": SopStep(
        id="ready",
        title="解答",
        text="所需数据已经齐备，见“用户数据”。据此回答用户的问题，可参考相关案例。不要再次收集或计算，数据里没有的不要编造。",
    ),
    "en": SopStep(
        id="ready",
        title="Answer",
        text="""\
All that is needed is there, under "User data". Answer the user's question by it; related cases show how. \
Do not collect or compute again, and make up nothing that the data does not say.""",
    ),
}
LEAVING = {
    "zh": """\
- 当前技能是 {skill}，不要再次激活它；只有当用户要的是它的另一个场景时，才用那个 scenario 再调用一次 use_skill。
- 用户的问题属于另一个技能：调用 use_skill 切换到那个技能。
- 用户想结束，或话题与本技能无关：调用 use_skill，skill 填 core，离开本技能。""",
    "en": """\
- You are in the skill {skill}: do not activate it again, unless the user wants another of its scenarios; \
then call use_skill with that scenario.
- The question belongs to another skill: switch to that one with use_skill.
- The user is done, or has left the topic: leave with use_skill, skill core.""",
}
FILES = {
    "zh": "本技能附带以下文件，需要时用 read_skill_file 按路径读取：",
    "en": "This skill comes with these files. Read one by its path with read_skill_file when you need it:",
}
MORE_FILES = {"zh": "- 另有 {count} 个文件", "en": "- and {count} more"}
# Maximum characters of a value that may be a tag. Longer values are prose.
LONGEST_FEATURE = 64


@dataclass(frozen=True, kw_only=True)
class ExpertInput:
    """Settings of an agent for its skills: tone, headings of data by field, rules about tools, and limits."""

    locale: str = "zh"
    tone: str = ""
    titles: Mapping[str, str] = field(default_factory=dict[str, str])
    max_cases: int = BEST
    tool_rules: str = ""
    files_listed: int = 40


@dataclass(frozen=True, kw_only=True)
class Expert:
    """An active skill: its prompt, the step that is due, and the cases in the prompt, best first."""

    prompt: Prompt
    step: SopStep | None
    cases: tuple[ScoredCase, ...]


def expert(skill: Skill, data: KnownData, options: ExpertInput) -> Expert:
    """Return the expert for a user's data. Without a scenario in the data, use the skill's default scenario.

    If the skill requires birth information and there is none, the skill's own data is outdated and hidden.
    """
    scenario = skill.scenario(data.scenario)
    data = replace(data, skill_data={}) if missing_for(skill, data) else data
    data = replace(data, scenario=scenario.name) if scenario else data
    rule_ids = (scenario.name, *scenario.rule_ids) if scenario else ()
    cases = best_cases(skill.cases, features(data), rule_ids, options.max_cases)
    sop = skill.sop or default_sop(skill, options.locale)
    wording, count = language(options.locale), options.files_listed
    rules = [sop.tool_rules if sop else "", options.tool_rules, LEAVING[wording].format(skill=skill.name)]
    if skill.files:
        files = [f"- {one_line(file.path)}" for file in skill.files[:count]]
        files += [MORE_FILES[wording].format(count=len(skill.files) - count)] if len(skill.files) > count else []
        rules.append("\n".join((FILES[wording], *files)))
    prompt = Prompt(
        title=skill.heading,
        identity=skill.identity,
        tone=options.tone,
        sop=_sop_section(skill, sop, data, options.locale) if sop else "",
        cases=tuple(scored.case for scored in cases),
        data=tuple(_data(skill, data, options)),
        rules="\n\n".join(filter(None, rules)),
    )
    return Expert(prompt=prompt, step=next_sop_step(sop, data) if sop else None, cases=cases)


def missing_for(skill: Skill, data: KnownData) -> tuple[str, ...]:
    """Return the required paths that have no value (S3)."""
    return (BIRTH_INFO,) if skill.requires_birth_info and data.at(BIRTH_INFO) is None else ()


def features(user_data: KnownData) -> tuple[str, ...]:
    """Return the distinct values in the user's data that may be tags of cases (S8)."""
    own = [clean_value(without(data, MADE_OF)) for data in user_data.skill_data.values()]
    words = words_in([clean_value(user_data.profile), *own])
    return tuple(dict.fromkeys(word for word in words if len(word) <= LONGEST_FEATURE))


def default_sop(skill: Skill, locale: str) -> Sop | None:
    """Return the default procedure of a skill that has none (S7): collect, compute, answer.

    Return None if the skill needs no data.
    """
    wording = language(locale)
    own = f"{SKILL_DATA}.{skill.name}"
    outdated = AnyOf(of=(Missing(path=own), Differs(path=BIRTH_INFO, other=f"{own}.{MADE_OF}.{BIRTH_INFO}")))
    steps: list[SopStep] = []
    if skill.requires_birth_info:
        how = (COLLECT_BY_TOOL if skill.collect_tool else COLLECT_BY_ASKING)[wording].format(tool=skill.collect_tool)
        step = COLLECT[wording]
        steps.append(replace(step, text=step.text.format(how=how), when=Missing(path=BIRTH_INFO)))
    if skill.requires_compute:
        how = (COMPUTE_BY_TOOL if skill.compute_tool else COMPUTE_SOMEHOW)[wording].format(tool=skill.compute_tool)
        step = COMPUTE[wording]
        steps.append(replace(step, text=step.text.format(how=how), when=outdated))
    return Sop(steps=(*steps, READY[wording])) if steps else None


def _sop_section(skill: Skill, sop: Sop, data: KnownData, locale: str) -> str:
    wording = language(locale)
    text = sop_text(sop, data, locale)
    scenario = skill.scenario(data.scenario)
    if scenario is None:
        return text
    description = one_line(scenario.description)
    described = DESCRIBED[wording].format(description=description) if description else ""
    return f"{SCENARIO[wording].format(name=scenario.name, described=described)}\n\n{text}".rstrip()


def _data(skill: Skill, data: KnownData, options: ExpertInput) -> Iterator[Datum]:
    """Yield the values of the declared fields in order, then the skill's own data."""
    own = (f"{SKILL_DATA}.{skill.name}",) if skill.has_data else ()
    for path in (*skill.fields, *own):
        is_within_another = any(path.startswith(f"{other}.") for other in skill.fields)
        value = without(data.at(path), MADE_OF, FEATURES) if path in own else data.at(path)
        text = "" if is_within_another or HINTS in path.split(".") else render_value(value)
        if text:
            yield Datum(title=_data_title(skill, path, options), text=text)


def _data_title(skill: Skill, path: str, options: ExpertInput) -> str:
    wording = language(options.locale)
    name, _, rest = path.partition(".")
    if name == SKILL_DATA:
        title = options.titles.get(path) or COMPUTED[wording].get(skill.compute_type) or TITLES[wording][SKILL_DATA]
        return one_line(title)
    if path in options.titles:
        return one_line(options.titles[path])
    title = options.titles.get(name) or TITLES[wording].get(name, name)
    return one_line(f"{title} · {rest}" if rest else title)
