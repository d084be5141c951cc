"""What the demo model says in a skill: it reads out what is there, asks for what is not, and interprets nothing."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from recto.conversation.json import Json
from recto.models.demo.chart import tell_data, tell_facts
from recto.models.demo.choice import CORE, DRAW, USE_SKILL, active_skill, skills_listed
from recto.models.demo.files import Language
from recto.models.demo.life import IN_NEED, SAVE_LIFE
from recto.models.demo.page import DemoPage, an_object
from recto.models.demo.prompt import other_data
from recto.models.demo.skills import COMPUTES, REFUSES, SKY, collected, needs_birth, refuses

WITHOUT_BIRTH = ("tarot", "career", "lifecoach")
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
REFUSED = {
    "zh": (
        "好，不说也可以，我不再问。没有出生信息就排不了盘。{others}"
        "说“换个话题”可以离开；以后想说了，直接告诉我出生日期就行。"
    ),
    "en": (
        "That is fine, and I will not ask again. Without a birth there is no chart. {others}"
        'Say "leave" to leave this; whenever you like, just tell me the date of birth.'
    ),
}
OTHERS = {"zh": "这些不需要它，提到就能换过去：{skills}。", "en": "These go without it, just ask for one: {skills}. "}
FORGOTTEN = {
    "zh": "好，已经忘掉你的出生信息。要再排盘，告诉我出生日期就行。",
    "en": "Right, your birth information is forgotten. For a chart, just tell me the date of birth again.",
}
ASK_LIFE = {
    "zh": (
        "我是演示模型。可以先说说你的处境：现在的阶段、行业与职位、想要的改变、最大的困扰，我会用工具记下并念出来。"
        "例如：我在互联网做产品经理，在职，想转行，很焦虑。说“换个话题”可以离开。"
    ),
    "en": (
        "I am the demo model. Tell me where you stand: your stage, your work, what you want to change, what troubles "
        "you. I have it saved by a tool and read it out. For example: I work as a nurse, employed, I want to change "
        'fields, and I am anxious. Say "leave" to leave this.'
    ),
}
GOES_ON = {
    "zh": "真正的模型会在这里以专家的身份接着谈。说“换个话题”可以离开。",
    "en": 'A real model would go on from here as the expert. Say "leave" to leave this.',
}
CARE = {
    "zh": (
        "我只是演示模型，帮不了你，但这件事很要紧。请不要一个人待着，马上联系身边信任的人；"
        "心理援助热线 12356，紧急时请打 120 或 110。"
    ),
    "en": (
        "I am only a demo model and cannot help, but this matters. Please do not stay alone: reach somebody you trust "
        "now, or call your local emergency number or a crisis line."
    ),
}
MERCURY = {
    "zh": {True: "现在水逆：{from} 至 {to}", False: "现在没有水逆；下一次是 {from} 至 {to}"},
    "en": {
        True: "Mercury is retrograde now: {from} to {to}",
        False: "Mercury is not retrograde now; next it is from {from} to {to}",
    },
}
LEFT = {"zh": "好，已离开技能，想聊什么都可以。", "en": "Right, that skill is left. What else is on your mind?"}


def tell_skill(page: DemoPage) -> str:
    """What there is to say in a skill, once there is nothing left to call."""
    language = page.language
    if any(answer.get("skill") == CORE for answer in page.answers(USE_SKILL)):
        return LEFT[language]
    if SAVE_LIFE in page.offered and IN_NEED.search(page.words):
        return CARE[language]
    facts = [line for chart in _charts_made(page) for line in tell_facts(chart, language)]
    facts += [line for sky in page.answers(SKY) for line in _mercury(sky, language)]
    if not facts and collected(page) == "forgotten":
        return FORGOTTEN[language]
    if not facts and needs_birth(page):
        return _refused(page) if refuses(page) else ASK[language]
    facts = facts or [line for chart in other_data(page.rules) for line in tell_data(chart, language)]
    if not facts:
        return _opening(page)
    more = (GOES_ON[language],) if SAVE_LIFE in page.offered else ()
    return "\n".join((READS_OUT[language], *(f"- {fact}" for fact in facts), *more))


def _opening(page: DemoPage) -> str:
    """Where there is nothing to read out yet."""
    if SAVE_LIFE in page.offered and not REFUSES.search(page.words):
        return ASK_LIFE[page.language]
    return ENTERED[page.language].format(skill=active_skill(page) or "?")


def _mercury(sky: Mapping[str, Json], language: Language) -> Iterator[str]:
    """Whether Mercury goes backwards, since when or when next."""
    mercury = an_object(sky.get("mercury_retrograde"))
    periods = mercury.get("periods")
    if isinstance(periods, list) and periods:
        yield MERCURY[language][mercury.get("now") is True].format_map(an_object(periods[0]))


def _refused(page: DemoPage) -> str:
    between = "、" if page.language == "zh" else ", "
    others = [name for name in skills_listed(page) if name in WITHOUT_BIRTH]
    told = OTHERS[page.language].format(skills=between.join(others)) if others else ""
    return REFUSED[page.language].format(others=told)


def _charts_made(page: DemoPage) -> Iterator[Mapping[str, Json]]:
    for one in page.made:
        answer = one.answer
        if answer is not None and (one.name in (DRAW, SAVE_LIFE) or one.name.startswith(COMPUTES)):
            yield answer
