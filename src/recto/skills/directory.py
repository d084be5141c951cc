"""Selection of a skill: the offer of `use_skill` with the directory (S3), and triggers in messages."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cache

from recto.conversation.json import dump
from recto.conversation.locale import language
from recto.conversation.message_files import one_line
from recto.conversation.messages import ToolOffer
from recto.page.prompt.reminder import Locale
from recto.page.text.tokens import TokenCounter
from recto.page.wire.openai import encode_tool
from recto.skills.skill import CORE, Skill

USE_SKILL = "use_skill"
ABOUT = {
    "zh": """\
激活一个专业技能。之后以该技能的专家身份回答，并得到它的流程、用户数据和工具。用户要的正是某个技能所做的事时，先调用本工具，再作答。

示例：
{example}
- 用户只是打招呼或闲聊 → 不调用，直接回答

边界情况：
- 多个技能都适合：选更具体的那个。
- 没有适合的技能：不要调用，自己回答。
- 已经在这个技能里：不要再次调用，继续即可；用户要它的另一个场景时，才用那个 scenario 再调用。{leaving}
- scenario 只能是该技能列出的场景；拿不准就省略。

{directory}""",
    "en": """\
Activate a skill. From then on you answer as its expert, with its procedure, the user's data and its tools. \
When the user wants what one of the skills does, call this first, then answer.

Examples:
{example}
- The user only greets or chats -> no call, answer directly

Edge cases:
- Several skills fit: take the more specific one.
- No skill fits: do not call, answer yourself.
- Already in that skill: do not call again, just go on; only another of its scenarios is worth a call.{leaving}
- scenario is one that the skill lists; leave it out when in doubt.

{directory}""",
}
MENTIONED = {
    "zh": "- 用户提到“{trigger}” → skill={name}{scenario}",
    "en": "- The user speaks of “{trigger}” -> skill={name}{scenario}",
}
INSTRUCTIONS = {
    "zh": "- 用户要的是 {name} 所做的事 → skill={name}{scenario}",
    "en": "- The user wants what {name} does -> skill={name}{scenario}",
}
LEAVING = {
    "zh": "\n- 用户想结束，或话题与当前技能无关：skill=core 离开当前技能。",
    "en": "\n- The user is done, or has left the topic: skill=core leaves the current skill.",
}
DIRECTORY = {"zh": "技能目录：", "en": "Skills:"}
NAMES_ONLY = {"zh": "技能目录：见参数 skill 的可选值。", "en": "Skills: those that the parameter skill lists."}
TRIGGERS = {"zh": " | 触发词：{words}", "en": " | triggers: {words}"}
SCENARIOS = {"zh": " | 场景：{words}", "en": " | scenarios: {words}"}
DESCRIBED = {"zh": "{name}（{description}）", "en": "{name} ({description})"}
BETWEEN = {"zh": "、", "en": ", "}
SCENARIO = {
    "zh": "该技能列出的场景之一；拿不准就省略。",
    "en": "One of the scenarios the skill lists; leave it out when in doubt.",
}
SHORTENING = "{skills} skills: {lost}, to keep {tokens} tokens"
OVER = "{skills} skills: {lost}, and that is {size} tokens, over the {tokens} allowed"
MARK = "…"
# Maximum characters of the trigger in the example.
LONGEST_TRIGGER = 40
# Minimum characters of a description; a shorter one would have no meaning.
SHORTEST = 8


@dataclass(frozen=True, kw_only=True)
class _Detail:
    """Detail of each skill's line. `characters` limits the description; 0 omits the whole line."""

    triggers: bool = True
    scenarios: bool = True
    characters: int | None = None


WHOLE = _Detail()
NO_TRIGGERS = _Detail(triggers=False)
NO_SCENARIOS = _Detail(triggers=False, scenarios=False)
LEAST = replace(NO_SCENARIOS, characters=SHORTEST)
NAMES = replace(NO_SCENARIOS, characters=0)


def use_skill_offer(
    skills: Sequence[Skill], *, locale: str, tokens: int, counter: TokenCounter, with_core: bool
) -> ToolOffer:
    """Return the tool that activates one of these skills, within `tokens` if possible. Skills stay in their order.

    If the offer is too long, omit triggers first, then scenarios, then the ends of descriptions, then all but the
    names. Cache the result: counting is slow, and an agent's skills do not change once loaded.
    """
    if not skills:
        raise ValueError("There is no skill to offer. Leave out use_skill for agents without skills.")
    wording = language(locale)
    names = [skill.name for skill in skills] + [CORE] * with_core
    scenarios = list(dict.fromkeys(one.name for skill in skills for one in skill.scenarios))

    def offer(detail: _Detail) -> ToolOffer:
        lines = list[str]()
        for skill in skills if detail.characters != 0 else ():
            text = _cut(one_line(skill.description), detail.characters)
            lines.append(f"- {skill.name}: {text}{''.join(_more(skill, detail, wording))}")
        directory = "\n".join((DIRECTORY[wording], *lines)) if lines else NAMES_ONLY[wording]
        leaving = LEAVING[wording] if with_core else ""
        description = ABOUT[wording].format(example=_example(skills, wording), leaving=leaving, directory=directory)
        # The parameters do not say which scenario belongs to which skill, because the directory does.
        choices = {"enum": scenarios} if scenarios and detail.scenarios else {}
        properties = {
            "skill": {"type": "string", "enum": list(names)},
            "scenario": {"type": "string", **choices, "description": SCENARIO[wording]},
        }
        schema = {"type": "object", "properties": properties, "required": ["skill"], "additionalProperties": False}
        parameters = dump(schema).decode()
        return ToolOffer(name=USE_SKILL, description=description, parameters=parameters)

    def size(detail: _Detail) -> int:
        # Count the offer as a page contains it, in the format that adds more text.
        tool = offer(detail)
        return counter.count((encode_tool(tool.name, tool.description, tool.parameters).decode(),))[0]

    before = size(WHOLE)
    if before <= tokens:
        return offer(WHOLE)
    detail = _fitting(skills, tokens, size)
    tokens_now = size(detail)
    # Details for the note that tells people what the directory omits.
    details = {
        "triggers": not detail.triggers and any(skill.triggers for skill in skills),
        "scenarios": not detail.scenarios and any(skill.scenarios for skill in skills),
    }
    left_out = " and ".join(name for name, is_lost in details.items() if is_lost)
    changes = [f"{left_out} left out"] if left_out else []
    changes += [f"descriptions cut to {detail.characters} characters"] if detail.characters else []
    losses = "only their names are told" if detail.characters == 0 else ", ".join(changes)
    template = OVER if tokens_now > tokens else SHORTENING
    return replace(
        offer(detail),
        note=template.format(skills=len(skills), lost=losses, tokens=tokens, size=tokens_now),
        tokens_before=before,
    )


def _fitting(skills: Sequence[Skill], tokens: int, size: Callable[[_Detail], int]) -> _Detail:
    # If the shortest form does not fit, longer forms need no counting.
    if size(LEAST) > tokens:
        return NAMES
    for detail in (NO_TRIGGERS, NO_SCENARIOS):
        if size(detail) <= tokens:
            return detail
    whole = max(len(one_line(skill.description)) for skill in skills)
    most = SHORTEST
    # Find the greatest length that fits. Start with short ones, so that few texts that are much too long are counted.
    while most * 2 < whole and size(replace(LEAST, characters=most * 2)) <= tokens:
        most *= 2
    fails = most * 2
    while fails - most > 1:
        middle = (most + fails) // 2
        most, fails = (middle, fails) if size(replace(LEAST, characters=middle)) <= tokens else (most, middle)
    return replace(LEAST, characters=most)


def _example(skills: Sequence[Skill], wording: Locale) -> str:
    skill = next((skill for skill in skills if skill.triggers), skills[0])
    scenario = f", scenario={skill.default_scenario}" if skill.default_scenario else ""
    if not skill.triggers:
        return INSTRUCTIONS[wording].format(name=skill.name, scenario=scenario)
    trigger = _cut(one_line(skill.triggers[0]), LONGEST_TRIGGER)
    return MENTIONED[wording].format(trigger=trigger, name=skill.name, scenario=scenario)


def _more(skill: Skill, detail: _Detail, wording: Locale) -> Iterator[str]:
    between = BETWEEN[wording]
    if detail.triggers and skill.triggers:
        yield TRIGGERS[wording].format(words=between.join(map(one_line, skill.triggers)))
    if detail.scenarios and skill.scenarios:
        scenarios = [
            DESCRIBED[wording].format(name=one.name, description=text)
            if (text := one_line(one.description))
            else one.name
            for one in skill.scenarios
        ]
        yield SCENARIOS[wording].format(words=between.join(scenarios))


def _cut(text: str, characters: int | None) -> str:
    return text if characters is None or len(text) <= characters else text[: characters - 1] + MARK


# Letters of scripts that put spaces between words. In other scripts, a trigger may occur anywhere.
_SPACED = r"[^\W\u2e80-\U0010ffff]"
# Pattern for the ends of clauses.
_BETWEEN = re.compile(r"[,.;:!?，。；：！？、…]|\bbut\b|但")
# Words that decline a following trigger in the same clause. Questions (要不要, 想不想) do not decline.
_REFUSAL = re.compile(
    r"(?:(?<!要)不要|(?<!想)不想|(?<!用)不用|(?<!需)不需要|(?<!是)不是|不必|无需|没兴趣|(?<![特分性区类级告])别(?!人|的))\S{0,8}\Z"
    r"|\b(?:(?:do not|don['’]?t|won['’]?t)(?! (?:know|understand|see|get|remember|feel))|never|stop|without|no more"
    r"|not (?:interested|in the mood|about))\b(?: [\w'’]+){0,4} ?\Z|\bno (?:\w+ )?\Z"
)
_REFUSED_AFTER = re.compile(r"(?:的话|就|也|都|什么的|之类的){0,2}(?:不要|不用|不需要|算了|免了|没兴趣)")


@dataclass(frozen=True, kw_only=True)
class Triggered:
    """A skill and its triggers in a message, spelled as in the skill's file."""

    skill: Skill
    triggers: tuple[str, ...]


def triggered(skills: Iterable[Skill], words: str) -> Triggered | None:
    """Return the skill whose triggers cover the most letters of a message. Return None on a tie."""
    text = _plain(words)
    candidates = [Triggered(skill=skill, triggers=_find_triggers(skill.triggers, text)) for skill in skills]
    best = sorted([one for one in candidates if one.triggers], key=_letters, reverse=True)
    if not best or (len(best) > 1 and _letters(best[0]) == _letters(best[1])):
        return None
    return best[0]


def _find_triggers(triggers: Iterable[str], text: str) -> tuple[str, ...]:
    """Return the triggers in a text.

    Exclude triggers that the text declines, and triggers that are a part of another one.
    """
    triggered_words = [
        trigger
        for trigger in triggers
        if any(
            not bool(
                _REFUSAL.search(_BETWEEN.split(text[: match.start()])[-1]) or _REFUSED_AFTER.match(text, match.end())
            )
            for match in _pattern(_plain(trigger)).finditer(text)
        )
    ]
    return tuple(
        [
            one
            for one in triggered_words
            if not any(one != other and _plain(one) in _plain(other) for other in triggered_words)
        ]
    )


def _letters(one: Triggered) -> int:
    return sum(map(len, one.triggers))


def _plain(text: str) -> str:
    return " ".join(unicodedata.normalize("NFKC", text).casefold().split())


@cache
def _pattern(trigger: str) -> re.Pattern[str]:
    before = rf"(?<!{_SPACED})" if re.match(_SPACED, trigger) else ""
    after = rf"(?!{_SPACED})" if re.search(rf"{_SPACED}\Z", trigger) else ""
    return re.compile(f"{before}{re.escape(trigger)}{after}")
