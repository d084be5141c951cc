"""Which skill the demo model takes up, by the user's words. It takes up none that nobody asks for."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from functools import cache

from recto.conversation.json import Json, dump
from recto.models.demo.page import DemoCall, DemoPage, an_object, text_of

USE_SKILL, DRAW, CORE = "use_skill", "draw_tarot", "core"
KNOWN_WORDS: Mapping[str, Sequence[str]] = {
    "bazi": ("八字", "命盘", "四柱", "命理", "生辰", "五行", "大运", "bazi", "four pillars"),
    "zodiac": ("星座", "星盘", "占星", "上升", "本命盘", "zodiac", "horoscope", "astrology", "birth chart", "natal"),
    "tarot": ("塔罗", "抽牌", "抽张牌", "抽一张", "tarot"),
    "career": ("职业", "工作", "跳槽", "转行", "求职", "升职", "职场", "career", "job"),
    "lifecoach": ("人生", "迷茫", "人生教练", "生活教练", "life coach", "lifecoach", "feel lost", "feeling lost"),
}
# The directory as the tool's description has it: a line for each skill, with the words that ask for it.
LINE = re.compile(r"^- (?P<name>[\w-]+): (?P<rest>.*)$", re.MULTILINE)
TRIGGERS = re.compile(r"\| (?:触发词：|triggers: )(?P<words>[^|]*)")
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
# Cards are wished for: whatever the question, it is one for them.
CARDS = re.compile(
    r"(?<![不别])(?<!不再)(?<!不想)抽(?!奖|空)"
    r"|\bdraw (?:again|once|cards?|a card|another|one|three)\b|\banother (?:card|draw|spread)\b",
    re.IGNORECASE,
)

TRICK = {
    "zh": "另外，提到这些技能时我会激活它，调用它的工具并念出结果：{skills}。",
    "en": "I also take up one of these skills when asked for it, call its tools and read out their results: {skills}. ",
}


def trick(page: DemoPage) -> str:
    """What it can do with the skills it is offered, as a sentence; nothing where there are none."""
    skills = [name for name in skills_listed(page) if name != CORE]
    between = "、" if page.language == "zh" else ", "
    return TRICK[page.language].format(skills=between.join(skills)) if skills else ""


def in_skill(page: DemoPage) -> bool:
    """Whether a skill is at work: only then there is one to leave."""
    return CORE in skills_listed(page)


def active_skill(page: DemoPage) -> str:
    """The skill at work, by what the system says, or by what it has just been changed to."""
    if not in_skill(page):
        return ""
    changed = [text_of(answer.get("skill")) for answer in page.answers(USE_SKILL)]
    told = ACTIVE.search(page.rules)
    return changed[-1] if changed else told["zh"] or told["en"] if told else ""


def choose(page: DemoPage) -> Iterator[DemoCall]:
    """The skill the words ask for, or the wish to leave one. Chosen once in a turn."""
    if USE_SKILL not in page.offered or any(one.name == USE_SKILL for one in page.made):
        return
    skill = wanted_skill(page)
    if skill is None and in_skill(page) and LEAVES.search(page.words):
        skill = CORE
    if skill is not None:
        yield call_of(USE_SKILL, {"skill": skill})


def wanted_skill(page: DemoPage) -> str | None:
    """The skill the user's words ask for, of those that may be taken up; None where it is at work already."""
    if DRAW in page.offered and CARDS.search(page.words):
        return None
    points = wishes(page, page.words)
    best = max(points, key=lambda name: points[name], default=None)
    if best is None or points[best] < ENOUGH or points[best] <= points.get(active_skill(page), 0):
        return None
    return best


def wishes(page: DemoPage, words: str) -> Mapping[str, int]:
    """How much words ask for each of the skills."""
    told = text_of(page.offered.get(USE_SKILL, {}).get("description"))
    lines = {found["name"]: found["rest"] for found in LINE.finditer(told)}
    return {name: _points(name, lines.get(name, ""), words) for name in skills_listed(page) if name != CORE}


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


def skills_listed(page: DemoPage) -> Sequence[str]:
    """The skills that may be taken up, by name."""
    values = takes(page, USE_SKILL).get("skill", {}).get("enum")
    return [one for one in values if isinstance(one, str)] if isinstance(values, list) else []


def takes(page: DemoPage, tool: str) -> Mapping[str, Mapping[str, Json]]:
    """What a tool takes."""
    schema = an_object(page.offered.get(tool, {}).get("parameters"))
    return {name: an_object(one) for name, one in an_object(schema.get("properties")).items()}


def call_of(name: str, arguments: Mapping[str, Json]) -> DemoCall:
    """A call as the model makes it."""
    return DemoCall(name=name, arguments=dump(arguments).decode())
