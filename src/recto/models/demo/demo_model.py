"""The built-in demo model: deterministic, offline, honest about what it is. It calls tools and reads out what they say.

Same page, same reply. It finds a few things in the user's words; what they mean is left to the tools they go to.
"""

from __future__ import annotations

import asyncio
import hashlib
import re
from collections.abc import AsyncGenerator, Iterator, Mapping, Sequence

from recto.agents.agent import Sampling
from recto.conversation.json import Json, dump, load, load_object
from recto.models.demo.demo_coder import HINT, asks_for_repair, is_coder, repair
from recto.models.demo.demo_page import (
    CHINESE,
    DemoCall,
    DemoPage,
    DemoReply,
    ToolAnswer,
    an_object,
    read_page,
    text_of,
)
from recto.models.ports import CallDelta, CallStarted, Delta, ReplyEnd, TextDelta, Usage
from recto.page.prompt.reminder import Locale
from recto.page.prompt.summarise import INSTRUCTIONS
from recto.page.wire.base import Target

NAME, WINDOW, CHARACTERS_PER_TOKEN = "demo", 128_000, 4
# Words, and Chinese two characters at a time, with the space that goes before them.
PIECES = re.compile("\\s*(?:[\u4e00-\u9fff]{1,2}|[^\\s\u4e00-\u9fff]+)|\\s+")
CALCULATOR, CLOCK, READER, USE_SKILL, CORE = "calculator", "current_time", "read_files", "use_skill", "core"
COLLECT, COMPUTES, SKY, DRAW, SAVE = "collect_birth_info", "compute_", "sky_today", "draw_tarot", "save_life_context"
OF_SKILLS = (USE_SKILL, COLLECT, COMPUTES, SKY, DRAW, SAVE)
# How many files are asked for at once, how much is shown of each, and of a summary's messages.
MOST_FILES, LINES_SHOWN, LINE_SHOWN, MESSAGES_SHOWN = 20, 3, 120, 6
USER, MOST_LINES = "user", 24
SHORTEST_NOTE, LONGEST_NOTE = 8, 1_000

SIGNS = str.maketrans("（）＋－×＊÷／−", "()+-**//-")
SUM = re.compile(r"(?<![\w.])[-(]*\d[\d.]*(?:\s*(?:\*\*|//|[-+*/%^])\s*[-(]*\d[\d.]*\)*)+", re.ASCII)
MESSAGE = re.compile(r'<message role="(\w+)">\n(.*?)\n</message>', re.DOTALL)
SO_FAR = re.compile(r"\A\S[^\n]*\n<summary>\n(.*?)\n</summary>\n", re.DOTALL)
# A call that is written out, to see a tool at work.
WRITTEN = re.compile(r"([\w-]{1,64})\((\{[^()]{0,2000}\})?\)")
TIME_WORDS = re.compile(r"\b(?:time|date)\b|几点|时间|日期", re.IGNORECASE)
FILE_WORDS = re.compile(r"\b(?:files?|documents?|attach\w*|read)\b|文件|文档|附件|读|总结", re.IGNORECASE)
LEAVE_WORDS = re.compile(r"换个?话题|退出|^\W*算了|^\W*(?:leave|never ?mind)\b", re.IGNORECASE)
SKY_WORDS = re.compile(r"水逆|逆行|\bretrograde\b", re.IGNORECASE)
DRAW_WORDS = re.compile(r"(?<!不)抽|\bdraw\b", re.IGNORECASE)
BIRTH_WORDS = re.compile(r"出生|生[日辰于在]|\bbirth\w*|\bborn\b", re.IGNORECASE)
# Nobody in need is to be met with a demonstration.
IN_NEED = re.compile(r"不想活|想死|轻生|自[杀残伤]|\b(?:suicid\w*|(?:kill|hurt) myself|want to die)\b", re.IGNORECASE)
DATE = re.compile(
    r"(?:农历|公历)?(?<!\d)[\d〇零一二三四五六七八九]{4}\s*[-/.年]\s*闰?[\d正冬腊一二三四五六七八九十]{1,2}\s*[-/.月]"
    r"\s*[\d初廿卅一二三四五六七八九十]{1,3}(?!\d)[日号]?"
)
BIRTH = {
    "date": DATE,
    "time": re.compile(
        r"(?:凌晨|早上|上午|中午|下午|晚上)?(?<!\d)\d{1,2}(?:[:：]\d{2}|点(?:半|\d{1,2}分)?)(?: ?[ap]m\b)?"
    ),
    "place": re.compile(
        "(?:生于|在|\\bin |[，,] ?)((?:(?![男女我帮看谢])[\u4e00-\u9fff]){2,6}?|[A-Z][a-z]+(?: [A-Z][a-z]+)*)"
        "(?=出生|[，,。.]|$)"
    ),
    "gender": re.compile(r"[男女]|\b(?:fe)?male\b"),
}
# In a system prompt: the skill's name, and the lines of what is known of the user.
ACTIVE = re.compile(r"(?:当前技能是|You are in the skill) ([\w-]+)")
KNOWN_BIRTH, KNOWN_NOTES = re.compile("^- date: ", re.MULTILINE), re.compile("^- notes: ", re.MULTILINE)
# In the description of `use_skill`: a line for each skill, with the words that ask for it.
SKILL_LINE = re.compile(r"^- ([\w-]+): .*?\| (?:触发词：|triggers: )([^|\n]*)", re.MULTILINE)

ABOUT = {
    "en": "I am Recto's demo model: no real model is set, so I only know a few tricks with the tools I have ({tools}). "
    'A call that you write out, as in calculator({{"expression": "2 + 2"}}), I make. '
    'You said: "{words}". For a real model set RECTO_MODEL=openai:NAME with OPENAI_API_KEY, '
    "or RECTO_MODEL=compatible:NAME with RECTO_MODEL_URL, and start again.",
    "zh": "我是 Recto 的演示模型：还没有设置真正的模型，所以我只会用现有的工具做几件小事（{tools}）。"
    '你写出一个调用，例如 calculator({{"expression": "2 + 2"}})，我就会执行。'
    "你说的是：“{words}”。要用真正的模型，请设置 RECTO_MODEL=openai:NAME 和 OPENAI_API_KEY，"
    "或 RECTO_MODEL=compatible:NAME 和 RECTO_MODEL_URL，然后重新启动。",
}
BETWEEN = {"en": ", ", "zh": "、"}
SUM_ANSWER = {"en": "{expression} = {result}.", "zh": "{expression} = {result}。"}
TIME_ANSWER = {"en": "The time is {result}.", "zh": "现在的时间是 {result}。"}
TOOL_ANSWER = {"en": "{name} answered: {result}", "zh": "{name} 的回答：{result}"}
SUMMARY = {"en": "In short (by the demo model, an extract only):", "zh": "摘要（演示模型，仅为摘录）："}
FILES = {
    "en": "I am the demo model, so I only show how each file begins.",
    "zh": "我是演示模型，只能展示每个文件的开头。",
}
BEGINS = {"en": "{name} begins:", "zh": "{name} 的开头："}
READS_OUT = {
    "en": "I am the demo model, so I only read out what is there and say nothing of what it means:",
    "zh": "我是演示模型，只照着结果念，不作解读：",
}
ASK = {
    "en": "I am the demo model. A chart needs the date of birth, and better also the time, the place and your gender. "
    "For example: 1990-05-04 08:30, Beijing, female.",
    "zh": "我是演示模型。要排盘，还需要出生日期，最好还有时间、地点和性别。例如：1990-05-04 08:30，北京，女。",
}
ENTERED = {
    "en": "I am the demo model. This is the skill {skill}: a real model would answer as its expert here. "
    'Say "leave" to leave it.',
    "zh": "我是演示模型。现在在技能“{skill}”里：真正的模型会在这里以专家的身份回答。说“换个话题”可以离开。",
}
CARE = {
    "en": "I am only a demo, but this matters. Please do not stay alone: reach somebody you trust or a crisis line.",
    "zh": "我只是演示模型，但这件事很要紧。请不要一个人待着，马上联系信任的人；心理援助热线 12356，紧急时 120 或 110。",
}
# What is read out of a tool's answer, in this order; and what stands for a table that has any of it.
FACTS = {
    "pillars": {"en": "Pillars: ", "zh": "四柱："},
    "day_master": {"en": "Day master: ", "zh": "日主："},
    "strength": {"en": "Strength: ", "zh": "强弱："},
    "sun": {"en": "Sun: ", "zh": "太阳："},
    "moon": {"en": "Moon: ", "zh": "月亮："},
    "rising": {"en": "Rising: ", "zh": "上升："},
    "mercury_retrograde": {"en": "Mercury retrograde: ", "zh": "水逆："},
    "spread_name": {"en": "Spread: ", "zh": "牌阵："},
    "cards": {"en": "Cards: ", "zh": "牌："},
    "notes": {"en": "Notes: ", "zh": "备注："},
}
NAMED = ("position", "card", "orientation", "pillar", "verdict", "from", "to")


class DemoModel:
    """Calls the tools it is offered, those of skills too. `pause` is slept between words."""

    def __init__(self, *, pause: float = 0.0) -> None:
        self.name = NAME
        self.target = Target(model=NAME, sees_images=False)
        self.options: Mapping[str, Json] = {"stream": True}
        self.window = WINDOW
        self._pause = pause

    def options_for(self, sampling: Sampling, *, has_tools: bool) -> Mapping[str, Json]:  # noqa: ARG002 - a Model has it
        """The same whatever is asked for: a demo has neither temperature nor effort."""
        return self.options

    async def stream(self, body: bytes) -> AsyncGenerator[Delta, None]:
        """The reply to the page, word by word."""
        reply = reply_to(body)
        for delta in _deltas(reply, body):
            yield delta
            await asyncio.sleep(self._pause)
        # A rough count, in characters: the demo model has no tokens of its own.
        written = len(reply.text) + sum(len(dump(arguments)) for _, arguments in reply.calls)
        page = len(body.decode("utf-8", "replace"))
        usage = Usage(input=page // CHARACTERS_PER_TOKEN + 1, output=written // CHARACTERS_PER_TOKEN + 1)
        yield ReplyEnd(finish="tool_calls" if reply.calls else "stop", usage=usage)

    async def aclose(self) -> None:
        """Nothing is held open."""


def _deltas(reply: DemoReply, body: bytes) -> Iterator[Delta]:
    yield from (TextDelta(text=piece) for piece in PIECES.findall(reply.text))
    # By the page, so that the calls of one conversation never share an id and the same page gives the same ones.
    page = hashlib.sha256(body).hexdigest()[:12]
    for index, (name, arguments) in enumerate(reply.calls):
        yield CallStarted(index=index, id=f"call_{page}_{index}", name=name)
        yield CallDelta(index=index, arguments=dump(arguments).decode())


def reply_to(body: bytes) -> DemoReply:
    """The reply to a page in OpenAI form."""
    page = read_page(load_object(body) or {})
    if any(instructions in page.system for instructions in INSTRUCTIONS.values()):
        return DemoReply(text=_summary(page.words))
    if IN_NEED.search(page.words):
        return DemoReply(text=CARE[page.language])
    if asks_for_repair(page):
        return repair(page)
    calls = _calls(page)
    return DemoReply(calls=calls) if calls else DemoReply(text=_answer(page))


def _calls(page: DemoPage) -> Sequence[DemoCall]:
    """Sums, the time and files at once; what a skill asks for one by one, until all is done or something failed."""
    tricks = [] if page.answers else list(_tricks(page))
    if tricks or not all(_is_of_skill(one) and one.data is not None for one in page.answers):
        return tricks
    done = {one.name for one in page.answers}
    return [call for call in (*_choice(page), *_due(page)) if call[0] in page.tools and call[0] not in done][:1]


def _tricks(page: DemoPage) -> Iterator[DemoCall]:
    words = page.words
    written = [(found[1], load_object(found[2] or "{}")) for found in WRITTEN.finditer(words) if found[1] in page.tools]
    if written:
        yield from [(name, arguments) for name, arguments in written if arguments is not None]
        return
    expression = SUM.search(DATE.sub(" ", words).translate(SIGNS))
    if expression and CALCULATOR in page.tools:
        yield CALCULATOR, {"expression": expression[0].replace("^", "**")}
    if TIME_WORDS.search(words) and not BIRTH_WORDS.search(words) and CLOCK in page.tools:
        yield CLOCK, {}
    is_asked = bool(FILE_WORDS.search(words))
    # Of this turn; where the words are about files and there are none with them, of the last that had some.
    documents = next(filter(None, page.documents if is_asked else page.documents[:1]), dict[str, str]())
    if documents and READER in page.tools and (is_asked or not expression):
        yield READER, {"ids": list(documents)[:MOST_FILES]}


def _choice(page: DemoPage) -> Iterator[DemoCall]:
    """The skill that most of the words ask for, or the way out of the one that is active."""
    if DRAW in page.tools and DRAW_WORDS.search(page.words):
        return
    listed = dict(SKILL_LINE.findall(text_of(page.tools.get(USE_SKILL, {}).get("description"))))
    words = {name: {name, *re.split("[、,]", listed.get(name, ""))} for name in _skills(page) if name != CORE}
    points = {name: sum(_has_word(page.words, one.strip()) for one in asking) for name, asking in words.items()}
    best = max(points, key=lambda name: points[name], default="")
    if points.get(best, 0) > points.get(_active(page), 0):
        yield USE_SKILL, {"skill": best}
    elif CORE in _skills(page) and LEAVE_WORDS.search(page.words):
        yield USE_SKILL, {"skill": CORE}


def _due(page: DemoPage) -> Iterator[DemoCall]:
    """Look, collect, compute, draw, save: what the words and the skill ask for."""
    words, is_chosen = page.words, USE_SKILL in {one.name for one in page.answers}
    if SKY in page.tools and SKY_WORDS.search(words):
        yield SKY, {}
        return
    birth = _birth(words)
    # A date alone may be any day, once the birth is known.
    if birth and (not _knows_birth(page) or "gender" in birth or BIRTH_WORDS.search(words)):
        yield COLLECT, birth
    elif "need_info" in page.statuses(USE_SKILL):
        yield COLLECT, {}
    if _knows_birth(page):
        yield from ((name, {}) for name in page.tools if name.startswith(COMPUTES))
    if is_chosen or DRAW_WORDS.search(words):
        yield DRAW, {}
    if len(words) >= SHORTEST_NOTE and not words.endswith(("?", "？")) and not KNOWN_NOTES.search(page.system):
        yield SAVE, {"notes": words[:LONGEST_NOTE]}


def _birth(words: str) -> Mapping[str, Json]:
    """What is said of a birth, as it is said; nothing where there is no date."""
    date = DATE.search(words)
    rest = DATE.sub("，", words)
    found = {name: pattern.search(words if name == "date" else rest) for name, pattern in BIRTH.items()}
    return {name: one[one.re.groups] for name, one in found.items() if one} if date else {}


def _knows_birth(page: DemoPage) -> bool:
    return "saved" in page.statuses(COLLECT) or bool(KNOWN_BIRTH.search(page.system))


def _skills(page: DemoPage) -> Sequence[str]:
    """The skills that may be taken up."""
    schema = an_object(an_object(page.tools.get(USE_SKILL, {}).get("parameters")).get("properties"))
    values = an_object(schema.get("skill")).get("enum")
    return [one for one in values if isinstance(one, str)] if isinstance(values, list) else []


def _active(page: DemoPage) -> str:
    found = ACTIVE.search(page.system)
    return found[1] if found else ""


def _has_word(words: str, word: str) -> bool:
    """Within other characters in Chinese, by itself in other languages."""
    plain = re.escape(word)
    return bool(word) and bool(re.search(rf"\b{plain}\b" if word.isascii() else plain, words, re.IGNORECASE))


def _is_of_skill(answer: ToolAnswer) -> bool:
    return answer.name.startswith(OF_SKILLS)


def _answer(page: DemoPage) -> str:
    language = page.language
    texts = [_tool_text(one, language) for one in page.answers if not _is_of_skill(one) or one.data is None]
    if texts:
        return ("" if language == "zh" else " ").join(texts)
    if CORE in _skills(page):
        return _skill_text(page)
    about = ABOUT[language].format(words=_short(page.words), tools=BETWEEN[language].join(page.tools))
    return about + (HINT[language] if is_coder(page) else "")


def _tool_text(answer: ToolAnswer, language: Locale) -> str:
    name, result = answer.name, answer.text
    if name == READER and (files := _file_text(result, language)):
        return files
    # What begins otherwise is why they could not.
    is_good = result[:1].isdigit() or result.startswith("-")
    if name == CALCULATOR and is_good:
        return SUM_ANSWER[language].format(expression=text_of(answer.arguments.get("expression")), result=result)
    if name == CLOCK and is_good:
        return TIME_ANSWER[language].format(result=result)
    return TOOL_ANSWER[language].format(name=name, result=result)


def _file_text(result: str, language: Locale) -> str:
    """How each file begins; nothing where the answer is no list of files."""
    try:
        rows = load(result)
    except ValueError:
        return ""
    files = [row for row in rows if isinstance(row, Mapping)] if isinstance(rows, list) else []
    texts = [FILES[language]] if files else []
    for file in files:
        lines = [line for line in text_of(file.get("content")).splitlines() if line.strip()][:LINES_SHOWN]
        title = BEGINS[language].format(name=text_of(file.get("name")) or text_of(file.get("id")))
        texts.append("\n".join((title, *map(_short, lines))))
    return "\n\n".join(texts)


def _skill_text(page: DemoPage) -> str:
    """What there is to say in a skill, once there is nothing left to call."""
    language = page.language
    facts = [line for one in page.answers for line in _facts(one.data or {}, language)]
    if facts:
        return "\n- ".join((READS_OUT[language], *facts))
    if COLLECT in page.tools and not _knows_birth(page):
        return ASK[language]
    return ENTERED[language].format(skill=_active(page))


def _facts(answer: Mapping[str, Json], language: Locale) -> Iterator[str]:
    known = {**answer, **an_object(answer.get("life_context"))}
    texts = ((label[language], _text(known.get(name), language)) for name, label in FACTS.items())
    yield from (_short(f"{label}{text}") for label, text in texts if text)


def _text(value: Json, language: Locale) -> str:
    if value is None or isinstance(value, bool | str | int | float):
        return "" if value is None or isinstance(value, bool) else str(value)
    if isinstance(value, Mapping):
        named = [text_of(value[name]) for name in NAMED if name in value]
        return " ".join(named) if named else _text(list(value.values()), language)
    return BETWEEN[language].join(filter(None, (_text(one, language) for one in value)))


def _summary(words: str) -> str:
    """What was known, what the user said, and the newest of the rest: its first lines tell who, its last what is open.

    In the language of the user, whatever that of the request is.
    """
    messages: list[tuple[str, str]] = MESSAGE.findall(words)
    users = [text for role, text in messages if role == USER]
    others = set(messages[-MESSAGES_SHOWN:])
    said = [f"- {one[0]}: {_short(one[1])}" for one in messages if one[0] == USER or one in others]
    known = [line for text in SO_FAR.findall(words) for line in text.splitlines() if line.startswith("- ")]
    lines = list(dict.fromkeys((*known, *said)))
    shown = lines if len(lines) <= MOST_LINES else (*lines[: MOST_LINES // 2], *lines[-MOST_LINES // 2 :])
    language = "zh" if any(map(CHINESE.search, users or (words,))) else "en"
    return "\n".join((SUMMARY[language], *shown))


def _short(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= LINE_SHOWN else f"{line[:LINE_SHOWN]}..."
