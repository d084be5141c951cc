"""The built-in demo model: offline and deterministic. It calls tools and reads out their results.

It recognises a few patterns in the user's words. For an agent with the tools of a coder it replays a recorded session.
"""

from __future__ import annotations

import asyncio
import hashlib
import re
from collections.abc import AsyncGenerator, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from html import unescape
from importlib.resources import files
from typing import NotRequired, TypeAlias, TypedDict, cast

import yaml

from recto.agents.agent import Sampling
from recto.conversation.json import Json, dump, leading_object, load, load_object
from recto.models.ports import CallDelta, CallStarted, Delta, ReplyEnd, TextDelta, Usage
from recto.page.prompt.reminder import Locale
from recto.page.prompt.summarise import INSTRUCTIONS
from recto.page.wire.base import Target

DemoCall: TypeAlias = tuple[str, Mapping[str, Json]]

REMINDERS = re.compile(r"\A(?:\s*<system-reminder>.*?</system-reminder>\s*)+", re.DOTALL)
DOCUMENT = re.compile(r"^<file>\n<id>(.*)</id>\n<name>(.*)</name>\n<type>document</type>$", re.MULTILINE)
CHINESE = re.compile("[\u4e00-\u9fff]")


@dataclass(frozen=True, kw_only=True)
class DemoReply:
    """Reply of the demo model: text, calls, or both."""

    text: str = ""
    calls: Sequence[DemoCall] = ()


@dataclass(frozen=True, kw_only=True)
class ToolAnswer:
    """A call of this turn with its answer. `data` is None if the answer is not a JSON object, such as an error."""

    name: str
    arguments: Mapping[str, Json]
    text: str
    data: Mapping[str, Json] | None


@dataclass(frozen=True, kw_only=True)
class DemoPage:
    """The page of a request.

    `user_texts` and `documents` (names by id) are newest first. The answers are those of this turn.
    """

    system: str
    user_texts: tuple[str, ...]
    documents: tuple[Mapping[str, str], ...]
    tools: Mapping[str, Mapping[str, Json]]
    answers: tuple[ToolAnswer, ...]

    @property
    def words(self) -> str:
        return self.user_texts[0] if self.user_texts else ""

    @property
    def language(self) -> Locale:
        """The language of the user's text and file names."""
        names = self.documents[0].values() if self.documents else ()
        return "zh" if any(map(CHINESE.search, (self.words, *names))) else "en"

    def statuses(self, tool: str) -> Sequence[str]:
        """Return the statuses in a tool's answers of this turn, such as `saved` or `need_info`."""
        return [text_of((one.data or {}).get("status")) for one in self.answers if one.name == tool]


def read_page(page: Mapping[str, Json]) -> DemoPage:
    """Read a page in OpenAI form."""
    messages = list(objects_in(page.get("messages")))
    last_user = max((place for place, one in enumerate(messages) if one.get("role") == "user"), default=-1)
    users = [text_of(one.get("content")) for one in reversed(messages) if one.get("role") == "user"]
    reminders = [match[0] if (match := REMINDERS.match(user)) else "" for user in users]
    tools = [an_object(tool.get("function")) for tool in objects_in(page.get("tools"))]
    return DemoPage(
        system="\n".join(text_of(one.get("content")) for one in messages if one.get("role") in ("system", "developer")),
        user_texts=tuple(REMINDERS.sub("", user).strip() for user in users),
        documents=tuple({unescape(id): unescape(name) for id, name in DOCUMENT.findall(one)} for one in reminders),
        tools={text_of(tool.get("name")): tool for tool in tools},
        answers=tuple(_answers(messages[last_user + 1 :])),
    )


def _answers(messages: Sequence[Mapping[str, Json]]) -> Iterator[ToolAnswer]:
    calls = {text_of(call.get("id")): call for message in messages for call in objects_in(message.get("tool_calls"))}
    for message in messages:
        if message.get("role") == "tool":
            call = an_object(calls.get(text_of(message.get("tool_call_id")), {}).get("function"))
            arguments = load_object(text_of(call.get("arguments"))) or {}
            text = text_of(message.get("content")).strip()
            name = text_of(call.get("name")) or "tool"
            yield ToolAnswer(name=name, arguments=arguments, text=text, data=leading_object(text))


def an_object(value: Json) -> Mapping[str, Json]:
    """Return the value if it is an object, else an empty one."""
    return value if isinstance(value, Mapping) else {}


def text_of(content: Json) -> str:
    """Return a text given as a string or as blocks."""
    if isinstance(content, str):
        return content
    return "\n".join(text for block in objects_in(content) if isinstance(text := block.get("text"), str))


def objects_in(value: Json) -> Iterator[Mapping[str, Json]]:
    """Yield the objects of a list; nothing for any other value."""
    if isinstance(value, Sequence) and not isinstance(value, str):
        yield from (item for item in value if isinstance(item, Mapping))


NAME, WINDOW, CHARACTERS_PER_TOKEN = "demo", 128_000, 4
# Pieces of a reply: words, or two Chinese characters, with the space before them.
PIECES = re.compile("\\s*(?:[\u4e00-\u9fff]{1,2}|[^\\s\u4e00-\u9fff]+)|\\s+")
CALCULATOR, CLOCK, READER, USE_SKILL, CORE = "calculator", "current_time", "read_files", "use_skill", "core"
COLLECT, COMPUTES, SKY, DRAW, SAVE = "collect_birth_info", "compute_", "sky_today", "draw_tarot", "save_life_context"
OF_SKILLS = (USE_SKILL, COLLECT, COMPUTES, SKY, DRAW, SAVE)
# Limits of one read: files, and lines of each. Limits of a summary: characters of a line, and messages.
MOST_FILES, LINES_SHOWN, LINE_SHOWN, MESSAGES_SHOWN = 20, 3, 120, 6
USER, MOST_LINES = "user", 24
SHORTEST_NOTE, LONGEST_NOTE = 8, 1_000

SIGNS = str.maketrans("（）＋－×＊÷／−", "()+-**//-")
SUM = re.compile(r"(?<![\w.])[-(]*\d[\d.]*(?:\s*(?:\*\*|//|[-+*/%^])\s*[-(]*\d[\d.]*\)*)+", re.ASCII)
MESSAGE = re.compile(r'<message role="(\w+)">\n(.*?)\n</message>', re.DOTALL)
SO_FAR = re.compile(r"\A\S[^\n]*\n<summary>\n(.*?)\n</summary>\n", re.DOTALL)
# A call that the user writes out to try a tool.
CALL_TEXT = re.compile(r"([\w-]{1,64})\((\{[^()]{0,2000}\})?\)")
TIME_WORDS = re.compile(r"\b(?:time|date)\b|几点|时间|日期", re.IGNORECASE)
FILE_WORDS = re.compile(r"\b(?:files?|documents?|attach\w*|read)\b|文件|文档|附件|读|总结", re.IGNORECASE)
LEAVE_WORDS = re.compile(r"换个?话题|退出|^\W*算了|^\W*(?:leave|never ?mind)\b", re.IGNORECASE)
SKY_WORDS = re.compile(r"水逆|逆行|\bretrograde\b", re.IGNORECASE)
DRAW_WORDS = re.compile(r"(?<!不)抽|\bdraw\b", re.IGNORECASE)
BIRTH_WORDS = re.compile(r"出生|生[日辰于在]|\bbirth\w*|\bborn\b", re.IGNORECASE)
# A user in distress gets help instead of a demonstration.
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
# In a system prompt: the name of the active skill, and the stored data of the user.
ACTIVE = re.compile(r"(?:当前技能是|You are in the skill) ([\w-]+)")
KNOWN_BIRTH, KNOWN_NOTES = re.compile("^- date: ", re.MULTILINE), re.compile("^- notes: ", re.MULTILINE)
# In the description of `use_skill`: one line for each skill, with its triggers.
SKILL_LINE = re.compile(r"^- ([\w-]+): .*?\| (?:触发词：|triggers: )([^|\n]*)", re.MULTILINE)

# The recorded session: words that start it, the file that it creates, and the start of the result of a rejected call.
SESSION_WORDS = re.compile(
    r"\b(?:fix\w*|bugs?|debug\w*|repair\w*|broken|fail\w*)\b|修|测试|报错|出错|故障", re.IGNORECASE
)
SESSION_FILE, NOT_CALLED = "recto-demo/shop.py", " was not called: "
SESSION_HINT = {
    "en": ' Say "fix the failing tests", and I replay a recorded coding session.',
    "zh": "说“修复失败的测试”，我就重放一段录制好的编程会话。",
}
SESSION_END = {
    "en": "I stop here: {tool} did not answer as in the recording that I replay.\n\n{result}",
    "zh": "到此为止：{tool} 的结果与我重放的录制会话不同。\n\n{result}",
}

ABOUT = {
    "en": "I am Recto's demo model: no real model is set, so I only know a few tricks with the tools I have ({tools}). "
    'I make a call that you write out, such as calculator({{"expression": "2 + 2"}}). '
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
    "en": "I am the demo model, so I read out the results without interpreting them:",
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
# Fields to read out of a tool's answer, in this order, and the fields that summarise a nested object.
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
LABEL_FIELDS = ("position", "card", "orientation", "pillar", "verdict", "from", "to")


class RecordedReply(TypedDict):
    """One reply of the recorded session. The last reply calls no tool."""

    text: Mapping[Locale, str]
    tool: NotRequired[str]
    arguments: NotRequired[Mapping[str, Json]]
    exit_code: NotRequired[int]


class DemoModel:
    """Model that calls the offered tools. `pause` is the delay between words, in seconds."""

    def __init__(self, *, pause: float = 0.0) -> None:
        self.name = NAME
        self.target = Target(model=NAME, sees_images=False)
        self.options: Mapping[str, Json] = {"stream": True}
        self.window = WINDOW
        self._pause = pause

    def options_for(self, sampling: Sampling, *, has_tools: bool) -> Mapping[str, Json]:  # noqa: ARG002 - a Model has it
        """Return the same options for every request: the demo has no temperature or effort."""
        return self.options

    async def stream(self, body: bytes) -> AsyncGenerator[Delta, None]:
        """Yield the reply to the page, word by word."""
        reply = reply_to(body)
        # Derive the ids from the page, so that they differ within a conversation and the same page gives the same ids.
        digest = hashlib.sha256(body).hexdigest()[:12]
        deltas: list[Delta] = [TextDelta(text=piece) for piece in PIECES.findall(reply.text)]
        for index, (name, arguments) in enumerate(reply.calls):
            deltas.append(CallStarted(index=index, id=f"call_{digest}_{index}", name=name))
            deltas.append(CallDelta(index=index, arguments=dump(arguments).decode()))
        for delta in deltas:
            yield delta
            await asyncio.sleep(self._pause)
        # A rough estimate from characters: the demo model has no tokenizer.
        size = len(reply.text) + sum(len(dump(arguments)) for _, arguments in reply.calls)
        page = len(body.decode("utf-8", "replace"))
        usage = Usage(input=page // CHARACTERS_PER_TOKEN + 1, output=size // CHARACTERS_PER_TOKEN + 1)
        yield ReplyEnd(finish="tool_calls" if reply.calls else "stop", usage=usage)

    async def aclose(self) -> None:
        """Do nothing: the demo holds no resources."""


def reply_to(body: bytes) -> DemoReply:
    """Return the reply to a page in OpenAI form."""
    page = read_page(load_object(body) or {})
    if any(instructions in page.system for instructions in INSTRUCTIONS.values()):
        return DemoReply(text=_summary(page.words))
    if IN_NEED.search(page.words):
        return DemoReply(text=CARE[page.language])
    if SESSION_WORDS.search(page.words) and _has_session_tools(page):
        return _session_reply(page)
    calls = _calls(page)
    return DemoReply(calls=calls) if calls else DemoReply(text=_answer(page))


@cache
def _sessions() -> Mapping[str, Sequence[RecordedReply]]:
    text = (files("recto.models.demo") / "coder_session.yaml").read_text(encoding="utf-8")
    return cast("Mapping[str, Sequence[RecordedReply]]", yaml.safe_load(text))


def _has_session_tools(page: DemoPage) -> bool:
    return all(reply["tool"] in page.tools for reply in _sessions()["new"] if "tool" in reply)


def _session_reply(page: DemoPage) -> DemoReply:
    """Return the recorded reply that follows the calls of this turn.

    End the session if the last call went differently.
    """
    answers = page.answers
    session = _sessions()["again" if answers and SESSION_FILE in answers[0].text else "new"]
    if answers:
        last, recorded = answers[-1], session[min(len(answers), len(session)) - 1]
        exit_code = (last.data or {}).get("exitCode")
        is_failed = last.text.startswith("Error") or NOT_CALLED in last.text
        if is_failed or exit_code != recorded.get("exit_code", exit_code):
            return DemoReply(text=SESSION_END[page.language].format(tool=last.name, result=last.text))
    reply = session[min(len(answers), len(session) - 1)]
    calls = [(reply["tool"], reply.get("arguments", {}))] if "tool" in reply else []
    return DemoReply(text=reply["text"][page.language], calls=calls)


def _calls(page: DemoPage) -> Sequence[DemoCall]:
    """Return direct calls all together. Return calls of a skill one by one, until all are done or one has failed."""
    calls = [] if page.answers else list(_direct_calls(page))
    if calls or any(_is_final(answer) for answer in page.answers):
        return calls
    done = {answer.name for answer in page.answers}
    skill_calls = (*_choose_skill(page), *_skill_calls(page))
    return [call for call in skill_calls if call[0] in page.tools and call[0] not in done][:1]


def _direct_calls(page: DemoPage) -> Iterator[DemoCall]:
    """Yield the calls that the user wrote out. If there are none, yield calls for sums, the time and files."""
    words = page.words
    calls = [(match[1], load_object(match[2] or "{}")) for match in CALL_TEXT.finditer(words) if match[1] in page.tools]
    if calls:
        yield from [(name, arguments) for name, arguments in calls if arguments is not None]
        return
    expression = SUM.search(DATE.sub(" ", words).translate(SIGNS))
    if expression and CALCULATOR in page.tools:
        yield CALCULATOR, {"expression": expression[0].replace("^", "**")}
    if TIME_WORDS.search(words) and not BIRTH_WORDS.search(words) and CLOCK in page.tools:
        yield CLOCK, {}
    is_about_files = bool(FILE_WORDS.search(words))
    # Documents of this turn. If the text mentions files, use the newest turn that has documents.
    documents = next(filter(None, page.documents if is_about_files else page.documents[:1]), dict[str, str]())
    if documents and READER in page.tools and (is_about_files or not expression):
        yield READER, {"ids": list(documents)[:MOST_FILES]}


def _choose_skill(page: DemoPage) -> Iterator[DemoCall]:
    """Yield a call that activates the skill with the most triggers in the text, or deactivates the active skill."""
    if DRAW in page.tools and DRAW_WORDS.search(page.words):
        return
    triggers = dict(SKILL_LINE.findall(text_of(page.tools.get(USE_SKILL, {}).get("description"))))
    points = {
        name: sum(_has_word(page.words, word.strip()) for word in {name, *re.split("[、,]", triggers.get(name, ""))})
        for name in _skills(page)
        if name != CORE
    }
    best = max(points, key=lambda name: points[name], default="")
    if points.get(best, 0) > points.get(_active_skill(page), 0):
        yield USE_SKILL, {"skill": best}
    elif CORE in _skills(page) and LEAVE_WORDS.search(page.words):
        yield USE_SKILL, {"skill": CORE}


def _has_word(words: str, word: str) -> bool:
    """Find a whole word; Chinese words have no boundaries."""
    plain = re.escape(word)
    return bool(word) and bool(re.search(rf"\b{plain}\b" if word.isascii() else plain, words, re.IGNORECASE))


def _skill_calls(page: DemoPage) -> Iterator[DemoCall]:
    """Yield the calls that the user's text and the skill require: collect, compute, draw and save."""
    words = page.words
    if SKY in page.tools and SKY_WORDS.search(words):
        yield SKY, {}
        return
    # The birth data in the user's text; empty without a date.
    rest = DATE.sub("，", words)
    matches = {name: pattern.search(words if name == "date" else rest) for name, pattern in BIRTH.items()}
    birth = {name: match[match.re.groups] for name, match in matches.items() if match and matches["date"]}
    # Once the birth is known, a date alone may mean any day.
    if birth and (not _knows_birth(page) or "gender" in birth or BIRTH_WORDS.search(words)):
        yield COLLECT, birth
    elif "need_info" in page.statuses(USE_SKILL):
        yield COLLECT, {}
    if _knows_birth(page):
        yield from ((name, {}) for name in page.tools if name.startswith(COMPUTES))
    if USE_SKILL in {answer.name for answer in page.answers} or DRAW_WORDS.search(words):
        yield DRAW, {}
    if len(words) >= SHORTEST_NOTE and not words.endswith(("?", "？")) and not KNOWN_NOTES.search(page.system):
        yield SAVE, {"notes": words[:LONGEST_NOTE]}


def _knows_birth(page: DemoPage) -> bool:
    return "saved" in page.statuses(COLLECT) or bool(KNOWN_BIRTH.search(page.system))


def _skills(page: DemoPage) -> Sequence[str]:
    """Return the skills that `use_skill` offers."""
    schema = an_object(an_object(page.tools.get(USE_SKILL, {}).get("parameters")).get("properties"))
    values = an_object(schema.get("skill")).get("enum")
    return [value for value in values if isinstance(value, str)] if isinstance(values, list) else []


def _active_skill(page: DemoPage) -> str:
    match = ACTIVE.search(page.system)
    return match[1] if match else ""


def _is_final(answer: ToolAnswer) -> bool:
    """Return True if the answer can be read out immediately.

    This applies to the answer of a direct call, and to a failed call of a skill.
    """
    return not answer.name.startswith(OF_SKILLS) or answer.data is None


def _answer(page: DemoPage) -> str:
    language = page.language
    texts = [_tool_text(answer, language) for answer in page.answers if _is_final(answer)]
    if texts:
        return ("" if language == "zh" else " ").join(texts)
    if CORE in _skills(page):
        # Read out the results of a skill's tools, or the data that the skill needs next.
        facts = list[str]()
        for answer in page.answers:
            fields = {**(answer.data or {}), **an_object((answer.data or {}).get("life_context"))}
            labels = ((label[language], _text(fields.get(name), language)) for name, label in FACTS.items())
            facts += [_short(f"{label}{text}") for label, text in labels if text]
        if facts:
            return "\n- ".join((READS_OUT[language], *facts))
        needs_birth = COLLECT in page.tools and not _knows_birth(page)
        return ASK[language] if needs_birth else ENTERED[language].format(skill=_active_skill(page))
    about = ABOUT[language].format(words=_short(page.words), tools=BETWEEN[language].join(page.tools))
    return about + (SESSION_HINT[language] if _has_session_tools(page) else "")


def _tool_text(answer: ToolAnswer, language: Locale) -> str:
    name, result = answer.name, answer.text
    if name == READER:
        try:
            rows = list(objects_in(load(result)))
        except ValueError:
            rows = []
        # The first lines of each file.
        texts = [FILES[language]]
        for row in rows:
            lines = [line for line in text_of(row.get("content")).splitlines() if line.strip()][:LINES_SHOWN]
            title = BEGINS[language].format(name=text_of(row.get("name")) or text_of(row.get("id")))
            texts.append("\n".join((title, *map(_short, lines))))
        if rows:
            return "\n\n".join(texts)
    # A result that begins differently is an error.
    is_good = result[:1].isdigit() or result.startswith("-")
    if name == CALCULATOR and is_good:
        return SUM_ANSWER[language].format(expression=text_of(answer.arguments.get("expression")), result=result)
    if name == CLOCK and is_good:
        return TIME_ANSWER[language].format(result=result)
    return TOOL_ANSWER[language].format(name=name, result=result)


def _text(value: Json, language: Locale) -> str:
    """Return the texts and numbers of a value on one line."""
    if value is None or isinstance(value, bool | str | int | float):
        return "" if value is None or isinstance(value, bool) else str(value)
    if isinstance(value, Mapping):
        labels = [text_of(value[name]) for name in LABEL_FIELDS if name in value]
        return " ".join(labels) if labels else _text(list(value.values()), language)
    return BETWEEN[language].join(filter(None, (_text(item, language) for item in value)))


def _summary(words: str) -> str:
    """Return an extract in the user's language: the last summary, the user's messages and the newest other messages.

    The first lines describe the user. The last lines describe the open task.
    """
    messages: list[tuple[str, str]] = MESSAGE.findall(words)
    newest = messages[-MESSAGES_SHOWN:]
    turns = [f"- {role}: {_short(text)}" for role, text in messages if role == USER or (role, text) in newest]
    summary_lines = [line for text in SO_FAR.findall(words) for line in text.splitlines() if line.startswith("- ")]
    lines = list(dict.fromkeys((*summary_lines, *turns)))
    excerpt = lines if len(lines) <= MOST_LINES else (*lines[: MOST_LINES // 2], *lines[-MOST_LINES // 2 :])
    user_texts = [text for role, text in messages if role == USER]
    language = "zh" if any(map(CHINESE.search, user_texts or (words,))) else "en"
    return "\n".join((SUMMARY[language], *excerpt))


def _short(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= LINE_SHOWN else f"{line[:LINE_SHOWN]}..."
