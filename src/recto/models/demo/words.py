"""What the demo model says to a page. Pure: same page, same reply. Refuses to pretend it is a real model."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence

from recto.conversation.json import Json, dump, load_object
from recto.models.demo.birth import SPEAKS_OF_BIRTH, without_dates
from recto.models.demo.choice import USE_SKILL, in_skill, trick
from recto.models.demo.files import READER, Language, tell_files, wants_files
from recto.models.demo.page import DemoCall, DemoPage, DemoReply, Made, objects, read_page, text_of
from recto.models.demo.skills import is_of_skills, next_call
from recto.models.demo.told import tell_skill
from recto.page.prompt.summarise import INSTRUCTIONS

CALCULATOR = "calculator"
CLOCK = "current_time"
TIME_WORDS = re.compile(r"\b(?:time|date)\b|几点|时间|日期", re.IGNORECASE)
SIGNS = str.maketrans({"（": "(", "）": ")", "＋": "+", "－": "-", "×": "*", "＊": "*", "÷": "/", "／": "/", "−": "-"})
SUM = re.compile(r"(?<![A-Za-z0-9_.])[-(]*\d[\d\s.+\-*/%^()]*")
OPERATION = re.compile(r"[\d)]\s*(?:\*\*|//|[-+*/%^])\s*[-(.\d]")
# A date or a telephone number is no subtraction.
NO_SUM = re.compile(r"\d+(?:-\d+){2,}|\d{1,4}/\d{1,2}/\d{1,4}|0\d*-\d+")
NUMBER = re.compile(r"[-+]?[\d,]*\.?\d+(?:e[-+]?\d+)?", re.IGNORECASE)
TIME = re.compile(r"\d{4}-\d{2}-\d{2}|\d{1,2}:\d{2}")
FAILED = re.compile(r"\W*(?:error|failed|cannot|错误|失败|无法)", re.IGNORECASE)
SAID = re.compile(r'<message role="(\w+)">\n(.*?)\n</message>', re.DOTALL)
QUOTED = 120
SUMMARY_MESSAGES = 6

ABOUT = {
    "en": (
        "I am Recto's demo model: no real model is set, so I only know a few tricks. {can}"
        'You said: "{words}". '
        "For a real model set RECTO_MODEL=openai:NAME with OPENAI_API_KEY, "
        "or RECTO_MODEL=compatible:NAME with RECTO_MODEL_URL, and start again."
    ),
    "zh": (
        "我是 Recto 的演示模型：还没有设置真正的模型，所以我只会几件小事。{can}"
        "你说的是：“{words}”。"
        "要用真正的模型，请设置 RECTO_MODEL=openai:NAME 和 OPENAI_API_KEY，"
        "或 RECTO_MODEL=compatible:NAME 和 RECTO_MODEL_URL，然后重新启动。"
    ),
}
# What it can do with a tool, told only where it has the tool.
CAN = {
    CALCULATOR: {"en": 'I calculate: try "what is 12*7?". ', "zh": "我会算术，试试“算一下 12*7”。"},
    CLOCK: {"en": 'I tell the time: try "what time is it?". ', "zh": "我会看时间，试试“现在几点”。"},
    READER: {
        "en": "I show how text files begin that you attach. ",
        "zh": "你上传文本文件，我会展示它的开头。",
    },
}
NOTHING = {"en": "nothing", "zh": "（没有文字）"}
SUM_ANSWER = {"en": "{expression} = {result}.", "zh": "{expression} = {result}。"}
TIME_ANSWER = {"en": "The time is {result}.", "zh": "现在的时间是 {result}。"}
TOOL_ANSWER = {"en": "{name} answered: {result}", "zh": "{name} 的回答：{result}"}
TOOL_FAILED = {"en": "{name} did not work. It said: {result}", "zh": "{name} 没有成功。它说：{result}"}
SUMMARY = {"en": "In short (by the demo model, an extract only):", "zh": "摘要（演示模型，仅为摘录）："}


def reply_to(body: bytes) -> DemoReply:
    """The reply to a page in OpenAI form."""
    sent = load_object(body) or {}
    messages = list(objects(sent.get("messages")))
    page = read_page(sent)
    if any(instructions in page.rules for instructions in INSTRUCTIONS.values()):
        return DemoReply(text=_summary(messages, "zh" if INSTRUCTIONS["zh"] in page.rules else "en"))
    calls = tuple(_calls(page))
    if calls:
        return DemoReply(calls=calls)
    return DemoReply(text=_answer(page))


def _calls(page: DemoPage) -> Iterator[DemoCall]:
    """Tricks are played at once; a skill goes on until there is nothing left to call, or something went wrong."""
    tricks = list(_tricks(page)) if not page.made else []
    yield from tricks
    ours = [one for one in page.made if is_of_skills(one.name)]
    is_at_it = bool(ours) if page.made else not tricks
    call = None if any(one.answer is None for one in ours) else next_call(page)
    if call and (is_at_it or (call.name == USE_SKILL and not page.made)):
        yield call


def _tricks(page: DemoPage) -> Iterator[DemoCall]:
    calls = [call for call in _wanted(page.words) if call.name in page.offered]
    yield from calls
    if page.documents and READER in page.offered and (wants_files(page.words) or not calls):
        yield DemoCall(name=READER, arguments=dump({"ids": list(page.documents)}).decode())


def _answer(page: DemoPage) -> str:
    language = page.language
    told = [_told(one, language) for one in page.made if not is_of_skills(one.name)]
    ours = [one for one in page.made if is_of_skills(one.name)]
    failed = [_told(one, language) for one in ours if one.answer is None]
    if not failed and (ours or (in_skill(page) and not told)):
        told.append(tell_skill(page))
    texts = [*told, *failed]
    if not texts:
        can = "".join([*[told[language] for name, told in CAN.items() if name in page.offered], trick(page)])
        return ABOUT[language].format(words=_short(page.words) or NOTHING[language], can=can)
    return ("" if language == "zh" else " ").join(texts)


def find_sum(words: str) -> str | None:
    """The first arithmetic in the words, as a calculator takes it."""
    for found in SUM.finditer(words.translate(SIGNS)):
        expression = _balanced(found[0].rstrip(" .+-*/%^(\t\r\n"))
        if OPERATION.search(expression) and not NO_SUM.fullmatch(expression):
            return expression.replace("^", "**")
    return None


def _balanced(expression: str) -> str:
    """Without the brackets of a sentence around it."""
    while expression.startswith("(") and expression.count("(") > expression.count(")"):
        expression = expression[1:].lstrip()
    while expression.endswith(")") and expression.count(")") > expression.count("("):
        expression = expression[:-1].rstrip()
    return expression


def _wanted(words: str) -> Iterator[DemoCall]:
    expression = find_sum(without_dates(words))
    if expression:
        yield DemoCall(name=CALCULATOR, arguments=dump({"expression": expression}).decode())
    if TIME_WORDS.search(words) and not SPEAKS_OF_BIRTH.search(words):
        yield DemoCall(name=CLOCK, arguments="{}")


def _told(made: Made, language: Language) -> str:
    """What a tool answered, in words."""
    name, result, expression = made.name, made.result, text_of(made.arguments.get("expression"))
    if name == CALCULATOR and NUMBER.fullmatch(result):
        return SUM_ANSWER[language].format(expression=expression, result=result)
    if name == CLOCK and TIME.match(result):
        return TIME_ANSWER[language].format(result=result)
    if name == READER and (files := tell_files(result, language)):
        return files
    # Whatever else these say is why they could not.
    failed = name in (CALCULATOR, CLOCK, READER) or is_of_skills(name) or FAILED.match(result)
    return (TOOL_FAILED if failed else TOOL_ANSWER)[language].format(name=name, result=result)


def _summary(messages: Sequence[Mapping[str, Json]], language: Language) -> str:
    said = [pair for message in messages for pair in SAID.findall(text_of(message.get("content")))]
    lines = [f"- {role}: {_short(text)}" for role, text in said[-SUMMARY_MESSAGES:]]
    return "\n".join((SUMMARY[language], *lines))


def _short(words: str) -> str:
    line = " ".join(words.split())
    return line if len(line) <= QUOTED else f"{line[:QUOTED]}..."
