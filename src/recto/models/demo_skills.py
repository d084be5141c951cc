"""What the demo model does with skills: takes up the one asked for, has its tools called, reads out what they say."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from functools import cache

from recto.models.demo_birth import SPEAKS_OF_BIRTH, birth_in
from recto.models.demo_chart import tell_data, tell_facts
from recto.models.demo_page import DemoCall, DemoPage, an_object, text_of
from recto.page.canonical import Json, dump
from recto.page.prompt import HEADINGS

USE_SKILL, COLLECT, DRAW, CORE = "use_skill", "collect_birth_info", "draw_tarot", "core"
COMPUTES = "compute_"
THREE = re.compile("three|3|三")
KNOWN_WORDS: Mapping[str, Sequence[str]] = {
    "bazi": ("八字", "命盘", "四柱", "命理", "生辰", "五行", "大运", "bazi", "four pillars"),
    "zodiac": ("星座", "星盘", "占星", "上升", "本命盘", "zodiac", "horoscope", "astrology", "birth chart", "natal"),
    "tarot": ("塔罗", "抽牌", "抽张牌", "抽一张", "tarot"),
    "career": ("职业", "工作", "跳槽", "转行", "求职", "升职", "职场", "career", "job"),
    "lifecoach": ("人生", "迷茫", "人生教练", "生活教练", "life coach", "lifecoach", "feel lost", "feeling lost"),
}
# The directory as the tool's description has it: a line for each skill, with the words that ask for it.
LINE = re.compile(r"^- (?P<name>[\w-]+): (?P<rest>.*)$", re.MULTILINE)
TRIGGERS = re.compile(r"\| (?:触发词|triggers): (?P<words>[^|]*)")
PIECES = re.compile(r"[\s、，。；：,.;:()（）/“”\"]+")
COMMON = frozenset({"answer", "people", "person", "questions", "question", "reading", "personal", "through", "without"})
# Points for a word: one that asks for the skill, and one that only tells of it. Two of those are enough.
ASKS, TELLS, ENOUGH = 3, 1, 2
SHORTEST_WORD, SHORTEST_CHINESE = 6, 2
ACTIVE = re.compile(r"当前技能是 (?P<zh>[\w-]+)|You are in the skill (?P<en>[\w-]+)")
LEAVES = re.compile(
    r"(?:^|[\s，。！,.!])(?:算了|不聊了|不算了|不看了|不玩了)(?:$|[吧，。！,.!、\s])"
    r"|换个?话题|聊点?别的|说点?别的|退出|离开(?:这个)?技能"
    r"|^\W*(?:leave|quit|exit|stop|never ?mind)\W*$|\b(?:leave|quit|exit) (?:this|the) (?:skill|topic)\b"
    r"|\b(?:change|switch) the (?:topic|subject)\b|\b(?:another topic|something else)\b",
    re.IGNORECASE,
)
DRAWS = re.compile(r"抽|再来|塔罗|占卜|\b(?:draw|tarot|again|another)\b", re.IGNORECASE)
# At the beginning of a line of its own: a date within other data is somewhere deeper.
BIRTH = re.compile(r"^- (?:date|日期|出生日期): ", re.MULTILINE)
KEPT_BIRTH = re.compile(r"^- birth_info:\n(?P<lines>(?:  .*(?:\n|$))+)", re.MULTILINE)

READS_OUT = {
    "zh": "我是演示模型，只照着结果念，不作解读：",
    "en": "I am the demo model, so I only read out what is there and say nothing of what it means:",
}
ASK = {
    "zh": (
        "我是演示模型。要排盘，还需要你的出生信息：出生日期，最好还有出生时间、出生地点和性别。"
        "例如：1990-05-04 08:30，北京，女。"
    ),
    "en": (
        "I am the demo model. For a chart your birth information is needed: the date, and better also the time, the "
        "place and your gender. For example: 1990-05-04 08:30, Beijing, female."
    ),
}
ENTERED = {
    "zh": "我是演示模型。现在在技能“{skill}”里：真正的模型会在这里以专家的身份回答。说“换个话题”可以离开。",
    "en": (
        "I am the demo model. This is the skill {skill}: a real model would answer as its expert here. "
        'Say "leave" to leave it.'
    ),
}
LEFT = {"zh": "好，已离开技能，想聊什么都可以。", "en": "Right, that skill is left. What else is on your mind?"}
TRICK = {
    "zh": "另外，提到这些技能时我会激活它，调用它的工具并念出结果：{skills}。",
    "en": "I also take up one of these skills when asked for it, call its tools and read out their results: {skills}. ",
}


def is_of_skills(name: str) -> bool:
    """Whether a tool is one that is called, and told of, here."""
    return name in (USE_SKILL, COLLECT, DRAW) or name.startswith(COMPUTES)


def next_call(page: DemoPage) -> DemoCall | None:
    """The next call that the user's words or the skill at work ask for. The same is never called twice in a turn."""
    calls = [*_choice(page), *(_steps(page) if in_skill(page) else ())]
    made = {(one.name, dump(one.arguments)) for one in page.made}
    return next((call for call in calls if (call.name, call.arguments.encode()) not in made), None)


def tell_skill(page: DemoPage) -> str:
    """What there is to say in a skill, once there is nothing left to call."""
    language = page.language
    if any(answer.get("skill") == CORE for answer in page.answers(USE_SKILL)):
        return LEFT[language]
    facts = [line for chart in _charts_made(page) for line in tell_facts(chart, language)]
    if not facts and _needs_birth(page):
        return ASK[language]
    facts = facts or [line for chart in _charts_kept(page) for line in tell_data(chart, language)]
    if not facts:
        return ENTERED[language].format(skill=active_skill(page) or "?")
    return "\n".join((READS_OUT[language], *(f"- {fact}" for fact in facts)))


def trick(page: DemoPage) -> str:
    """What it can do with the skills it is offered, as a sentence; nothing where there are none."""
    skills = [name for name in _enum(page) if name != CORE]
    between = "、" if page.language == "zh" else ", "
    return TRICK[page.language].format(skills=between.join(skills)) if skills else ""


def in_skill(page: DemoPage) -> bool:
    """Whether a skill is at work: only then there is one to leave."""
    return CORE in _enum(page)


def active_skill(page: DemoPage) -> str:
    """The skill at work, by what the system says, or by what it has just been changed to."""
    if not in_skill(page):
        return ""
    changed = [text_of(answer.get("skill")) for answer in page.answers(USE_SKILL)]
    told = ACTIVE.search(page.rules)
    return changed[-1] if changed else told["zh"] or told["en"] if told else ""


# Which skill


def _choice(page: DemoPage) -> Iterator[DemoCall]:
    """The skill the words ask for, or the wish to leave one. Chosen once in a turn."""
    if USE_SKILL not in page.offered or any(one.name == USE_SKILL for one in page.made):
        return
    skill = wanted_skill(page)
    if skill is None and in_skill(page) and LEAVES.search(page.words):
        skill = CORE
    if skill is not None:
        yield _call(USE_SKILL, {"skill": skill})


def wanted_skill(page: DemoPage) -> str | None:
    """The skill the user's words ask for, of those that may be taken up; None where it is at work already."""
    told = text_of(page.offered.get(USE_SKILL, {}).get("description"))
    lines = {found["name"]: found["rest"] for found in LINE.finditer(told)}
    names = [name for name in _enum(page) if name != CORE]
    points = {name: _points(name, lines.get(name, ""), page.words) for name in names}
    best = max(points, key=lambda name: points[name], default=None)
    active = active_skill(page)
    if best is None or points[best] < ENOUGH or points[best] <= points.get(active, 0):
        return None
    return best


def _points(name: str, line: str, words: str) -> int:
    triggers = TRIGGERS.search(line)
    listed = re.split("[、,]", triggers["words"]) if triggers else []
    asking = {one.strip().casefold() for one in (name, *KNOWN_WORDS.get(name, ()), *listed) if one.strip()}
    telling = {one for one in PIECES.split(line.partition(" | ")[0].casefold()) if _says_much(one)} - asking
    return sum(ASKS for one in asking if _is_in(one, words)) + sum(TELLS for one in telling if _is_in(one, words))


def _says_much(word: str) -> bool:
    if not word.isascii():
        return len(word) >= SHORTEST_CHINESE
    return len(word) >= SHORTEST_WORD and word not in COMMON


def _is_in(word: str, words: str) -> bool:
    return bool(_pattern(word).search(words))


@cache
def _pattern(word: str) -> re.Pattern[str]:
    """A word as it is found: within other characters in Chinese, by itself in other languages."""
    plain = re.escape(word)
    return re.compile(rf"(?<![a-z0-9]){plain}(?![a-z0-9])" if word.isascii() else plain, re.IGNORECASE)


def _enum(page: DemoPage) -> Sequence[str]:
    values = _properties(page, USE_SKILL).get("skill", {}).get("enum")
    return [one for one in values if isinstance(one, str)] if isinstance(values, list) else []


def _properties(page: DemoPage, tool: str) -> Mapping[str, Mapping[str, Json]]:
    """What a tool takes."""
    schema = an_object(page.offered.get(tool, {}).get("parameters"))
    return {name: an_object(one) for name, one in an_object(schema.get("properties")).items()}


# What a skill does


def _steps(page: DemoPage) -> Iterator[DemoCall]:
    """Collect, compute, draw: what is offered, still due, and not done in this turn."""
    done = {one.name for one in page.made}
    # Once a birth is known, a date is one only where the words say so.
    is_known, is_said = _has_birth(page), SPEAKS_OF_BIRTH.search(page.words)
    told = birth_in((page.words, *page.earlier) if not is_known else (page.words,) if is_said else ())
    # One that takes no date is a form of the client's: it asks by itself.
    is_form = "date" not in _properties(page, COLLECT) and _needs_birth(page)
    if COLLECT in page.offered and COLLECT not in done and (told or is_form):
        known = _properties(page, COLLECT)
        yield _call(COLLECT, {name: one for name, one in told.items() if not known or name in known})
    for name in page.offered:
        if name.startswith(COMPUTES) and name not in done and _is_due(page) and not _needs_birth(page):
            yield _call(name, {})
    is_asked = any(one.name == USE_SKILL for one in page.made) or DRAWS.search(page.words)
    if DRAW in page.offered and DRAW not in done and (is_asked or not _charts_kept(page)):
        yield _call(DRAW, {"spread": _spread(page)})


def _is_due(page: DemoPage) -> bool:
    """Whether there is no chart yet, or one of another birth."""
    charts, births = _charts_kept(page), [text for text in _data(page) if BIRTH.search(text)]
    if not charts or _is_saved(page):
        return True
    of = [_lines(found["lines"]) for chart in charts if (found := KEPT_BIRTH.search(chart))]
    return bool(of and births) and of[0] != _lines(births[0])


def _lines(text: str) -> set[str]:
    return {line.strip() for line in text.splitlines() if line.strip()}


def _spread(page: DemoPage) -> str:
    """Three cards, by whatever name that has here."""
    values = _properties(page, DRAW).get("spread", {}).get("enum")
    names = [one for one in values if isinstance(one, str)] if isinstance(values, list) else []
    return next((name for name in names if THREE.search(name)), names[0] if names else "three")


def _needs_birth(page: DemoPage) -> bool:
    computes = any(name.startswith(COMPUTES) for name in page.offered)
    return computes and not (_has_birth(page) or _is_saved(page))


def _is_saved(page: DemoPage) -> bool:
    """Whether a birth was told in this turn, and taken."""
    return any(answer.get("status") == "saved" for answer in page.answers(COLLECT))


def _has_birth(page: DemoPage) -> bool:
    return any(BIRTH.search(text) for text in _data(page))


def _charts_kept(page: DemoPage) -> Sequence[str]:
    """What the skill has kept of the user, as the system tells it."""
    return [text for text in _data(page) if not BIRTH.search(text)]


def _charts_made(page: DemoPage) -> Iterator[Mapping[str, Json]]:
    for one in page.made:
        answer = one.answer
        if answer is not None and (one.name == DRAW or one.name.startswith(COMPUTES)):
            yield answer


def _data(page: DemoPage) -> Sequence[str]:
    """What is known of the user: the texts of that section of the system prompt, without their titles."""
    for headings in HEADINGS.values():
        _, found, behind = f"\n{page.rules}".partition(f"\n{headings['data']}\n")
        if found:
            section = re.split(r"\n+## ", behind, maxsplit=1)[0]
            return [part.partition("\n")[2].strip() for part in re.split(r"(?:^|\n)### ", section) if part.strip()]
    return []


def _call(name: str, arguments: Mapping[str, Json]) -> DemoCall:
    return DemoCall(name=name, arguments=dump(arguments).decode())
